//! A thread of the program is the last worker while it waits.

use sched_host::graph::Where;
use sched_host::runtime::{Outcome, ReadWrite, RunError, Runtime, WhenFull};
use sched_tests::stock::{EAGER, SHAPES, builder, policy};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

fn start(shape: &str, workers: usize) -> Runtime {
    builder(shape, workers, Vec::new()).unchecked().main_worker().build().expect("the runtime starts")
}

/// Tasks executed by each worker.
fn executed(runtime: &Runtime) -> Vec<u64> {
    runtime.stats().iter().map(|worker| worker.tasks).collect()
}

#[test]
fn who_makes_a_task_ready_goes_on_with_it_and_leaves_it_to_others_when_the_wait_is_over() {
    let shape = r#"work-stealing { each "worker" { worker } }"#;
    let runtime = builder(shape, 2, Vec::new()).main_worker().build().expect("the runtime starts");
    let (begin, begun) = channel();
    let begun = Mutex::new(begun);
    let executed_by = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&executed_by);
    let step = runtime.codelet::<(ReadWrite<u64>,), u64>("step").cpu("step", move |context, (x,)| {
        if *context.params == 0 {
            begun.lock().expect("nothing panics under it").recv().expect("the program sends once");
        }
        list.lock().expect("nothing panics under it").push(context.worker);
        *x += 1;
    });
    let (step, x) = (step.build(), runtime.register(0));
    let tasks: Vec<_> =
        (0..100).map(|number| runtime.task_with(&step, number, (&x,)).submit().expect("it is sound")).collect();
    begin.send(()).expect("the first task waits for it");
    // Whichever worker has the first task has them all. If that is this thread, it leaves after some of them: the next
    // one was to be its own, and is executed all the same.
    for task in tasks.iter().step_by(10) {
        assert_eq!(runtime.wait(*task).expect("it runs"), Outcome::Done);
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(*runtime.read(&x).expect("it is computed"), 100);
    let executed_by = executed_by.lock().expect("nothing panics under it");
    let changes = executed_by.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // A chain moves only where the thread of the program has left.
    assert!(changes <= 10, "{executed_by:?}");
}

#[test]
fn every_way_to_wait_executes_tasks() {
    for shape in SHAPES {
        for workers in 1..=3 {
            let runtime = start(shape, workers);
            let add = runtime.codelet::<(ReadWrite<u64>,), u64>("add");
            let add = add.cpu("add", |context, (x,)| *x = 3 * *x + *context.params).build();
            let data = [(); 4].map(|()| runtime.register(0));
            let submit = |number: u64, x: usize| {
                runtime.task_with(&add, number, (&data[x],)).submit().expect("the task is sound")
            };
            let mut expected = [0; 4];
            for number in 0..200 {
                let x = number as usize % 4;
                let task = submit(number, x);
                expected[x] = 3 * expected[x] + number;
                match number {
                    50 => runtime.wait_all().expect("every task runs"),
                    100 => assert_eq!(runtime.wait(task).expect("it runs"), Outcome::Done),
                    150 => drop(runtime.read(&data[x]).expect("it is computed")),
                    175 => drop(runtime.write(&data[x]).expect("it is computed")),
                    _ => {}
                }
                // Kept small, so that nothing overflows.
                if number % 8 >= 4 {
                    *runtime.write(&data[x]).expect("it is computed") %= 1 << 40;
                    expected[x] %= 1 << 40;
                }
            }
            let mut lent = 1;
            let scope = runtime.scope(|scope| {
                let x = scope.lend(&mut lent);
                runtime.task_with(&add, 4, (&x,)).submit().expect("the task is sound");
            });
            scope.expect("its task runs");
            assert_eq!(lent, 7);
            let seen = data.map(|x| runtime.unregister(x).expect("it is computed").expect("the only handle"));
            assert_eq!(seen, expected, "{shape}, {workers} workers");
            assert_eq!(executed(&runtime).iter().sum::<u64>(), 201);
        }
    }
}

#[test]
fn without_a_thread_nothing_runs_until_the_program_waits_and_then_it_runs_here() {
    let runtime = start(EAGER, 1);
    assert_eq!((runtime.workers(), runtime.bound_workers()), (1, 0));
    let threads: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    let noted = Arc::clone(&threads);
    let note = runtime.codelet::<(), ()>("note");
    let note = note.cpu("note", move |_, ()| noted.lock().unwrap().push(thread::current().id())).build();
    let tasks = [(); 3].map(|()| runtime.task(&note, ()).submit().expect("the task is sound"));
    assert!(!tasks.iter().any(|task| runtime.is_done(*task)));
    assert_eq!(runtime.wait(tasks[0]).expect("it runs"), Outcome::Done);
    assert!(!runtime.is_done(tasks[2]), "it stops when what it waits for has happened");
    runtime.wait_all().expect("every task runs");
    assert_eq!(*threads.lock().unwrap(), [thread::current().id(); 3]);
}

