//! The scheduling component `__NAME__`: a leaf, which hands tasks to one worker.
//!
//! Everything below is yours to change. `cargo test` shows whether it still keeps the contract of a component.
#![forbid(unsafe_code)]

use sched_core::*;
use std::collections::VecDeque;
use std::time::Duration;

/// The list of tasks of one worker, in the order of their arrival.
///
/// Many threads call it concurrently, so what changes is behind a [`Mutex`]. No lock is ever held across a *hop*, a
/// method of [`Node`] that reaches another component: that one may call back.
struct __TYPE__ {
    tasks: Mutex<VecDeque<Task>>,
}

impl Build for __TYPE__ {
    /// What a host knows before it builds the component: it checks policies with it, and lists it in `sched plugins`.
    /// What it declares has to be true; `sched plugin test` compares it with what happens.
    const INFO: Info = Info::new("__NAME__", Family::Worker, "Hands tasks to one worker, in the order of their arrival.")
        .package(env!("CARGO_PKG_NAME"))
        .storage(Storage::Unbounded);

    /// Called once for each node of a tree that names the component. Every declared parameter has a value in its range.
    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(__TYPE__ { tasks: Mutex::new(VecDeque::new()) })
    }
}

impl __TYPE__ {
    fn change<T>(&self, node: Node<'_>, change: impl FnOnce(&mut VecDeque<Task>) -> T) -> T {
        let mut tasks = self.tasks.lock();
        let answer = change(&mut tasks);
        // A service, no hop: the host knows from it when this worker will be free.
        node.note_queued(queued(&tasks));
        answer
    }
}

/// Total expected length. Tasks whose length no component above predicted add nothing.
fn queued(tasks: &VecDeque<Task>) -> Duration {
    tasks.iter().filter_map(Task::predicted).sum()
}

impl Component for __TYPE__ {
    /// A task comes from above. Store it, let its data be brought here, and wake the worker.
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.prefetch(&task);
        self.change(node, |tasks| tasks.push_back(task));
        node.wake_one();
        Ok(())
    }

    /// The worker wants a task: one from the list, or else one from above. (A parent may also push one here instead of
    /// giving it.)
    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let pop = || self.change(node, VecDeque::pop_front);
        pop().or_else(|| node.pull_from_parents()).or_else(pop)
    }

    // `can_push` is not called, since there is no child. `can_pull`, which says that there is work above, wakes the
    // worker by default.

    /// When the worker will have no more work.
    fn estimated_end(&self, node: Node<'_>) -> Time {
        let known = node.worker().and_then(|worker| node.worker_free_at(worker));
        known.unwrap_or_else(|| node.now() + queued(&self.tasks.lock()))
    }

    /// How many tasks wait here, divided by the speed of the worker.
    fn estimated_load(&self, node: Node<'_>) -> f64 {
        self.tasks.lock().len() as f64 / node.relative_speedup().max(1.0)
    }

    // `notify_change_workers` does nothing by default: nothing here depends on which workers there are.

    /// Give up every task that is stored: the host exchanges the policy, or ends.
    fn drain(&self) -> Vec<Task> {
        self.tasks.lock().drain(..).collect()
    }

    /// Facts for stall reports and pictures.
    fn describe(&self, report: &mut Report) {
        report.fact("tasks", self.tasks.lock().len());
    }
}

export_components!(__TYPE__);

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::rig::{FakeParent, Rig};

    #[test]
    fn the_worker_is_woken_and_takes_its_own_tasks_first() {
        let rig = Rig::build::<__TYPE__>(&[]).parent(FakeParent::new());
        let tasks = rig.tasks(2);
        rig.give_parent(Parent(0), tasks[1]);
        assert_eq!(rig.push(tasks[0]), Ok(()));
        assert_eq!(rig.woken(), [WorkerId(0)]);
        assert_eq!((rig.pull(Child(0)), rig.pull(Child(0))), (Some(tasks[0]), Some(tasks[1])));
    }

    #[test]
    fn it_keeps_the_contract_of_a_component() {
        // Random sequences of every call; `sched plugin test` makes them too.
        sched_core::rig::conforms::<__TYPE__>();
    }
}
