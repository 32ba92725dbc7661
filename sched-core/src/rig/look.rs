//! Changing the environment between calls, and inspecting what happened.

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
    /// A new task, to be configured and made.
    pub fn task(&self) -> FakeTask<'_> {
        FakeTask::new(&self.host.ledger)
    }

    /// Makes `count` identical tasks.
    #[must_use]
    pub fn tasks(&self, count: usize) -> Vec<TaskId> {
        (0..count).map(|_| self.task().make()).collect()
    }

    /// Reads a task, whoever holds it: `rig.read(task, Task::predicted)`.
    pub fn read<T>(&self, task: TaskId, look: impl FnOnce(&Task) -> T) -> T {
        self.host.ledger.look(task, look)
    }

    /// The holder of a task.
    #[must_use]
    pub fn holder(&self, task: TaskId) -> Holder {
        self.host.ledger.holder(task)
    }

    /// The tasks that the component holds, in the order of their creation.
    #[must_use]
    pub fn held(&self) -> Vec<TaskId> {
        self.host.ledger.held_by(Holder::Component)
    }

    /// The tasks that a child accepted, in that order.
    #[must_use]
    pub fn child_tasks(&self, child: Child) -> Vec<TaskId> {
        self.host.changing.lock().taken.get(&child.0).cloned().unwrap_or_default()
    }

    /// Gives a task that the test holds to a parent, behind those that the parent has.
    #[track_caller]
    pub fn give_parent(&self, parent: Parent, task: TaskId) {
        assert!((parent.0 as usize) < self.host.scene.parents.len(), "there is no parent {}", parent.0);
        if let Err(holder) = self.host.ledger.give(task, Holder::Test, Holder::Parent(parent)) {
            panic!("{task} is not the test's to give; its holder is {holder}");
        }
        self.host.changing.lock().given.entry(parent.0).or_default().push_back(task);
    }

    /// Takes a task from the component by force, as a host does after the component panicked: the component's handle is
    /// stale, and the test holds the task.
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

    /// Lets time pass, as in a real run: each time a component asks for the time, it is later by `tick` afterwards. At
    /// first no time passes, as in a simulation.
    pub fn set_tick(&self, tick: Duration) {
        self.host.tick.store(u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Sets the worker on whose behalf calls happen from now on. With `None`, pushes have no requester, and the first
    /// worker of a child pulls.
    pub fn set_requester(&self, worker: Option<WorkerId>) {
        self.requester.store(worker.map_or(NO_ID, |worker| worker.0), Relaxed);
    }

    /// Sets how many more tasks a child accepts; `None` for all.
    pub fn set_room(&self, child: Child, room: Option<usize>) {
        self.host.changing.lock().rooms.insert(child.0, room);
    }

    /// Sets a child's answer to `estimated_end`; once that time is past, it answers now. Tasks that the child accepts
    /// afterwards add their [predictions](crate::Task::set_predicted) to it, divided among its workers; those that it
    /// has do not count any longer.
    pub fn set_end(&self, child: Child, end: Time) {
        let mut changing = self.host.changing.lock();
        changing.ends.insert(child.0, end);
        changing.queued_below.remove(&child.0);
    }

    /// Sets a child's answer to `estimated_load`.
    pub fn set_load(&self, child: Child, load: f64) {
        self.host.changing.lock().loads.insert(child.0, load);
    }

    /// Sets when a simple worker is expected to finish its current task: the component's result of
    /// [`Node::worker_busy_until`](crate::Node::worker_busy_until).
    pub fn set_busy_until(&self, worker: WorkerId, until: Time) {
        self.host.changing.lock().busy.insert(worker.0, until);
    }

    /// Sets the total expected length of the tasks queued for a simple worker in leaves other than the component; zero
    /// unless set.
    pub fn set_queued_elsewhere(&self, worker: WorkerId, length: Duration) {
        self.host.changing.lock().elsewhere.insert(worker.0, length);
    }

    /// Sets the load of a simple worker's own leaf, where the component is not that leaf; 0 unless set.
    pub fn set_worker_load(&self, worker: WorkerId, load: f64) {
        self.host.changing.lock().worker_loads.insert(worker.0, load);
    }

    /// Sets the distance of two different workers, in both directions; a worker is at distance 0 from itself. Unless
    /// some are set, the host does not know distances.
    pub fn set_distance(&self, one: WorkerId, other: WorkerId, distance: u32) {
        let mut distances = self.host.distances.lock();
        let known = distances.get_or_insert_default();
        known.extend([((one.0, one.0), 0), ((other.0, other.0), 0)]);
        known.insert((one.0.min(other.0), one.0.max(other.0)), distance);
    }

    /// Puts a worker to sleep. All sleep at first; a woken worker stays awake.
    pub fn sleep(&self, worker: WorkerId) {
        self.host.changing.lock().awake.remove(worker);
    }

    /// Sets the model's estimate of a codelet on a worker with an implementation; [`Estimate::NoModel`] unless set.
    pub fn set_length(&self, codelet: u32, worker: WorkerId, implementation: u32, length: Estimate) {
        self.host.changing.lock().models.lengths.insert((codelet, worker.0, implementation), length);
    }

    /// Sets the number of implementations of a codelet, for every worker that can execute it; 1 unless set.
    pub fn set_implementations(&self, codelet: u32, count: u32) {
        self.host.changing.lock().models.implementations.insert(codelet, count);
    }

    /// Sets the duration of transferring the data of a codelet's tasks to a memory node; zero unless set.
    pub fn set_transfer(&self, codelet: u32, memory_node: MemoryNode, length: Duration) {
        self.host.changing.lock().models.transfers.insert((codelet, memory_node.0), length);
    }

    /// Sets the energy in joules of a codelet's tasks on a worker; unknown unless set.
    pub fn set_energy(&self, codelet: u32, worker: WorkerId, joules: f64) {
        self.host.changing.lock().models.energies.insert((codelet, worker.0), joules);
    }
}

/// Inspecting what happened.
impl Rig {
    /// The hops that the component made since the previous call of this method, in order.
    pub fn hops(&self) -> Vec<Hop> {
        std::mem::take(&mut *self.host.hops.lock())
    }

    /// Number of calls of a host service by the component, by name: `rig.service_calls("random")`.
    #[must_use]
    pub fn service_calls(&self, service: &str) -> usize {
        self.host.services.lock().get(service).copied().unwrap_or(0)
    }

    /// Whether the component has room, as far as it [reported](crate::Node::note_room).
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.host.changing.lock().is_full
    }

    /// The workers woken since the previous call of this method, in order.
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

    /// The component's panics, each with its location if known.
    #[must_use]
    pub fn panics(&self) -> Vec<String> {
        self.host.panics.lock().clone()
    }

    /// Everything that the component did wrong; only of use in a [lenient](Rig::lenient) rig, as others fail the test.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.host.ledger.faults()
    }
}
