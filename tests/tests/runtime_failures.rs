//! A failed task affects only its dependents.

use sched_core::Arch;
use sched_host::runtime::{
    Codelet, Commute, DataError, Many, Outcome, Read, ReadWrite, Redux, RunError, Runtime, Scratch, Scratchpad,
    SubmitError, TaskFailure, Write,
};
use sched_tests::stock::{self, EAGER, SHAPES, builder, runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

fn failing(runtime: &Runtime) -> Codelet<(ReadWrite<u64>,), ()> {
    runtime.codelet::<(ReadWrite<u64>,), ()>("solve").cpu("solve_cpu", |_, _| panic!("the pivot is zero")).build()
}

fn increment(runtime: &Runtime) -> Codelet<(ReadWrite<u64>,), ()> {
    runtime.codelet::<(ReadWrite<u64>,), ()>("increment").cpu("increment", |_, (value,)| *value += 1).build()
}

fn failed(end: Result<(), RunError>) -> (Vec<Arc<TaskFailure>>, u64) {
    match end {
        Err(RunError::Failed { failed, cancelled }) => (failed, cancelled),
        other => panic!("expected a failed run, found {other:?}"),
    }
}

#[test]
fn a_failure_names_everything() {
    let runtime = runtime(EAGER, 1);
    let data = runtime.register(0);
    let solve = failing(&runtime);
    let task = runtime.task(&solve, (&data,)).name("solve(3, 4)").submit().expect("the task is sound");
    let Ok(Outcome::Failed(failure)) = runtime.wait(task) else { panic!("the task fails") };
    assert_eq!((&*failure.codelet, &*failure.implementation), ("solve", "solve_cpu"));
    assert_eq!((failure.task, failure.worker), (1, 0));
    assert_eq!((failure.name.as_deref(), &*failure.message), (Some("solve(3, 4)"), "the pivot is zero"));
    insta::assert_snapshot!(
        runtime.wait_all().expect_err("a task failed"),
        @"task 1 `solve(3, 4)` (codelet `solve`, implementation `solve_cpu`, worker 0) panicked: the pivot is zero"
    );
    runtime.wait_all().expect("a failure is reported once");
}

#[test]
fn a_kernel_that_returns_an_error_fails_its_task() {
    for (shape, team) in [(EAGER, false), (SHAPES[1], false), (EAGER, true)] {
        let runtime = runtime(shape, 2);
        let divide = runtime.codelet::<(ReadWrite<u64>,), u64>("divide");
        let divide = if team {
            divide.cpu_fork("divide", 2, |call, (value,)| {
                *value = value.checked_div(*call.params).ok_or("division by zero")?;
                Ok::<(), &str>(())
            })
        } else {
            divide.cpu("divide", |call, (value,)| {
                *value = value.checked_div(*call.params).ok_or("division by zero")?;
                Ok::<(), &str>(())
            })
        };
        let (divide, increment) = (divide.build(), increment(&runtime));
        let data = runtime.register(8);
        let sound = runtime.task_with(&divide, 2, (&data,)).submit().expect("the task is sound");
        assert_eq!(runtime.wait(sound).expect("nothing stalls"), Outcome::Done);
        assert!(runtime.is_done(sound));
        let bad = runtime.task_with(&divide, 0, (&data,)).submit().expect("the task is sound");
        let after = runtime.task(&increment, (&data,)).submit().expect("the task is sound");
        let Ok(Outcome::Failed(failure)) = runtime.wait(bad) else { panic!("it divides by zero") };
        assert_eq!((failure.panicked, &*failure.message), (false, "division by zero"));
        assert_eq!(runtime.wait(after).expect("nothing stalls"), Outcome::Cancelled(failure));
        let shown = runtime.wait_all().expect_err("a task failed").to_string();
        assert!(shown.contains(") failed: division by zero"), "{shown}");
    }
}

#[test]
fn a_task_waits_for_all_tasks_of_a_list() {
    let runtime = runtime(EAGER, 2);
    let runs = Arc::new(AtomicUsize::new(0));
    let (counter, seen) = (Arc::clone(&runs), Arc::new(AtomicUsize::new(0)));
    let count = runtime
        .codelet::<(), ()>("count")
        .cpu("count", move |_, ()| {
            counter.fetch_add(1, SeqCst);
        })
        .build();
    let tasks: Vec<_> = (0..20).map(|_| runtime.task(&count, ()).submit().expect("the task is sound")).collect();
    let (counter, noted) = (Arc::clone(&runs), Arc::clone(&seen));
    let look =
        runtime.codelet::<(), ()>("look").cpu("look", move |_, ()| noted.store(counter.load(SeqCst), SeqCst)).build();
    let last = runtime.task(&look, ()).after(&tasks[..10]).after(&tasks[10..]).submit().expect("the task is sound");
    assert_eq!(runtime.wait(last).expect("nothing stalls"), Outcome::Done);
    assert_eq!(seen.load(SeqCst), 20);
    assert!(tasks.iter().all(|task| runtime.is_done(*task)));
    let fail = runtime.codelet::<(), ()>("fail").cpu("fail", |_, ()| panic!("on purpose")).build();
    let failing = runtime.task(&fail, ()).submit().expect("the task is sound");
    let cancelled = runtime.task(&look, ()).after([tasks[0], failing]).submit().expect("the task is sound");
    assert!(matches!(runtime.wait(cancelled), Ok(Outcome::Cancelled(_))));
    assert_eq!(failed(runtime.wait_all()).1, 1);
}

#[test]
fn what_depends_on_a_failure_is_not_run() {
    for shape in SHAPES {
        let runtime = runtime(shape, 2);
        let (bad, good, out) = (runtime.register(0), runtime.register(0), runtime.register(0));
        let (solve, increment) = (failing(&runtime), increment(&runtime));
        let runs = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&runs);
        let copy = runtime
            .codelet::<(Read<u64>, Write<u64>), ()>("copy")
            .cpu("copy", move |_, (from, to)| {
                counter.fetch_add(1, SeqCst);
                *to = *from;
            })
            .build();
        let fails = runtime.task(&solve, (&bad,)).submit().expect("the task is sound");
        let through_data = runtime.task(&copy, (&bad, &out)).submit().expect("the task is sound");
        let further = runtime.task(&increment, (&out,)).submit().expect("the task is sound");
        let shown = runtime.task(&increment, (&good,)).after(fails).submit().expect("the task is sound");
        let after_told = runtime.task(&increment, (&good,)).after(shown).submit().expect("the task is sound");
        let apart = runtime.register(0);
        let runs_on = runtime.task(&increment, (&apart,)).submit().expect("the task is sound");
        for task in [through_data, further, shown, after_told] {
            let Ok(Outcome::Cancelled(cause)) = runtime.wait(task) else { panic!("{task:?} is cancelled") };
            assert_eq!(cause.task, fails.sequence());
        }
        assert!(matches!(runtime.wait(runs_on), Ok(Outcome::Done)));
        assert_eq!(runs.load(SeqCst), 0);
        let (failures, cancelled) = failed(runtime.wait_all());
        assert_eq!((failures.len(), cancelled), (1, 4));

        // A task that waits for one that failed long ago is cancelled too.
        let late = runtime.task(&increment, (&apart,)).after(fails).submit().expect("the task is sound");
        assert!(matches!(runtime.wait(late), Ok(Outcome::Cancelled(_))));
    }
}

