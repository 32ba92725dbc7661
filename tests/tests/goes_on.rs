//! A worker goes on with the task that it has made ready, without the tree, where the tree would give it that task.

use sched_host::runtime::{Context, Outcome, ReadWrite, Runtime, TaskRef, WorkerStats};
use sched_tests::hold::{Held, Hold};
use sched_tests::stock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};

/// Runs a chain of tasks, all of which are submitted before the first begins.
fn chain(runtime: &Runtime, tasks: u64, priority: i32) {
    let count = runtime.register(0_u64);
    let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (count,)| *count += 1).build();
    let held: Vec<_> = runtime.stats().iter().map(|_| Hold::new(runtime).worker()).collect();
    for _ in 0..tasks {
        runtime.task(&add, (&count,)).priority(priority).submit().expect("the task is sound");
    }
    drop(held);
    assert_eq!(runtime.read(&count).map(|count| *count).ok(), Some(tasks));
}

fn went_on(runtime: &Runtime) -> u64 {
    runtime.stats().iter().map(|WorkerStats { went_on, .. }| went_on).sum()
}

#[test]
fn a_worker_goes_on_with_what_it_made_ready_beside_any_number_of_others() {
    for workers in 1..=4 {
        let runtime = stock::runtime("work-stealing { each \"worker\" { worker } }", workers);
        chain(&runtime, 50, 0);
        assert_eq!(went_on(&runtime), 49, "all but the first of the chain, with {workers} workers");
    }
}

#[test]
fn it_asks_the_tree_where_another_task_may_come_first() {
    let of_one_queue = stock::runtime(stock::EAGER, 2);
    chain(&of_one_queue, 50, 0);
    assert_eq!(went_on(&of_one_queue), 0, "the first in the queue comes first");

    let with_priorities = stock::runtime("work-stealing { each \"worker\" { worker } }", 2);
    chain(&with_priorities, 50, 1);
    chain(&with_priorities, 50, 0);
    assert_eq!(went_on(&with_priorities), 0, "the tree may have a more urgent one");

    // A parallel task may be for several workers.
    let with_teams =
        stock::runtime("work-stealing { each \"worker\" { worker }; each \"combined-worker\" { combined-worker } }", 2);
    chain(&with_teams, 50, 0);
    assert_eq!(went_on(&with_teams), 0, "a team may be waiting for it");
}

#[test]
fn tasks_of_a_replay_run_at_home() {
    let runtime = stock::runtime("work-stealing { each \"worker\" { worker } }", 2);
    let apart = Arc::new(Barrier::new(2));
    let ran_on: [AtomicU32; 3] = Default::default();
    let ran_on = Arc::new(ran_on);
    let note = {
        let ran_on = Arc::clone(&ran_on);
        move |context: &Context<'_, usize>| ran_on[*context.params].store(context.worker.0, Relaxed)
    };
    let begin = runtime.codelet::<(), usize>("begin").cpu("begin", {
        let note = note.clone();
        move |context, ()| note(context)
    });
    let begin = begin.build();
    let both = runtime.codelet::<(), usize>("both").cpu("both", move |context, ()| {
        // So that each worker has one of them.
        apart.wait();
        note(context);
    });
    let both = both.build();
    let recording = runtime.record(|recorder| {
        let first = recorder.task_with(&begin, 0, ()).submit()?;
        (1..3).try_for_each(|number| recorder.task_with(&both, number, ()).after(first).submit().map(drop))
    });
    let recording = recording.expect("the tasks are sound");
    let mut places = Vec::new();
    for _ in 0..200 {
        let replay = runtime.replay(&recording).expect("it does not run");
        assert_eq!(runtime.wait(replay).expect("every task runs"), Outcome::Done);
        places.push([0, 1, 2].map(|number: usize| ran_on[number].load(Relaxed)));
    }
    // Whichever worker makes them ready. The first one has nobody beside it, so it is at home nowhere.
    assert!(places.iter().all(|[_, one, other]| [*one, *other] == [0, 1]), "{places:?}");
}

/// A task that makes others ready: the first of them is at work, and the others are at hand, while a second worker is
/// busy.
struct AtHand {
    runtime: Runtime,
    first: TaskRef,
    others: Vec<TaskRef>,
    /// What each of the others ran on, from 1.
    ran_on: Arc<[AtomicU32; 3]>,
    /// Ends the first.
    go_on: Sender<()>,
}

impl AtHand {
    /// The other worker stays busy until what is returned is dropped.
    fn new(runtime: Runtime) -> (AtHand, Held) {
        let ran_on: Arc<[AtomicU32; 3]> = Arc::default();
        let ((begins, begun), (go_on, goes_on)) = (channel(), channel::<()>());
        let goes_on = Mutex::new(goes_on);
        let root = runtime.codelet::<(), ()>("root").cpu("root", |_, ()| {}).build();
        let first = runtime.codelet::<(), ()>("first").cpu("first", move |_, ()| {
            let _ = begins.send(());
            let _ = goes_on.lock().map(|goes_on| goes_on.recv());
        });
        let other = runtime.codelet::<(), usize>("other").cpu("other", {
            let ran_on = Arc::clone(&ran_on);
            move |context, ()| ran_on[*context.params].store(context.worker.0 + 1, Relaxed)
        });
        let (first, other) = (first.build(), other.build());
        let hold = Hold::new(&runtime);
        let (busy, also_busy) = (hold.worker(), hold.worker());
        let root = runtime.task(&root, ()).submit().expect("the task is sound");
        let first = runtime.task(&first, ()).after(root).submit().expect("the task is sound");
        let others = (0..3).map(|number| runtime.task_with(&other, number, ()).after(root).submit());
        let others = others.map(|task| task.expect("the task is sound")).collect();
        drop(also_busy);
        begun.recv().expect("it begins");
        (AtHand { runtime, first, others, ran_on, go_on }, busy)
    }

