//! What each worker and each link did at any time.

use super::event::{CodeletId, Event, Transfer};
use super::track::Trace;
use sched_core::{MemoryNode, TaskId, WorkerId};
use sched_graph::DataId;
use std::collections::BTreeMap;

/// A trace, cut into what each worker and each link did, one after the other.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// Of each worker, by number, its spans in the order of time. They do not overlap. A worker that is in none is between
    /// two tasks.
    pub workers: Vec<Vec<Span>>,
    /// Transfers from one memory to another, for each such pair that had any.
    pub links: BTreeMap<(MemoryNode, MemoryNode), Vec<LinkSpan>>,
}

/// What a worker did from one moment to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// When it began, in nanoseconds.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// What it was.
    pub activity: Activity,
}

/// What a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// It executes a task.
    Task {
        /// The task.
        task: TaskId,
        /// Its codelet.
        codelet: CodeletId,
    },
    /// It has a task, and waits for the task's data; or it is in a team, and waits for the others, or for the data.
    Fetching {
        /// The task.
        task: TaskId,
    },
    /// It has nothing to do.
    Idle,
}

/// A transfer from one moment to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkSpan {
    /// When it began, in nanoseconds.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// What moved.
    pub transfer: Transfer,
}

impl Timeline {
    /// Of this trace.
    #[must_use]
    pub fn of(trace: &Trace) -> Timeline {
        let mut workers: Vec<Track> = trace.workers.iter().map(|_| Track::default()).collect();
        let mut links: BTreeMap<(MemoryNode, MemoryNode), Vec<LinkSpan>> = BTreeMap::new();
        let mut moving: BTreeMap<(DataId, MemoryNode, MemoryNode), u64> = BTreeMap::new();
        for stamped in &trace.events {
            let now = stamped.nanos;
            match stamped.event {
                Event::Pulled { worker, task } => on(&mut workers, worker, |track| track.pulled(now, task)),
                Event::Started { worker, task, codelet } => {
                    on(&mut workers, worker, |track| track.started(now, task, codelet));
                }
                Event::Ended { worker, task } => on(&mut workers, worker, |track| track.ended(now, task)),
                Event::Idle { worker } => on(&mut workers, worker, |track| track.idle(now)),
                Event::TransferStarted(transfer) => {
                    moving.insert((transfer.data, transfer.from, transfer.to), now);
                }
                Event::TransferEnded(transfer) => {
                    if let Some(begin) = moving.remove(&(transfer.data, transfer.from, transfer.to)) {
                        let spans = links.entry((transfer.from, transfer.to)).or_default();
                        spans.push(LinkSpan { begin, end: now, transfer });
                    }
                }
                _ => {}
            }
        }
        for spans in links.values_mut() {
            spans.sort_by_key(|span| (span.begin, span.end));
        }
        Timeline { workers: workers.into_iter().map(|track| track.finish(trace.end)).collect(), links }
    }
}

fn on(workers: &mut [Track], worker: WorkerId, what: impl FnOnce(&mut Track)) {
    if let Some(track) = workers.get_mut(worker.0 as usize) {
        what(track);
    }
}

/// One worker, as far as it has been looked at.
struct Track {
    spans: Vec<Span>,
    running: Option<(u64, TaskId, CodeletId)>,
    idle_since: Option<u64>,
    /// Tasks that it has and does not execute yet.
    waiting: Vec<TaskId>,
    waiting_since: u64,
}

impl Default for Track {
    /// In the beginning there is nothing to do.
    fn default() -> Track {
        Track { spans: Vec::new(), running: None, idle_since: Some(0), waiting: Vec::new(), waiting_since: 0 }
    }
}

impl Track {
    fn span(&mut self, begin: u64, end: u64, activity: Activity) {
        // A task is there even if it takes no time.
        if end > begin || matches!(activity, Activity::Task { .. }) {
            self.spans.push(Span { begin, end, activity });
        }
    }

    fn no_longer_idle(&mut self, now: u64) {
        if let Some(since) = self.idle_since.take() {
            self.span(since, now, Activity::Idle);
        }
    }

    fn pulled(&mut self, now: u64, task: TaskId) {
        self.no_longer_idle(now);
        if self.waiting.is_empty() {
            self.waiting_since = now;
        }
        self.waiting.push(task);
    }

    fn started(&mut self, now: u64, task: TaskId, codelet: CodeletId) {
        self.no_longer_idle(now);
        if let Some(place) = self.waiting.iter().position(|waiting| *waiting == task) {
            self.waiting.remove(place);
            if self.running.is_none() {
                self.span(self.waiting_since, now, Activity::Fetching { task });
            }
        }
        self.running = Some((now, task, codelet));
    }

    fn ended(&mut self, now: u64, task: TaskId) {
        if let Some((begin, running, codelet)) = self.running.take_if(|(_, running, _)| *running == task) {
            self.span(begin, now, Activity::Task { task: running, codelet });
        }
        self.waiting_since = now;
    }

    fn idle(&mut self, now: u64) {
        if self.running.is_none() && self.waiting.is_empty() {
            self.idle_since.get_or_insert(now);
        }
    }

    /// What lasts beyond the end of the last task is cut there; a task that did not end is left out.
    fn finish(mut self, end: u64) -> Vec<Span> {
        self.no_longer_idle(end);
        self.spans.retain(|span| span.begin <= end);
        for span in &mut self.spans {
            span.end = span.end.min(end);
        }
        self.spans
    }
}
