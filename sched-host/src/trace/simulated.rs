//! What is told about a simulation, as a trace.

use super::event::{Event, Stamped, Transfer};
use super::recorder::add_nodes;
use super::track::{Trace, WorkerTrack};
use crate::graph::{TaskGraph, TaskId};
use crate::sim::{self, Observer, Platform};
use crate::tree::Witness;
use parking_lot::Mutex;
use sched_core::{Refusal, WorkerId};
use std::sync::Arc;

/// Keeps what happens in a simulation, for a [`Trace`]. It is both [`Observer`] and [`Witness`](Self::witness).
pub struct SimRecorder {
    graph: Arc<TaskGraph>,
    platform: Arc<Platform>,
    told: Arc<Told>,
}

/// What was told. There is one thread, so that nobody ever waits for these locks.
#[derive(Default)]
struct Told {
    events: Mutex<Vec<Stamped>>,
    nodes: Mutex<Vec<String>>,
}

impl SimRecorder {
    /// For a simulation of this graph on this platform.
    #[must_use]
    pub fn new(graph: Arc<TaskGraph>, platform: Arc<Platform>) -> SimRecorder {
        SimRecorder { graph, platform, told: Arc::default() }
    }

    /// For [`Simulation::witness`](sim::Simulation::witness): without it the trace knows neither refusals nor lengths of
    /// queues.
    #[must_use]
    pub fn witness(&self) -> Arc<dyn Witness> {
        Arc::<Told>::clone(&self.told)
    }

    /// The trace of all that was told.
    #[must_use]
    pub fn finish(self, title: &str) -> Trace {
        let SimRecorder { graph, platform, told } = self;
        let mut trace = unstarted(&graph, &platform, title);
        trace.nodes = std::mem::take(&mut told.nodes.lock());
        let events = std::mem::take(&mut *told.events.lock());
        trace.with_events(events)
    }
}

/// A trace of a graph on a platform, in which nothing happens yet.
pub(super) fn unstarted(graph: &TaskGraph, platform: &Platform, title: &str) -> Trace {
    let class = |worker: &sim::platform::Worker| platform.classes[worker.class].name.clone();
    let workers = platform.workers.iter().enumerate();
    let tasks = graph.tasks.iter().zip(1u64..);
    let data = graph.data.iter().zip(0u32..);
    Trace {
        title: title.to_owned(),
        workers: workers.map(|(id, worker)| WorkerTrack::new(id, class(worker))).collect(),
        memories: platform.memories.iter().map(|memory| memory.name.clone()).collect(),
        codelets: graph.kinds.iter().map(|kind| kind.name.clone()).collect(),
        names: tasks.filter_map(|(task, number)| Some((number, task.name.as_deref()?.into()))).collect(),
        data: data.filter_map(|(datum, number)| Some((number, datum.name.as_deref()?.into()))).collect(),
        ..Trace::default()
    }
}

/// The number of a task, as witnesses know it.
pub(super) fn number(task: TaskId) -> u64 {
    u64::from(task.0) + 1
}

impl SimRecorder {
    fn translated(&self, event: &sim::Event) -> Option<Event> {
        let transfer = |of: &sim::Transfer| Transfer {
            data: of.data.0,
            from: of.from.0,
            to: of.to.0,
            bytes: self.graph.data[of.data.index()].bytes,
            why: of.why,
        };
        Some(match *event {
            sim::Event::Submitted(task) => Event::Submitted { task: number(task) },
            sim::Event::Pulled(task, worker) => Event::Pulled { task: number(task), worker },
            sim::Event::Started(task, worker) => {
                Event::Started { task: number(task), worker, codelet: self.graph.task(task).kind.0 }
            }
            sim::Event::Ended(task, worker) => Event::Ended { task: number(task), worker },
            sim::Event::Pushed(task, by) => Event::Ready { task: number(task), by },
            sim::Event::Idle(worker) => Event::Idle { worker },
            sim::Event::Woken(worker) => Event::Woken { worker },
            sim::Event::TransferStarted(of) => Event::TransferStarted(transfer(&of)),
            sim::Event::TransferEnded(of) => Event::TransferEnded(transfer(&of)),
            // A task without work leaves no mark.
            sim::Event::Passed(_) => return None,
        })
    }
}

impl Observer for SimRecorder {
    fn event(&mut self, nanos: u64, event: &sim::Event) {
        if let Some(event) = self.translated(event) {
            self.told.events.lock().push(Stamped { nanos, event });
        }
    }
}

impl Witness for Told {
    fn nodes(&self, paths: &[&str]) -> u32 {
        add_nodes(&mut self.nodes.lock(), paths)
    }

    /// The observer is told the same.
    fn ready(&self, _nanos: u64, _by: Option<WorkerId>, _task: u64) {}

    fn held(&self, nanos: u64, _by: Option<WorkerId>, task: u64, node: u32) {
        self.events.lock().push(Stamped { nanos, event: Event::Held { task, node } });
    }

    fn refused(&self, nanos: u64, _by: Option<WorkerId>, task: u64, node: u32, why: Refusal) {
        self.events.lock().push(Stamped { nanos, event: Event::Refused { task, node, why } });
    }
}
