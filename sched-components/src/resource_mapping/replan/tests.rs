use super::*;
use crate::resource_mapping::keepers::{self, known};
use sched_core::rig::{FakeChild, Rig};
use std::time::Duration;

fn core_and_gpu(params: &[(&str, Value)], lengths: &[(u64, u64)]) -> Rig {
    keepers::core_and_gpu(Rig::build::<Replan>(params), lengths)
}

#[test]
fn only_tasks_whose_turn_has_come_are_sent() {
    let rig = core_and_gpu(&[], &[(100, 10)]);
    let tasks = rig.tasks(3);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.child_tasks(Child(1)), tasks[..1]);
    assert_eq!(rig.held(), tasks[1..]);
    assert_eq!(rig.read(tasks[0], Task::predicted), Some(Duration::from_micros(10)));
    rig.can_push(Child(1));
    assert_eq!(rig.child_tasks(Child(1)), tasks[..2], "who asks gets the next one");
}

#[test]
fn what_begins_within_the_lead_is_sent() {
    let rig = core_and_gpu(&[("lead", Value::Float(10.0))], &[(100, 10)]);
    let tasks = rig.tasks(3);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.child_tasks(Child(1)), tasks[..2]);
}

#[test]
fn an_urgent_task_does_not_wait_for_those_that_wait() {
    // In the order of arrival, seven tasks of 10 µs would come first, and the core would be done earlier.
    let rig = core_and_gpu(&[], &[(1000, 10), (60, 40)]);
    for task in rig.tasks(8) {
        assert_eq!(rig.push(task), Ok(()));
    }
    let urgent = rig.task().codelet(1).priority(1).make();
    assert_eq!(rig.push(urgent), Ok(()));
    assert_eq!(rig.child_tasks(Child(0)), []);
    rig.can_push(Child(1));
    assert_eq!(rig.child_tasks(Child(1)).last(), Some(&urgent));
}

#[test]
fn a_device_without_work_lets_nobody_compare_tasks_for_the_core() {
    let rig = core_and_gpu(&[], &[(35, 10)]);
    let for_core = || rig.task().archs([Arch::CPU]).make();
    let first = for_core();
    assert_eq!(rig.push(first), Ok(()));
    assert_eq!(rig.child_tasks(Child(0)), [first]);
    rig.can_push(Child(1));
    let comparisons = rig.service_calls("expected_length");
    assert!(comparisons > 0);
    let tasks: Vec<_> = (0..50).map(|_| for_core()).collect();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
        rig.can_push(Child(1));
    }
    assert_eq!(rig.service_calls("expected_length"), comparisons);
    assert_eq!(rig.held(), tasks);
    rig.can_push(Child(0));
    assert_eq!(rig.child_tasks(Child(0)), [first, tasks[0]]);
}

#[test]
fn a_long_plan_reaches_slow_workers() {
    let rig = core_and_gpu(&[], &[(35, 10)]);
    let tasks = rig.tasks(5);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.child_tasks(Child(0)), [tasks[3]], "the fourth would be done after 40 µs on the GPU");
}

#[test]
fn a_worker_to_spare_takes_what_it_slows_down_least() {
    let lengths = [(100, 10), (35, 10)];
    let push = |rig: &Rig| {
        let tasks = [0, 0, 1, 0].map(|codelet| rig.task().codelet(codelet).make());
        for task in tasks {
            assert_eq!(rig.push(task), Ok(()));
        }
        rig.can_push(Child(0));
        tasks
    };
    let rig = core_and_gpu(&[("spare", Value::Float(1.0))], &lengths);
    let tasks = push(&rig);
    assert_eq!(rig.child_tasks(Child(0)), [tasks[2]]);
    let rig = core_and_gpu(&[("spare", Value::Float(0.5))], &lengths);
    push(&rig);
    assert_eq!(rig.child_tasks(Child(0)), [], "it would be done after the others");
}

#[test]
fn expected_transfers_are_scaled_by_transfers() {
    for (share, child) in [(1.0, Child(0)), (0.1, Child(1))] {
        let rig = Rig::build::<Replan>(&[("transfers", Value::Float(share))])
            .worker(Arch::CPU, MemoryNode(0))
            .worker(Arch::CUDA, MemoryNode(1))
            .child(FakeChild::over([0]))
            .child(FakeChild::over([1]));
        rig.set_length(0, WorkerId(0), 0, known(50));
        rig.set_length(0, WorkerId(1), 0, known(10));
        rig.set_transfer(0, MemoryNode(1), Duration::from_micros(100));
        let task = rig.task().make();
        assert_eq!(rig.push(task), Ok(()));
        assert_eq!(rig.child_tasks(child), [task], "{share}");
    }
}

#[test]
fn a_refused_task_keeps_its_place() {
    let rig = core_and_gpu(&[], &[(100, 10)]);
    rig.set_room(Child(1), Some(0));
    let tasks = rig.tasks(3);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()), "it never refuses");
    }
    rig.set_room(Child(1), Some(1));
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), tasks[..1]);
    assert_eq!(rig.drain(), tasks[1..]);
}

#[test]
fn tasks_without_an_estimate_go_to_the_least_load() {
    let rig = core_and_gpu(&[], &[]);
    rig.set_load(Child(0), 3.0);
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [task]);
    assert_eq!(rig.read(task, Task::predicted), None);
}

#[test]
fn pushes_from_many_threads_are_all_kept() {
    let rig = core_and_gpu(&[], &[(100_000, 10)]);
    let tasks = rig.tasks(400);
    std::thread::scope(|scope| {
        for part in tasks.chunks(100) {
            let rig = &rig;
            scope.spawn(move || part.iter().for_each(|task| assert_eq!(rig.push(*task), Ok(()))));
        }
    });
    assert_eq!(rig.child_tasks(Child(1)).len() + rig.held().len(), 400);
    while rig.can_push(Child(1)) {}
    assert_eq!(rig.child_tasks(Child(1)).len(), 400);
}
