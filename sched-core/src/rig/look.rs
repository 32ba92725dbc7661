//! Setting the surroundings between calls, and looking at what happened.

use super::ledger::Holder;
use super::task::FakeTask;
use super::{Hop, Rig};
use crate::abi::wire::NO_ID;
use crate::estimate::{Estimate, Time};
use crate::node::{Child, Parent};
use crate::task::{Task, TaskId};
use crate::workers::{MemoryNode, WorkerId};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Tasks.
impl Rig {
    /// A task to be made.
    pub fn task(&self) -> FakeTask<'_> {
        FakeTask::new(&self.host.ledger)
    }

    /// This many tasks that differ in nothing.
    #[must_use]
    pub fn tasks(&self, count: usize) -> Vec<TaskId> {
        (0..count).map(|_| self.task().make()).collect()
    }

    /// Looks at a task, whoever holds it: `rig.read(task, Task::predicted)`.
    pub fn read<T>(&self, task: TaskId, look: impl FnOnce(&Task) -> T) -> T {
        self.host.ledger.look(task, look)
    }

    /// Who holds a task.
    #[must_use]
    pub fn holder(&self, task: TaskId) -> Holder {
        self.host.ledger.holder(task)
    }

    /// The tasks that the component holds, in the order in which they were made.
    #[must_use]
    pub fn held(&self) -> Vec<TaskId> {
        self.host.ledger.held_by(Holder::Component)
    }

    /// The tasks that a child took, in that order.
    #[must_use]
    pub fn child_tasks(&self, child: Child) -> Vec<TaskId> {
        self.host.changing.lock().taken.get(&child.0).cloned().unwrap_or_default()
    }

    /// Gives a parent a task that the test holds, behind those it has.
    #[track_caller]
    pub fn give_parent(&self, parent: Parent, task: TaskId) {
        assert!((parent.0 as usize) < self.host.scene.parents.len(), "there is no parent {}", parent.0);
        if let Err(holder) = self.host.ledger.give(task, Holder::Test, Holder::Parent(parent)) {
            panic!("{task} is not the test's to give; its holder is {holder}");
        }
        self.host.changing.lock().given.entry(parent.0).or_default().push_back(task);
    }

    /// Takes a task from the component by force, as a host does with the tasks of a component that panicked: the handle
    /// that the component has is stale, and the test holds the task.
    pub fn revoke(&self, task: TaskId) {
        self.host.ledger.revoke(task);
    }
}

/// Time, workers and models.
impl Rig {
    /// Sets the clock.
    pub fn set_now(&self, now: Time) {
        self.host.now.store(now.as_nanos(), Relaxed);
    }

    /// The worker on whose behalf calls happen from now on. With `None`, nobody pushes, and the first worker of a child
    /// pulls.
    pub fn set_requester(&self, worker: Option<WorkerId>) {
        self.requester.store(worker.map_or(NO_ID, |worker| worker.0), Relaxed);
    }

    /// How many tasks a child takes from now on; `None` for all.
    pub fn set_room(&self, child: Child, room: Option<usize>) {
        self.host.changing.lock().rooms.insert(child.0, room);
    }

    /// What a child answers to `estimated_end`, unless it is past.
    pub fn set_end(&self, child: Child, end: Time) {
        self.host.changing.lock().ends.insert(child.0, end);
    }

    /// What a child answers to `estimated_load`.
    pub fn set_load(&self, child: Child, load: f64) {
        self.host.changing.lock().loads.insert(child.0, load);
    }

    /// When a simple worker should be done with what it executes: what the component hears from
    /// [`Node::worker_busy_until`](crate::Node::worker_busy_until).
    pub fn set_busy_until(&self, worker: WorkerId, until: Time) {
        self.host.changing.lock().busy.insert(worker.0, until);
    }

    /// How long the tasks should take that wait for a simple worker in other leaves than the component; nothing unless set.
    pub fn set_queued_elsewhere(&self, worker: WorkerId, length: Duration) {
        self.host.changing.lock().elsewhere.insert(worker.0, length);
    }

    /// The load of a simple worker's own leaf, where that is not the component; 0 unless set.
    pub fn set_worker_load(&self, worker: WorkerId, load: f64) {
        self.host.changing.lock().worker_loads.insert(worker.0, load);
    }

    /// How far apart two different workers are, either way round; a worker is at distance 0 from itself. Unless some are
    /// set, the rig is a host that cannot say.
    pub fn set_distance(&self, one: WorkerId, other: WorkerId, distance: u32) {
        let mut distances = self.host.distances.lock();
        let known = distances.get_or_insert_default();
        known.extend([((one.0, one.0), 0), ((other.0, other.0), 0)]);
        known.insert((one.0.min(other.0), one.0.max(other.0)), distance);
    }

    /// Puts a worker to sleep. All sleep at first; one that is woken stays awake.
    pub fn sleep(&self, worker: WorkerId) {
        self.host.changing.lock().awake.remove(worker);
    }

    /// What the model says of a codelet on a worker with an implementation; [`Estimate::NoModel`] unless set.
    pub fn set_length(&self, codelet: u32, worker: WorkerId, implementation: u32, length: Estimate) {
        self.host.changing.lock().models.lengths.insert((codelet, worker.0, implementation), length);
    }

    /// How many implementations a codelet has for every worker that can execute it; 1 unless set.
    pub fn set_implementations(&self, codelet: u32, count: u32) {
        self.host.changing.lock().models.implementations.insert(codelet, count);
    }

    /// How long it takes to bring the data of a codelet's tasks to a memory node; no time unless set.
    pub fn set_transfer(&self, codelet: u32, memory_node: MemoryNode, length: Duration) {
        self.host.changing.lock().models.transfers.insert((codelet, memory_node.0), length);
    }

    /// Joules that a codelet's task costs on a worker; unknown unless set.
    pub fn set_energy(&self, codelet: u32, worker: WorkerId, joules: f64) {
        self.host.changing.lock().models.energies.insert((codelet, worker.0), joules);
    }
}

/// What happened.
impl Rig {
    /// The hops that the component made since the last time this was asked, in order.
    pub fn hops(&self) -> Vec<Hop> {
        std::mem::take(&mut *self.host.hops.lock())
    }

    /// How often the component used a service of the host, by its name: `rig.service_calls("random")`.
    #[must_use]
    pub fn service_calls(&self, service: &str) -> usize {
        self.host.services.lock().get(service).copied().unwrap_or(0)
    }

    /// The workers that were woken since the last time this was asked, in order.
    pub fn woken(&self) -> Vec<WorkerId> {
        std::mem::take(&mut self.host.changing.lock().woken)
    }

    /// The lines that the component wrote to the log: `warn: no child can execute task 3`.
    #[must_use]
    pub fn logged(&self) -> Vec<String> {
        self.host.log.lock().clone()
    }

    /// The tasks that the component dropped.
    #[must_use]
    pub fn lost(&self) -> Vec<TaskId> {
        self.host.ledger.lost()
    }

    /// The panics of the component, with the place where known.
    #[must_use]
    pub fn panics(&self) -> Vec<String> {
        self.host.panics.lock().clone()
    }

    /// All that the component did wrong; only a [lenient](Rig::lenient) rig lives to tell.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.host.ledger.faults()
    }
}
