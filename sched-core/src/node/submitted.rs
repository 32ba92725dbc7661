//! The submitted tasks, for components that plan ahead.

use super::Node;
use crate::abi::extension::{HostGraph, HostSubmission, RawSubmitted, offered};
use crate::abi::wire::CallRef;
use crate::estimate::Estimate;
use crate::workers::{MemoryNode, WorkerId};
use std::ops::Range;
use std::time::Duration;

/// Progress of a submitted task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum Stage {
    /// It waits for other tasks, or has just stopped waiting.
    Waiting = 0,
    /// It waits for nothing and is in the scheduler.
    Ready = 1,
    /// A worker has taken it.
    Taken = 2,
    /// It is done.
    Ended = 3,
}

/// A task that is submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubmittedTask {
    /// Its progress.
    pub stage: Stage,
    /// No worker executes it: it ends by itself as soon as it waits for nothing.
    pub passes: bool,
    successors: u32,
    accesses: u32,
}

/// An access of a task to a piece of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataAccess {
    /// The data, by the host's number.
    pub data: u64,
    /// Its size.
    pub bytes: u64,
    /// Whether the task needs the contents.
    pub reads: bool,
    /// Whether the task modifies the contents.
    pub writes: bool,
}

/// The submitted tasks, by their [sequence numbers](crate::TaskId::sequence). A service of the host; every answer is a
/// snapshot.
///
/// It may be queried at any time. A host may forget a task that has ended, and a task's accesses once a worker takes
/// it. With several contexts, each tree sees the tasks that come to it.
///
/// The first query makes every later submission more expensive, so only components that use the answers should ask.
#[derive(Clone, Copy)]
pub struct Submitted<'a> {
    table: &'static HostGraph,
    call: CallRef<'a>,
}

impl Node<'_> {
    /// The submitted tasks, with their dependencies and accesses; `None` if the host does not provide them. (Since 1.1.
    /// The runtime provides them, and so does the simulator when there is one context.)
    #[must_use]
    pub fn submitted(&self) -> Option<Submitted<'_>> {
        let table = offered::<HostGraph>(self.raw.host())?;
        Some(Submitted { table, call: self.raw.call() })
    }

    /// Whether the application is submitting tasks now, rather than waiting for them; `None` if the host does not know.
    /// Who gets `Some(true)` is called again when that has ended, since a sleeping worker of the tree is woken then.
    /// (Since 1.1. The simulator knows it where it provides [`submitted`](Self::submitted) tasks, the runtime does
    /// not.)
    #[must_use]
    pub fn submission_goes_on(&self) -> Option<bool> {
        let table = offered::<HostSubmission>(self.raw.host())?;
        match (table.state)(self.raw.call()) {
            HostSubmission::ENDED => Some(false),
            HostSubmission::GOES_ON => Some(true),
            _ => None,
        }
    }
}

impl Submitted<'_> {
    /// The range of sequence numbers: all tasks before the first have ended, and the last was submitted last. Some in
    /// between may have ended too.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let range = (self.table.range)(self.call);
        range.first..range.end.max(range.first)
    }

    /// The task with this sequence number, if known.
    #[must_use]
    pub fn task(&self, task: u64) -> Option<SubmittedTask> {
        known((self.table.task)(self.call, task))
    }

    /// All tasks that have not ended, in order of submission. Skips numbers without a task, however many.
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

    /// The tasks that wait for `task`; `of` is the result of [`task`](Self::task).
    pub fn successors(&self, task: u64, of: SubmittedTask) -> impl Iterator<Item = u64> {
        let all = (0..of.successors).map(move |index| (self.table.successor)(self.call, task, index));
        all.filter(|task| *task != RawSubmitted::NO_TASK)
    }

    /// The accesses of `task`; `of` is the result of [`task`](Self::task).
    pub fn accesses(&self, task: u64, of: SubmittedTask) -> impl Iterator<Item = DataAccess> {
        (0..of.accesses).map(move |index| {
            let access = (self.table.access)(self.call, task, index);
            DataAccess { data: access.data, bytes: access.bytes, reads: access.reads, writes: access.writes }
        })
    }

    /// Expected duration of `task` on `worker`.
    #[must_use]
    pub fn expected_length(&self, task: u64, worker: WorkerId) -> Estimate {
        Estimate::from_wire((self.table.length)(self.call, task, worker.0))
    }

    /// Whether a memory node has a copy of `data` now.
    #[must_use]
    pub fn has_copy(&self, data: u64, memory_node: MemoryNode) -> bool {
        memory_node.0 < u64::BITS && (self.table.copies)(self.call, data) & 1 << memory_node.0 != 0
    }

    /// Expected duration of transferring `bytes` bytes from one memory node to another.
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
