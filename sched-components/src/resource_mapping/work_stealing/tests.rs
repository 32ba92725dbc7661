mod order;

use super::*;
use sched_core::rig::{FakeChild, FakeParent, Hop, Rig};

fn stealing() -> Rig {
    Rig::build::<WorkStealing>(&[])
}

fn workers(count: u32) -> Rig {
    (0..count).fold(stealing().workers(count), |rig, worker| rig.child(FakeChild::worker(worker)))
}

/// Pushes a task that `worker` makes ready, or that the application submits.
fn push(rig: &Rig, worker: Option<u32>, priority: i32) -> TaskId {
    let task = rig.task().priority(priority).make();
    rig.set_requester(worker.map(WorkerId));
    assert_eq!(rig.push(task), Ok(()));
    rig.set_requester(None);
    task
}

#[test]
fn a_workers_tasks_come_back_to_it_the_last_first() {
    let rig = workers(3);
    let tasks = [0, 1, 1, 0].map(|priority| push(&rig, Some(1), priority));
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(1))).collect();
    assert_eq!(order, [2, 1, 3, 0].map(|index: usize| tasks[index]));
}

#[test]
fn a_thief_takes_the_first_of_the_highest_priority() {
    let rig = workers(3);
    let tasks = [0, 1, 1, 0].map(|priority| push(&rig, Some(1), priority));
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(2))).collect();
    assert_eq!(order, [1, 2, 0, 3].map(|index: usize| tasks[index]));
}

/// The numbers of tasks in the queues of the children, and in the common one.
fn lengths(rig: &Rig) -> (String, String) {
    let [by_child, common] = [1, 2].map(|fact: usize| rig.describe()[fact].clone());
    assert_eq!((by_child.0.as_str(), common.0.as_str()), ("tasks by child", "common tasks"));
    (by_child.1, common.1)
}

fn are(by_child: &str, common: &str) -> (String, String) {
    (by_child.to_owned(), common.to_owned())
}

#[test]
fn submitted_tasks_are_for_everybody_the_first_first() {
    let rig = workers(3);
    let tasks: Vec<TaskId> = (0..6).map(|_| push(&rig, None, 0)).collect();
    assert_eq!(lengths(&rig), are("[0, 0, 0]", "6"));
    assert_eq!(rig.pull(Child(1)), Some(tasks[0]));
    assert_eq!(lengths(&rig), are("[0, 1, 0]", "4"), "half of what each child would have");
    assert_eq!(
        [2, 1, 0, 1, 2].map(|child| rig.pull(Child(child))),
        [2, 1, 3, 4, 5].map(|index: usize| Some(tasks[index]))
    );
}

#[test]
fn what_a_worker_makes_ready_precedes_what_is_submitted() {
    let rig = workers(2);
    let submitted = push(&rig, None, 0);
    let own = push(&rig, Some(1), 0);
    let other = push(&rig, Some(0), 0);
    assert_eq!([1, 1, 1].map(|child| rig.pull(Child(child))), [own, submitted, other].map(Some));
}

#[test]
fn a_share_is_at_most_sixteen_tasks_in_their_order() {
    let rig = workers(2);
    let tasks: Vec<TaskId> = (0..100).map(|_| push(&rig, None, 0)).collect();
    assert_eq!(rig.pull(Child(0)), Some(tasks[0]));
    assert_eq!(lengths(&rig), are("[15, 0]", "84"));
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(0))).collect();
    assert_eq!(order, tasks[1..]);
}

#[test]
fn who_has_nobody_to_share_with_moves_nothing() {
    let rig = workers(1);
    let tasks: Vec<TaskId> = (0..100).map(|_| push(&rig, None, 0)).collect();
    assert_eq!(rig.pull(Child(0)), Some(tasks[0]));
    assert_eq!(lengths(&rig), are("[0]", "99"));
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(0))).collect();
    assert_eq!(order, tasks[1..]);
}

#[test]
fn children_are_notified_of_what_was_moved() {
    let rig = workers(2);
    for _ in 0..8 {
        push(&rig, None, 0);
    }
    rig.hops();
    assert!(rig.pull(Child(0)).is_some());
    assert_eq!(lengths(&rig), are("[2, 0]", "5"));
    let is_notice = |hop: &&Hop| matches!(hop, Hop::ChildCanPull { child: None, .. });
    assert_eq!(rig.hops().iter().filter(is_notice).count(), 1);
    rig.drain();
}