#[test]
fn data_is_bad_until_it_is_written_anew() {
    let runtime = runtime(EAGER, 2);
    let data = runtime.register(7);
    let set = runtime.codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (value,)| *value = 40).build();
    let (solve, increment) = (failing(&runtime), increment(&runtime));
    runtime.task(&solve, (&data,)).submit().expect("the task is sound");
    runtime.task(&increment, (&data,)).submit().expect("the task is sound");
    let Err(DataError::Bad(cause)) = runtime.read(&data) else { panic!("the data is bad") };
    assert_eq!(cause.message, "the pivot is zero");
    assert!(matches!(runtime.write(&data), Err(DataError::Bad(_))));
    runtime.task(&set, (&data,)).submit().expect("the task is sound");
    runtime.task(&increment, (&data,)).submit().expect("the task is sound");
    assert_eq!(*runtime.read(&data).expect("the data is good again"), 41);
    let (failures, cancelled) = failed(runtime.wait_all());
    assert_eq!((failures.len(), cancelled), (1, 1));
}

#[test]
fn what_commutes_is_kept_apart_when_some_of_it_is_cancelled() {
    let runtime = runtime(EAGER, 4);
    let inside = Arc::new(AtomicBool::new(false));
    let fail = runtime.codelet::<(), ()>("fail").cpu("fail", |_, ()| panic!("on purpose")).build();
    let add = runtime
        .codelet::<(Commute<u64>,), Arc<AtomicBool>>("add")
        .cpu("add", |context, (sum,)| {
            assert!(!context.params.swap(true, SeqCst), "one at a time");
            (0..20).for_each(|_| thread::yield_now());
            *sum += 1;
            context.params.store(false, SeqCst);
        })
        .build();
    let sum = runtime.register(0);
    let mut fails = 0;
    for round in 0..300 {
        let inside = || Arc::clone(&inside);
        if round % 3 == 0 {
            let failing = runtime.task(&fail, ()).submit().expect("the task is sound");
            // Cancelled on the way: it must not give back a turn at `other` that it never had.
            let other = runtime.register(0);
            runtime.task_with(&add, inside(), (&other,)).after(failing).submit().expect("the task is sound");
            fails += 1;
        }
        runtime.task_with(&add, inside(), (&sum,)).submit().expect("the task is sound");
    }
    let (failures, cancelled) = failed(runtime.wait_all());
    assert_eq!((failures.len(), cancelled), (fails, fails as u64));
    assert_eq!(*runtime.read(&sum).expect("the data is good"), 300);
}

