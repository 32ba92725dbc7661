//! What comes: the tasks that are submitted, for who plans ahead.

use super::Node;
use crate::abi::extension::{HostGraph, RawSubmitted, offered};
use crate::abi::wire::CallRef;
use crate::estimate::Estimate;
use crate::workers::{MemoryNode, WorkerId};
use std::ops::Range;
use std::time::Duration;

/// How far a submitted task has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum Stage {
    /// It waits for other tasks, or has just ceased to.
    Waiting = 0,
    /// It waits for nothing any more, and is in the scheduler.
    Ready = 1,
    /// A worker has taken it.
    Taken = 2,
    /// It is done.
    Ended = 3,
}

/// A task that is submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubmittedTask {
    /// How far it has come.
    pub stage: Stage,
    /// No worker executes it: it ends by itself as soon as it waits for nothing.
    pub passes: bool,
    successors: u32,
    accesses: u32,
}

/// What a task does with a piece of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataAccess {
    /// Which data, by a number of the host's.
    pub data: u64,
    /// Its size.
    pub bytes: u64,
    /// The task needs what is in it.
    pub reads: bool,
    /// The task changes it.
    pub writes: bool,
}

/// The tasks that are submitted, by their [sequences](crate::TaskId::sequence): a service of the host, of which each answer is
/// as of now.
///
/// It may be asked at any time. Of a task that has ended a host may tell nothing any more, and what a task accesses it may
/// forget when a worker takes it. Where there are several contexts, each tree is told of the tasks that come to it.
///
/// To ask for it costs the application something with each task, so a component asks that goes by it, and no other.
#[derive(Clone, Copy)]
pub struct Submitted<'a> {
    table: &'static HostGraph,
    call: CallRef<'a>,
}

impl Node<'_> {
    /// The tasks that are submitted, with what they wait for and what they access; `None` where the host does not tell.
    /// (Since 1.1. The runtime tells, and the simulator where there is one context only.)
    #[must_use]
    pub fn submitted(&self) -> Option<Submitted<'_>> {
        let table = offered::<HostGraph>(self.raw.host())?;
        Some(Submitted { table, call: self.raw.call() })
    }
}

impl Submitted<'_> {
    /// Which tasks there are: all before the first have ended, and the last was submitted last. Some in between may have
    /// ended as well.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let range = (self.table.range)(self.call);
        range.first..range.end.max(range.first)
    }

    /// One of them, if it is known.
    #[must_use]
    pub fn task(&self, task: u64) -> Option<SubmittedTask> {
        known((self.table.task)(self.call, task))
    }

    /// All of them that have not ended, in order of submission. Numbers without a task are passed over, however many they are.
    pub fn tasks(&self) -> impl Iterator<Item = (u64, SubmittedTask)> {
        let Range { start: mut next, end } = self.range();
        std::iter::from_fn(move || {
            while next < end {
                let (sequence, raw) = (next, (self.table.task)(self.call, next));
                let task = known(raw);
                next += if task.is_none() { u64::from(raw.successors.max(1)) } else { 1 };
                if let Some(task) = task.filter(|task| task.stage != Stage::Ended) {
                    return Some((sequence, task));
                }
            }
            None
        })
    }

    /// The tasks that wait for `task`, which [`task`](Self::task) gave as `of`.
    pub fn successors(&self, task: u64, of: SubmittedTask) -> impl Iterator<Item = u64> {
        let all = (0..of.successors).map(move |index| (self.table.successor)(self.call, task, index));
        all.filter(|task| *task != RawSubmitted::NO_TASK)
    }

    /// What `task` accesses, which [`task`](Self::task) gave as `of`.
    pub fn accesses(&self, task: u64, of: SubmittedTask) -> impl Iterator<Item = DataAccess> {
        (0..of.accesses).map(move |index| {
            let access = (self.table.access)(self.call, task, index);
            DataAccess { data: access.data, bytes: access.bytes, reads: access.reads, writes: access.writes }
        })
    }

    /// How long `task` should take on `worker`.
    #[must_use]
    pub fn expected_length(&self, task: u64, worker: WorkerId) -> Estimate {
        Estimate::from_wire((self.table.length)(self.call, task, worker.0))
    }

    /// Whether there is a copy of `data` in a memory node now.
    #[must_use]
    pub fn has_copy(&self, data: u64, memory_node: MemoryNode) -> bool {
        memory_node.0 < u64::BITS && (self.table.copies)(self.call, data) & 1 << memory_node.0 != 0
    }

    /// How long so many bytes should take from one memory node to another.
    #[must_use]
    pub fn expected_transfer(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> Duration {
        Duration::from_nanos((self.table.transfer)(self.call, from.0, to.0, bytes))
    }
}

fn known(raw: RawSubmitted) -> Option<SubmittedTask> {
    let RawSubmitted { stage, successors, accesses, passes } = raw;
    let stage = match stage {
        0 => Stage::Waiting,
        1 => Stage::Ready,
        2 => Stage::Taken,
        3 => Stage::Ended,
        _ => return None,
    };
    Some(SubmittedTask { stage, passes, successors, accesses })
}
