use super::*;
use crate::resource_mapping::keepers::known;
use sched_core::rig::{FakeChild, FakeParent, Rig};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::Duration;

/// A queue above each of a CPU core and a GPU, and a host that provides the submitted tasks. `lengths` gives each
/// codelet's µs on them; 0 where it cannot run.
fn core_and_gpu(lengths: &[(u64, u64)]) -> Rig {
    let rig = Rig::build::<Plan>(&[]).foreseeing();
    let rig = rig.worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(1));
    let rig = rig.child(FakeChild::over([0])).child(FakeChild::over([1]));
    set_lengths(&rig, lengths);
    rig
}

fn set_lengths(rig: &Rig, lengths: &[(u64, u64)]) {
    for (codelet, (cpu, cuda)) in (0..).zip(lengths) {
        for (worker, length) in [(0, *cpu), (1, *cuda)] {
            if length > 0 {
                rig.set_length(codelet, WorkerId(worker), 0, known(length));
            }
        }
    }
}

fn push(rig: &Rig, task: TaskId) {
    assert_eq!(rig.push(task), Ok(()), "it never refuses");
}

#[test]
fn a_fast_worker_is_kept_for_what_comes() {
    let lengths = [(30, 20), (100, 10)];
    let rig = core_and_gpu(&lengths);
    let [anywhere, first, second] = [0, 1, 1].map(|codelet| rig.task().codelet(codelet).make());
    rig.set_waits(second, first);
    push(&rig, anywhere);
    push(&rig, first);
    assert_eq!((rig.child_tasks(Child(0)), rig.child_tasks(Child(1))), (vec![anywhere], vec![first]));
    rig.set_ended(first);
    push(&rig, second);
    rig.can_push(Child(1));
    assert_eq!(rig.child_tasks(Child(1)), [first, second]);
    assert!(rig.read(first, Task::priority) > rig.read(second, Task::priority), "queues below keep the order");
    assert_eq!(rig.read(anywhere, Task::predicted), Some(Duration::from_micros(30)));
}

#[test]
fn where_nobody_tells_what_comes_it_goes_by_what_is_ready() {
    for bare in [false, true] {
        let rig = Rig::build::<Plan>(&[]);
        let rig = if bare { rig.without_extensions() } else { rig };
        let rig = rig.worker(Arch::CPU, MemoryNode(0)).worker(Arch::CUDA, MemoryNode(0));
        let rig = rig.child(FakeChild::over([0])).child(FakeChild::over([1]));
        set_lengths(&rig, &[(30, 20)]);
        let task = rig.task().make();
        push(&rig, task);
        assert_eq!(rig.child_tasks(Child(1)), [task]);
    }
}

#[test]
fn a_worker_waits_for_an_urgent_task_instead_of_beginning_another() {
    // One task on a core, then one on the GPU, then a long one on a core; and one for the GPU that can wait.
    let rig = core_and_gpu(&[(5, 0), (0, 10), (50, 0), (0, 11)]);
    let [first, urgent, long, other] = [0, 1, 2, 3].map(|codelet| rig.task().codelet(codelet).make());
    rig.set_waits(urgent, first);
    rig.set_waits(long, urgent);
    push(&rig, first);
    push(&rig, other);
    assert_eq!((rig.child_tasks(Child(0)), rig.held()), (vec![first], vec![other]));
    rig.set_now(Time::from_nanos(5000));
    rig.set_ended(first);
    push(&rig, urgent);
    rig.can_push(Child(1));
    assert_eq!(rig.child_tasks(Child(1)), [urgent, other]);
}

#[test]
fn a_task_that_began_late_ends_late() {
    for (began, child) in [(0, Child(1)), (50, Child(0))] {
        let rig = core_and_gpu(&[(0, 10), (12, 10)]);
        let first = rig.task().codelet(0).make();
        push(&rig, first);
        rig.set_now(Time::from_nanos(began * 1000));
        rig.task_started(first, WorkerId(1));
        rig.set_now(Time::from_nanos(55_000));
        let second = rig.task().codelet(1).make();
        push(&rig, second);
        // The GPU has it done by 65 µs if it is free by now, and by 70 µs if not; the core by 67 µs.
        assert!(rig.child_tasks(child).contains(&second), "began at {began} µs");
    }
}

