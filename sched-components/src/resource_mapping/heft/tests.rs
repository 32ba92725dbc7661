use super::*;
use crate::resource_mapping::keepers;
use sched_core::rig::{FakeParent, Hop, Rig};
use std::time::Duration;

fn core_and_gpu(params: &[(&str, Value)], lengths: &[(u64, u64)]) -> Rig {
    keepers::core_and_gpu(Rig::build::<Heft>(params), lengths)
}

fn close(rig: &Rig) {
    rig.set_room(Child(0), Some(0));
    rig.set_room(Child(1), Some(0));
}

fn open(rig: &Rig, child: Child, room: usize) {
    rig.set_room(child, Some(room));
    rig.can_push(child);
}

#[test]
fn a_task_goes_where_it_ends_first_and_carries_the_prediction() {
    let rig = core_and_gpu(&[], &[(40, 10)]);
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [task]);
    assert_eq!(rig.read(task, Task::predicted), Some(Duration::from_micros(10)));
}

#[test]
fn of_equal_priorities_the_one_that_can_end_first_goes_first() {
    let rig = core_and_gpu(&[], &[(900, 30), (900, 20), (900, 10)]);
    close(&rig);
    let tasks = [0, 1, 2].map(|codelet| rig.task().codelet(codelet).make());
    let high = rig.task().priority(1).make();
    for task in tasks.into_iter().chain([high]) {
        assert_eq!(rig.push(task), Ok(()), "it never refuses");
    }
    open(&rig, Child(1), 9);
    assert_eq!(rig.child_tasks(Child(1)), [high, tasks[2], tasks[1], tasks[0]]);
}

#[test]
fn only_the_window_is_compared() {
    let rig = core_and_gpu(&[("window", Value::Int(2))], &[(90, 30), (90, 10)]);
    close(&rig);
    let tasks = [0, 0, 1].map(|codelet| rig.task().codelet(codelet).make());
    for task in tasks {
        assert_eq!(rig.push(task), Ok(()));
    }
    open(&rig, Child(1), 9);
    assert_eq!(rig.child_tasks(Child(1)), [tasks[0], tasks[2], tasks[1]]);
    assert!(Rig::try_build::<Heft>(&[("window", Value::Int(0))]).is_err());
}

#[test]
fn a_refused_task_keeps_its_place() {
    let rig = core_and_gpu(&[], &[(40, 10)]);
    close(&rig);
    let tasks = rig.tasks(9);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    rig.set_room(Child(1), Some(2));
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), tasks[..2]);
    assert_eq!(rig.drain(), tasks[2..]);
}

#[test]
fn children_are_asked_once_for_a_window() {
    let rig = core_and_gpu(&[], &[(40, 10)]);
    close(&rig);
    for task in rig.tasks(5) {
        assert_eq!(rig.push(task), Ok(()));
    }
    rig.hops();
    rig.can_push(Child(1));
    let asked = rig.hops().iter().filter(|hop| matches!(hop, Hop::EstimatedEnd(_))).count();
    assert_eq!(asked, 2);
}

#[test]
fn tasks_without_an_estimate_go_last_and_to_the_least_load() {
    let rig = core_and_gpu(&[], &[(40, 10)]);
    close(&rig);
    rig.set_length(5, WorkerId(0), 0, Estimate::Uncalibrated);
    rig.set_load(Child(1), 3.0);
    let tasks = [4, 5, 0].map(|codelet| rig.task().codelet(codelet).make());
    for task in tasks {
        assert_eq!(rig.push(task), Ok(()));
    }
    open(&rig, Child(1), 9);
    assert_eq!(rig.child_tasks(Child(1)), [tasks[2]]);
    open(&rig, Child(0), 9);
    assert_eq!(rig.child_tasks(Child(0)), tasks[..2]);
}

#[test]
fn pushes_from_many_threads_all_go_on() {
    let rig = core_and_gpu(&[], &[(40, 10)]);
    let tasks = rig.tasks(400);
    std::thread::scope(|scope| {
        for part in tasks.chunks(100) {
            let rig = &rig;
            scope.spawn(move || part.iter().for_each(|task| assert_eq!(rig.push(*task), Ok(()))));
        }
    });
    let [core, gpu] = [0, 1].map(|child| rig.child_tasks(Child(child)).len());
    // The core ends one in the time of four on the GPU.
    assert_eq!((core, gpu, rig.held().len()), (80, 320, 0));
}

#[test]
fn its_own_queue_counts_for_who_stands_above() {
    let rig = core_and_gpu(&[], &[(90, 30)]).parent(FakeParent::new());
    close(&rig);
    rig.set_end(Child(1), Time::from_nanos(20_000));
    assert_eq!(rig.estimated_end(), Time::ZERO, "the core is free");
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.estimated_end(), Time::from_nanos(25_000), "30 µs on the GPU at best, and 20 there: over 2 workers");
    open(&rig, Child(1), 1);
    assert_eq!(rig.estimated_end(), Time::ZERO);
}
