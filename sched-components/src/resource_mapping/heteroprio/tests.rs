use super::*;
use crate::resource_mapping::keepers::{self, known};
use sched_core::rig::{FakeChild, FakeParent, Rig};

fn core_and_gpu(params: &[(&str, Value)], lengths: &[(u64, u64)]) -> Rig {
    keepers::core_and_gpu(Rig::build::<Heteroprio>(params), lengths)
}

fn hold(rig: &Rig, codelets: &[u32]) -> Vec<TaskId> {
    rig.set_room(Child(0), Some(0));
    rig.set_room(Child(1), Some(0));
    let tasks: Vec<TaskId> = codelets.iter().map(|codelet| rig.task().codelet(*codelet).make()).collect();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()), "it never refuses");
    }
    tasks
}

#[test]
fn accelerators_take_what_they_accelerate_most() {
    let rig = core_and_gpu(&[], &[(20, 10), (80, 10), (40, 10)]);
    let tasks = hold(&rig, &[0, 1, 2]);
    // Every task would end first on the accelerator.
    rig.set_end(Child(0), Time::from_nanos(1_000_000));
    rig.set_room(Child(1), Some(9));
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), [tasks[1], tasks[2], tasks[0]]);
}

#[test]
fn cores_take_what_gains_least() {
    let rig = core_and_gpu(&[], &[(80, 10), (20, 10), (40, 10)]);
    let tasks = hold(&rig, &[0, 1, 2]);
    // Every task would end first on the core.
    rig.set_end(Child(1), Time::from_nanos(1_000_000));
    rig.set_room(Child(0), Some(9));
    assert!(rig.can_push(Child(0)));
    assert_eq!(rig.child_tasks(Child(0)), [tasks[1], tasks[2], tasks[0]]);
}

#[test]
fn a_core_gets_nothing_that_the_accelerator_would_complete_first() {
    let rig = core_and_gpu(&[], &[(80, 10)]);
    let tasks = hold(&rig, &[0, 0]);
    rig.set_room(Child(0), Some(9));
    assert!(!rig.can_push(Child(0)));
    assert_eq!(rig.held(), tasks);
}

#[test]
fn accelerations_within_ten_percent_share_a_bucket() {
    // 10 and 10.9 share a bucket, 11.2 does not belong to that of 10.
    let rig = core_and_gpu(&[], &[(100, 10), (109, 10), (112, 10)]);
    let tasks = hold(&rig, &[0, 1, 2]);
    let facts = rig.describe();
    assert_eq!(facts.len(), 3, "two buckets, and those without: {facts:?}");
    assert_eq!(rig.drain(), [tasks[2], tasks[0], tasks[1]]);
}

#[test]
fn priorities_count_inside_a_bucket() {
    let rig = core_and_gpu(&[("batch", Value::Bool(false))], &[(100, 10)]);
    rig.set_room(Child(0), Some(0));
    rig.set_room(Child(1), Some(0));
    let (low, high) = (rig.task().make(), rig.task().priority(3).make());
    assert_eq!((rig.push(low), rig.push(high)), (Ok(()), Ok(())));
    rig.set_room(Child(1), Some(9));
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), [high, low]);
    assert_eq!(rig.read(high, Task::priority), 3);
}

#[test]
fn in_a_batch_priorities_end_on_the_way_down_only() {
    let rig = core_and_gpu(&[], &[(100, 10)]);
    rig.set_room(Child(1), Some(1));
    let (first, second) = (rig.task().priority(1).make(), rig.task().priority(2).make());
    assert_eq!((rig.push(first), rig.push(second)), (Ok(()), Ok(())));
    assert_eq!(rig.child_tasks(Child(1)), [first]);
    assert_eq!(rig.read(first, Task::priority), i32::MAX);
    assert_eq!(rig.read(second, Task::priority), 2, "it was refused");
}

#[test]
fn tasks_that_not_all_workers_can_run_go_where_they_end_first() {
    let rig = core_and_gpu(&[], &[(20, 10), (20, 10)]);
    rig.set_length(1, WorkerId(0), 0, Estimate::Uncalibrated);
    let cpu = rig.task().archs([Arch::CPU]).make();
    let fpga = rig.task().archs([Arch::FPGA]).make();
    let half_known = rig.task().codelet(1).make();
    for task in [fpga, cpu, half_known] {
        assert_eq!(rig.push(task), Ok(()));
    }
    assert_eq!((rig.child_tasks(Child(0)), rig.child_tasks(Child(1))), (vec![cpu], vec![half_known]));
    assert_eq!(rig.held(), [fpga], "nobody can execute it, and it is not in the way");
}