#[test]
fn a_task_does_not_wait_long_for_one_that_does_not_come() {
    let rig = core_and_gpu(&[(12, 0), (0, 10), (30, 0)]);
    let [beside, first] = [0, 1].map(|codelet| rig.task().codelet(codelet).make());
    push(&rig, beside);
    push(&rig, first);
    let [late, urgent] = [2, 1].map(|codelet| rig.task().codelet(codelet).make());
    rig.set_waits(late, first);
    rig.set_waits(urgent, first);
    rig.set_now(Time::from_nanos(10_000));
    rig.set_ended(first);
    push(&rig, late);
    assert_eq!(rig.child_tasks(Child(0)), [beside], "one for the GPU begins before it");
    rig.set_now(Time::from_nanos(110_001));
    rig.can_push(Child(1));
    assert_eq!(rig.child_tasks(Child(0)), [beside, late]);
}

#[test]
fn the_data_of_an_urgent_task_is_fetched_first() {
    // A long task on the core waits for the urgent one.
    let rig = core_and_gpu(&[(12, 0), (0, 10), (30, 0)]);
    let [beside, first] = [0, 1].map(|codelet| rig.task().codelet(codelet).make());
    push(&rig, beside);
    push(&rig, first);
    let [late, urgent, long] = [1, 1, 2].map(|codelet| rig.task().codelet(codelet).make());
    for task in [late, urgent] {
        rig.set_waits(task, first);
        rig.set_way(MemoryNode(0), MemoryNode(1), Duration::from_micros(1));
        rig.add_access(task, DataAccess { data: task.sequence(), bytes: 8, reads: true, writes: false });
    }
    rig.set_waits(long, urgent);
    rig.set_now(Time::from_nanos(10_000));
    rig.set_ended(first);
    let before = rig.service_calls("prefetch");
    push(&rig, late);
    assert_eq!((rig.service_calls("prefetch") - before, rig.held()), (0, vec![late]));
    push(&rig, urgent);
    assert_eq!((rig.service_calls("prefetch") - before, rig.child_tasks(Child(1))), (2, vec![first, urgent, late]));
}

#[test]
fn what_is_ready_goes_when_nothing_else_is_under_way() {
    let rig = core_and_gpu(&[(5, 0), (0, 10), (50, 0), (0, 11)]);
    let [first, urgent, long, other] = [0, 1, 2, 3].map(|codelet| rig.task().codelet(codelet).make());
    rig.set_waits(urgent, first);
    rig.set_waits(long, urgent);
    push(&rig, other);
    assert_eq!(rig.held(), [other], "the first one comes at once");
    assert_eq!(rig.woken(), [WorkerId(1)], "it may never come");
    rig.can_push(Child(1));
    assert_eq!(rig.child_tasks(Child(1)), [other]);
}

#[test]
fn tasks_are_planned_where_their_data_is() {
    for (way, child) in [(0, Child(1)), (100, Child(0))] {
        let rig = core_and_gpu(&[(30, 20)]);
        rig.set_way(MemoryNode(0), MemoryNode(1), Duration::from_micros(way));
        let task = rig.task().make();
        rig.add_access(task, DataAccess { data: 7, bytes: 8, reads: true, writes: true });
        push(&rig, task);
        assert_eq!(rig.child_tasks(child), [task], "{way}");
        assert_eq!(rig.service_calls("prefetch"), 1, "its data moves at once");
    }
}

#[test]
fn data_stays_where_it_was_written() {
    let rig = core_and_gpu(&[(30, 20)]);
    for (from, to) in [(0, 1), (1, 0)] {
        rig.set_way(MemoryNode(from), MemoryNode(to), Duration::from_micros(100));
    }
    rig.set_copy(7, MemoryNode(1));
    let tasks = rig.tasks(3);
    for pair in tasks.windows(2) {
        rig.set_waits(pair[1], pair[0]);
    }
    for task in &tasks {
        rig.add_access(*task, DataAccess { data: 7, bytes: 8, reads: true, writes: true });
    }
    for task in &tasks {
        push(&rig, *task);
        rig.set_ended(*task);
    }
    assert_eq!(rig.child_tasks(Child(1)), tasks);
}

