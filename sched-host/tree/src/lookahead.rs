//! What a back end tells components of tasks that are still to come: [`HostGraph`].

use super::node::record;
use sched_core::abi::extension::{HostGraph, RawAccess, RawRange, RawSubmitted};
use sched_core::abi::wire::CallRef;
use sched_core::{DataAccess, Estimate, MemoryNode, Stage, WorkerId};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The tasks that are submitted, by their sequences. None of its methods calls a component.
pub trait Lookahead: Send + Sync {
    /// A tree has a component that asks: what it tells is true from now on.
    fn begin(&self) {}

    /// Such a tree is gone.
    fn end(&self) {}

    /// Which tasks there are: all before the first have ended.
    fn range(&self) -> Range<u64>;

    /// How far a task has come, whether it ends by itself, how many submitted tasks wait for it, and how many pieces of data
    /// it accesses; `None` where there is no such task.
    fn task(&self, task: u64) -> Option<(Stage, bool, usize, usize)>;

    /// A later task than this one, before which there is none; where it is not known, the next number.
    fn next(&self, task: u64) -> u64 {
        task + 1
    }

    /// One of those that wait for a task.
    fn successor(&self, task: u64, index: usize) -> Option<u64>;

    /// One of the accesses of a task.
    fn access(&self, task: u64, index: usize) -> Option<DataAccess>;

    /// How long a task should take on a worker.
    fn length(&self, task: u64, worker: WorkerId) -> Estimate;

    /// Bit *n*: there is a copy of `data` in memory node *n*.
    fn copies(&self, data: u64) -> u64;

    /// Nanoseconds that so many bytes should take.
    fn transfer(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> u64;
}

/// What a back end tells one tree of tasks to come: nothing is done for that before a component asks.
pub(super) struct Foresight {
    of: Arc<dyn Lookahead>,
    asked: OnceLock<()>,
}

impl Foresight {
    pub(super) fn new(of: Arc<dyn Lookahead>) -> Foresight {
        Foresight { of, asked: OnceLock::new() }
    }

    /// A component asks. Others who do so meanwhile wait until there is something to tell.
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
