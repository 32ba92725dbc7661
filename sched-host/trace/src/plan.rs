//! Traces of static schedules, to be drawn beside others.

use super::event::{CodeletId, Event, Stamped};
use super::track::Trace;
use sched_core::WorkerId;
use sched_graph::reference::{Placement, Schedule};
use sched_graph::{TaskGraph, TaskId};
use std::time::Duration;

/// Trace of a run of `graph` that follows `schedule`, whose processors are the workers of `empty`, a trace without
/// events. It has no transfers: static schedules do not place them.
#[must_use]
pub fn planned(graph: &TaskGraph, schedule: &Schedule, empty: Trace) -> Trace {
    let submitted = Event::Submitted { task: TaskId(0).submitted() };
    let mut events = vec![Stamped { nanos: 0, event: submitted }];
    let mut planned: Vec<(&Placement, TaskId)> = schedule.placements().iter().zip(graph.ids()).collect();
    // Events at the same time stay in the order of each processor.
    planned.sort_by(|(a, _), (b, _)| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
    planned.sort_by_key(|(placement, _)| placement.processor);
    for (placement, id) in planned {
        let task = graph.task(id);
        if !graph.kind_of(task).runs {
            continue;
        }
        let (task, worker, codelet) = (id.submitted(), WorkerId(placement.processor.0), CodeletId(task.kind.0));
        let (begin, end) = (nanos(placement.start), nanos(placement.end));
        events.push(Stamped { nanos: begin, event: Event::Started { task, worker, codelet } });
        events.push(Stamped { nanos: end, event: Event::Ended { task, worker } });
        events.push(Stamped { nanos: end, event: Event::Idle { worker } });
    }
    empty.with_events(events)
}

fn nanos(seconds: f64) -> u64 {
    Duration::try_from_secs_f64(seconds).map_or(u64::MAX, |length| length.as_nanos() as u64)
}
