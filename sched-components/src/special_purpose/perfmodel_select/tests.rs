use super::*;
use sched_core::rig::{FakeChild, FakeParent, Rig};
use std::time::Duration;

const KNOWN: Estimate = Estimate::Known(Duration::from_micros(5));
const MODELLED: Child = Child(0);
const MEASURED: Child = Child(1);
const OTHERS: Child = Child(2);

/// Two CPU cores and a GPU below each slot; codelet 0 has these estimates on them.
fn rig(estimates: [Estimate; 3]) -> Rig {
    let rig = Rig::build::<PerfmodelSelect>(&[]).workers(2).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::new().slot(PERFMODEL).end(Time::from_nanos(900)));
    let rig = rig.child(FakeChild::new().slot(CALIBRATOR).end(Time::from_nanos(10)));
    let rig = rig.child(FakeChild::new().slot(NO_PERFMODEL).end(Time::from_nanos(20))).parent(FakeParent::new());
    for (worker, estimate) in (0..).zip(estimates) {
        rig.set_length(0, WorkerId(worker), 0, estimate);
    }
    rig
}

fn goes_to(estimates: [Estimate; 3], archs: &[Arch]) -> Child {
    let rig = rig(estimates);
    let task = rig.task().archs(archs.iter().copied()).make();
    assert_eq!(rig.push(task), Ok(()));
    let slots = [MODELLED, MEASURED, OTHERS];
    *slots.iter().find(|slot| rig.child_tasks(**slot) == [task]).expect("a slot has it")
}

#[test]
fn tasks_are_sorted_by_what_models_know() {
    use Estimate::{NoModel, Uncalibrated};
    let both = &[Arch::CPU, Arch::CUDA];
    assert_eq!(goes_to([KNOWN; 3], both), MODELLED);
    assert_eq!(goes_to([NoModel; 3], both), OTHERS);
    assert_eq!(goes_to([NoModel, NoModel, KNOWN], both), MODELLED);
    assert_eq!(goes_to([KNOWN, Uncalibrated, KNOWN], both), MEASURED);
    assert_eq!(goes_to([NoModel, NoModel, Uncalibrated], both), MEASURED);
    assert_eq!(goes_to([KNOWN, KNOWN, Uncalibrated], &[Arch::CPU]), MODELLED, "the GPU cannot execute it");
}

#[test]
fn what_is_known_of_one_kind_of_tasks_is_not_concluded_for_another() {
    use Estimate::Uncalibrated;
    let rig = rig([KNOWN, KNOWN, Uncalibrated]);
    rig.notify_change_workers();
    (0..3).for_each(|worker| rig.set_length(1, WorkerId(worker), 0, Uncalibrated));
    let goes_to = |task: TaskId, to: Child| {
        assert_eq!(rig.push(task), Ok(()));
        assert_eq!(rig.child_tasks(to).last(), Some(&task));
    };
    for _ in 0..2 {
        goes_to(rig.task().archs([Arch::CPU]).make(), MODELLED);
        goes_to(rig.task().make(), MEASURED);
        goes_to(rig.task().only([0, 1]).make(), MODELLED);
        goes_to(rig.task().only([2]).make(), MEASURED);
        goes_to(rig.task().codelet(1).archs([Arch::CPU]).make(), MEASURED);
    }
    // Known by now.
    (0..3).for_each(|worker| rig.set_length(1, WorkerId(worker), 0, KNOWN));
    rig.set_length(0, WorkerId(2), 0, KNOWN);
    goes_to(rig.task().make(), MODELLED);
    goes_to(rig.task().codelet(1).archs([Arch::CPU]).make(), MODELLED);
}

#[test]
fn models_are_not_asked_again_for_what_they_know_unless_workers_change() {
    let rig = rig([KNOWN; 3]);
    rig.notify_change_workers();
    let goes_to = |to: Child| {
        let task = rig.task().make();
        assert_eq!(rig.push(task), Ok(()));
        assert_eq!(rig.child_tasks(to).last(), Some(&task));
    };
    goes_to(MODELLED);
    (0..3).for_each(|worker| rig.set_length(0, WorkerId(worker), 0, Estimate::Uncalibrated));
    goes_to(MODELLED);
    rig.notify_change_workers();
    goes_to(MEASURED);
}

