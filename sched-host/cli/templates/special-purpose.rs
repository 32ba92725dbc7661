//! The scheduling component `__NAME__`: changes the priority of the tasks that pass.
//!
//! Everything below is yours to change. `cargo test` shows whether it still keeps the contract of a component.
#![forbid(unsafe_code)]

use sched_core::*;

/// Adds a number to the priority of each task on its way down. It stores nothing.
///
/// Many threads call it concurrently: what changes belongs in a [`Mutex`] or in atomics. No lock may be held across a
/// *hop*, a method of [`Node`] that reaches another component: that one may call back.
struct __TYPE__ {
    by: i32,
}

impl Build for __TYPE__ {
    /// What a host knows before it builds the component: it checks policies with it, and lists it in `sched plugins`.
    /// What it declares has to be true; `sched plugin test` compares it with what happens.
    const INFO: Info =
        Info::new("__NAME__", Family::SpecialPurpose, "Adds a number to the priority of each task that passes.")
            .package(env!("CARGO_PKG_NAME"))
            .params(const { &[Param::int("by", 1, "what is added to the priority").at_least(-1000).at_most(1000)] })
            // It refuses a task only when its child does.
            .forwards_push()
            // `pull_task` and `estimated_end` are the default ones, so that the host can skip the calls. Remove these
            // two lines when you write the methods yourself.
            .forwards_pull()
            .end_is_noted();

    /// Called once for each node of a tree that names the component. Every declared parameter has a value in its range.
    fn build(params: &Params) -> Result<Self, BuildError> {
        let by = i32::try_from(params.int("by")?).map_err(|error| BuildError::new(format!("`by`: {error}")))?;
        Ok(__TYPE__ { by })
    }
}

impl Component for __TYPE__ {
    /// A task comes from above. Push it to the child, or hand back this very task with the reason.
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        let before = task.priority();
        task.set_priority(before.saturating_add(self.by));
        node.push_to(Child(0), task).map_err(|mut refused| {
            // Whoever keeps the task pushes it again: what was changed is restored.
            refused.task.set_priority(before);
            refused
        })
    }

    // The other methods are the default ones. `pull_task` pulls from the parents; `can_push`, which says that the child
    // has room, asks the parents for more; `can_pull`, which says that there is work above, wakes a worker;
    // `estimated_end` and `estimated_load` are those of the child. `drain` gives up nothing, since nothing is stored: a
    // component that keeps tasks gives up all of them there. `notify_change_workers` does nothing: forget in it what
    // depends on which workers there are. `describe` adds facts to stall reports and pictures.
}

export_components!(__TYPE__);

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::rig::{FakeChild, Rig};

    #[test]
    fn the_priority_is_changed_on_the_way_down_only() {
        let rig = Rig::build::<__TYPE__>(&[("by", Value::Int(5))]).child(FakeChild::new().room(1));
        let (first, second) = (rig.task().priority(2).make(), rig.task().priority(3).make());
        assert_eq!(rig.push(first), Ok(()));
        assert_eq!(rig.read(first, Task::priority), 7);
        assert_eq!(rig.push(second), Err(Refusal::Full));
        assert_eq!(rig.read(second, Task::priority), 3, "a refused task is as it was");
    }

    #[test]
    fn it_keeps_the_contract_of_a_component() {
        // Random sequences of every call; `sched plugin test` makes them too.
        sched_core::rig::conforms::<__TYPE__>();
    }
}
