//! The submitted tasks, as the fake host reports them.

use super::Rig;
use super::host::FakeHost;
use super::ledger::Holder;
use crate::abi::extension::{RawAccess, RawRange, RawSubmitted};
use crate::abi::fake::Graph;
use crate::abi::wire::NO_ID;
use crate::estimate::{Estimate, nanos};
use crate::node::{DataAccess, Stage};
use crate::task::{Task, TaskId};
use crate::workers::{MemoryNode, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The submitted tasks that a test described.
#[derive(Default)]
pub(super) struct Ahead {
    /// The tasks that wait for each task.
    successors: BTreeMap<u64, Vec<u64>>,
    accesses: BTreeMap<u64, Vec<DataAccess>>,
    copies: BTreeMap<u64, u64>,
    transfers: BTreeMap<(u32, u32), Duration>,
    ended: BTreeSet<u64>,
}

/// The submitted tasks of a [foreseeing](Rig::foreseeing) host.
impl Rig {
    /// Makes `task` wait for another one.
    pub fn set_waits(&self, task: TaskId, for_task: TaskId) {
        let mut changing = self.host.changing.lock();
        changing.ahead.successors.entry(for_task.sequence()).or_default().push(task.sequence());
    }

    /// Adds an access to `task`.
    pub fn add_access(&self, task: TaskId, access: DataAccess) {
        self.host.changing.lock().ahead.accesses.entry(task.sequence()).or_default().push(access);
    }

    /// Moves the only copy of `data` to a memory node; 0 unless set.
    pub fn set_copy(&self, data: u64, memory_node: MemoryNode) {
        self.host.changing.lock().ahead.copies.insert(data, 1 << memory_node.0);
    }

    /// Sets how long a transfer of any data takes from one memory node to another; no time unless set.
    pub fn set_way(&self, from: MemoryNode, to: MemoryNode, length: Duration) {
        self.host.changing.lock().ahead.transfers.insert((from.0, to.0), length);
    }

    /// Marks `task` as ended.
    pub fn set_ended(&self, task: TaskId) {
        self.host.changing.lock().ahead.ended.insert(task.sequence());
    }
}

impl Graph for FakeHost {
    fn range(&self) -> RawRange {
        let end = self.ledger.len();
        let ahead = &self.changing.lock().ahead;
        RawRange { first: (0..end).find(|task| !ahead.ended.contains(task)).unwrap_or(end), end }
    }

    fn task(&self, task: u64) -> RawSubmitted {
        if task >= self.ledger.len() {
            return RawSubmitted::ABSENT;
        }
        let holder = self.ledger.holder(TaskId::new(task));
        let ahead = &self.changing.lock().ahead;
        let stage = match holder {
            _ if ahead.ended.contains(&task) => Stage::Ended,
            Holder::Test => Stage::Waiting,
            _ => Stage::Ready,
        };
        let count = |count: Option<usize>| count.unwrap_or(0) as u32;
        RawSubmitted {
            stage: stage as u32,
            successors: count(ahead.successors.get(&task).map(Vec::len)),
            accesses: count(ahead.accesses.get(&task).map(Vec::len)),
            passes: false,
        }
    }

    fn successor(&self, task: u64, index: usize) -> u64 {
        let ahead = &self.changing.lock().ahead;
        let found = ahead.successors.get(&task).and_then(|all| all.get(index)).copied();
        found.unwrap_or(RawSubmitted::NO_TASK)
    }

    fn access(&self, task: u64, index: usize) -> RawAccess {
        let ahead = &self.changing.lock().ahead;
        let found = ahead.accesses.get(&task).and_then(|all| all.get(index)).copied();
        let none = DataAccess { data: 0, bytes: 0, reads: false, writes: false };
        let DataAccess { data, bytes, reads, writes } = found.unwrap_or(none);
        RawAccess { data, bytes, reads, writes }
    }

    fn length(&self, task: u64, worker: u32) -> u64 {
        let able = |task: &Task| self.executable(WorkerId(worker), task).then(|| task.codelet());
        let codelet = self.ledger.look(TaskId::new(task), able);
        let length = codelet.map(|codelet| self.changing.lock().models.length(codelet, worker, NO_ID));
        length.unwrap_or(Estimate::NoModel).to_wire()
    }

    fn copies(&self, data: u64) -> u64 {
        self.changing.lock().ahead.copies.get(&data).copied().unwrap_or(1)
    }

    fn transfer(&self, from: u32, to: u32, _bytes: u64) -> u64 {
        self.changing.lock().ahead.transfers.get(&(from, to)).map_or(0, |length| nanos(*length))
    }
}