#[test]
fn a_cancelled_task_gives_back_no_turn_that_it_never_had() {
    let runtime = runtime(EAGER, 3);
    let sum = runtime.register(0_u64);
    let (open, gate) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let hold = runtime
        .codelet::<(Commute<u64>,), ()>("hold")
        .cpu("hold", move |_, (sum,)| {
            begin.send(()).expect("the test listens");
            gate.lock().expect("nobody panics").recv().expect("the test opens");
            *sum += 1;
        })
        .build();
    let add = runtime.codelet::<(Commute<u64>,), ()>("add").cpu("add", |_, (sum,)| *sum += 1).build();
    let solve = failing(&runtime);
    let bad = runtime.register(0);
    let fails = runtime.task(&solve, (&bad,)).submit().expect("the task is sound");
    runtime.wait(fails).expect("it ends");
    runtime.task(&hold, (&sum,)).submit().expect("the task is sound");
    begun.recv().expect("the task begins");
    // The turn is taken. This one is cancelled in its submission, and the next must wait all the same.
    runtime.task(&add, (&sum,)).after(fails).submit().expect("the task is sound");
    let next = runtime.task(&add, (&sum,)).submit().expect("the task is sound");
    for _ in 0..200 {
        thread::yield_now();
    }
    open.send(()).expect("the task listens");
    // A cancelled task that would have written the data leaves it bad: that is why the next one does not run.
    let end = runtime.wait(next).expect("it ends");
    assert!(!matches!(end, Outcome::Failed(_)), "{end:?}");
    let (failures, _) = failed(runtime.wait_all());
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(matches!(runtime.read(&sum), Err(DataError::Bad(_))), "one of its tasks was not run");
}

#[test]
fn a_long_chain_is_cancelled_without_overflowing_the_stack() {
    const LENGTH: u64 = 100_000;
    let runtime = runtime(EAGER, 2);
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let fail = runtime
        .codelet::<(), ()>("fail")
        .cpu("fail", move |_, ()| {
            gate.lock().expect("nobody panicked").recv().expect("the test opens");
            panic!("on purpose");
        })
        .build();
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let mut last = runtime.task(&fail, ()).submit().expect("the task is sound");
    for _ in 0..LENGTH {
        last = runtime.task(&nothing, ()).after(last).submit().expect("the task is sound");
    }
    open.send(()).expect("the task listens");
    assert!(matches!(runtime.wait(last), Ok(Outcome::Cancelled(_))));
    assert_eq!(failed(runtime.wait_all()).1, LENGTH);
    // Dependencies through data.
    let data = runtime.register(0);
    let (solve, increment) = (failing(&runtime), increment(&runtime));
    runtime.task(&solve, (&data,)).submit().expect("the task is sound");
    for _ in 0..LENGTH {
        runtime.task(&increment, (&data,)).submit().expect("the task is sound");
    }
    assert_eq!(failed(runtime.wait_all()).1, LENGTH);
}

/// Panics when dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("dropped");
        }
    }
}

