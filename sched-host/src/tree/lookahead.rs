//! What a back end tells components of tasks that are still to come: [`HostGraph`].

use super::node::record;
use sched_core::abi::extension::{HostGraph, RawAccess, RawRange, RawSubmitted};
use sched_core::abi::wire::CallRef;
use sched_core::{DataAccess, Estimate, MemoryNode, Stage, WorkerId};
use std::ops::Range;

/// The tasks that are submitted, by their sequences. None of its methods calls a component.
pub trait Lookahead {
    /// Which tasks there are: all before the first have ended.
    fn range(&self) -> Range<u64>;

    /// How far a task has come, whether it ends by itself, how many submitted tasks wait for it, and how many pieces of data
    /// it accesses; `None` where there is no such task.
    fn task(&self, task: u64) -> Option<(Stage, bool, usize, usize)>;

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

pub(super) static GRAPH: HostGraph = HostGraph { range, task, successor, access, length, copies, transfer };

fn ahead<'a>(call: CallRef<'a>) -> Option<&'a dyn Lookahead> {
    record(call).tree.services.lookahead()
}

extern "C" fn range(call: CallRef<'_>) -> RawRange {
    let range = ahead(call).map_or(0..0, Lookahead::range);
    RawRange { first: range.start, end: range.end }
}

extern "C" fn task(call: CallRef<'_>, task: u64) -> RawSubmitted {
    let Some((stage, passes, successors, accesses)) = ahead(call).and_then(|ahead| ahead.task(task)) else {
        return RawSubmitted::ABSENT;
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
