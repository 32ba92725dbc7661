//! The scheduling component `__NAME__`: gives each task to the child that would finish it first.
//!
//! Everything below is yours to change. `cargo test` shows whether it still keeps the contract of a component.
#![forbid(unsafe_code)]

use sched_core::*;
use std::time::Duration;

/// Gives each task to the child whose workers would finish it first, by what performance models expect; a task without
/// a model goes to the child with the least load. It stores nothing.
///
/// Many threads call it concurrently: what changes belongs in a [`Mutex`] or in atomics. No lock may be held across a
/// *hop*, a method of [`Node`] that reaches another component: that one may call back.
struct __TYPE__ {
    /// How much data transfers count, compared with execution.
    transfer_weight: f64,
}

impl Build for __TYPE__ {
    /// What a host knows before it builds the component: it checks policies with it, and lists it in `sched plugins`.
    /// What it declares has to be true; `sched plugin test` compares it with what happens.
    const INFO: Info =
        Info::new("__NAME__", Family::ResourceMapping, "Gives each task to the child that would finish it first.")
            .package(env!("CARGO_PKG_NAME"))
            .params(const { &[Param::float("transfer-weight", 1.0, "weight of data transfers").at_least(0)] })
            // It refuses a task only when a child does.
            .forwards_push()
            // `pull_task` and `estimated_end` are the default ones, so that the host can skip the calls. Remove these
            // two lines when you write the methods yourself.
            .forwards_pull()
            .end_is_noted();

    /// Called once for each node of a tree that names the component. Every declared parameter has a value in its range.
    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(__TYPE__ { transfer_weight: params.float("transfer-weight")? })
    }
}

/// A child that could take the task.
struct Choice {
    child: Child,
    /// When it would be done, in nanoseconds, or the load of the child where nobody knows.
    cost: f64,
    length: Option<Duration>,
}

impl __TYPE__ {
    /// The children with a worker that can execute `task`, the best first.
    fn choices(&self, node: Node<'_>, task: &Task) -> Vec<Choice> {
        let mut ends = Vec::new();
        node.ends_below(|_, end| ends.push(end));
        let mut choices = Vec::new();
        node.prospects(task, false, |child, prospect| {
            if prospect.able > 0 {
                let transfer = prospect.transfer as f64 * self.transfer_weight;
                let end = ends.get(child.0 as usize).map_or(0, |end| end.as_nanos()) as f64;
                let length = prospect.length.map(Duration::from_nanos);
                let cost = end + transfer + prospect.length.unwrap_or(0) as f64;
                choices.push(Choice { child, cost, length });
            }
        });
        if choices.iter().any(|choice| choice.length.is_none()) {
            // Ends count only tasks whose length was predicted: where a length is unknown, compare loads.
            choices.iter_mut().for_each(|choice| choice.cost = node.child_load(choice.child));
        }
        choices.sort_by(|one, other| one.cost.total_cmp(&other.cost));
        choices
    }
}

impl Component for __TYPE__ {
    /// A task comes from above. Push it to a child, or hand back this very task with the reason.
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        let (before, mut why) = (task.predicted(), Refusal::NoWorker);
        for choice in self.choices(node, &task) {
            // The prediction makes the end of the child later: without it, all tasks would go to one child.
            task.set_predicted(choice.length);
            match node.push_to(choice.child, task) {
                Ok(()) => return Ok(()),
                Err(refused) => (task, why) = (refused.task, refused.why),
            }
        }
        // Nobody takes it. What was changed is restored; a queue above keeps the task until a child has room.
        task.set_predicted(before);
        Err(Refused::new(task, why))
    }

    // The other methods are the default ones. `pull_task` pulls from the parents; `can_push`, which says that a child
    // has room, asks the parents for more; `can_pull`, which says that there is work above, wakes a worker;
    // `estimated_end` and `estimated_load` follow from the children. `drain` gives up nothing, since nothing is stored:
    // a component that keeps tasks gives up all of them there. `notify_change_workers` does nothing: forget in it what
    // depends on which workers there are. `describe` adds facts to stall reports and pictures.
}

export_components!(__TYPE__);

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::rig::{FakeChild, Rig};

    #[test]
    fn tasks_go_where_they_end_first() {
        let rig = Rig::build::<__TYPE__>(&[]).workers(2).child(FakeChild::over([0])).child(FakeChild::over([1]));
        for (worker, micros) in [(0, 10), (1, 30)] {
            rig.set_length(0, WorkerId(worker), 0, Estimate::Known(Duration::from_micros(micros)));
        }
        let tasks = rig.tasks(4);
        for task in &tasks {
            assert_eq!(rig.push(*task), Ok(()));
        }
        assert_eq!(rig.child_tasks(Child(0)).len(), 3, "three short executions take as long as one long one");
        assert_eq!(rig.read(tasks[0], Task::predicted), Some(Duration::from_micros(10)));
    }

    #[test]
    fn without_a_model_the_load_decides() {
        let rig = Rig::build::<__TYPE__>(&[]).workers(2);
        let rig = rig.child(FakeChild::over([0]).load(2.0)).child(FakeChild::over([1]).load(1.0));
        let task = rig.task().make();
        assert_eq!(rig.push(task), Ok(()));
        assert_eq!(rig.child_tasks(Child(1)), [task]);
    }

    #[test]
    fn it_keeps_the_contract_of_a_component() {
        // Random sequences of every call; `sched plugin test` makes them too.
        sched_core::rig::conforms::<__TYPE__>();
    }
}
