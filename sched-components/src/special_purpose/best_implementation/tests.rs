use super::*;
use sched_core::rig::{FakeParent, Rig};

const DOWN: Child = Child(0);

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

fn known(count: u64) -> Estimate {
    Estimate::Known(micros(count))
}

/// One CPU worker, codelet 0 with implementations that take this long, and 3 µs of transfer.
fn rig(lengths: &[Estimate]) -> Rig {
    let rig = Rig::build::<BestImplementation>(&[]).parent(FakeParent::new());
    rig.set_implementations(0, lengths.len() as u32);
    for (implementation, length) in (0..).zip(lengths) {
        rig.set_length(0, WorkerId(0), implementation, *length);
    }
    rig.set_transfer(0, MemoryNode(0), micros(3));
    rig
}

type Choice = (Option<u32>, Option<Duration>, Option<Duration>);

fn choice(rig: &Rig, task: TaskId) -> Choice {
    rig.read(task, |task| (task.implementation(), task.predicted(), task.predicted_transfer()))
}

#[test]
fn the_shortest_implementation_is_chosen_pushed_or_pulled() {
    let rig = rig(&[known(9), known(5), known(7)]);
    let chosen = (Some(1), Some(micros(5)), Some(micros(3)));
    let pushed = rig.task().make();
    assert_eq!(rig.push(pushed), Ok(()));
    assert_eq!(choice(&rig, pushed), chosen);
    let pulled = rig.task().make();
    rig.give_parent(Parent(0), pulled);
    assert_eq!(rig.pull(DOWN), Some(pulled));
    assert_eq!(choice(&rig, pulled), chosen);
}

#[test]
fn one_to_be_measured_goes_first() {
    let rig = rig(&[known(9), Estimate::NoModel, Estimate::Uncalibrated]);
    let task = rig.task().predicted(micros(1)).make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(choice(&rig, task), (Some(2), None, None));
}

#[test]
fn without_models_the_first_is_chosen() {
    let rig = rig(&[Estimate::NoModel, Estimate::NoModel]);
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(choice(&rig, task), (Some(0), None, None));
}

#[test]
fn a_task_with_one_implementation_and_a_prediction_passes_as_it_is() {
    let rig = rig(&[known(5)]);
    let task = rig.task().predicted(micros(8)).make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(choice(&rig, task), (None, Some(micros(8)), None));
    assert_eq!(rig.service_calls("expected_length"), 0);
}

#[test]
fn whether_there_is_a_choice_is_asked_once_for_each_codelet_until_workers_change() {
    let rig = rig(&[known(5)]);
    rig.set_implementations(1, 2);
    (0..2).for_each(|implementation| {
        rig.set_length(1, WorkerId(0), implementation, known(9 - u64::from(implementation)))
    });
    let push = |codelet: u32| {
        let task = rig.task().codelet(codelet).predicted(micros(8)).make();
        assert_eq!(rig.push(task), Ok(()));
        choice(&rig, task).0
    };
    let asked = || rig.service_calls("implementations");
    assert_eq!([push(0), push(1), push(0), push(1)], [None, Some(1), None, Some(1)]);
    assert_eq!(asked(), 3, "once for the codelet with one, and for each task of the other");
    rig.notify_change_workers();
    assert_eq!(push(0), None);
    assert_eq!(asked(), 4);
    // Without a prediction the length is found out, choice or not.
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(choice(&rig, task), (Some(0), Some(micros(5)), Some(micros(3))));
}

#[test]
fn what_holds_for_the_worker_of_one_context_is_not_concluded_for_others() {
    let rig = rig(&[known(5)]).workers(2).context([0]);
    for asked in 1..=2 {
        let task = rig.task().predicted(micros(8)).make();
        assert_eq!(rig.push(task), Ok(()));
        assert_eq!((choice(&rig, task).0, rig.service_calls("implementations")), (None, asked));
    }
}

#[test]
fn it_chooses_for_the_worker_that_asks() {
    let rig = rig(&[known(5), known(9)]).workers(2);
    rig.set_length(0, WorkerId(1), 0, known(8));
    rig.set_length(0, WorkerId(1), 1, known(2));
    rig.set_requester(Some(WorkerId(1)));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(choice(&rig, task), (Some(1), Some(micros(2)), Some(micros(3))));
    rig.set_requester(Some(WorkerId(7)));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(choice(&rig, task).0, Some(0), "worker 7 is not below");
}

#[test]
fn a_refusal_goes_up() {
    let rig = rig(&[known(5)]);
    rig.set_room(DOWN, Some(0));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Err(Refusal::Full));
}
