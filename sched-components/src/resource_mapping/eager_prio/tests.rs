use super::*;
use proptest::prelude::*;
use sched_core::rig::{FakeChild, FakeParent, Rig};

fn eager_prio() -> Rig {
    Rig::build::<EagerPrio>(&[])
}

/// Queues, each above one CPU worker.
fn queues(count: u32, room: usize) -> Rig {
    (0..count).fold(eager_prio().workers(count), |rig, worker| rig.child(FakeChild::over([worker]).room(room)))
}

fn with_priorities(rig: &Rig, priorities: impl IntoIterator<Item = i32>) -> Vec<TaskId> {
    priorities.into_iter().map(|priority| rig.task().priority(priority).make()).collect()
}

#[test]
fn what_children_take_goes_down_at_once_and_they_take_turns() {
    let rig = queues(2, 2);
    let tasks = rig.tasks(5);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.child_tasks(Child(0)), [tasks[0], tasks[2]]);
    assert_eq!(rig.child_tasks(Child(1)), [tasks[1], tasks[3]]);
    assert_eq!(rig.held(), [tasks[4]], "it takes what nobody below takes");
}

#[test]
fn without_turns_the_first_child_gets_what_it_can_hold() {
    let rig = Rig::build::<EagerPrio>(&[(IN_TURN, Value::Bool(false))]).workers(3);
    let rig = (0..3).fold(rig, |rig, worker| rig.child(FakeChild::over([worker]).room(2)));
    // Nor does it matter who asks.
    rig.set_requester(Some(WorkerId(1)));
    let tasks = rig.tasks(4);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    let got = [0, 1, 2].map(|child| rig.child_tasks(Child(child)));
    assert_eq!(got, [vec![tasks[0], tasks[1]], vec![tasks[2], tasks[3]], vec![]]);
}

#[test]
fn the_fastest_child_is_offered_a_task_first_whoever_asks() {
    let archs = [Arch::CPU, Arch::CUDA, Arch::CPU, Arch::CUDA];
    let rig = archs.into_iter().fold(eager_prio(), |rig, arch| rig.worker(arch, MemoryNode(0)));
    let rig = (0..4).fold(rig, |rig, worker| rig.child(FakeChild::over([worker]).room(1)));
    rig.set_requester(Some(WorkerId(0)));
    let tasks: Vec<TaskId> = (0..4).map(|_| rig.task().archs([Arch::CPU, Arch::CUDA]).make()).collect();
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    let got = [1, 3, 0, 2].map(|child| rig.child_tasks(Child(child)));
    assert_eq!(got.concat(), tasks, "the accelerators in turn, then the core that asks, then the other");
}

#[test]
fn room_goes_to_the_best_task() {
    let rig = queues(1, 0);
    let tasks = with_priorities(&rig, [0, 2, 1, 2]);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    rig.set_room(Child(0), Some(3));
    assert!(rig.can_push(Child(0)));
    assert_eq!(rig.child_tasks(Child(0)), [tasks[1], tasks[3], tasks[2]]);
    assert!(!rig.can_push(Child(0)), "the last is refused");
    assert_eq!(rig.drain(), [tasks[0]]);
}

#[test]
fn room_is_told_above_when_nothing_moves() {
    let rig = queues(1, 1).parent(FakeParent::new());
    assert!(!rig.can_push(Child(0)));
    let tasks = rig.tasks(2);
    for task in &tasks {
        rig.give_parent(Parent(0), *task);
    }
    assert!(rig.can_push(Child(0)));
    assert_eq!((rig.child_tasks(Child(0)), rig.held()), (vec![tasks[0]], vec![tasks[1]]));
}

#[test]
fn tasks_for_others_do_not_stand_in_the_way() {
    let rig = eager_prio().worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::over([0]).room(9)).child(FakeChild::over([1]).room(0));
    let cuda: Vec<TaskId> = (0..2).map(|_| rig.task().priority(9).archs([Arch::CUDA]).make()).collect();
    let cpu = rig.task().archs([Arch::CPU]).make();
    for task in [cuda[0], cuda[1], cpu] {
        assert_eq!(rig.push(task), Ok(()));
    }
    assert_eq!(rig.child_tasks(Child(0)), [cpu]);
    rig.hops();
    assert!(!rig.can_push(Child(1)));
    assert_eq!(rig.hops().len(), 2, "one task that needs it is offered, then the parents are asked");
    assert_eq!(rig.drain(), cuda);
}