#[test]
fn a_refused_task_keeps_its_place() {
    let rig = core_and_gpu(&[(0, 10)]);
    rig.set_room(Child(1), Some(0));
    let tasks = rig.tasks(3);
    for task in &tasks {
        push(&rig, *task);
    }
    assert_eq!(rig.read(tasks[0], Task::priority), 0, "nothing is left of the attempt");
    rig.set_room(Child(1), Some(1));
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), tasks[..1]);
    assert_eq!(rig.drain(), tasks[1..]);
}

#[test]
fn tasks_without_an_estimate_go_to_the_least_load() {
    let rig = core_and_gpu(&[]);
    rig.set_load(Child(0), 3.0);
    let task = rig.task().make();
    push(&rig, task);
    assert_eq!(rig.child_tasks(Child(1)), [task]);
    assert_eq!(rig.read(task, Task::predicted), None);
}

#[test]
fn a_worker_is_woken_and_pulls_what_is_planned_for_it() {
    let rig = Rig::build::<Plan>(&[]).foreseeing().workers(2);
    let rig = rig.child(FakeChild::worker(0)).child(FakeChild::worker(1));
    set_lengths(&rig, &[(9, 5)]);
    let (task, unknown) = (rig.task().make(), rig.task().codelet(1).make());
    push(&rig, task);
    assert_eq!(rig.woken(), [WorkerId(1)]);
    push(&rig, unknown);
    assert_eq!(rig.pull(Child(0)), Some(unknown), "nobody knows how long it takes");
    assert_eq!(rig.pull(Child(0)), None);
    assert_eq!(rig.pull(Child(1)), Some(task));
}

/// As a model says that is far from its samples, or a program that has no better word for "not there".
#[test]
fn a_worker_that_would_take_for_ever_gets_nothing() {
    for length in [u64::MAX, u64::MAX - 1000, 1 << 63, 1 << 50] {
        let rig = core_and_gpu(&[(0, 10)]);
        rig.set_length(0, WorkerId(0), 0, Estimate::Known(Duration::from_nanos(length)));
        rig.set_now(Time::from_nanos(5000));
        rig.set_tick(Duration::from_nanos(1));
        let tasks = rig.tasks(20);
        tasks.iter().for_each(|task| push(&rig, *task));
        for _ in &tasks {
            rig.can_push(Child(1));
            rig.child_tasks(Child(1)).into_iter().for_each(|task| rig.set_ended(task));
        }
        assert_eq!((rig.child_tasks(Child(0)).len(), rig.child_tasks(Child(1)).len()), (0, 20));
    }
}

#[test]
fn a_window_moves_on() {
    let rig = Rig::build::<Plan>(&[("window", Value::Int(4)), ("effort", Value::Int(3))]).foreseeing().workers(1);
    let rig = rig.child(FakeChild::over([0]));
    rig.set_length(0, WorkerId(0), 0, known(10));
    let tasks = rig.tasks(20);
    for task in &tasks {
        push(&rig, *task);
    }
    for _ in &tasks {
        for task in rig.child_tasks(Child(0)) {
            rig.set_ended(task);
        }
        rig.can_push(Child(0));
    }
    assert_eq!(rig.child_tasks(Child(0)).len(), 20);
}

#[test]
fn pushes_from_many_threads_are_all_kept() {
    let rig = core_and_gpu(&[(100_000, 10)]);
    let tasks = rig.tasks(100);
    std::thread::scope(|scope| {
        for part in tasks.chunks(25) {
            let rig = &rig;
            scope.spawn(move || part.iter().for_each(|task| push(rig, *task)));
        }
    });
    assert_eq!(rig.child_tasks(Child(0)).len() + rig.child_tasks(Child(1)).len() + rig.held().len(), 100);
    for _ in 0..100 {
        rig.can_push(Child(1));
    }
    assert_eq!(rig.held(), []);
}

/// A queue above each of two cores, in a run whose clock moves. `lengths` are µs of each codelet.
fn two_cores(lengths: &[u64]) -> Rig {
    let rig = Rig::build::<Plan>(&[]).foreseeing();
    let rig = rig.worker(Arch::CPU, MemoryNode(0)).worker(Arch::CPU, MemoryNode(0));
    let rig = rig.child(FakeChild::over([0])).child(FakeChild::over([1]));
    set_lengths(&rig, &lengths.iter().map(|length| (*length, *length)).collect::<Vec<_>>());
    rig.set_tick(Duration::from_nanos(1));
    rig
}

