//! Recorder of the events of a runtime.

use super::event::{Event, Note, Stamped};
use super::notes::Notes;
use super::track::{Trace, WorkerTrack};
use crossbeam::queue::SegQueue;
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use sched_core::{Refusal, TaskId, WorkerId};
use sched_tree::{NoteKind, ObservedNode, TreeObserver};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Records the events of a runtime in a lock-free queue for each worker and one for the application. Events beyond the
/// capacity of a queue are dropped and counted.
pub struct Recorder {
    /// One for each worker, and the last for the application.
    lanes: Box<[CachePadded<Lane>]>,
    most: usize,
    nodes: Mutex<Vec<String>>,
    notes: Notes,
    names: SegQueue<(TaskId, Arc<str>)>,
}

#[derive(Default)]
struct Lane {
    events: SegQueue<Stamped>,
    written: AtomicUsize,
    dropped: AtomicU64,
}

impl Recorder {
    /// A recorder for `workers` workers, with room for `most` events of each.
    #[must_use]
    pub fn new(workers: usize, most: usize) -> Recorder {
        let lanes = (0..=workers).map(|_| CachePadded::default()).collect();
        Recorder { lanes, most, nodes: Mutex::default(), notes: Notes::default(), names: SegQueue::new() }
    }

    /// Records an event of a worker, or of the application.
    #[cold]
    pub fn note(&self, nanos: u64, by: Option<WorkerId>, event: Event) {
        let application = self.lanes.len() - 1;
        let lane = &self.lanes[by.map_or(application, |worker| worker.index().min(application))];
        if lane.written.fetch_add(1, Relaxed) < self.most {
            lane.events.push(Stamped { nanos, event });
        } else {
            lane.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Records the name of a task.
    pub fn name(&self, task: TaskId, name: &Arc<str>) {
        if self.names.len() < self.most.saturating_mul(self.lanes.len()) {
            self.names.push((task, Arc::clone(name)));
        }
    }

    /// Removes the events recorded so far and returns them as a trace of these workers and codelets.
    #[must_use]
    pub fn take(&self, title: String, workers: Vec<WorkerTrack>, codelets: Vec<String>) -> Trace {
        let mut events = Vec::new();
        let mut dropped = 0;
        for lane in &self.lanes {
            let before = events.len();
            events.extend(std::iter::from_fn(|| lane.events.pop()));
            dropped += lane.dropped.swap(0, Relaxed);
            // Events beyond were dropped, and are reported in this trace.
            let kept = events.len() - before;
            let _ = lane
                .written
                .fetch_update(Relaxed, Relaxed, |written| Some(written.min(self.most).saturating_sub(kept)));
        }
        let names = std::iter::from_fn(|| self.names.pop()).collect();
        let nodes = self.nodes.lock().clone();
        let notes = self.notes.take();
        Trace { title, workers, nodes, codelets, names, notes, dropped, ..Trace::default() }.with_events(events)
    }
}

impl TreeObserver for Recorder {
    fn nodes(&self, paths: &[&str]) -> ObservedNode {
        add_nodes(&mut self.nodes.lock(), paths)
    }

    fn ready(&self, nanos: u64, by: Option<WorkerId>, task: TaskId) {
        self.note(nanos, by, Event::Ready { task, by });
    }

    fn held(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, node: ObservedNode) {
        self.note(nanos, by, Event::Held { task, node });
    }

    fn refused(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, node: ObservedNode, why: Refusal) {
        self.note(nanos, by, Event::Refused { task, node, why });
    }

    fn noted(&self, nanos: u64, by: Option<WorkerId>, node: ObservedNode, kind: NoteKind, text: &str) {
        let note = Note { node, kind, text: text.to_owned() };
        if let Some(note) = self.notes.add(note, self.most) {
            self.note(nanos, by, Event::Noted { note });
        }
    }
}

/// Adds the nodes of a tree to those of a trace, and returns the first: what [`TreeObserver::nodes`] asks for.
pub fn add_nodes(nodes: &mut Vec<String>, paths: &[&str]) -> ObservedNode {
    let first = ObservedNode(nodes.len() as u32);
    nodes.extend(paths.iter().map(ToString::to_string));
    first
}
