//! Submitted tasks, as a back end provides them to components: [`HostGraph`].

use super::node::record;
use sched_core::abi::extension::{HostGraph, HostSubmission, RawAccess, RawRange, RawSubmitted};
use sched_core::abi::wire::CallRef;
use sched_core::{DataAccess, Estimate, MemoryNode, Stage, WorkerId};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Submitted tasks by sequence. None of the methods calls a component.
pub trait Lookahead: Send + Sync {
    /// Notes that a tree has a component that asks: answers are valid from now on.
    fn begin(&self) {}

    /// Notes that such a tree is dropped.
    fn end(&self) {}

    /// Whether the application is submitting tasks now; `None` if that is unknown. Whoever answers `Some(true)` wakes a
    /// sleeping worker when that has ended.
    fn goes_on(&self) -> Option<bool> {
        None
    }

    /// Range of sequences: all tasks before the first have ended.
    fn range(&self) -> Range<u64>;

    /// Stage of a task, whether it ends by itself, number of submitted tasks that wait for it, and number of its data
    /// accesses; `None` if there is no such task.
    fn task(&self, task: u64) -> Option<(Stage, bool, usize, usize)>;

    /// The next task after this one; the next number if that is unknown.
    fn next(&self, task: u64) -> u64 {
        task.saturating_add(1)
    }

    /// One of the tasks that wait for a task.
    fn successor(&self, task: u64, index: usize) -> Option<u64>;

    /// One of the accesses of a task.
    fn access(&self, task: u64, index: usize) -> Option<DataAccess>;

    /// Expected length of a task on a worker.
    fn length(&self, task: u64, worker: WorkerId) -> Estimate;

    /// Bit *n* tells whether memory node *n* has a copy of `data`.
    fn copies(&self, data: u64) -> u64;

    /// Expected nanoseconds to transfer `bytes` bytes.
    fn transfer(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> u64;
}

/// Access of one tree to the tasks to come. It costs nothing before a component asks.
pub(super) struct Foresight {
    of: Arc<dyn Lookahead>,
    asked: OnceLock<()>,
}

impl Foresight {
    pub(super) fn new(of: Arc<dyn Lookahead>) -> Foresight {
        Foresight { of, asked: OnceLock::new() }
    }

    /// Starts the source at the first request. Concurrent requests wait until it has started.
    pub(super) fn ask(&self) {
        self.asked.get_or_init(|| self.of.begin());
    }
}

impl Drop for Foresight {
    fn drop(&mut self) {
        if self.asked.get().is_some() {
            self.of.end();
        }
    }
}

pub(super) static GRAPH: HostGraph = HostGraph { range, task, successor, access, length, copies, transfer };

fn ahead<'a>(call: CallRef<'a>) -> Option<&'a dyn Lookahead> {
    record(call).tree.foresight.as_ref().map(|foresight| &*foresight.of)
}

pub(super) static SUBMISSION: HostSubmission = HostSubmission { state };

extern "C" fn state(call: CallRef<'_>) -> u32 {
    match ahead(call).and_then(Lookahead::goes_on) {
        Some(true) => HostSubmission::GOES_ON,
        Some(false) => HostSubmission::ENDED,
        None => HostSubmission::UNKNOWN,
    }
}

extern "C" fn range(call: CallRef<'_>) -> RawRange {
    let range = ahead(call).map_or(0..0, Lookahead::range);
    RawRange { first: range.start, end: range.end }
}

extern "C" fn task(call: CallRef<'_>, task: u64) -> RawSubmitted {
    let Some(ahead) = ahead(call) else { return RawSubmitted::ABSENT };
    let Some((stage, passes, successors, accesses)) = ahead.task(task) else {
        let none = u32::try_from(ahead.next(task).saturating_sub(task)).unwrap_or(u32::MAX);
        return RawSubmitted { successors: none, ..RawSubmitted::ABSENT };
    };
    RawSubmitted { stage: stage as u32, successors: successors as u32, accesses: accesses as u32, passes }
}

extern "C" fn successor(call: CallRef<'_>, task: u64, index: u32) -> u64 {
    ahead(call).and_then(|ahead| ahead.successor(task, index as usize)).unwrap_or(RawSubmitted::NO_TASK)
}

extern "C" fn access(call: CallRef<'_>, task: u64, index: u32) -> RawAccess {
    let none = DataAccess { data: 0, bytes: 0, reads: false, writes: false };
    let DataAccess { data, bytes, reads, writes } =
        ahead(call).and_then(|ahead| ahead.access(task, index as usize)).unwrap_or(none);
    RawAccess { data, bytes, reads, writes }
}

extern "C" fn length(call: CallRef<'_>, task: u64, worker: u32) -> u64 {
    ahead(call).map_or(Estimate::NoModel, |ahead| ahead.length(task, WorkerId(worker))).to_wire()
}

extern "C" fn copies(call: CallRef<'_>, data: u64) -> u64 {
    ahead(call).map_or(0, |ahead| ahead.copies(data))
}

extern "C" fn transfer(call: CallRef<'_>, from: u32, to: u32, bytes: u64) -> u64 {
    ahead(call).map_or(0, |ahead| ahead.transfer(MemoryNode(from), MemoryNode(to), bytes))
}
