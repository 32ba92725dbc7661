//! A worker goes on with the task that it has made ready, without the tree, where the tree would give it that task.

use sched_host::runtime::{Context, Outcome, ReadWrite, Runtime, WorkerStats};
use sched_tests::hold::Hold;
use sched_tests::stock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Barrier};

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