#[test]
fn a_submitted_task_comes_first_if_it_is_more_urgent() {
    let rig = workers(2);
    let own = [0, 2].map(|priority| push(&rig, Some(0), priority));
    let submitted = [0, 3, 1, 2].map(|priority| push(&rig, None, priority));
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(0))).collect();
    assert_eq!(order, [submitted[1], own[1], submitted[3], submitted[2], own[0], submitted[0]]);
    let own = push(&rig, Some(0), -1);
    let submitted = push(&rig, None, 0);
    assert_eq!([0, 0].map(|child| rig.pull(Child(child))), [submitted, own].map(Some), "less urgent than usual");
}

#[test]
fn only_the_usual_priority_is_moved() {
    let rig = workers(2);
    let tasks = [0, 0, 0, 1, 0, 0].map(|priority| push(&rig, None, priority));
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(0))).collect();
    assert_eq!(order, [3, 0, 1, 2, 4, 5].map(|index: usize| tasks[index]));
}

#[test]
fn a_task_goes_where_it_can_be_executed() {
    let rig = stealing().workers(2).worker(Arch::CUDA, MemoryNode(1));
    let rig = (0..3).fold(rig, |rig, worker| rig.child(FakeChild::worker(worker)));
    let cuda = rig.task().archs([Arch::CUDA]).make();
    rig.set_requester(Some(WorkerId(0)));
    assert_eq!(rig.push(cuda), Ok(()));
    rig.set_requester(None);
    assert_eq!(rig.pull(Child(0)), None, "a thief takes nothing that it cannot execute");
    assert_eq!(rig.pull(Child(2)), Some(cuda));
    assert_eq!(rig.push(rig.task().archs([Arch::FPGA]).make()), Err(Refusal::NoWorker));
}

#[test]
fn a_task_goes_home_if_it_can_be_executed_there() {
    let rig = stealing().workers(2).worker(Arch::CUDA, MemoryNode(1));
    let rig = (0..3).fold(rig, |rig, worker| rig.child(FakeChild::worker(worker)));
    for requester in [None, Some(WorkerId(0)), Some(WorkerId(1))] {
        rig.set_requester(requester);
        let tasks = [1, 0, 1].map(|home| rig.task().home(home).make());
        tasks.into_iter().for_each(|task| assert_eq!(rig.push(task), Ok(())));
        rig.set_requester(None);
        assert_eq!(rig.describe()[1], ("tasks by child".to_owned(), "[1, 2, 0]".to_owned()), "{requester:?}");
        assert_eq!([0, 1, 1].map(|child| rig.pull(Child(child)).is_some()), [true; 3]);
    }
    // It cannot, or is no worker of this node.
    for home in [2, 70] {
        let task = rig.task().archs([Arch::CPU]).home(home).make();
        rig.set_requester(Some(WorkerId(1)));
        assert_eq!(rig.push(task), Ok(()));
        rig.set_requester(None);
        assert_eq!(rig.pull(Child(1)), Some(task));
    }
}

#[test]
fn a_thief_passes_over_what_it_cannot_execute() {
    let rig = stealing().workers(1).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::over([0, 1])).child(FakeChild::worker(0));
    let cuda = rig.task().archs([Arch::CUDA]).priority(9).make();
    rig.set_requester(Some(WorkerId(0)));
    let any = rig.task().make();
    assert_eq!((rig.push(cuda), rig.push(any)), (Ok(()), Ok(())));
    assert_eq!(rig.pull(Child(1)), Some(any));
    assert_eq!(rig.pull(Child(1)), None);
    assert_eq!(rig.drain(), [cuda]);
}

#[test]
fn the_nearest_is_robbed_first() {
    let rig = [0, 1, 1, 0, 0, 0].into_iter().fold(stealing(), |rig, node| rig.worker(Arch::CPU, MemoryNode(node)));
    let rig = (0..6).fold(rig, |rig, worker| rig.child(FakeChild::worker(worker)));
    let tasks: Vec<TaskId> = (0..6).map(|worker| push(&rig, Some(worker), 0)).collect();
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(4))).collect();
    assert_eq!(order, [4, 5, 3, 0, 2, 1].map(|index: usize| tasks[index]), "1 and 2 are on another memory node");
}

/// Sets distances: worker numbers are those of PUs, with two PUs per core and two cores per package.
fn measured(rig: Rig, count: u32) -> Rig {
    for (one, other) in (0..count).flat_map(|one| (0..one).map(move |other| (other, one))) {
        let distance = if one / 2 == other / 2 { 1 } else { 2 + u32::from(one / 4 != other / 4) };
        rig.set_distance(WorkerId(one), WorkerId(other), distance);
    }
    rig
}