#[test]
fn a_panic_beside_a_kernel_does_no_harm() {
    let runtime = runtime(EAGER, 2);
    let drops = runtime.codelet::<(), Bomb>("drops").cpu("drops", |_, ()| {}).build();
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let fail = runtime.codelet::<(), ()>("fail").cpu("fail", |_, ()| std::panic::panic_any(Bomb)).build();
    let called = Arc::new(AtomicUsize::new(0));
    for _ in 0..50 {
        let note = Arc::clone(&called);
        runtime
            .task_with(&drops, Bomb, ())
            .on_end(move |_| {
                note.fetch_add(1, SeqCst);
            })
            .submit()
            .expect("the task is sound");
        runtime.task(&nothing, ()).on_end(|_| panic!("a callback")).submit().expect("the task is sound");
        runtime.task(&nothing, ()).on_end(|_| std::panic::panic_any(Bomb)).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(called.load(SeqCst), 50, "the callback is called although the drop of an argument panicked");
    let task = runtime.task(&fail, ()).submit().expect("the task is sound");
    assert!(matches!(runtime.wait(task), Ok(Outcome::Failed(_))));
    assert_eq!(runtime.stats().iter().map(|worker| worker.tasks).sum::<u64>(), 151);
}

#[test]
fn a_long_callback_is_no_stall() {
    let runtime = builder(EAGER, 1, Vec::new()).quiet_period(Duration::from_millis(250)).build().expect("it starts");
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let (done, wait) = mpsc::channel::<()>();
    let task = runtime.task(&nothing, ()).on_end(move |_| wait.recv().expect("the test lets it go on"));
    let task = task.submit().expect("the task is sound");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| runtime.wait(task));
        stock::let_quiet_periods_pass(&runtime, 3);
        done.send(()).expect("the callback listens");
        assert!(matches!(waiter.join().expect("it waits"), Ok(Outcome::Done)));
    });
}

#[test]
fn a_wait_for_data_that_was_given_up_takes_no_turn() {
    let runtime = builder(EAGER, 2, Vec::new()).quiet_period(Duration::from_millis(250)).build().expect("it starts");
    let data = runtime.register(0_u64);
    let increment = increment(&runtime);
    {
        // No task can access the data while this is held, and nothing else is left to do.
        let mut held = runtime.write(&data).expect("the data is good");
        let task = runtime.task(&increment, (&data,)).submit().expect("the task is sound");
        assert!(matches!(runtime.read(&data), Err(DataError::Stalled(_))));
        let later = runtime.task(&increment, (&data,)).submit().expect("the task is sound");
        for _ in 0..200 {
            thread::yield_now();
        }
        *held += 10;
        let end = runtime.wait_all().expect_err("the data is held");
        assert!(matches!(end, RunError::Stalled(_)), "{end}");
        drop(held);
        for task in [task, later] {
            assert!(matches!(runtime.wait(task), Ok(Outcome::Done)));
        }
    }
    assert_eq!(*runtime.read(&data).expect("the data is good"), 12);
    runtime.wait_all().expect("nothing is left");
}

#[test]
fn what_makes_no_sense_is_not_submitted() {
    let (runtime, other) = (runtime(EAGER, 1), runtime(EAGER, 1));
    let (here, there) = (runtime.register(0_u64), other.register(0_u64));
    let increment = increment(&runtime);
    let copy = runtime.codelet::<(Read<u64>, Write<u64>), ()>("copy").cpu("copy", |_, (from, to)| *to = *from).build();
    let gather = runtime.codelet::<(Many<ReadWrite<u64>>, Read<u64>), ()>("gather").cpu("gather", |_, _| {}).build();
    let cuda = runtime.codelet::<(), ()>("kernel").implementation(Arch::CUDA, "kernel_cuda", |_, ()| {}).build();
    let none = runtime.codelet::<(), ()>("none").build();
    let elsewhere = other.codelet::<(), ()>("elsewhere").cpu("elsewhere", |_, ()| {}).build();
    let task_elsewhere = other.task(&elsewhere, ()).submit().expect("the task is sound");

    let error = |result: Result<_, SubmitError>| result.map(|_| ()).expect_err("it makes no sense").to_string();
    insta::assert_snapshot!(
        error(runtime.task(&increment, (&there,)).submit()),
        @"codelet `increment` was given a handle of another runtime"
    );
    insta::assert_snapshot!(
        error(runtime.task(&elsewhere, ()).submit()),
        @"codelet `elsewhere` is of another runtime"
    );
    insta::assert_snapshot!(
        error(runtime.task(&increment, (&here,)).after(task_elsewhere).submit()),
        @"codelet `increment` was given a task to wait for that is not of the same runtime or recording"
    );
    insta::assert_snapshot!(
        error(runtime.task(&copy, (&here, &here)).submit()),
        @"codelet `copy` was given one handle twice, and writes to it"
    );
    let twice = vec![here.clone(), here.clone()];
    assert!(matches!(runtime.task(&gather, (&twice, &here)).submit(), Err(SubmitError::Aliased { .. })));
    insta::assert_snapshot!(
        error(runtime.task(&cuda, ()).submit()),
        @"codelet `kernel` has implementations for cuda only, and no worker is one of these"
    );
    insta::assert_snapshot!(error(runtime.task(&none, ()).submit()), @"codelet `none` has no implementation");
    assert!(matches!(runtime.read(&there), Err(DataError::Foreign)));
    runtime.wait_all().expect("nothing was submitted");
}