/// Pushes tasks of this codelet, which no worker has made ready.
fn push_many(rig: &Rig, count: usize, codelet: u32) -> Vec<TaskId> {
    rig.set_requester(None);
    let make = |_| rig.task().codelet(codelet).make();
    let tasks: Vec<TaskId> = (0..count).map(make).collect();
    tasks.iter().for_each(|task| push(rig, *task));
    tasks
}

/// The task that a worker gets when it has room.
fn next_for(rig: &Rig, worker: u32) -> Option<TaskId> {
    rig.set_requester(Some(WorkerId(worker)));
    let before = rig.child_tasks(Child(worker)).len();
    rig.can_push(Child(worker));
    rig.child_tasks(Child(worker)).get(before).copied()
}

#[test]
fn equal_workers_take_what_they_made_ready_last_and_nothing_ahead() {
    let rig = two_cores(&[30]);
    let tasks = push_many(&rig, 40, 0);
    assert_eq!(rig.held().len(), 40, "nobody has asked");
    assert_eq!(next_for(&rig, 0), Some(tasks[0]));
    rig.set_requester(Some(WorkerId(1)));
    let [first, last] = [0, 1].map(|_| rig.task().codelet(0).make());
    push(&rig, first);
    push(&rig, last);
    assert_eq!([1, 1, 1].map(|worker| next_for(&rig, worker)), [last, first, tasks[1]].map(Some));
    assert_eq!(next_for(&rig, 0), Some(tasks[2]));
}

#[test]
fn an_idle_equal_worker_takes_what_others_made_ready_in_the_order_in_which_it_came() {
    let rig = two_cores(&[30]);
    // So that nothing is urgent.
    let waits = rig.tasks(40);
    waits.windows(2).for_each(|pair| rig.set_waits(pair[1], pair[0]));
    let _ = next_for(&rig, 1);
    rig.set_requester(Some(WorkerId(0)));
    let made = rig.tasks(3);
    made.iter().for_each(|task| push(&rig, *task));
    assert_eq!([1, 0, 1].map(|worker| next_for(&rig, worker)), [made[0], made[2], made[1]].map(Some));
    assert_eq!(next_for(&rig, 0), None);
}

#[test]
fn what_much_waits_for_goes_first_on_equal_workers() {
    let rig = two_cores(&[30, 10, 400]);
    let ready = push_many(&rig, 6, 0);
    let [short, end] = [1, 2].map(|codelet| rig.task().codelet(codelet).make());
    rig.set_waits(end, short);
    push(&rig, short);
    assert_eq!(next_for(&rig, 0), Some(short), "its path is longer than half of all");
    assert_eq!(next_for(&rig, 1), Some(ready[0]));
}

#[test]
fn equal_workers_go_by_priority_where_nothing_is_urgent() {
    let rig = two_cores(&[30]);
    let tasks = push_many(&rig, 40, 0);
    let important = rig.task().codelet(0).priority(7).make();
    push(&rig, important);
    assert_eq!([0, 1].map(|worker| next_for(&rig, worker)), [important, tasks[0]].map(Some));
}

#[test]
fn all_is_planned_once_a_task_comes_that_not_all_equal_workers_can_execute() {
    let rig = two_cores(&[30]);
    let anywhere = push_many(&rig, 3, 0);
    let there = rig.task().codelet(0).only([1]).make();
    push(&rig, there);
    let sent = [Child(0), Child(1)].map(|child| rig.child_tasks(child));
    assert!(sent[1].contains(&there), "{sent:?}");
    assert_eq!(sent.iter().map(Vec::len).sum::<usize>(), anywhere.len() + 1, "none is left behind");
    assert_eq!(rig.held(), []);
}

