//! Tests that every component which stores tasks and decides by models must pass.

use super::{Heft, Heteroprio, Plan, Replan};
use sched_core::rig::{FakeChild, FakeParent, Rig};
use sched_core::*;
use std::time::Duration;

pub(super) fn known(micros: u64) -> Estimate {
    Estimate::Known(Duration::from_micros(micros))
}

/// A queue above each of a CPU core and a GPU. `lengths` gives each codelet's µs on them.
pub(super) fn core_and_gpu(rig: Rig, lengths: &[(u64, u64)]) -> Rig {
    let rig = rig.worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(0));
    let rig = rig.child(FakeChild::over([0])).child(FakeChild::over([1]));
    for (codelet, (cpu, cuda)) in (0..).zip(lengths) {
        rig.set_length(codelet, WorkerId(0), 0, known(*cpu));
        rig.set_length(codelet, WorkerId(1), 0, known(*cuda));
    }
    rig
}

fn keepers() -> [(&'static str, Rig); 5] {
    [
        ("heft", Rig::build::<Heft>(&[])),
        ("heteroprio", Rig::build::<Heteroprio>(&[])),
        ("replan", Rig::build::<Replan>(&[])),
        ("plan", Rig::build::<Plan>(&[])),
        ("plan, told what comes", Rig::build::<Plan>(&[]).foreseeing()),
    ]
}

#[test]
fn a_task_that_nobody_can_execute_is_not_in_the_way() {
    for (keeper, rig) in keepers() {
        let rig = core_and_gpu(rig, &[(40, 10)]);
        let (fpga, task) = (rig.task().archs([Arch::FPGA]).priority(9).make(), rig.task().make());
        assert_eq!((rig.push(fpga), rig.push(task)), (Ok(()), Ok(())), "{keeper}");
        assert_eq!(rig.child_tasks(Child(1)), [task], "{keeper}");
        assert_eq!(rig.held(), [fpga], "{keeper}");
    }
}

#[test]
fn a_task_that_is_restricted_to_a_full_worker_holds_up_no_other() {
    for (keeper, rig) in keepers() {
        let rig = core_and_gpu(rig, &[(40, 10)]);
        rig.set_room(Child(0), Some(0));
        let [core, gpu] = [0, 1].map(|worker| rig.task().priority(1 - worker as i32).only([worker]).make());
        assert_eq!((rig.push(core), rig.push(gpu)), (Ok(()), Ok(())), "{keeper}");
        assert_eq!(rig.child_tasks(Child(1)), [gpu], "{keeper}");
        assert_eq!(rig.held(), [core], "{keeper}");
    }
}

#[test]
fn a_worker_is_woken_and_pulls() {
    for (keeper, rig) in keepers() {
        let rig = rig.workers(2).child(FakeChild::worker(0)).child(FakeChild::worker(1));
        rig.set_length(0, WorkerId(0), 0, known(9));
        rig.set_length(0, WorkerId(1), 0, known(5));
        let task = rig.task().make();
        assert_eq!(rig.push(task), Ok(()), "{keeper}");
        assert_eq!(rig.woken(), [WorkerId(1)], "{keeper}: it would be done first there");
        assert_eq!(rig.pull(Child(1)), Some(task), "{keeper}");
        assert_eq!(rig.pull(Child(1)), None, "{keeper}");
    }
}

#[test]
fn who_pulls_gets_the_most_urgent_task() {
    for (keeper, rig) in keepers().into_iter().take(4) {
        let rig = rig.workers(2).child(FakeChild::worker(0)).child(FakeChild::worker(1));
        rig.set_length(0, WorkerId(0), 0, known(9));
        rig.set_length(0, WorkerId(1), 0, known(5));
        let (low, high) = (rig.task().make(), rig.task().priority(1).make());
        assert_eq!((rig.push(low), rig.push(high)), (Ok(()), Ok(())), "{keeper}");
        assert_eq!((rig.pull(Child(1)), rig.pull(Child(1))), (Some(high), Some(low)), "{keeper}");
    }
}

#[test]
fn room_is_passed_on_to_the_parents() {
    for (keeper, rig) in keepers() {
        let rig = core_and_gpu(rig, &[(40, 10)]).parent(FakeParent::new());
        let task = rig.task().make();
        rig.give_parent(Parent(0), task);
        assert!(rig.can_push(Child(1)), "{keeper}");
        assert_eq!(rig.child_tasks(Child(1)), [task], "{keeper}");
    }
}

#[test]
fn what_a_full_child_alone_could_take_does_not_hold_up_the_others() {
    let narrow = Rig::build::<Replan>(&[("window", Value::Int(3))]);
    // A component that plans with all submitted tasks waits for their turn.
    for (keeper, rig) in keepers().into_iter().take(4).chain([("replan, with a narrow window", narrow)]) {
        let rig = core_and_gpu(rig, &[(40, 10)]);
        rig.set_room(Child(0), Some(0));
        let for_cores: Vec<TaskId> = (0..9).map(|_| rig.task().archs([Arch::CPU]).priority(1).make()).collect();
        for task in &for_cores {
            assert_eq!(rig.push(*task), Ok(()), "{keeper}");
        }
        let for_gpus = rig.task().archs([Arch::CUDA]).make();
        assert_eq!(rig.push(for_gpus), Ok(()), "{keeper}");
        assert_eq!(rig.child_tasks(Child(1)), [for_gpus], "{keeper}");
        rig.set_room(Child(0), Some(1));
        rig.can_push(Child(0));
        assert_eq!(rig.child_tasks(Child(0)), for_cores[..1], "{keeper}: the first kept its place");
    }
}
