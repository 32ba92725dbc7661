use super::*;
use sched_core::rig::{FakeChild, FakeParent, Hop, Rig};

fn eager() -> Rig {
    Rig::build::<Eager>(&[])
}

/// Three queues, each above one CPU worker.
fn three_queues(room: usize) -> Rig {
    (0..3).fold(eager().workers(3), |rig, worker| rig.child(FakeChild::over([worker]).room(room)))
}

#[test]
fn children_take_turns() {
    let rig = three_queues(2);
    let tasks = rig.tasks(5);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.child_tasks(Child(0)), [tasks[0], tasks[3]]);
    assert_eq!(rig.child_tasks(Child(1)), [tasks[1], tasks[4]]);
    assert_eq!(rig.child_tasks(Child(2)), [tasks[2]]);
}

#[test]
fn the_worker_that_asks_comes_first() {
    let rig = three_queues(1);
    rig.set_requester(Some(WorkerId(2)));
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Ok(()));
    assert_eq!(rig.child_tasks(Child(2)), [tasks[0]]);
    rig.hops();
    assert_eq!(rig.push(tasks[1]), Ok(()));
    let push = |child, refused| Hop::PushTo { child: Child(child), task: tasks[1], refused };
    assert_eq!(rig.hops(), [push(2, Some(Refusal::Full)), push(0, None)], "each child is offered it once");
}

#[test]
fn when_every_child_is_full_so_is_it() {
    let rig = three_queues(0);
    let task = rig.task().make();
    assert_eq!(rig.push(task), Err(Refusal::Full));
    assert_eq!(rig.hops().len(), 3);
}

#[test]
fn children_that_cannot_execute_a_task_are_not_offered_it() {
    let rig = eager().worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::over([0])).child(FakeChild::over([1]));
    let cuda = rig.task().archs([Arch::CUDA]).make();
    assert_eq!(rig.push(cuda), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [cuda]);
    let fpga = rig.task().archs([Arch::FPGA]).make();
    assert_eq!(rig.push(fpga), Err(Refusal::NoWorker));
}

#[test]
fn a_child_outside_the_context_gets_nothing() {
    let rig = three_queues(9).context([1]);
    let tasks = rig.tasks(2);
    assert_eq!((rig.push(tasks[0]), rig.push(tasks[1])), (Ok(()), Ok(())));
    assert_eq!(rig.child_tasks(Child(1)), tasks);
}

#[test]
fn a_worker_is_woken_and_not_pushed_to() {
    let rig = eager().workers(2).child(FakeChild::worker(0)).child(FakeChild::worker(1));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Err(Refusal::PullInstead));
    assert_eq!(rig.push(task), Err(Refusal::PullInstead));
    assert_eq!(rig.woken(), [WorkerId(0), WorkerId(1)]);
    assert_eq!(rig.push(task), Err(Refusal::Full), "all are awake: they will come by themselves");
}

#[test]
fn pulls_and_room_pass_through() {
    let rig = three_queues(9).parent(FakeParent::new());
    let tasks = rig.tasks(2);
    rig.give_parent(Parent(0), tasks[0]);
    assert_eq!(rig.pull(Child(1)), Some(tasks[0]));
    rig.give_parent(Parent(0), tasks[1]);
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), [tasks[1]], "room was found for the child that asked");
    assert!(rig.can_pull());
    assert_eq!(rig.woken(), [WorkerId(0)]);
}