/// The order in which a child obtains tasks, with one task in every child's queue.
fn robbed(rig: &Rig, children: u32, thief: u32) -> Vec<u64> {
    let tasks: Vec<TaskId> = (0..children).map(|worker| push(rig, Some(worker), 0)).collect();
    let order = std::iter::from_fn(|| rig.pull(Child(thief)));
    order.map(|task| tasks.iter().position(|other| *other == task).expect("it was pushed") as u64).collect()
}

#[test]
fn victims_are_robbed_in_the_order_of_their_distance() {
    let rig = measured(workers(8), 8);
    assert_eq!(robbed(&rig, 8, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(robbed(&rig, 8, 5), [5, 4, 7, 6, 1, 2, 3, 0]);
}

#[test]
fn thieves_that_are_equally_far_begin_with_different_victims() {
    let rig = measured(workers(8), 8);
    let far: Vec<u64> = (0..4).map(|thief| robbed(&rig, 8, thief)[4]).collect();
    assert_eq!(far, [4, 5, 6, 7], "of the other package");
    let near: Vec<u64> = (0..4).map(|thief| robbed(&rig, 8, thief)[2]).collect();
    assert_eq!(near, [2, 3, 0, 1], "of the other core");

    let flat = workers(4);
    (0..4).for_each(|one| (0..one).for_each(|other| flat.set_distance(WorkerId(one), WorkerId(other), 3)));
    let firsts: Vec<u64> = (0..4).map(|thief| robbed(&flat, 4, thief)[1]).collect();
    assert_eq!(firsts, [1, 2, 3, 0]);
}

#[test]
fn a_child_of_several_workers_is_as_near_as_the_nearest_of_them() {
    let children = [[0, 7], [2, 3], [4, 5], [6, 1]].map(FakeChild::over);
    let rig = children.into_iter().fold(measured(stealing().workers(8), 8), Rig::child);
    let tasks: Vec<TaskId> = [0, 2, 4, 6].into_iter().map(|worker| push(&rig, Some(worker), 0)).collect();
    let order: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(1))).collect();
    assert_eq!(order, [1, 3, 0, 2].map(|index: usize| tasks[index]), "those of its package first, then the third");
}

#[test]
fn what_has_no_place_in_the_topology_is_robbed_last() {
    let rig = stealing().worker(Arch::CUDA, MemoryNode(1)).workers(3);
    let rig = (0..4).fold(rig, |rig, worker| rig.child(FakeChild::worker(worker)));
    rig.set_distance(WorkerId(1), WorkerId(2), 2);
    rig.set_distance(WorkerId(2), WorkerId(3), 1);
    assert_eq!(robbed(&rig, 4, 2), [2, 3, 1, 0]);
}

#[test]
fn a_push_wakes_the_owner_or_else_a_thief() {
    let rig = workers(3);
    let woken = |worker| {
        push(&rig, worker, 0);
        rig.woken()
    };
    rig.pull(Child(0));
    assert_eq!(woken(None), [WorkerId(0)]);
    assert_eq!(woken(None), [WorkerId(1)]);
    assert_eq!(woken(Some(0)), [WorkerId(2)], "the owner is awake");
    assert_eq!(woken(None), [], "all are awake");
    rig.drain();
}

#[test]
fn a_push_wakes_the_worker_at_home_or_else_a_thief() {
    let rig = workers(3);
    let woken = |requester: Option<u32>, home| {
        let task = rig.task().home(home).make();
        rig.set_requester(requester.map(WorkerId));
        assert_eq!(rig.push(task), Ok(()));
        rig.set_requester(None);
        rig.woken()
    };
    rig.pull(Child(1));
    assert_eq!(woken(None, 0), [WorkerId(0)]);
    assert_eq!(woken(Some(0), 2), [WorkerId(2)]);
    assert_eq!(woken(Some(0), 2), [WorkerId(1)], "the one at home is awake, but may be busy for long");
    assert_eq!(woken(Some(0), 2), []);
    rig.drain();
}

#[test]
fn a_push_by_the_owner_tells_the_children_once() {
    let rig = workers(2);
    push(&rig, Some(1), 0);
    assert_eq!(rig.hops(), [Hop::ChildCanPull { child: None, woke: Some(WorkerId(0)) }]);
    rig.drain();
}

