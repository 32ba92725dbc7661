use super::*;
use sched_core::rig::{FakeChild, FakeParent, Rig};

/// A queue above a CPU, and a CUDA worker.
fn choice() -> Rig {
    let rig = Rig::build::<UserChoice>(&[]).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    rig.child(FakeChild::over([0]).room(2)).child(FakeChild::worker(1))
}

#[test]
fn the_application_chooses() {
    let rig = choice();
    let tasks: Vec<TaskId> = [1, 0, 1].map(|child| rig.task().sched_data(child).make()).to_vec();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.child_tasks(Child(0)), [tasks[1]]);
    assert_eq!(rig.child_tasks(Child(1)), [tasks[0], tasks[2]], "a worker is pushed to");
    let unsaid = rig.task().make();
    assert_eq!(rig.push(unsaid), Ok(()));
    assert_eq!(rig.child_tasks(Child(0)), [tasks[1], unsaid]);
}

#[test]
fn a_choice_that_cannot_be_is_refused() {
    let rig = choice();
    for number in [2, u64::from(u32::MAX), u64::MAX, 1 << 32] {
        assert_eq!(
            rig.push(rig.task().sched_data(number).make()),
            Err(Refusal::NoWorker),
            "there is no child {number}"
        );
    }
    let cpu = rig.task().archs([Arch::CPU]).sched_data(1).make();
    assert_eq!(rig.push(cpu), Err(Refusal::NoWorker), "the CUDA worker cannot execute it");
    rig.set_room(Child(0), Some(0));
    assert_eq!(rig.push(rig.task().make()), Err(Refusal::Full), "another child would not be the choice");
}

#[test]
fn wrong_choices_are_described() {
    let rig = choice();
    assert_eq!(rig.push(rig.task().make()), Ok(()));
    assert_eq!(rig.describe(), [], "nothing is wrong");
    let cpu = rig.task().archs([Arch::CPU]).sched_data(1).make();
    for task in [rig.task().sched_data(9).make(), rig.task().sched_data(7).make(), cpu] {
        assert_eq!(rig.push(task), Err(Refusal::NoWorker));
    }
    let facts = rig.describe().into_iter().map(|(name, value)| format!("{name}: {value}"));
    assert_eq!(
        facts.collect::<Vec<_>>(),
        [
            "last choice of no child: 7, where the children are 0 to 1",
            "last choice of a child without a worker that can execute the task: 1",
        ]
    );
}

#[test]
fn a_pull_sends_every_task_where_it_belongs() {
    let rig = choice().parent(FakeParent::new());
    let tasks: Vec<TaskId> = [0, 1].map(|child| rig.task().sched_data(child).make()).to_vec();
    for task in &tasks {
        rig.give_parent(Parent(0), *task);
    }
    assert_eq!(rig.pull(Child(1)), None);
    assert_eq!((rig.child_tasks(Child(0)), rig.child_tasks(Child(1))), (vec![tasks[0]], vec![tasks[1]]));
}
