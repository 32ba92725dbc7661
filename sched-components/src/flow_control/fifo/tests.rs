use super::*;
use proptest::prelude::*;
use sched_core::rig::{FakeChild, FakeParent, Hop, Rig};
use sched_core::*;
use std::time::Duration;

const DOWN: Child = Child(0);

fn fifo(ntasks: i64) -> Rig {
    Rig::build::<Fifo>(&[("ntasks-threshold", Value::Int(ntasks))])
}

fn by_length(micros: f64) -> Rig {
    Rig::build::<Fifo>(&[("exp-len-threshold", Value::Float(micros))])
}

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

#[test]
fn tasks_leave_by_priority_then_arrival() {
    let rig = fifo(0);
    let tasks: Vec<TaskId> = [0, 5, 0, 5, -1].map(|priority| rig.task().priority(priority).make()).to_vec();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(DOWN)).collect();
    assert_eq!(order, [1, 3, 0, 2, 4].map(|index: usize| tasks[index]));
}

#[test]
fn a_push_prefetches_and_wakes_a_worker() {
    let rig = fifo(0);
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    let woke = Some(WorkerId(0));
    assert_eq!(rig.hops(), [Hop::Prefetch(task, MemoryNode(0)), Hop::ChildCanPull { child: None, woke }]);
}

#[test]
fn a_full_queue_refuses_without_prefetching() {
    let rig = fifo(1);
    let tasks = rig.tasks(2);
    assert_eq!(rig.push(tasks[0]), Ok(()));
    rig.hops();
    assert_eq!(rig.push(tasks[1]), Err(Refusal::Full));
    assert_eq!(rig.hops(), []);
    assert_eq!(rig.pull(DOWN), Some(tasks[0]));
    assert_eq!(rig.push(tasks[1]), Ok(()));
}

#[test]
fn expected_length_bounds_the_queue_but_a_long_task_still_runs() {
    let rig = by_length(100.0);
    let long = rig.task().predicted(micros(500)).make();
    let short = rig.task().predicted(micros(10)).make();
    assert_eq!(rig.push(long), Ok(()), "an empty queue takes any task");
    assert_eq!(rig.push(short), Err(Refusal::Full));
    assert_eq!(rig.pull(DOWN), Some(long));
    let tasks: Vec<TaskId> = (0..3).map(|_| rig.task().predicted(micros(45)).make()).collect();
    assert_eq!(rig.push(tasks[0]), Ok(()));
    assert_eq!(rig.push(tasks[1]), Ok(()));
    assert_eq!(rig.push(tasks[2]), Err(Refusal::Full), "90 + 45 µs is over 100 µs");
    assert_eq!(rig.push(short), Err(Refusal::Full), "90 + 10 µs reaches 100 µs");
}

#[test]
fn the_requester_gets_the_first_task_that_it_can_execute() {
    let rig = fifo(0).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let cuda = rig.task().archs([Arch::CUDA]).make();
    let cpu = rig.task().archs([Arch::CPU]).make();
    assert_eq!((rig.push(cuda), rig.push(cpu)), (Ok(()), Ok(())));
    rig.set_requester(Some(WorkerId(0)));
    assert_eq!(rig.pull(DOWN), Some(cpu));
    assert_eq!(rig.pull(DOWN), None);
    rig.set_requester(Some(WorkerId(1)));
    assert_eq!(rig.pull(DOWN), Some(cuda));
}

#[test]
fn an_empty_pull_asks_above_once_and_tries_again() {
    let rig = fifo(2).parent(FakeParent::new());
    assert_eq!(rig.pull(DOWN), None);
    assert_eq!(rig.hops(), [Hop::ParentsCanPush { sent: false }]);
    let tasks = rig.tasks(3);
    for task in &tasks {
        rig.give_parent(Parent(0), *task);
    }
    assert_eq!(rig.pull(DOWN), Some(tasks[0]));
    assert_eq!(rig.held(), [tasks[1]], "the parent pumped until the queue was full");
    assert_eq!(rig.pull(DOWN), Some(tasks[1]), "and was notified of the free slot");
    assert_eq!(rig.held(), [tasks[2]]);
}

#[test]
fn an_unbounded_queue_does_not_ask_above_while_it_has_tasks() {
    let rig = fifo(0).parent(FakeParent::new());
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    rig.hops();
    assert_eq!(rig.pull(DOWN), Some(task));
    assert_eq!(rig.hops(), []);
}

#[test]
fn room_below_is_filled_and_a_refused_task_keeps_its_place() {
    let rig = fifo(0).child(FakeChild::new().room(1));
    let tasks: Vec<TaskId> = [1, 1, 1, 0].map(|priority| rig.task().priority(priority).make()).to_vec();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert!(rig.can_push(DOWN));
    assert_eq!(rig.child_tasks(DOWN), [tasks[0]]);
    assert!(!rig.can_push(DOWN), "nothing moved");
    assert_eq!(rig.drain(), tasks[1..]);
}

#[test]
fn room_below_is_told_above_when_nothing_is_here() {
    let rig = fifo(1).parent(FakeParent::new()).child(FakeChild::new().room(1));
    assert!(!rig.can_push(DOWN));
    let tasks = rig.tasks(2);
    for task in &tasks {
        rig.give_parent(Parent(0), *task);
    }
    assert!(rig.can_push(DOWN));
    assert_eq!(rig.child_tasks(DOWN), [tasks[0]]);
}

