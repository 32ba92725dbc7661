use crate::flow_control::{Fifo, Prio};
use sched_core::rig::{FakeChild, Rig};
use sched_core::*;
use std::time::Duration;

const DOWN: Child = Child(0);
const GPU: WorkerId = WorkerId(1);

/// A queue above a core and a GPU. The data of codelet *n* takes *n* µs to reach the GPU's memory; it is already in the
/// core's.
fn queue<C: Build>(param: &'static str) -> Rig {
    let rig = Rig::build::<C>(&[(param, Value::Bool(true))]);
    let rig = rig.worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1)).child(FakeChild::over([0, 1]));
    for codelet in 0..10 {
        rig.set_transfer(codelet, MemoryNode(1), Duration::from_micros(u64::from(codelet)));
    }
    rig.set_requester(Some(GPU));
    rig
}

/// Pushes tasks of these codelets and priorities.
fn push(rig: &Rig, tasks: &[(u32, i32)]) -> Vec<TaskId> {
    let make = |(codelet, priority): &(u32, i32)| rig.task().codelet(*codelet).priority(*priority).make();
    let tasks: Vec<TaskId> = tasks.iter().map(make).collect();
    tasks.iter().for_each(|task| assert_eq!(rig.push(*task), Ok(())));
    tasks
}

fn pulls(rig: &Rig) -> Vec<TaskId> {
    std::iter::from_fn(|| rig.pull(DOWN)).collect()
}

#[test]
fn the_least_transfer_leaves_first_within_a_priority() {
    fn check<C: Build>() {
        let rig = queue::<C>("ready");
        let tasks = push(&rig, &[(5, 0), (3, 0), (9, 1), (3, 0), (7, 1), (0, 0)]);
        assert_eq!(pulls(&rig), [4, 2, 5, 1, 3, 0].map(|index: usize| tasks[index]), "the first of equals comes first");
    }
    check::<Fifo>();
    check::<Prio>();
}

#[test]
fn who_has_the_data_decides() {
    let rig = queue::<Fifo>("ready");
    let tasks = push(&rig, &[(5, 0), (3, 0)]);
    rig.set_requester(Some(WorkerId(0)));
    assert_eq!(rig.pull(DOWN), Some(tasks[0]), "the core has the data of both");
    let rest = push(&rig, &[(1, 0)]);
    rig.set_requester(Some(GPU));
    assert_eq!(pulls(&rig), [rest[0], tasks[1]]);
}

#[test]
fn readiness_may_come_before_priority() {
    let rig = queue::<Fifo>("ready-first");
    let tasks = push(&rig, &[(5, 2), (3, 0), (3, 1), (4, 7)]);
    assert_eq!(pulls(&rig), [2, 1, 3, 0].map(|index: usize| tasks[index]), "priority decides between equals");
}

#[test]
fn only_what_the_requester_can_execute_competes() {
    let rig = queue::<Fifo>("ready");
    let core = rig.task().archs([Arch::CPU]).codelet(0).make();
    assert_eq!(rig.push(core), Ok(()));
    let tasks = push(&rig, &[(5, 0), (3, -1)]);
    assert_eq!(rig.pull(DOWN), Some(tasks[0]), "a lower priority does not compete with it");
    assert_eq!(rig.pull(DOWN), Some(tasks[1]));
    assert_eq!(rig.pull(DOWN), None);
    rig.set_requester(Some(WorkerId(0)));
    assert_eq!(rig.pull(DOWN), Some(core));
}

#[test]
fn what_is_sent_down_is_chosen_too_where_all_have_one_memory() {
    let rig =
        Rig::build::<Prio>(&[("ready", Value::Bool(true))]).worker(Arch::CUDA, MemoryNode(1)).child(FakeChild::new());
    for codelet in 0..10 {
        rig.set_transfer(codelet, MemoryNode(1), Duration::from_micros(u64::from(codelet)));
    }
    let tasks = push(&rig, &[(5, 0), (3, 0), (4, 0)]);
    rig.set_room(DOWN, Some(2));
    assert!(rig.can_push(DOWN));
    assert_eq!(rig.child_tasks(DOWN), [tasks[1], tasks[2]]);
    assert_eq!(rig.pull(DOWN), Some(tasks[0]), "the one that was refused is back");
}

#[test]
fn expected_lengths_leave_with_their_tasks() {
    let rig = queue::<Fifo>("ready");
    for codelet in [5, 3, 4] {
        let task = rig.task().codelet(codelet).predicted(Duration::from_micros(10)).make();
        assert_eq!(rig.push(task), Ok(()));
    }
    assert!(rig.pull(DOWN).is_some());
    assert_eq!(rig.estimated_end(), Time::from_nanos(10_000), "20 µs for two workers");
}