#[test]
fn equal_workers_measure_what_they_execute_if_that_is_wanted() {
    let goes_to = |rig: Rig, only: &[u32], to: Child| {
        let rig = [PERFMODEL, CALIBRATOR, NO_PERFMODEL]
            .into_iter()
            .fold(rig, |rig, slot| rig.child(FakeChild::new().slot(slot)));
        (0..2).for_each(|worker| rig.set_length(0, WorkerId(worker), 0, Estimate::Uncalibrated));
        let task = rig.task();
        let task = if only.is_empty() { task } else { task.only(only.iter().copied()) }.make();
        assert_eq!(rig.push(task), Ok(()));
        assert_eq!(rig.child_tasks(to), [task]);
    };
    let select = |unmeasured: bool| Rig::build::<PerfmodelSelect>(&[(UNMEASURED, Value::Bool(unmeasured))]);
    goes_to(select(true).workers(2), &[], MODELLED);
    goes_to(select(false).workers(2), &[], MEASURED);
    goes_to(select(true).workers(2), &[1], MEASURED);
    goes_to(select(true).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1)), &[], MEASURED);
    goes_to(select(true).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CPU, MemoryNode(1)), &[], MEASURED);
}

#[test]
fn a_task_that_turns_out_to_need_measuring_is_measured() {
    let rig = Rig::build::<PerfmodelSelect>(&[]);
    let rig = rig.child(FakeChild::new().slot(PERFMODEL).room(0).refusal(Refusal::Uncalibrated));
    let rig = rig.child(FakeChild::new().slot(CALIBRATOR).room(1)).child(FakeChild::new().slot(NO_PERFMODEL));
    rig.set_length(0, WorkerId(0), 0, KNOWN);
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Ok(()));
    assert_eq!(rig.child_tasks(MEASURED), [tasks[0]]);
    assert_eq!(rig.push(tasks[1]), Err(Refusal::Full));
}

#[test]
fn a_full_slot_keeps_its_tasks_from_the_others() {
    let rig = rig([KNOWN; 3]);
    rig.set_room(MODELLED, Some(0));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Err(Refusal::Full));
    assert_eq!((rig.child_tasks(MEASURED), rig.child_tasks(OTHERS)), (vec![], vec![]));
}

#[test]
fn a_slot_whose_workers_cannot_execute_the_task_is_passed_over() {
    let rig = Rig::build::<PerfmodelSelect>(&[]).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::over([0, 1]).slot(PERFMODEL)).child(FakeChild::over([0]).slot(CALIBRATOR));
    let rig = rig.child(FakeChild::over([0]).slot(NO_PERFMODEL));
    rig.set_length(0, WorkerId(1), 0, Estimate::Uncalibrated);
    let gpu = rig.task().archs([Arch::CUDA]).make();
    assert_eq!(rig.push(gpu), Ok(()));
    assert_eq!(rig.child_tasks(MODELLED), [gpu], "nobody could measure it below the calibrator");
}

#[test]
fn a_task_that_nobody_can_execute_is_refused() {
    let rig = rig([KNOWN; 3]);
    let task = rig.task().archs([Arch::FPGA]).make();
    assert_eq!(rig.push(task), Err(Refusal::NoWorker));
}

#[test]
fn a_pull_through_one_slot_takes_nothing_from_another() {
    let rig = rig([KNOWN; 3]);
    let task = rig.task().make();
    rig.give_parent(Parent(0), task);
    assert_eq!(rig.pull(OTHERS), None);
    assert_eq!(rig.child_tasks(MODELLED), [task], "it was asked for, and sorted");
}

#[test]
fn room_passes_through_and_the_end_is_that_of_the_models() {
    let rig = rig([KNOWN; 3]);
    let task = rig.task().make();
    rig.give_parent(Parent(0), task);
    assert!(rig.can_push(MEASURED));
    assert_eq!(rig.child_tasks(MODELLED), [task]);
    assert_eq!(rig.estimated_end(), Time::from_nanos(900));
    assert!(rig.can_pull());
    assert_eq!(rig.woken(), [WorkerId(0)]);
}