#[test]
fn scratchpads_are_the_runtimes_own_and_named_once() {
    let (runtime, other) = (stock::runtime(EAGER, 1), stock::runtime(EAGER, 1));
    let both = runtime.codelet::<(Scratch<u64>, Many<Scratch<u64>>), ()>("both").cpu("both", |_, _| {}).build();
    let [first, second] = [1, 2].map(|value| runtime.scratchpad(move || value));
    let foreign = other.scratchpad(|| 0);
    let submit = |pad: &Scratchpad<u64>, pads: &[&Scratchpad<u64>]| {
        let pads: Vec<Scratchpad<u64>> = pads.iter().map(|pad| (*pad).clone()).collect();
        runtime.task(&both, (pad, &pads)).submit()
    };
    assert!(matches!(submit(&first, &[&second, &first]), Err(SubmitError::Aliased { .. })));
    assert!(matches!(submit(&first, &[&second, &second]), Err(SubmitError::Aliased { .. })));
    assert!(matches!(submit(&foreign, &[&second]), Err(SubmitError::Foreign { what: "a scratchpad", .. })));
    submit(&first, &[&second]).expect("the task is sound");
    runtime.wait_all().expect("it runs");
}

#[test]
fn an_error_that_panics_when_it_is_dropped_fails_its_task() {
    #[derive(Debug)]
    struct Unlucky;
    impl std::fmt::Display for Unlucky {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("unlucky")
        }
    }
    impl Drop for Unlucky {
        fn drop(&mut self) {
            panic!("the drop of an error");
        }
    }
    let runtime = runtime(EAGER, 1);
    let fail = runtime.codelet::<(), ()>("fail").cpu("fail", |_, ()| Err::<(), _>(Unlucky)).build();
    let task = runtime.task(&fail, ()).submit().expect("the task is sound");
    let outcome = runtime.wait(task).expect("it ends");
    assert!(matches!(&outcome, Outcome::Failed(why) if why.message == "the drop of an error"), "{outcome:?}");
    assert!(runtime.wait_all().is_err(), "it failed");
}

#[test]
fn a_reduction_that_could_not_be_combined_is_usable_after_a_write() {
    for in_order in [false, true] {
        let runtime = runtime(EAGER, 2);
        let combine = |sum: &mut u64, part: u64| {
            assert_ne!(part % 100, 13, "no such number");
            *sum += part;
        };
        let sum = match in_order {
            false => runtime.reduction(1, || 0, combine),
            true => runtime.reduction_in_order(1, || 0, combine),
        };
        let add = runtime.codelet::<(Redux<u64>,), u64>("add").cpu("add", |call, (sum,)| *sum += call.params).build();
        let look = runtime.codelet::<(Read<u64>,), ()>("look").cpu("look", |_, _| {}).build();
        let set = runtime.codelet::<(Write<u64>,), u64>("set").cpu("set", |call, (sum,)| *sum = *call.params).build();
        let add = |number: u64| runtime.task_with(&add, number, (&sum,)).submit().expect("the task is sound");
        let failure = || {
            runtime.task(&look, (&sum,)).submit().expect("the task is sound");
            let (failed, _) = failed(runtime.wait_all());
            assert_eq!((failed.len(), &*failed[0].codelet), (1, "look"));
            failed[0].message.clone()
        };
        add(13);
        assert!(failure().contains("no such number"));
        let lost = failure();
        assert!(lost.contains("are lost"), "whoever reads it later has no value: {lost}");
        // What was added meanwhile is replaced too.
        add(13);
        runtime.task_with(&set, 40, (&sum,)).submit().expect("the task is sound");
        add(1);
        add(1);
        runtime.wait_all().expect("every task runs");
        assert_eq!(*runtime.read(&sum).expect("it is there"), 42, "in order: {in_order}");
        // It fails again as it did the first time.
        add(13);
        assert!(failure().contains("no such number"));
    }
}
