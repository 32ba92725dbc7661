//! The smallest useful component: a stack. `sched plugin new` begins one of your own.
#![forbid(unsafe_code)]

use sched_core::*;

/// Gives the task that was pushed last.
struct Lifo {
    stack: Mutex<Vec<Task>>,
}

impl Build for Lifo {
    const INFO: Info = Info::new("lifo", Family::FlowControl, "Gives back the task that was pushed last.")
        .storage(Storage::Unbounded)
        .pulled_only();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Lifo { stack: Mutex::new(Vec::new()) })
    }
}

impl Component for Lifo {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.stack.lock().push(task);
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let mut stack = self.stack.lock();
        let found = stack.iter().rposition(|task| node.requester_can_execute(task))?;
        Some(stack.remove(found))
    }

    fn drain(&self) -> Vec<Task> {
        self.stack.lock().drain(..).rev().collect()
    }
}

export_components!(Lifo);

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::rig::Rig;

    #[test]
    fn the_last_task_comes_first() {
        let rig = Rig::build::<Lifo>(&[]);
        let tasks = rig.tasks(3);
        for task in &tasks {
            assert_eq!(rig.push(*task), Ok(()));
        }
        assert_eq!(rig.pull(Child(0)), Some(tasks[2]));
        assert_eq!(rig.drain(), [tasks[1], tasks[0]]);
    }

    #[test]
    fn a_worker_gets_a_task_that_it_can_execute() {
        let rig = Rig::build::<Lifo>(&[]).worker(Arch::CPU, MemoryNode(0));
        let cpu = rig.task().archs([Arch::CPU]).make();
        let cuda = rig.task().archs([Arch::CUDA]).make();
        assert_eq!((rig.push(cpu), rig.push(cuda)), (Ok(()), Ok(())));
        assert_eq!(rig.pull(Child(0)), Some(cpu));
    }

    #[test]
    fn it_keeps_the_contract_of_a_component() {
        sched_core::rig::conforms::<Lifo>();
    }
}
