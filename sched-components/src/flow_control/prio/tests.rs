use super::*;
use sched_core::rig::{FakeChild, FakeParent, Rig};
use sched_core::*;

const DOWN: Child = Child(0);

fn prio(ntasks: i64) -> Rig {
    Rig::build::<Prio>(&[("ntasks-threshold", Value::Int(ntasks))])
}

#[test]
fn the_highest_priority_leaves_first_and_equal_ones_as_they_came() {
    let rig = prio(0);
    let tasks: Vec<TaskId> =
        [0, -3, 7, i32::MIN, 7, i32::MAX, 0, -3].map(|priority| rig.task().priority(priority).make()).to_vec();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(DOWN)).collect();
    assert_eq!(order, [5, 2, 4, 0, 6, 1, 7, 3].map(|index: usize| tasks[index]));
}

#[test]
fn a_refused_task_keeps_its_place_whatever_its_priority() {
    for priority in [-1, 0, 1] {
        let rig = prio(0).child(FakeChild::new().room(0));
        let tasks: Vec<TaskId> = (0..3).map(|_| rig.task().priority(priority).make()).collect();
        for task in &tasks {
            assert_eq!(rig.push(*task), Ok(()));
        }
        assert!(!rig.can_push(DOWN));
        rig.set_room(DOWN, Some(1));
        assert!(rig.can_push(DOWN));
        assert_eq!(rig.child_tasks(DOWN), [tasks[0]]);
        assert_eq!(rig.drain(), tasks[1..]);
    }
}

#[test]
fn the_requester_gets_the_most_urgent_task_that_it_can_execute() {
    let rig = prio(0).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let cuda = rig.task().archs([Arch::CUDA]).priority(9).make();
    let cpus = [0, 1].map(|priority| rig.task().archs([Arch::CPU]).priority(priority).make());
    for task in [cuda, cpus[0], cpus[1]] {
        assert_eq!(rig.push(task), Ok(()));
    }
    rig.set_requester(Some(WorkerId(0)));
    assert_eq!([rig.pull(DOWN), rig.pull(DOWN), rig.pull(DOWN)], [Some(cpus[1]), Some(cpus[0]), None]);
    rig.set_requester(Some(WorkerId(1)));
    assert_eq!(rig.pull(DOWN), Some(cuda));
}

#[test]
fn a_change_between_full_and_not_is_reported_once() {
    let rig = prio(2).child(FakeChild::new().room(0));
    let tasks = rig.tasks(4);
    assert_eq!(tasks[..3].iter().map(|task| rig.push(*task)).collect::<Vec<_>>(), [Ok(()), Ok(()), Err(Refusal::Full)]);
    assert_eq!((rig.has_room(), rig.service_calls("note_room")), (false, 1));
    // A task that is refused below is back before anybody else sees the room.
    assert!(!rig.can_push(DOWN));
    assert!(!rig.has_room());
    let reports = rig.service_calls("note_room");
    assert_eq!(rig.pull(DOWN), Some(tasks[0]));
    assert_eq!((rig.has_room(), rig.service_calls("note_room")), (true, reports + 1));
    assert_eq!(rig.pull(DOWN), Some(tasks[1]));
    assert_eq!(rig.service_calls("note_room"), reports + 1);
    let unbounded = prio(0);
    assert!(unbounded.tasks(9).into_iter().all(|task| unbounded.push(task).is_ok()));
    assert_eq!(unbounded.service_calls("note_room"), 0);
}

#[test]
fn it_is_bounded_by_number_and_by_length() {
    let rig = prio(1).parent(FakeParent::new());
    let (low, high) = (rig.task().make(), rig.task().priority(1).make());
    assert_eq!(rig.push(low), Ok(()));
    assert_eq!(rig.push(high), Err(Refusal::Full), "a priority does not make room");
    rig.give_parent(Parent(0), high);
    assert_eq!(rig.pull(DOWN), Some(low));
    assert_eq!(rig.held(), [high], "the parent was notified of the free slot");

    let rig = Rig::build::<Prio>(&[("exp-len-threshold", Value::Float(100.0))]);
    let tasks: Vec<TaskId> =
        (0..2).map(|_| rig.task().predicted(std::time::Duration::from_micros(60)).make()).collect();
    assert_eq!((rig.push(tasks[0]), rig.push(tasks[1])), (Ok(()), Err(Refusal::Full)));
}

#[test]
fn it_has_the_parameters_of_fifo_but_two() {
    let (prio, mut fifo) = (Prio::INFO.describe(), super::super::Fifo::INFO.describe());
    for other in ["sorted", "ready-first"] {
        assert_eq!(fifo.params.pop().map(|param| param.name), Some(other.to_owned()));
    }
    assert_eq!((prio.params, prio.bounds, prio.stores), (fifo.params, fifo.bounds, fifo.stores));
    assert_eq!((prio.family, prio.arity, prio.lookahead), (fifo.family, fifo.arity, fifo.lookahead));
}

#[test]
fn a_task_that_is_refused_below_wakes_nobody_in_vain() {
    let rig = prio(0).workers(2).child(FakeChild::new().room(0));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    rig.sleep(WorkerId(1));
    rig.woken();
    rig.set_requester(Some(WorkerId(0)));
    assert!(!rig.can_push(DOWN));
    assert_eq!(rig.woken(), [], "nobody has looked while the task was out");
    assert_eq!(rig.held(), [task]);
}
