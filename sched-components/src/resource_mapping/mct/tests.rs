use super::*;
use sched_core::rig::{FakeChild, FakeParent, Hop, Rig};
use std::time::Duration;

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

/// A queue above each of a CPU core and a GPU with its own memory. Codelet 0 takes 40 µs on the core and 10 µs on the
/// GPU, with 5 µs of transfer.
fn core_and_gpu() -> Rig {
    let rig = Rig::build::<Mct>(&[]).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::over([0])).child(FakeChild::over([1]));
    rig.set_length(0, WorkerId(0), 0, Estimate::Known(micros(40)));
    rig.set_length(0, WorkerId(1), 0, Estimate::Known(micros(10)));
    rig.set_transfer(0, MemoryNode(1), micros(5));
    rig
}

fn predictions(rig: &Rig, task: TaskId) -> (Option<Duration>, Option<Duration>) {
    rig.read(task, |task| (task.predicted(), task.predicted_transfer()))
}

#[test]
fn a_task_goes_where_it_ends_first_and_carries_the_prediction() {
    let rig = core_and_gpu();
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [tasks[0]]);
    assert_eq!(predictions(&rig, tasks[0]), (Some(micros(10)), Some(micros(5))));
    // The transfer is hidden by 31 µs of work, but beta charges it: 31 + 10 + 5 against 40.
    rig.set_end(Child(1), at(31));
    assert_eq!(rig.push(tasks[1]), Ok(()));
    assert_eq!(rig.child_tasks(Child(0)), [tasks[1]]);
    assert_eq!(predictions(&rig, tasks[1]).0, Some(micros(40)));
}

#[test]
fn the_past_does_not_count() {
    let rig = core_and_gpu();
    rig.set_now(at(1000));
    rig.set_end(Child(0), at(100));
    rig.set_end(Child(1), at(1020));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [task]);
}

#[test]
fn the_best_worker_of_a_child_counts_and_transfers_are_averaged() {
    let rig = Rig::build::<Mct>(&[]);
    let rig = (0..3).fold(rig, |rig, node| rig.worker(Arch::CPU, MemoryNode(node))).child(FakeChild::over([0, 1, 2]));
    for (worker, length) in [(0, 30), (1, 20), (2, 25)] {
        rig.set_length(0, WorkerId(worker), 0, Estimate::Known(micros(length)));
        rig.set_transfer(0, MemoryNode(worker), micros(u64::from(worker) * 3));
    }
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(predictions(&rig, task), (Some(micros(20)), Some(micros(3))));
}

#[test]
fn a_refusal_by_the_chosen_child_stands() {
    let rig = core_and_gpu();
    rig.set_room(Child(1), Some(0));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Err(Refusal::Full));
    let push = |hop: &Hop| matches!(hop, Hop::PushTo { .. });
    assert_eq!(rig.hops().iter().filter(|hop| push(hop)).count(), 1, "no other child is tried");
    rig.set_room(Child(1), None);
    assert_eq!(rig.push(task), Ok(()), "no promise of the refused decision is left");
    assert_eq!(rig.child_tasks(Child(1)), [task]);
}

#[test]
fn a_refused_task_waits_for_its_child_without_another_comparison() {
    let rig = core_and_gpu();
    rig.set_room(Child(1), Some(0));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Err(Refusal::Full));
    // By now the core would end it first.
    rig.set_end(Child(1), at(100));
    rig.set_busy_until(WorkerId(0), at(30));
    rig.set_requester(Some(WorkerId(0)));
    let comparisons = rig.service_calls("expected_length");
    assert!(comparisons > 0);
    assert_eq!(rig.push(task), Err(Refusal::Full), "the core has something to do");
    rig.set_room(Child(1), None);
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [task]);
    assert_eq!(rig.service_calls("expected_length"), comparisons);
}

#[test]
fn who_runs_out_of_work_gets_a_task_that_waits_for_another() {
    let rig = core_and_gpu();
    rig.set_room(Child(1), Some(0));
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Err(Refusal::Full));
    rig.set_end(Child(1), at(100));
    rig.set_requester(Some(WorkerId(1)));
    rig.set_busy_until(WorkerId(1), at(100));
    assert_eq!(rig.push(tasks[0]), Err(Refusal::Full), "its own queue is full");
    rig.set_requester(Some(WorkerId(0)));
    assert_eq!(rig.push(tasks[0]), Ok(()));
    assert_eq!(rig.child_tasks(Child(0)), [tasks[0]]);
}

#[test]
fn the_last_refused_task_alone_keeps_its_child() {
    let rig = core_and_gpu();
    rig.set_room(Child(1), Some(0));
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Err(Refusal::Full));
    assert_eq!(rig.push(tasks[1]), Err(Refusal::Full));
    rig.set_end(Child(1), at(100));
    rig.set_room(Child(1), None);
    assert_eq!((rig.push(tasks[0]), rig.push(tasks[1])), (Ok(()), Ok(())));
    assert_eq!((rig.child_tasks(Child(0)), rig.child_tasks(Child(1))), (vec![tasks[0]], vec![tasks[1]]));
}

