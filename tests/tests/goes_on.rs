//! A worker goes on with the task that it has made ready, without the tree, where the tree would give it that task.

use sched_host::runtime::{ReadWrite, Runtime, WorkerStats};
use sched_tests::hold::Hold;
use sched_tests::stock;

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
        stock::runtime("work-stealing { each \"worker\" { worker }; each \"combined-worker\" { worker } }", 2);
    chain(&with_teams, 50, 0);
    assert_eq!(went_on(&with_teams), 0, "a team may be waiting for it");
}