#[test]
fn a_worker_does_not_wait_behind_tasks_for_others() {
    let rig = fifo(0).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::new().room(0));
    let cpu = rig.task().archs([Arch::CPU]).make();
    let cuda = rig.task().archs([Arch::CUDA]).make();
    assert_eq!((rig.push(cpu), rig.push(cuda)), (Ok(()), Ok(())));
    rig.hops();
    rig.set_requester(Some(WorkerId(1)));
    assert!(!rig.can_push(DOWN));
    let refused = |task| Hop::PushTo { child: DOWN, task, refused: Some(Refusal::Full) };
    // No other worker has looked meanwhile, so there is none to tell that the tasks are back.
    assert_eq!(rig.hops(), [refused(cpu), refused(cuda)]);
    assert_eq!(rig.drain(), [cpu, cuda]);
}

#[test]
fn the_queue_fills_the_workers_below_evenly() {
    let rig = fifo(0).workers(2);
    let rig = rig.child(FakeChild::over([0, 1]).end(Time::from_nanos(10_000)));
    assert_eq!(rig.estimated_end(), Time::from_nanos(10_000));
    let task = rig.task().predicted(micros(6)).make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.estimated_end(), Time::from_nanos(13_000), "6 µs over 2 workers");
    assert_eq!(rig.pull(DOWN), Some(task));
    assert_eq!(rig.estimated_end(), Time::from_nanos(10_000));
    assert_eq!(rig.drain(), []);
}

#[test]
fn a_transfer_hides_behind_the_queue_where_it_is_prefetched() {
    let load = |rig: &Rig| {
        let task = || rig.task().predicted(micros(6)).predicted_transfer(micros(4)).make();
        assert_eq!((rig.push(task()), rig.push(task())), (Ok(()), Ok(())));
        rig.describe().into_iter().find(|(name, _)| name == "expected length").map(|(_, value)| value)
    };
    assert_eq!(load(&fifo(0)).as_deref(), Some("16µs"));
    let apart = fifo(0).worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    assert_eq!(load(&apart).as_deref(), Some("20µs"));
}

#[test]
fn load_counts_tasks_here_and_below_by_speed() {
    let rig = fifo(0).workers(4).child(FakeChild::new().load(1.5));
    for task in rig.tasks(2) {
        assert_eq!(rig.push(task), Ok(()));
    }
    assert_eq!(rig.estimated_load(), 2.0);
}

#[test]
fn it_describes_itself() {
    let rig = Rig::build::<Fifo>(&[("ntasks-threshold", Value::Int(2)), ("exp-len-threshold", Value::Int(1000))]);
    let facts = rig.describe();
    let facts: Vec<(&str, &str)> = facts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected =
        [("tasks", "0"), ("ntasks-threshold", "2"), ("expected length", "0ns"), ("exp-len-threshold", "1ms")];
    assert_eq!(facts, expected);
}

#[test]
fn thresholds_below_zero_are_refused() {
    let error = Rig::try_build::<Fifo>(&[("ntasks-threshold", Value::Int(-1))]).expect_err("-1 is out of range");
    assert_eq!(error.to_string(), "`ntasks-threshold` is -1, expected a whole number of at least 0");
}

/// Several threads pump and are refused concurrently; each refused task must return to its position.
#[test]
fn concurrent_refusals_keep_the_order() {
    let rig = fifo(0).child(FakeChild::new().room(0));
    let tasks = rig.tasks(50);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..100).for_each(|_| assert!(!rig.can_push(DOWN))));
        }
    });
    assert_eq!(rig.drain(), tasks);
}

#[test]
fn unsorted_it_is_first_in_first_out() {
    let rig = Rig::build::<Fifo>(&[("sorted", Value::Bool(false)), ("ntasks-threshold", Value::Int(3))]);
    let rig = rig.child(FakeChild::new().room(0));
    let tasks = [0, 5, -1].map(|priority| rig.task().priority(priority).make());
    for task in tasks {
        assert_eq!(rig.push(task), Ok(()));
    }
    assert!(!rig.can_push(DOWN), "the first is refused, and keeps its place");
    assert_eq!(tasks.map(|_| rig.pull(DOWN)), tasks.map(Some));
}

proptest! {
    /// No sequence of calls loses a task, gives one twice, exceeds the threshold or passes over a higher priority.
    #[test]
    fn any_calls_keep_the_books(threshold in 0i64..4, calls in prop::collection::vec((0u8..4, -1i32..2), 0..60)) {
        let rig = fifo(threshold).parent(FakeParent::new()).child(FakeChild::new().room(0));
        for (call, number) in calls {
            match call {
                0 => {
                    let task = rig.task().priority(number).make();
                    let full = threshold > 0 && rig.held().len() as i64 >= threshold;
                    prop_assert_eq!(rig.push(task).is_err(), full);
                }
                1 => rig.give_parent(Parent(0), rig.task().priority(number).make()),
                2 => {
                    let priority = |task| rig.read(task, Task::priority);
                    let best = rig.held().into_iter().map(priority).max();
                    let pulled = rig.pull(DOWN).map(priority);
                    prop_assert!(best.is_none() || pulled == best);
                }
                _ => {
                    rig.set_room(DOWN, Some(number.unsigned_abs() as usize));
                    rig.can_push(DOWN);
                }
            }
            prop_assert!(threshold == 0 || rig.held().len() as i64 <= threshold);
        }
    }
}
