use super::*;
use sched_core::rig::{FakeChild, FakeParent, Rig};

const DOWN: Child = Child(0);

fn stage() -> Rig {
    Rig::build::<Stage>(&[]).parent(FakeParent::new()).parent(FakeParent::new())
}

#[test]
fn the_first_parent_comes_first() {
    let rig = stage();
    let tasks = rig.tasks(3);
    rig.give_parent(Parent(1), tasks[0]);
    rig.give_parent(Parent(0), tasks[1]);
    rig.give_parent(Parent(0), tasks[2]);
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(DOWN)).collect();
    assert_eq!(order, [tasks[1], tasks[2], tasks[0]]);
}

#[test]
fn room_is_told_in_the_same_order() {
    let rig = stage();
    let tasks = rig.tasks(2);
    rig.give_parent(Parent(1), tasks[0]);
    rig.give_parent(Parent(0), tasks[1]);
    assert!(rig.can_push(DOWN));
    assert_eq!(rig.child_tasks(DOWN), [tasks[1]]);
    assert!(rig.can_push(DOWN));
    assert_eq!(rig.child_tasks(DOWN), [tasks[1], tasks[0]]);
}

#[test]
fn pushes_and_refusals_pass_through() {
    let rig = stage().child(FakeChild::new().room(1).refusal(Refusal::PullInstead));
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Ok(()));
    assert_eq!(rig.push(tasks[1]), Err(Refusal::PullInstead));
    assert!(rig.can_pull());
}