    fn ran_on(&self) -> [u32; 3] {
        [0, 1, 2].map(|number: usize| self.ran_on[number].load(Relaxed))
    }

    /// Waits for the others while the first is at work.
    fn wait_for_others(&self) {
        for other in &self.others {
            assert_eq!(self.runtime.wait(*other).expect("it does not wait for the first"), Outcome::Done);
        }
    }
}

const STEALING: &str = "work-stealing { each \"worker\" { worker } }";

#[test]
fn what_is_at_hand_is_for_others_who_have_nothing_to_do() {
    let (at_hand, busy) = AtHand::new(stock::runtime(STEALING, 2));
    let thief = busy.worker.0 + 1;
    drop(busy);
    at_hand.wait_for_others();
    assert_eq!(at_hand.ran_on(), [thief; 3]);
    drop(at_hand.go_on);
    assert_eq!(at_hand.runtime.wait(at_hand.first).expect("it goes on"), Outcome::Done);
}

#[test]
fn a_worker_goes_on_with_all_that_it_has_at_hand() {
    let (at_hand, busy) = AtHand::new(stock::runtime(STEALING, 2));
    let worker = 2 - busy.worker.0;
    let before = went_on(&at_hand.runtime);
    let AtHand { runtime, go_on, others, ran_on, .. } = at_hand;
    drop(go_on);
    for other in others {
        assert_eq!(runtime.wait(other).expect("the worker goes on"), Outcome::Done);
    }
    assert_eq!([0, 1, 2].map(|number: usize| ran_on[number].load(Relaxed)), [worker; 3]);
    drop(busy);
    runtime.wait_all().expect("no task fails");
    assert_eq!((before, went_on(&runtime)), (1, 4));
}

#[test]
fn what_is_at_hand_can_be_cancelled() {
    let (at_hand, busy) = AtHand::new(stock::runtime(STEALING, 2));
    assert!(at_hand.runtime.cancel(at_hand.others[1]));
    assert!(!at_hand.runtime.cancel(at_hand.first), "it has begun");
    drop(busy);
    let outcomes = at_hand.others.iter().map(|other| at_hand.runtime.wait(*other).expect("it ends"));
    let done: Vec<bool> = outcomes.map(|outcome| outcome == Outcome::Done).collect();
    assert_eq!(done, [true, false, true]);
    assert_eq!(at_hand.ran_on()[1], 0);
    drop(at_hand.go_on);
    at_hand.runtime.wait_all().expect("nothing fails, and what is cancelled is no failure");
}

#[test]
fn what_is_at_hand_moves_to_another_policy() {
    for policy in [stock::EAGER, r#"prio { mct { each "worker" { worker } } }"#, STEALING] {
        let (at_hand, busy) = AtHand::new(stock::runtime(STEALING, 2));
        at_hand.runtime.default_context().swap_policy_value(stock::policy(policy)).expect("it is sound");
        drop(busy);
        at_hand.wait_for_others();
        drop(at_hand.go_on);
        at_hand.runtime.wait_all().expect("no task fails");
    }
}

/// The worker that has them leaves the context while it executes a task.
#[test]
fn what_is_at_hand_stays_in_its_context() {
    let (at_hand, busy) = AtHand::new(stock::runtime(STEALING, 2));
    let thief = busy.worker;
    at_hand.runtime.default_context().remove_workers([1 - thief.0]).expect("it has a worker");
    drop(busy);
    at_hand.wait_for_others();
    assert_eq!(at_hand.ran_on(), [thief.0 + 1; 3]);
    drop(at_hand.go_on);
    at_hand.runtime.wait_all().expect("no task fails");
}

/// A thread of the program has them, and leaves.
#[test]
fn what_is_at_hand_stays_when_a_thread_stops_being_the_worker() {
    let runtime = stock::builder(STEALING, 2, Vec::new()).main_worker().build().expect("it starts");
    let ran = Arc::new(AtomicU32::new(0));
    let none = runtime.codelet::<(), ()>("none").cpu("none", |_, ()| {}).build();
    let count = runtime.codelet::<(), ()>("count").cpu("count", {
        let ran = Arc::clone(&ran);
        move |_, ()| _ = ran.fetch_add(1, Relaxed)
    });
    let count = count.build();
    let busy = Hold::new(&runtime).worker();
    let root = runtime.task(&none, ()).submit().expect("the task is sound");
    let first = runtime.task(&none, ()).after(root).submit().expect("the task is sound");
    let others = (0..3).map(|_| runtime.task(&count, ()).after(root).submit());
    let others: Vec<TaskRef> = others.map(|task| task.expect("the task is sound")).collect();
    assert_eq!(runtime.wait(first).expect("this thread executes it"), Outcome::Done);
    assert_eq!(ran.load(Relaxed), 0, "it leaves when what it waits for has happened");
    // The other worker finds them while no thread waits.
    drop(busy);
    while ran.load(Relaxed) < 3 {
        std::thread::yield_now();
    }
    assert!(others.into_iter().all(|other| matches!(runtime.wait(other), Ok(Outcome::Done))));
}
