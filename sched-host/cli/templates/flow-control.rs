//! The scheduling component `__NAME__`: a queue with an optional limit.
//!
//! Everything below is yours to change. `cargo test` shows whether it still keeps the contract of a component.
#![forbid(unsafe_code)]

use sched_core::*;
use std::collections::VecDeque;
use std::time::Duration;

/// Holds tasks, and lets them go in the order of their arrival.
///
/// Many threads call it concurrently, so what changes is behind a [`Mutex`]. No lock is ever held across a *hop*, a
/// method of [`Node`] that reaches another component: that one may call back.
struct __TYPE__ {
    tasks: Mutex<VecDeque<Task>>,
    /// Maximum number of tasks held.
    room: usize,
}

impl Build for __TYPE__ {
    /// What a host knows before it builds the component: it checks policies with it, and lists it in `sched plugins`.
    /// What it declares has to be true; `sched plugin test` compares it with what happens.
    const INFO: Info =
        Info::new("__NAME__", Family::FlowControl, "Holds tasks, and lets them go in the order of their arrival.")
            .package(env!("CARGO_PKG_NAME"))
            // It stores tasks, and refuses some if `room` is set.
            .storage(Storage::BoundedBy(&["room"]))
            .params(const { &[Param::int("room", 0, "maximum number of tasks held; 0 means no limit").at_least(0)] });

    /// Called once for each node of a tree that names the component. Every declared parameter has a value in its range.
    fn build(params: &Params) -> Result<Self, BuildError> {
        let room = usize::try_from(params.int("room")?).unwrap_or(0);
        Ok(__TYPE__ { tasks: Mutex::new(VecDeque::new()), room: if room == 0 { usize::MAX } else { room } })
    }
}

impl __TYPE__ {
    /// The first task that the worker on whose behalf the call happens can execute. (Not every worker can execute every
    /// task: some may be GPUs.) `requester_can_execute` is a service, no hop, so that the lock may be held.
    fn pop(&self, node: Node<'_>) -> Option<Task> {
        let mut tasks = self.tasks.lock();
        let found = tasks.iter().position(|task| node.requester_can_execute(task))?;
        tasks.remove(found)
    }

    /// Sends tasks to a child until it refuses one. Returns whether any was taken.
    fn pump(&self, node: Node<'_>, to: Child) -> bool {
        let mut put_back = false;
        let unpop = |task| {
            self.tasks.lock().push_front(task);
            put_back = true;
        };
        let moved = node.pump(to, || self.pop(node), unpop);
        if put_back {
            // A worker may have looked while the refused task was away.
            node.children_can_pull();
        }
        moved
    }
}

impl Component for __TYPE__ {
    /// A task comes from above. Store it and say so below, or hand back this very task with the reason.
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        {
            let mut tasks = self.tasks.lock();
            if tasks.len() >= self.room {
                return Err(Refused::new(task, Refusal::Full));
            }
            tasks.push_back(task);
        } // The lock ends here, before the hop.
        node.children_can_pull();
        Ok(())
    }

    /// A worker below wants a task that it can execute.
    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let task = self.pop(node);
        // There is room now; and if there was nothing, a parent may have something.
        let sent = node.parents_can_push();
        task.or_else(|| if sent { self.pop(node) } else { None })
    }

    /// A child has room: send it tasks, or ask above for more.
    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        self.pump(node, to) || (node.parents_can_push() && { self.pump(node, to); true })
    }

    // `can_pull`, which says that there is work above, wakes a worker by default.

    /// When the workers below will have no more work: what is queued here comes on top of what they have. It counts
    /// tasks whose length a component above has predicted.
    fn estimated_end(&self, node: Node<'_>) -> Time {
        let queued: Duration = self.tasks.lock().iter().filter_map(Task::predicted).sum();
        node.end_below_with_queued(queued)
    }

    /// How many tasks wait here and below, divided by the speed of the workers below.
    fn estimated_load(&self, node: Node<'_>) -> f64 {
        let here = self.tasks.lock().len() as f64;
        node.load_below() + here / node.relative_speedup().max(1.0)
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
    use sched_core::rig::{FakeChild, Rig};

    #[test]
    fn tasks_leave_in_the_order_of_their_arrival() {
        let rig = Rig::build::<__TYPE__>(&[("room", Value::Int(2))]).child(FakeChild::new().room(1));
        let tasks = rig.tasks(3);
        assert_eq!((rig.push(tasks[0]), rig.push(tasks[1])), (Ok(()), Ok(())));
        assert_eq!(rig.push(tasks[2]), Err(Refusal::Full));
        assert!(rig.can_push(Child(0)));
        assert_eq!(rig.child_tasks(Child(0)), [tasks[0]], "the child had room for one");
        assert_eq!(rig.pull(Child(0)), Some(tasks[1]));
    }

    #[test]
    fn it_keeps_the_contract_of_a_component() {
        // Random sequences of every call; `sched plugin test` makes them too.
        sched_core::rig::conforms::<__TYPE__>();
    }
}
