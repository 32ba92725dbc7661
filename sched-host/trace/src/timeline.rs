//! Activities of workers and links over time.

use super::event::{CodeletId, Event, Transfer};
use super::track::Trace;
use sched_core::{MemoryNode, TaskId, WorkerId};
use sched_graph::DataId;
use std::collections::BTreeMap;

/// Activities of each worker and each link, in the order of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// Spans of each worker in the order of time, without overlap. In the gaps the worker is between two tasks.
    pub workers: Vec<Vec<Span>>,
    /// Transfers from one memory node to another, for each pair that had any.
    pub links: BTreeMap<(MemoryNode, MemoryNode), Vec<LinkSpan>>,
}

/// Activity of a worker from one time to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Begin in nanoseconds.
    pub begin: u64,
    /// End in nanoseconds.
    pub end: u64,
    /// The activity.
    pub activity: Activity,
}

/// Activity of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Executes a task.
    Task {
        /// The task.
        task: TaskId,
        /// Its codelet.
        codelet: CodeletId,
    },
    /// Waits for the data of a task that it has pulled, or, in a team, for the other members or the data.
    Fetching {
        /// The task.
        task: TaskId,
    },
    /// Has no task.
    Idle,
}

/// A transfer from one time to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkSpan {
    /// Begin in nanoseconds.
    pub begin: u64,
    /// End in nanoseconds.
    pub end: u64,
    /// The transfer.
    pub transfer: Transfer,
}

impl Timeline {
    /// Timeline of this trace.
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
    if let Some(track) = workers.get_mut(worker.index()) {
        what(track);
    }
}

/// State of one worker while its events are read.
struct Track {
    spans: Vec<Span>,
    running: Option<(u64, TaskId, CodeletId)>,
    idle_since: Option<u64>,
    /// Tasks that it has pulled and does not execute yet.
    waiting: Vec<TaskId>,
    waiting_since: u64,
}

impl Default for Track {
    /// A worker is idle at first.
    fn default() -> Track {
        Track { spans: Vec::new(), running: None, idle_since: Some(0), waiting: Vec::new(), waiting_since: 0 }
    }
}

impl Track {
    fn span(&mut self, begin: u64, end: u64, activity: Activity) {
        // A task is kept even if it takes no time.
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

    /// Cuts spans at the end of the last task. A task that did not end is left out.
    fn finish(mut self, end: u64) -> Vec<Span> {
        self.no_longer_idle(end);
        self.spans.retain(|span| span.begin <= end);
        for span in &mut self.spans {
            span.end = span.end.min(end);
        }
        self.spans
    }
}