#[test]
fn a_worker_pulls_from_its_end() {
    let rig = Rig::build::<Heteroprio>(&[]).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(0));
    let rig = rig.child(FakeChild::worker(0)).child(FakeChild::worker(1));
    for (codelet, cpu) in [(0, 20), (1, 80), (2, 40)] {
        rig.set_length(codelet, WorkerId(0), 0, known(cpu));
        rig.set_length(codelet, WorkerId(1), 0, known(10));
    }
    let tasks = [0, 1, 2].map(|codelet| rig.task().codelet(codelet).make());
    for task in tasks {
        assert_eq!(rig.push(task), Ok(()));
    }
    assert_eq!(rig.woken(), [WorkerId(1)]);
    assert_eq!(rig.pull(Child(0)), Some(tasks[0]));
    assert_eq!(rig.pull(Child(1)), Some(tasks[1]));
    assert_eq!(rig.pull(Child(0)), Some(tasks[2]));
}

#[test]
fn its_own_queue_counts_for_who_stands_above() {
    let rig = core_and_gpu(&[], &[(40, 10)]).parent(FakeParent::new());
    hold(&rig, &[0, 0]);
    assert_eq!(rig.estimated_end(), Time::from_nanos(10_000), "10 µs each at best, over 2 workers");
}

#[test]
fn combined_workers_say_nothing_of_an_acceleration() {
    let rig = core_and_gpu(&[], &[(80, 10), (20, 10)]).combined([0, 0]).child(FakeChild::over([2]));
    let tasks = hold(&rig, &[1, 0]);
    rig.set_end(Child(0), Time::from_nanos(1_000_000));
    rig.set_room(Child(1), Some(9));
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), [tasks[1], tasks[0]], "by acceleration, although the pair can run neither");
}

#[test]
fn tasks_for_each_other_s_architecture_do_not_keep_everybody_waiting() {
    let rig = Rig::build::<Heteroprio>(&[]);
    let rig = rig.worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::over([0])).child(FakeChild::over([1]));
    // The one with the larger acceleration is done first on the core, where its data is.
    let [far, near] = [0, 1];
    for (codelet, (cpu, cuda)) in [(far, (100, 1)), (near, (100, 10))] {
        rig.set_length(codelet, WorkerId(0), 0, known(cpu));
        rig.set_length(codelet, WorkerId(1), 0, known(cuda));
    }
    rig.set_transfer(far, MemoryNode(1), Duration::from_millis(1));
    let tasks = hold(&rig, &[near, far]);
    rig.set_room(Child(0), None);
    rig.set_end(Child(1), Time::from_nanos(10_000));
    assert!(!rig.can_push(Child(0)), "somebody executes something, and will ask again");
    assert_eq!(rig.held().len(), 2);
    rig.set_room(Child(1), None);
    rig.set_now(Time::from_nanos(10_000));
    assert!(rig.can_push(Child(1)));
    assert_eq!((rig.child_tasks(Child(0)), rig.child_tasks(Child(1))), (vec![tasks[1]], vec![tasks[0]]));
}

/// A restricted task at an end of the buckets. Only one that nobody else could execute has no acceleration, so it is
/// restricted to the workers that there are, as in a context that others join later.
fn restricted_at_an_end(first: (u64, u64), second: (u64, u64)) -> (Rig, TaskId, TaskId) {
    let rig = core_and_gpu(&[], &[first, second]);
    rig.set_room(Child(0), Some(0));
    rig.set_room(Child(1), Some(0));
    let (restricted, free) = (rig.task().only([0, 1]).make(), rig.task().codelet(1).make());
    assert_eq!((rig.push(restricted), rig.push(free)), (Ok(()), Ok(())));
    assert_eq!(rig.held(), [restricted, free]);
    (rig, restricted, free)
}

#[test]
fn a_refused_task_at_an_end_does_not_hold_up_what_others_can_execute() {
    // Both have the acceleration 2. The first ends first on the accelerator, which is full; the second on the core.
    let (rig, restricted, free) = restricted_at_an_end((20, 10), (10, 20));
    rig.set_room(Child(0), Some(9));
    assert!(rig.can_push(Child(0)));
    assert_eq!(rig.child_tasks(Child(0)), [free]);
    assert_eq!(rig.held(), [restricted], "it still waits for the accelerator");
    rig.set_room(Child(1), Some(9));
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), [restricted]);
}

#[test]
fn a_refused_task_holds_up_those_of_its_kind() {
    let rig = core_and_gpu(&[], &[(20, 10), (10, 20)]);
    let tasks = hold(&rig, &[0, 1]);
    rig.set_end(Child(1), Time::from_nanos(1_000));
    rig.set_room(Child(0), Some(9));
    assert!(!rig.can_push(Child(0)), "the first task decides");
    assert_eq!(rig.held(), tasks);
}
