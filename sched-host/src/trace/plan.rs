//! A static schedule as a trace, to be drawn beside others.

use super::event::{Event, Stamped};
use super::simulated::{number, unstarted};
use super::track::Trace;
use crate::graph::{TaskGraph, TaskId};
use crate::reference::{Placement, Schedule};
use crate::sim::Platform;
use sched_core::WorkerId;
use std::time::Duration;

/// The trace of a run that would go as `schedule` plans it, whose processors are the workers of `platform`. It has no
/// transfers: static schedules plan none of them one by one.
#[must_use]
pub fn planned(graph: &TaskGraph, platform: &Platform, schedule: &Schedule, title: &str) -> Trace {
    let mut events = vec![Stamped { nanos: 0, event: Event::Submitted { task: 1 } }];
    let mut planned: Vec<(&Placement, TaskId)> = schedule.placements().iter().zip(graph.ids()).collect();
    // What happens at the same moment stays in the order of each processor.
    planned.sort_by(|(a, _), (b, _)| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
    planned.sort_by_key(|(placement, _)| placement.processor);
    for (placement, id) in planned {
        let task = graph.task(id);
        if !graph.kind_of(task).runs {
            continue;
        }
        let (task, worker, codelet) = (number(id), WorkerId(placement.processor as u32), task.kind.0);
        let (begin, end) = (nanos(placement.start), nanos(placement.end));
        events.push(Stamped { nanos: begin, event: Event::Started { task, worker, codelet } });
        events.push(Stamped { nanos: end, event: Event::Ended { task, worker } });
        events.push(Stamped { nanos: end, event: Event::Idle { worker } });
    }
    unstarted(graph, platform, title).with_events(events)
}

fn nanos(seconds: f64) -> u64 {
    Duration::try_from_secs_f64(seconds).map_or(u64::MAX, |length| length.as_nanos() as u64)
}