#[test]
fn a_task_that_is_restricted_to_a_full_worker_holds_up_no_other() {
    let rig = eager_prio().workers(3);
    let rig =
        [0, 2, 1].into_iter().zip(0..).fold(rig, |rig, (room, worker)| rig.child(FakeChild::over([worker]).room(room)));
    let only = |worker: u32| rig.task().priority(9).only([worker]).make();
    let first = [only(0), only(0), only(1)];
    let open = with_priorities(&rig, [3, 2, 1]);
    for task in first.iter().chain(&open) {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.child_tasks(Child(1)), [first[2], open[1]]);
    assert_eq!(rig.child_tasks(Child(2)), [open[0]], "they take turns");
    assert_eq!(rig.held(), [first[0], first[1], open[2]]);
    rig.hops();
    assert!(!rig.can_push(Child(1)));
    assert_eq!(rig.hops().len(), 5, "one of the restricted ones, the open one to three children, the parents");
    rig.set_room(Child(0), Some(3));
    assert!(rig.can_push(Child(0)));
    assert_eq!(rig.child_tasks(Child(0)), [first[0], first[1], open[2]], "the best are the first again");
}

#[test]
fn workers_are_woken_and_pull_the_best() {
    let rig = eager_prio().workers(2).child(FakeChild::worker(0)).child(FakeChild::worker(1));
    let tasks = with_priorities(&rig, [0, 1, 0]);
    for task in &tasks {
        assert_eq!(rig.push(*task), Ok(()));
    }
    assert_eq!(rig.woken(), [WorkerId(0), WorkerId(1)]);
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(1))).collect();
    assert_eq!(order, [tasks[1], tasks[0], tasks[2]]);
}

#[test]
fn a_task_that_was_offered_in_vain_is_told_to_workers() {
    let rig = eager_prio().workers(2).child(FakeChild::over([0]).room(0)).child(FakeChild::worker(1));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert!(!rig.woken().is_empty());
    assert_eq!(rig.pull(Child(1)), Some(task));
}

#[test]
fn an_empty_list_pulls_from_above() {
    let rig = eager_prio().parent(FakeParent::new());
    let task = rig.task().make();
    rig.give_parent(Parent(0), task);
    assert_eq!(rig.pull(Child(0)), Some(task));
}

#[test]
fn the_list_counts_in_the_estimates() {
    let rig = queues(2, 0);
    for _ in 0..2 {
        assert_eq!(rig.push(rig.task().predicted(Duration::from_micros(6)).make()), Ok(()));
    }
    assert_eq!(rig.estimated_end(), Time::from_nanos(6_000), "12 µs over 2 workers");
    assert_eq!(rig.estimated_load(), 1.0);
    assert_eq!(rig.drain().len(), 2);
    assert_eq!((rig.estimated_end(), rig.estimated_load()), (Time::ZERO, 0.0));
}

/// Threads push and ask concurrently; no room stays unused, and none goes to a lower priority than one that waits.
#[test]
fn concurrent_passes_keep_the_order() {
    let rig = queues(1, 0);
    let tasks = with_priorities(&rig, (0..60).map(|number| number % 5));
    std::thread::scope(|scope| {
        for part in tasks.chunks(20) {
            let rig = &rig;
            scope.spawn(move || {
                for task in part {
                    assert_eq!(rig.push(*task), Ok(()));
                    assert!(!rig.can_push(Child(0)));
                }
            });
        }
    });
    assert_eq!(rig.held().len(), 60);
    rig.set_room(Child(0), Some(40));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| rig.can_push(Child(0)));
        }
    });
    let priority = |task: &TaskId| rig.read(*task, Task::priority);
    let sent: Vec<i32> = rig.child_tasks(Child(0)).iter().map(priority).collect();
    let mut sorted = sent.clone();
    sorted.sort_by_key(|priority| -priority);
    assert_eq!((sent.len(), &sent), (40, &sorted), "one at a time, the best first");
    assert!(rig.drain().iter().all(|task| priority(task) <= sent[39]));
}

proptest! {
    /// No sequence of calls loses a task, or passes over a higher priority.
    #[test]
    fn any_calls_keep_the_books(calls in prop::collection::vec((0u8..4, -1i32..3), 0..60)) {
        let rig = queues(2, 0).parent(FakeParent::new());
        for (call, number) in calls {
            let child = Child(number.unsigned_abs() % 2);
            match call {
                0 => prop_assert_eq!(rig.push(rig.task().priority(number).make()), Ok(())),
                1 => rig.give_parent(Parent(0), rig.task().priority(number).make()),
                2 => {
                    let priority = |task| rig.read(task, Task::priority);
                    let best = rig.held().into_iter().map(priority).max();
                    let pulled = rig.pull(child).map(priority);
                    prop_assert!(best.is_none() || pulled == best);
                }
                _ => {
                    rig.set_room(child, Some(number.unsigned_abs() as usize));
                    let (before, waited) = (rig.child_tasks(child).len(), !rig.held().is_empty());
                    rig.can_push(child);
                    let priority = |task: &TaskId| rig.read(*task, Task::priority);
                    let worst = rig.child_tasks(child)[before..].iter().map(priority).min();
                    let best = rig.held().iter().map(priority).max();
                    // With an empty list, the parent decides on the order.
                    prop_assert!(!waited || worst.is_none() || best <= worst);
                }
            }
        }
    }
}
