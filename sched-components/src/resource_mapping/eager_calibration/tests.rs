use super::*;
use sched_core::rig::{FakeChild, FakeParent, Rig};
use std::time::Duration;

const KNOWN: Estimate = Estimate::Known(Duration::from_micros(5));

/// A queue above two CPUs, and one above a CUDA worker.
fn calibration() -> Rig {
    let rig = Rig::build::<EagerCalibration>(&[]).workers(2).worker(Arch::CUDA, MemoryNode(1));
    rig.child(FakeChild::over([0, 1])).child(FakeChild::over([2]))
}

fn set(rig: &Rig, lengths: [Estimate; 3]) {
    for (worker, length) in lengths.into_iter().enumerate() {
        rig.set_length(0, WorkerId(worker as u32), 0, length);
    }
}

#[test]
fn the_first_child_that_must_measure_gets_the_task() {
    let rig = calibration();
    set(&rig, [KNOWN, Estimate::Uncalibrated, Estimate::Uncalibrated]);
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Ok(()));
    assert_eq!(rig.child_tasks(Child(0)), [tasks[0]]);
    assert_eq!(rig.read(tasks[0], Task::implementation), Some(0));
    set(&rig, [KNOWN, KNOWN, Estimate::Uncalibrated]);
    assert_eq!(rig.push(tasks[1]), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [tasks[1]]);
}

#[test]
fn what_is_measured_everywhere_goes_to_the_least_load() {
    let rig = calibration();
    rig.set_load(Child(0), 1.0);
    for lengths in [[KNOWN; 3], [Estimate::NoModel; 3]] {
        set(&rig, lengths);
        let task = rig.task().make();
        assert_eq!(rig.push(task), Ok(()));
        assert_eq!(rig.child_tasks(Child(1)).last(), Some(&task));
        assert_eq!(rig.read(task, Task::implementation), None);
    }
    assert_eq!(rig.push(rig.task().archs([Arch::FPGA]).make()), Err(Refusal::NoWorker));
}

#[test]
fn workers_that_cannot_execute_or_are_outside_do_not_measure() {
    let rig = calibration().context([0, 2]);
    set(&rig, [KNOWN, Estimate::Uncalibrated, Estimate::Uncalibrated]);
    let cpu = rig.task().archs([Arch::CPU]).make();
    assert_eq!(rig.push(cpu), Ok(()));
    assert_eq!(rig.child_tasks(Child(0)), [cpu], "by load: there is nobody to measure it");
    let any = rig.task().make();
    assert_eq!(rig.push(any), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [any]);
}

#[test]
fn a_full_child_does_not_block_the_next() {
    let rig = calibration();
    set(&rig, [Estimate::Uncalibrated; 3]);
    rig.set_room(Child(0), Some(0));
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [tasks[0]]);
    rig.set_room(Child(1), Some(0));
    assert_eq!(rig.push(tasks[1]), Err(Refusal::Full));
    assert_eq!(rig.read(tasks[1], Task::implementation), None, "nothing was chosen for it");
}

#[test]
fn the_implementation_to_measure_is_chosen() {
    let rig = Rig::build::<EagerCalibration>(&[]).child(FakeChild::worker(0));
    rig.set_implementations(0, 2);
    rig.set_length(0, WorkerId(0), 0, KNOWN);
    rig.set_length(0, WorkerId(0), 1, Estimate::Uncalibrated);
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.read(task, Task::implementation), Some(1));
    assert_eq!(rig.child_tasks(Child(0)), [task], "a worker is pushed to");
}

#[test]
fn no_implementation_is_chosen_for_different_workers() {
    let rig = Rig::build::<EagerCalibration>(&[]).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::new());
    rig.set_length(0, WorkerId(0), 0, Estimate::Uncalibrated);
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.read(task, Task::implementation), None);
}

#[test]
fn pulls_pass_through() {
    let rig = calibration().parent(FakeParent::new());
    let task = rig.task().make();
    rig.give_parent(Parent(0), task);
    assert_eq!(rig.pull(Child(0)), Some(task));
}