#[test]
fn a_task_that_a_queue_refuses_keeps_its_place_and_priority() {
    let rig = two_cores(&[30]);
    push_many(&rig, 40, 0);
    let [important, more] = [7, 9].map(|priority| rig.task().codelet(0).priority(priority).make());
    push(&rig, important);
    rig.set_room(Child(0), Some(0));
    rig.sleep(WorkerId(1));
    rig.woken();
    assert_eq!(next_for(&rig, 0), None);
    assert_eq!(rig.woken(), [WorkerId(1)], "it may have found nothing while the task was out");
    assert_eq!(rig.read(important, Task::priority), 7);
    rig.set_requester(None);
    push(&rig, more);
    assert_eq!([1, 1].map(|worker| next_for(&rig, worker)), [more, important].map(Some));
}

#[test]
fn what_a_parent_sends_for_an_equal_worker_reaches_it_at_once() {
    let rig = Rig::build::<Plan>(&[]).foreseeing().parent(FakeParent::new());
    let rig = rig.workers(2).child(FakeChild::over([0])).child(FakeChild::over([1]));
    rig.set_tick(Duration::from_nanos(1));
    let task = rig.tasks(1)[0];
    rig.give_parent(Parent(0), task);
    assert!(rig.can_push(Child(1)));
    assert_eq!(rig.child_tasks(Child(1)), [task]);
}

#[test]
fn equal_workers_give_up_all_tasks_and_can_get_them_again() {
    let rig = two_cores(&[30, 10, 400]);
    let tasks = push_many(&rig, 40, 0);
    let [urgent, end] = [1, 2].map(|codelet| rig.task().codelet(codelet).make());
    rig.set_waits(end, urgent);
    let _ = next_for(&rig, 0);
    push(&rig, urgent);
    rig.set_requester(Some(WorkerId(1)));
    let own = rig.task().codelet(0).make();
    push(&rig, own);
    assert_eq!(rig.drain(), [&tasks[1..], &[urgent, own]].concat(), "in the order of submission");
    assert_eq!([0, 1].map(|worker| next_for(&rig, worker)), [None, None]);
    push(&rig, urgent);
    assert_eq!(next_for(&rig, 0), Some(urgent));
}

/// Four threads push 60 tasks, while two workers take them and some become urgent; `special` makes one of them.
fn in_many_threads(rig: &Rig, special: impl Fn() -> TaskId) {
    let plain = |number: u32| rig.task().codelet(number % 2).priority((number % 3) as i32).make();
    let tasks: Vec<TaskId> = (0..60).map(|number| if number == 40 { special() } else { plain(number) }).collect();
    tasks.iter().zip(&tasks[7..]).for_each(|(task, next)| rig.set_waits(*next, *task));
    let pushed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for part in tasks.chunks(15) {
            let pushed = &pushed;
            scope.spawn(move || {
                for task in part {
                    // Whoever it is by then: all lines are used.
                    rig.set_requester([None, Some(WorkerId(0)), Some(WorkerId(1))][task.sequence() as usize % 3]);
                    push(rig, *task);
                    pushed.fetch_add(1, Release);
                }
            });
        }
        for child in [Child(0), Child(1)] {
            let (pushed, all) = (&pushed, tasks.len());
            scope.spawn(move || {
                loop {
                    let is_last = pushed.load(Acquire) == all;
                    match rig.can_push(child) {
                        true => _ = rig.child_tasks(child).last().inspect(|task| rig.set_ended(**task)),
                        false if is_last => break,
                        false => {}
                    }
                }
            });
        }
    });
    rig.set_requester(None);
    let got: usize = [Child(0), Child(1)].map(|child| rig.child_tasks(child).len()).iter().sum();
    assert_eq!(got + rig.held().len(), tasks.len());
}

#[test]
fn an_equal_worker_that_finds_nothing_has_missed_nothing() {
    for _ in 0..40 {
        let rig = two_cores(&[10, 60]);
        in_many_threads(&rig, || rig.task().codelet(1).make());
        assert_eq!(rig.held(), [], "both have found no task after the last was pushed");
    }
}

#[test]
fn none_is_lost_while_equal_workers_begin_to_keep_to_a_plan() {
    for _ in 0..40 {
        let rig = two_cores(&[10, 60]);
        in_many_threads(&rig, || rig.task().codelet(1).only([1]).make());
        for _ in 0..60 {
            for child in [Child(0), Child(1)] {
                rig.child_tasks(child).iter().for_each(|task| rig.set_ended(*task));
                rig.can_push(child);
            }
        }
        assert_eq!(rig.held(), []);
    }
}