#[test]
fn an_empty_pull_asks_above() {
    let rig = workers(2).parent(FakeParent::new());
    let task = rig.task().make();
    rig.give_parent(Parent(0), task);
    assert_eq!(rig.pull(Child(1)), Some(task));
    assert_eq!(rig.pull(Child(1)), None);
}

#[test]
fn queues_below_are_sent_a_few_of_their_own_or_one_that_is_stolen() {
    let rig = (0..2).fold(stealing().workers(2), |rig, worker| rig.child(FakeChild::over([worker]).room(9)));
    let rig = rig.parent(FakeParent::new());
    let tasks: Vec<TaskId> = (0..5).map(|_| push(&rig, Some(0), 0)).collect();
    assert!(rig.can_push(Child(0)));
    assert_eq!(rig.child_tasks(Child(0)), [tasks[4], tasks[3]]);
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), [tasks[0]]);
    rig.set_room(Child(1), Some(0));
    assert!(!rig.can_push(Child(1)));
    assert_eq!(rig.pull(Child(1)), Some(tasks[1]), "the refused task is in its place");
    rig.drain();
    rig.give_parent(Parent(0), tasks[1]);
    assert!(rig.can_push(Child(0)), "nothing is here: the parent is notified");
}

/// A task is out of its queue while it is sent to a child, which refuses it. A worker that looks at that moment finds
/// nothing, and may sleep.
#[test]
fn who_misses_a_task_that_comes_back_is_told() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
    let rig = stealing().workers(2).child(FakeChild::over([0]).room(0)).child(FakeChild::worker(1));
    let (sent, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let is_told = || rig.hops().iter().any(|hop| matches!(hop, Hop::ChildCanPull { child: None, .. }));
    // Whether each worker that found nothing was told to look again.
    let are_told = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                rig.can_push(Child(0));
                sent.fetch_add(1, SeqCst);
            }
        });
        let are_told = (0..20_000).all(|_| {
            assert_eq!(rig.push(rig.task().make()), Ok(()));
            rig.hops();
            rig.pull(Child(1)).is_some() || {
                let before = sent.load(SeqCst);
                while sent.load(SeqCst) < before + 2 {
                    std::thread::yield_now();
                }
                is_told()
            }
        });
        is_over.store(true, SeqCst);
        are_told
    });
    assert!(are_told, "nobody pulls a task that is there");
    rig.drain();
}

#[test]
fn estimates_count_every_queue() {
    let rig = stealing().workers(2);
    let rig = rig.child(FakeChild::worker(0).load(0.5)).child(FakeChild::worker(1).end(Time::from_nanos(8_000)));
    for _ in 0..3 {
        assert_eq!(rig.push(rig.task().predicted(Duration::from_micros(4)).make()), Ok(()));
    }
    assert_eq!(rig.estimated_end(), Time::from_nanos(10_000), "4 µs on average, and 12 µs over 2 workers");
    assert_eq!(rig.estimated_load(), 2.0, "0.5 below, and 3 over 2 workers");
    rig.drain();
    assert_eq!(rig.estimated_load(), 0.5);
}

#[test]
fn it_gives_up_tasks_by_priority_and_age() {
    let rig = workers(3);
    let tasks = [0, 2, 1, 2, 0].map(|priority| push(&rig, None, priority));
    assert_eq!(rig.drain(), [1, 3, 2, 0, 4].map(|index: usize| tasks[index]));
    assert_eq!(rig.pull(Child(0)), None);
}

#[test]
fn an_empty_pull_looks_at_no_task() {
    let rig = workers(4);
    let task = push(&rig, Some(0), 0);
    assert_eq!(rig.pull(Child(0)), Some(task));
    let before = rig.service_calls("can_execute");
    assert_eq!(rig.pull(Child(3)), None);
    assert_eq!(rig.service_calls("can_execute"), before);
}

#[test]
fn concurrent_thieves_take_each_task_once() {
    let rig = workers(4);
    let tasks: Vec<TaskId> = (0..400).map(|number| push(&rig, Some(number % 2), 0)).collect();
    let taken = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for child in 0..4 {
            let (rig, taken) = (&rig, &taken);
            scope.spawn(move || {
                let mine: Vec<TaskId> = std::iter::from_fn(|| rig.pull(Child(child))).collect();
                taken.lock().expect("nobody panics").extend(mine);
            });
        }
    });
    let mut taken = taken.into_inner().expect("nobody panics");
    taken.sort_unstable();
    assert_eq!(taken, tasks);
}
