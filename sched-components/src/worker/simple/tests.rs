use super::*;
use sched_core::rig::{FakeParent, Hop, Rig};
use std::time::Duration;

const ITSELF: Child = Child(0);

fn worker() -> Rig {
    Rig::build::<Simple>(&[])
}

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

const fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

#[test]
fn a_push_prefetches_and_wakes_the_worker() {
    let rig = worker();
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.hops(), [Hop::Prefetch(task, MemoryNode(0)), Hop::Wake { woke: vec![WorkerId(0)] }]);
}

#[test]
fn its_own_list_comes_before_the_parents() {
    let rig = worker().parent(FakeParent::new());
    let above = rig.task().priority(9).make();
    rig.give_parent(Parent(0), above);
    let tasks: Vec<TaskId> = [0, 1, 0].map(|priority| rig.task().priority(priority).make()).to_vec();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(ITSELF)).collect();
    assert_eq!(order, [tasks[1], tasks[0], tasks[2], above]);
}

#[test]
fn the_end_counts_the_list_and_the_task_that_runs() {
    let rig = worker();
    rig.set_now(at(100));
    assert_eq!(rig.estimated_end(), at(100));
    let tasks: Vec<TaskId> = (0..2).map(|_| rig.task().predicted(micros(10)).make()).collect();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.estimated_end(), at(120));
    assert_eq!(rig.pull(ITSELF), Some(tasks[0]));
    assert_eq!(rig.estimated_end(), at(120), "one runs, one waits");
    rig.set_now(at(105));
    assert_eq!(rig.estimated_end(), at(120));
    rig.set_now(at(117));
    assert_eq!(rig.estimated_end(), at(127), "it is late");
    assert_eq!(rig.pull(ITSELF), Some(tasks[1]));
    assert_eq!(rig.estimated_end(), at(127));
    rig.set_now(at(130));
    assert_eq!(rig.estimated_end(), at(130));
}

#[test]
fn transfers_hide_behind_the_tasks_before() {
    let rig = worker();
    let task = || rig.task().predicted(micros(10)).predicted_transfer(micros(15)).make();
    assert_eq!(rig.push(task()), Ok(()));
    assert_eq!(rig.estimated_end(), at(25));
    assert_eq!(rig.push(task()), Ok(()));
    assert_eq!(rig.estimated_end(), at(35), "the second transfer hides behind 25 µs of work");
}

#[test]
fn a_task_from_above_counts_when_it_is_taken() {
    let rig = worker().parent(FakeParent::new());
    let task = rig.task().predicted(micros(10)).make();
    rig.give_parent(Parent(0), task);
    assert_eq!(rig.pull(ITSELF), Some(task));
    assert_eq!(rig.estimated_end(), at(10));
}

#[test]
fn load_is_tasks_by_speed() {
    let rig = Rig::build::<Simple>(&[]).worker(Arch::CUDA, MemoryNode(1));
    let tasks = rig.tasks(2);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.estimated_load(), 2.0 / 13.33);
    assert_eq!(rig.drain(), tasks);
    assert_eq!(rig.estimated_load(), 0.0);
    assert_eq!(rig.describe()[0], ("tasks".to_owned(), "0".to_owned()));
}

#[test]
fn what_waits_for_its_worker_elsewhere_counts() {
    let rig = worker();
    rig.set_queued_elsewhere(WorkerId(0), micros(30));
    rig.set_busy_until(WorkerId(0), at(7));
    assert_eq!(rig.push(rig.task().predicted(micros(10)).make()), Ok(()));
    assert_eq!(rig.estimated_end(), at(47), "a task runs, one waits in a team, one waits here");
}

#[test]
fn it_guesses_where_the_host_keeps_no_books() {
    let rig = worker().without_extensions();
    let tasks: Vec<TaskId> = (0..2).map(|_| rig.task().predicted(micros(10)).make()).collect();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.pull(ITSELF), Some(tasks[0]));
    assert_eq!(rig.estimated_end(), at(20), "one runs, one waits");
    rig.set_now(at(13));
    assert_eq!(rig.estimated_end(), at(23), "it is late");
}

#[test]
fn tasks_of_unknown_length_cost_no_look_at_the_clock() {
    let rig = worker();
    let tasks = rig.tasks(3);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
        assert_eq!(rig.pull(ITSELF), Some(*task));
    }
    assert_eq!((rig.service_calls("now"), rig.service_calls("note_queued")), (0, 0));
}