#[test]
fn tasks_for_this_worker_alone_stay_until_the_program_waits() {
    let runtime = start(EAGER, 2);
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let here = runtime.task(&nothing, ()).only_on(Where::worker(1)).submit().expect("the task is sound");
    let (begin, begun) = channel();
    let tell = runtime.codelet::<(), ()>("tell").cpu("tell", move |_, ()| begin.send(()).expect("heard")).build();
    let there = runtime.task(&tell, ()).only_on(Where::worker(0)).submit().expect("the task is sound");
    begun.recv().expect("the other worker has a thread");
    assert!(!runtime.is_done(here));
    runtime.wait_all().expect("both run");
    assert!(runtime.is_done(here) && runtime.is_done(there));
    assert_eq!(executed(&runtime), [1, 1]);
}

#[test]
fn threads_that_wait_are_the_worker_in_turn() {
    let runtime = start(EAGER, 1);
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..200 {
                    let task = runtime.task(&nothing, ()).submit().expect("the task is sound");
                    match round % 2 {
                        0 => assert_eq!(runtime.wait(task).expect("it runs"), Outcome::Done),
                        _ => runtime.wait_all().expect("every task runs"),
                    }
                    assert!(runtime.is_done(task));
                }
            });
        }
    });
    assert_eq!(executed(&runtime), [800]);
}

#[test]
fn a_task_that_waits_for_all_is_an_error_here_too() {
    for workers in [1, 2] {
        let runtime = Arc::new(start(EAGER, workers));
        let seen = Arc::downgrade(&runtime);
        let wait = runtime.codelet::<(), ()>("wait");
        let wait = wait.cpu("wait", move |_, ()| drop(seen.upgrade().expect("it is there").wait_all())).build();
        let (last, all) = (Where::worker(workers as u32 - 1), runtime.wait_all());
        all.expect("there is nothing");
        runtime.task(&wait, ()).only_on(last).submit().expect("the task is sound");
        let Err(RunError::Failed { failed, .. }) = runtime.wait_all() else { panic!("the task panics") };
        assert!(failed[0].message.contains("which might wait for itself"), "{}", failed[0].message);
        runtime.wait_all().expect("this thread is no worker any more");
    }
}

#[test]
fn a_task_may_wait_for_another_runtime_but_not_for_its_own_meanwhile() {
    let (outer, inner) = (Arc::new(start(EAGER, 1)), Arc::new(start(EAGER, 1)));
    let (outer_too, inner_too) = (Arc::downgrade(&outer), Arc::clone(&inner));
    let count = inner.codelet::<(ReadWrite<u32>,), ()>("count").cpu("count", |_, (x,)| *x += 1).build();
    let wrong = inner.codelet::<(), ()>("wrong");
    let wrong = wrong.cpu("wrong", move |_, ()| drop(outer_too.upgrade().expect("it is there").wait_all())).build();
    let work = outer.codelet::<(ReadWrite<u32>,), ()>("work").cpu("work", move |_, (x,)| {
        let counted = inner_too.register(*x);
        inner_too.task(&count, (&counted,)).submit().expect("the task is sound");
        *x = *inner_too.read(&counted).expect("it is computed");
        inner_too.task(&wrong, ()).submit().expect("the task is sound");
        let Err(RunError::Failed { failed, .. }) = inner_too.wait_all() else { panic!("the task panics") };
        assert!(failed[0].message.contains("which might wait for itself"), "{}", failed[0].message);
    });
    let (work, x) = (work.build(), outer.register(41));
    outer.task(&work, (&x,)).submit().expect("the task is sound");
    outer.wait_all().expect("its task waits for the other runtime");
    assert_eq!(*outer.read(&x).expect("it is computed"), 42);
}

#[test]
fn the_current_context_of_the_thread_stays() {
    let runtime = start(EAGER, 2);
    let other = runtime.context("other").policy_value(policy(EAGER)).workers([1]).build().expect("it fits");
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let submit = || runtime.task(&nothing, ()).submit().expect("the task is sound");
    other.with(|| {
        submit();
        runtime.default_context().with(submit);
        runtime.wait_all().expect("every task runs");
        submit();
        other.wait_all().expect("every task runs");
    });
    submit();
    assert_eq!((other.stats().submitted, runtime.default_context().stats().submitted), (2, 2));
    other.delete().expect("it waits, and goes");
}

#[test]
fn a_submission_that_waits_for_room_executes_tasks() {
    let builder = builder(EAGER, 1, Vec::new()).main_worker().bound_tasks(10, WhenFull::Wait);
    let runtime = builder.build().expect("the runtime starts");
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    for _ in 0..500 {
        runtime.task(&nothing, ()).submit().expect("the task is sound");
    }
    assert!(executed(&runtime)[0] >= 490);
}

#[test]
fn what_is_left_runs_when_the_runtime_is_dropped() {
    let runtime = start(EAGER, 1);
    let x = Arc::new(Mutex::new(0));
    let added = Arc::clone(&x);
    let add = runtime.codelet::<(), ()>("add").cpu("add", move |_, ()| *added.lock().unwrap() += 1).build();
    for _ in 0..100 {
        runtime.task(&add, ()).submit().expect("the task is sound");
    }
    drop(runtime);
    assert_eq!(*x.lock().unwrap(), 100);
}