#[test]
fn children_without_an_estimate_do_not_compete() {
    let rig = core_and_gpu();
    rig.set_length(0, WorkerId(1), 0, Estimate::NoModel);
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Ok(()));
    rig.set_length(0, WorkerId(1), 0, Estimate::Uncalibrated);
    assert_eq!(rig.push(tasks[1]), Ok(()));
    assert_eq!(rig.child_tasks(Child(0)), tasks);
}

#[test]
fn a_task_to_be_measured_is_not_refused() {
    let rig = core_and_gpu();
    rig.set_length(0, WorkerId(0), 0, Estimate::NoModel);
    rig.set_length(0, WorkerId(1), 0, Estimate::Uncalibrated);
    rig.set_load(Child(1), 1.0);
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()), "whoever sorts tasks above has sorted it by what was known then");
    assert_eq!(rig.child_tasks(Child(0)), [task], "the least load");
}

#[test]
fn a_task_without_model_goes_to_the_least_load() {
    let rig = core_and_gpu();
    rig.set_load(Child(0), 2.0);
    rig.set_load(Child(1), 1.5);
    let task = rig.task().codelet(7).predicted(micros(3)).make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [task]);
    assert_eq!(predictions(&rig, task).0, None);
}

#[test]
fn a_task_that_nobody_can_execute_is_refused() {
    let rig = core_and_gpu();
    let task = rig.task().archs([Arch::FPGA]).make();
    assert_eq!(rig.push(task), Err(Refusal::NoWorker));
    let cpu = rig.task().archs([Arch::CPU]).make();
    assert_eq!(rig.push(cpu), Ok(()));
    assert_eq!(rig.child_tasks(Child(0)), [cpu], "the GPU would be faster");
}

#[test]
fn a_worker_is_woken_and_not_pushed_to() {
    let rig = Rig::build::<Mct>(&[]).workers(2).child(FakeChild::worker(0)).child(FakeChild::worker(1));
    rig.set_length(0, WorkerId(0), 0, Estimate::Known(micros(9)));
    rig.set_length(0, WorkerId(1), 0, Estimate::Known(micros(5)));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Err(Refusal::PullInstead));
    assert_eq!(rig.woken(), [WorkerId(1)]);
    assert_eq!(rig.push(task), Err(Refusal::Full), "it is awake, and will come by itself");
}

#[test]
fn energy_has_a_price() {
    let choice = |gamma: f64| {
        let rig = Rig::build::<Mct>(&[("gamma", Value::Float(gamma))]).workers(2);
        let rig = rig.child(FakeChild::over([0])).child(FakeChild::over([1]));
        for (worker, length, joules) in [(0, 100, 0.5), (1, 150, 0.4)] {
            rig.set_length(0, WorkerId(worker), 0, Estimate::Known(micros(length)));
            rig.set_energy(0, WorkerId(worker), joules);
        }
        let task = rig.task().make();
        assert_eq!(rig.push(task), Ok(()));
        rig.child_tasks(Child(0)).len()
    };
    assert_eq!((choice(0.0), choice(400.0), choice(600.0)), (1, 1, 0), "0.1 J are worth 50 µs at 500 µs/J");
}

#[test]
fn energy_is_that_of_the_workers_of_a_child_whatever_their_numbers() {
    let rig = Rig::build::<Mct>(&[]).workers(2).child(FakeChild::over([1])).child(FakeChild::over([0]));
    for (worker, joules) in [(0, 0.1), (1, 0.5)] {
        rig.set_length(0, WorkerId(worker), 0, Estimate::Known(micros(100)));
        rig.set_energy(0, WorkerId(worker), joules);
    }
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)), [task], "worker 0 is below the second child");
}

#[test]
fn pulls_and_room_pass_through() {
    let rig = core_and_gpu().parent(FakeParent::new());
    let tasks = rig.tasks(2);
    rig.give_parent(Parent(0), tasks[0]);
    assert_eq!(rig.pull(Child(0)), Some(tasks[0]));
    rig.give_parent(Parent(0), tasks[1]);
    assert!(rig.can_push(Child(0)));
    assert_eq!(rig.child_tasks(Child(1)), [tasks[1]]);
}

#[test]
fn pushes_from_many_threads_all_arrive() {
    let rig = core_and_gpu();
    let tasks = rig.tasks(400);
    std::thread::scope(|scope| {
        for part in tasks.chunks(100) {
            let rig = &rig;
            scope.spawn(move || part.iter().for_each(|task| assert_eq!(rig.push(*task), Ok(()))));
        }
    });
    assert_eq!(rig.child_tasks(Child(0)).len() + rig.child_tasks(Child(1)).len(), 400);
    // No promise is left: the next decision uses what the children report.
    let last = rig.task().make();
    assert_eq!(rig.push(last), Ok(()));
    assert_eq!(rig.child_tasks(Child(1)).last(), Some(&last));
}
