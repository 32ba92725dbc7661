//! A simulation as a trace.

use super::Platform;
use super::platform::Worker;
use parking_lot::Mutex;
use sched_core::{Refusal, TaskId, WorkerId};
use sched_graph::TaskGraph;
use sched_trace::{Event, Observer, Stamped, Trace, WorkerTrack, add_nodes};
use sched_tree::{ObservedNode, TreeObserver};
use std::sync::Arc;

/// Keeps what happens in a simulation, for a [`Trace`]. It is both [`Observer`] and [`TreeObserver`](Self::tree_observer).
pub struct SimRecorder {
    graph: Arc<TaskGraph>,
    platform: Arc<Platform>,
    seen: Arc<Seen>,
}

/// What was reported. There is one thread, so that nobody ever waits for these locks.
#[derive(Default)]
struct Seen {
    events: Mutex<Vec<Stamped>>,
    nodes: Mutex<Vec<String>>,
}

impl Seen {
    fn note(&self, nanos: u64, event: Event) {
        self.events.lock().push(Stamped { nanos, event });
    }
}

impl SimRecorder {
    /// For a simulation of this graph on this platform.
    #[must_use]
    pub fn new(graph: Arc<TaskGraph>, platform: Arc<Platform>) -> SimRecorder {
        SimRecorder { graph, platform, seen: Arc::default() }
    }

    /// For [`Simulation::tree_observer`](super::Simulation::tree_observer): without it the trace knows neither refusals nor lengths of
    /// queues.
    #[must_use]
    pub fn tree_observer(&self) -> Arc<dyn TreeObserver> {
        Arc::<Seen>::clone(&self.seen)
    }

    /// The trace of all that was reported.
    #[must_use]
    pub fn finish(self, title: &str) -> Trace {
        let mut trace = self.platform.empty_trace(&self.graph, title);
        trace.nodes = std::mem::take(&mut self.seen.nodes.lock());
        let events = std::mem::take(&mut *self.seen.events.lock());
        trace.with_events(events)
    }
}

impl Platform {
    /// A trace of `graph` on this platform, in which nothing happens yet.
    #[must_use]
    pub fn empty_trace(&self, graph: &TaskGraph, title: &str) -> Trace {
        let class = |worker: &Worker| self.classes[worker.class].name.clone();
        let workers = self.workers.iter().enumerate();
        let mut trace = Trace::of_graph(graph, title);
        trace.workers = workers.map(|(id, worker)| WorkerTrack::new(id, class(worker))).collect();
        trace.memories = self.memories.iter().map(|memory| memory.name.clone()).collect();
        trace
    }
}

impl Observer for SimRecorder {
    fn event(&mut self, nanos: u64, event: &Event) {
        self.seen.note(nanos, *event);
    }
}

impl TreeObserver for Seen {
    fn nodes(&self, paths: &[&str]) -> ObservedNode {
        add_nodes(&mut self.nodes.lock(), paths)
    }

    /// The engine reports this to the observer.
    fn ready(&self, _nanos: u64, _by: Option<WorkerId>, _task: TaskId) {}

    fn held(&self, nanos: u64, _by: Option<WorkerId>, task: TaskId, node: ObservedNode) {
        self.note(nanos, Event::Held { task, node });
    }

    fn refused(&self, nanos: u64, _by: Option<WorkerId>, task: TaskId, node: ObservedNode, why: Refusal) {
        self.note(nanos, Event::Refused { task, node, why });
    }
}
