//! Making tasks for a test.

use super::ledger::Ledger;
use crate::estimate::nanos;
use crate::task::TaskId;
use crate::workers::{Arch, ArchSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A task about to be made, by [`Rig::task`](super::Rig::task).
///
/// ```
/// # use sched_core::{rig::Rig, *};
/// # struct Pass;
/// # impl Component for Pass { fn push_task(&self, node: Node<'_>, task: Task) -> Push { node.push_to(Child(0), task) } }
/// let rig = Rig::new(Pass);
/// let task = rig.task().priority(3).archs([Arch::CPU, Arch::CUDA]).make();
/// assert_eq!(rig.read(task, Task::priority), 3);
/// ```
#[must_use = "`make` makes the task"]
pub struct FakeTask<'a> {
    pub(super) ledger: &'a Arc<Ledger>,
    priority: i32,
    archs: ArchSet,
    codelet: u32,
    footprint: u64,
    predicted: u64,
    predicted_transfer: u64,
    sched_data: u64,
    home: Option<u32>,
    width: u16,
    only: Option<u64>,
}

impl<'a> FakeTask<'a> {
    pub(super) fn new(ledger: &'a Arc<Ledger>) -> FakeTask<'a> {
        FakeTask {
            ledger,
            priority: 0,
            archs: ArchSet::from_bits(u32::MAX),
            codelet: 0,
            footprint: 0,
            predicted: u64::MAX,
            predicted_transfer: u64::MAX,
            sched_data: 0,
            home: None,
            width: 1,
            only: None,
        }
    }

    /// Sets the priority: higher runs earlier; 0 unless set.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the architectures that have an implementation; all unless set.
    pub fn archs(mut self, archs: impl IntoIterator<Item = Arch>) -> Self {
        self.archs = archs.into_iter().collect();
        self
    }

    /// Sets the codelet, the key of the rig's models; 0 unless set.
    pub fn codelet(mut self, codelet: u32) -> Self {
        self.codelet = codelet;
        self
    }

    /// Sets the [`Task::footprint`](crate::Task::footprint).
    pub fn footprint(mut self, footprint: u64) -> Self {
        self.footprint = footprint;
        self
    }

    /// Sets the expected duration, as a component above would.
    pub fn predicted(mut self, length: Duration) -> Self {
        self.predicted = nanos(length);
        self
    }

    /// Sets the expected duration of transfers, as a component above would.
    pub fn predicted_transfer(mut self, length: Duration) -> Self {
        self.predicted_transfer = nanos(length);
        self
    }

    /// Sets [`Task::sched_data`](crate::Task::sched_data).
    pub fn sched_data(mut self, data: u64) -> Self {
        self.sched_data = data;
        self
    }

    /// Sets the [`Task::home`](crate::Task::home).
    pub fn home(mut self, worker: u32) -> Self {
        self.home = Some(worker);
        self
    }

    /// Sets how many workers execute it together; 1 unless set.
    pub fn width(mut self, workers: u16) -> Self {
        self.width = workers;
        self
    }

    /// Restricts the task to these workers, each below 64.
    pub fn only(mut self, workers: impl IntoIterator<Item = u32>) -> Self {
        self.only = Some(workers.into_iter().fold(0, |set, worker| set | 1 << worker));
        self
    }

    /// Makes the task. The test holds it: push it, or give it to a parent.
    #[must_use]
    pub fn make(self) -> TaskId {
        self.ledger.make(|head| {
            let fields = head.fields();
            fields.priority.store(self.priority, Relaxed);
            fields.archs.store(self.archs.bits(), Relaxed);
            fields.codelet.store(self.codelet, Relaxed);
            fields.footprint.store(self.footprint, Relaxed);
            fields.predicted.store(self.predicted, Relaxed);
            fields.set_predicted_transfer(self.predicted_transfer);
            fields.set_sched_data(self.sched_data);
            self.home.into_iter().for_each(|worker| fields.set_home(worker));
            fields.width.store(self.width, Relaxed);
            // The rig's number of a set is the set itself.
            self.only.into_iter().for_each(|set| fields.restrict(set, self.archs.bits()));
        })
    }
}
