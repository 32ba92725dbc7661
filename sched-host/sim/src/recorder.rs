//! Traces of simulations.

use super::Platform;
use super::cluster::Cluster;
use super::platform::Worker;
use parking_lot::Mutex;
use sched_core::{Refusal, TaskId, WorkerId};
use sched_graph::TaskGraph;
use sched_trace::{Event, Note, Notes, Observer, Stamped, Trace, WorkerTrack, add_nodes};
use sched_tree::{NoteKind, ObservedNode, TreeObserver};
use std::sync::Arc;

/// Records the events of a simulation for a [`Trace`]. It is an [`Observer`], and has a
/// [`TreeObserver`](Self::tree_observer).
pub struct SimRecorder {
    /// Without events.
    trace: Trace,
    recorded: Arc<Recorded>,
}

/// Reported events. There is one thread, so the locks are never contended.
#[derive(Default)]
struct Recorded {
    events: Mutex<Vec<Stamped>>,
    nodes: Mutex<Vec<String>>,
    notes: Notes,
    contexts: Mutex<Vec<String>>,
}

/// Maximum number of remarks about nodes; further ones are dropped.
const MOST_NOTES: usize = 100_000;

impl Recorded {
    fn note(&self, nanos: u64, event: Event) {
        self.events.lock().push(Stamped { nanos, event });
    }
}

impl SimRecorder {
    /// A recorder for a simulation of this graph on this platform.
    #[must_use]
    pub fn new(graph: Arc<TaskGraph>, platform: Arc<Platform>) -> SimRecorder {
        SimRecorder { trace: platform.empty_trace(&graph, ""), recorded: Arc::default() }
    }

    /// A recorder for a simulation of this graph on this cluster.
    #[must_use]
    pub fn of_cluster(graph: &TaskGraph, cluster: &Cluster) -> SimRecorder {
        SimRecorder { trace: cluster.empty_trace(graph, ""), recorded: Arc::default() }
    }

    /// The observer for [`Simulation::tree_observer`](super::Simulation::tree_observer). Without it, the trace has
    /// neither refusals nor queue lengths.
    #[must_use]
    pub fn tree_observer(&self) -> Arc<dyn TreeObserver> {
        Arc::<Recorded>::clone(&self.recorded)
    }

    /// The trace of all reported events.
    #[must_use]
    pub fn finish(self, title: &str) -> Trace {
        let mut trace = self.trace;
        title.clone_into(&mut trace.title);
        trace.nodes = std::mem::take(&mut self.recorded.nodes.lock());
        trace.notes = self.recorded.notes.take();
        trace.contexts = std::mem::take(&mut self.recorded.contexts.lock());
        let events = std::mem::take(&mut *self.recorded.events.lock());
        trace.with_events(events)
    }
}

impl Platform {
    /// A trace of `graph` on this platform without events.
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
        self.recorded.note(nanos, *event);
    }

    fn contexts(&mut self, names: &[String]) {
        *self.recorded.contexts.lock() = names.to_vec();
    }
}

impl TreeObserver for Recorded {
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

    fn noted(&self, nanos: u64, _by: Option<WorkerId>, node: ObservedNode, kind: NoteKind, text: &str) {
        let note = Note { node, kind, text: text.to_owned() };
        if let Some(note) = self.notes.add(note, MOST_NOTES) {
            self.note(nanos, Event::Noted { note });
        }
    }
}
