//! Start and end of runtimes, also with work left.

use sched_core::Offer;
use sched_host::context::ContextError;
use sched_host::runtime::{Context, Handle, ReadWrite, ReplayError, Runtime, Submitter, Write};
use sched_tests::bad::Bad;
use sched_tests::stock::{EAGER, SHAPES, builder, policy, runtime};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn runtimes_begin_and_end_hundreds_of_times() {
    let runs = Arc::new(AtomicUsize::new(0));
    for round in 0..300 {
        let runtime = runtime(SHAPES[round % SHAPES.len()], 1 + round % 3);
        let counter = Arc::clone(&runs);
        let count = runtime
            .codelet::<(), ()>("count")
            .cpu("count", move |_, ()| {
                counter.fetch_add(1, SeqCst);
            })
            .build();
        for _ in 0..round % 5 {
            runtime.task(&count, ()).submit().expect("the task is sound");
        }
        // Every other one is not waited for: its end does.
        if round % 2 == 0 {
            runtime.wait_all().expect("every task runs");
        }
    }
    assert_eq!(runs.load(SeqCst), 600);
}

#[test]
fn several_runtimes_work_side_by_side() {
    let runtimes: Vec<_> = SHAPES.iter().map(|shape| runtime(shape, 2)).collect();
    let sums: Vec<_> = runtimes
        .iter()
        .map(|runtime| {
            let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (sum,)| *sum += 1).build();
            let sum = runtime.register(0_u64);
            for _ in 0..500 {
                runtime.task(&add, (&sum,)).submit().expect("the task is sound");
            }
            sum
        })
        .collect();
    for (runtime, sum) in runtimes.iter().zip(&sums) {
        assert_eq!(*runtime.read(sum).expect("the data is good"), 500);
    }
}

#[test]
fn the_end_waits_for_what_is_left() {
    for shape in SHAPES {
        let runs = Arc::new(AtomicUsize::new(0));
        {
            let runtime = runtime(shape, 2);
            let chain = runtime.register(0_usize);
            let counter = Arc::clone(&runs);
            let step = runtime
                .codelet::<(ReadWrite<usize>,), ()>("step")
                .cpu("step", move |_, (step,)| {
                    *step += 1;
                    counter.fetch_add(1, SeqCst);
                })
                .build();
            for _ in 0..2000 {
                runtime.task(&step, (&chain,)).submit().expect("the task is sound");
            }
        }
        assert_eq!(runs.load(SeqCst), 2000);
    }
}

#[test]
fn a_submitter_may_outlive_its_runtime() {
    let runs = Arc::new(AtomicUsize::new(0));
    let runtime = runtime(EAGER, 2);
    let counter = Arc::clone(&runs);
    let count = runtime
        .codelet::<(), ()>("count")
        .cpu("count", move |_, ()| {
            counter.fetch_add(1, SeqCst);
        })
        .build();
    let submitter: Submitter = (*runtime).clone();
    submitter.task(&count, ()).submit().expect("the task is sound");
    drop(runtime);
    let late = submitter.task(&count, ()).submit().expect_err("nobody is left to run it");
    assert_eq!(late.to_string(), "codelet `count` was submitted to a runtime that has ended");
    assert!(submitter.task(&count, ()).priority(3).submit().is_err_and(|error| error == late), "with a priority too");
    let default = submitter.default_context();
    for error in [default.swap_policy("tree-eager").err(), submitter.context("late").build().err()] {
        assert!(matches!(error, Some(ContextError::Ended { .. })), "{error:?}");
    }
    default.wait_all().expect("nothing is left to wait for");
    drop((submitter, default, count));
    assert_eq!(runs.load(SeqCst), 1);
    assert_eq!(Arc::strong_count(&runs), 1, "the codelet is gone");
}

/// Threads submit while another drops the runtime: what was accepted has run when the last of them is refused.
#[test]
fn what_is_accepted_while_the_runtime_ends_runs() {
    #[derive(Clone, Copy, PartialEq)]
    enum Way {
        Plain,
        InAnother,
        WithCallback,
        Replay,
    }
    for (round, way) in (0..400).zip([Way::Plain, Way::InAnother, Way::WithCallback, Way::Replay].iter().cycle()) {
        let runtime = runtime(EAGER, 2);
        let other = runtime.context("another").build().expect("there is room");
        let (ran, accepted) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let counter = Arc::clone(&ran);
        let count = runtime.codelet::<(), ()>("count").cpu("count", move |_, ()| _ = counter.fetch_add(1, SeqCst));
        let count = count.build();
        let submit = |submitter: &Submitter| -> Result<usize, String> {
            let task = submitter.task(&count, ());
            let task = match way {
                Way::InAnother => task.context(&other),
                Way::WithCallback => task.on_end(|_| ()),
                _ => task,
            };
            task.submit().map(|_| 1).map_err(|error| error.to_string())
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let submitter: Submitter = (*runtime).clone();
                let recording =
                    runtime.record(|graph| (0..2).try_for_each(|_| graph.task(&count, ()).submit().map(drop)));
                let (recording, accepted, submit) = (recording.expect("it is sound"), &accepted, &submit);
                scope.spawn(move || {
                    let run = || match way {
                        Way::Replay => match submitter.replay(&recording) {
                            Ok(_) => Ok(2),
                            // The last one has not ended.
                            Err(ReplayError::Running { .. }) => Ok(0),
                            Err(error) => Err(error.to_string()),
                        },
                        _ => submit(&submitter),
                    };
                    let refused = loop {
                        match run() {
                            Ok(tasks) => _ = accepted.fetch_add(tasks, SeqCst),
                            Err(refused) => break refused,
                        }
                    };
                    assert!(refused.contains("has ended"), "{refused}");
                });
            }
            while accepted.load(SeqCst) < round {
                std::thread::yield_now();
            }
            drop(runtime);
        });
        assert_eq!(ran.load(SeqCst), accepted.load(SeqCst), "round {round}");
    }
}

#[test]
fn a_task_may_drop_its_runtime() {
    let place: Arc<Mutex<Option<Runtime>>> = Arc::default();
    let (shown, hears) = std::sync::mpsc::channel();
    let mut held = place.lock().expect("nobody panicked");
    let runtime = runtime(EAGER, 2);
    let (its, after) = (Arc::clone(&place), shown.clone());
    let last =
        runtime.codelet::<(), ()>("last").cpu("last", move |_, ()| shown.send("ran").expect("it is heard")).build();
    let ends = runtime
        .codelet::<(), ()>("ends")
        .cpu("ends", move |context, ()| {
            context.submitter().task(&last, ()).submit().expect("the runtime has not ended");
            drop(its.lock().expect("nobody panicked").take());
            after.send("went on").expect("it is heard");
        })
        .build();
    runtime.task(&ends, ()).submit().expect("the task is sound");
    drop(ends);
    *held = Some(runtime);
    drop(held);
    let mut heard: Vec<&str> = hears.iter().collect();
    heard.sort_unstable();
    assert_eq!(heard, ["ran", "went on"], "both tasks ran, and nothing of the runtime is left");
}

#[test]
fn a_task_that_would_wait_for_itself_is_reported() {
    let runtime = Arc::new(runtime(EAGER, 2));
    let data = runtime.register(1_u64);
    let waits = |name: &str, wait: fn(&Runtime, &Handle<u64>)| {
        let (inner, own) = (Arc::downgrade(&runtime), data.clone());
        let kernel = move |_: &Context<'_, ()>, _: (&mut u64,)| wait(&inner.upgrade().expect("it is there"), &own);
        let codelet = runtime.codelet::<(ReadWrite<u64>,), ()>(name).cpu(name, kernel).build();
        runtime.task(&codelet, (&data,)).submit().expect("the task is sound");
        let shown = runtime.wait_all().expect_err("it cannot wait").to_string();
        // The data is good again for the next one.
        let fix = runtime.codelet::<(Write<u64>,), ()>("fix").cpu("fix", |_, (data,)| *data = 1).build();
        runtime.task(&fix, (&data,)).submit().expect("the task is sound");
        runtime.wait_all().expect("the data is written again");
        shown
    };
    let all = waits("all", |runtime, _| runtime.wait_all().expect("never reached"));
    assert!(
        all.ends_with("all tasks are waited for by a task of the same runtime, which might wait for itself"),
        "{all}"
    );
    for shown in [
        waits("read", |runtime, data| drop(runtime.read(data))),
        waits("write", |runtime, data| drop(runtime.write(data))),
        waits("unregister", |runtime, data| drop(runtime.unregister(data.clone()))),
    ] {
        assert!(
            shown.ends_with("data is waited for by a task of the same runtime, which might wait for itself"),
            "{shown}"
        );
    }
}

#[test]
fn a_stalled_runtime_lets_go_of_what_it_has() {
    let held = Arc::new(());
    for _ in 0..5 {
        let builder =
            builder(r#"bad what="hoard" { fifo { eager { each "worker" { worker } } } }"#, 2, vec![Offer::of::<Bad>()]);
        let runtime = builder.quiet_period(Duration::from_millis(20)).build().expect("it starts");
        let keep = runtime.codelet::<(), Arc<()>>("keep").cpu("keep", |_, ()| {}).build();
        for _ in 0..100 {
            runtime.task_with(&keep, Arc::clone(&held), ()).submit().expect("the task is sound");
        }
        let end = runtime.wait_all().expect_err("nothing moves").to_string();
        // Whether its silence is seen at a push depends on who slept then; who holds the tasks does not.
        let found = ["100 are in the tree", "node `bad` (bad of test) holds 100 tasks", "look at `bad` first: "];
        assert!(found.iter().all(|line| end.contains(line)), "{end}");
    }
    assert_eq!(Arc::strong_count(&held), 1);
    // Slots of tasks that nobody ran serve the next runtime.
    let runtime = runtime(EAGER, 2);
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    for _ in 0..2000 {
        runtime.task(&nothing, ()).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
}

#[test]
fn a_runtime_that_stalls_before_a_lease_comes_lets_go_of_it() {
    let held = Arc::new(());
    let runtime = builder(EAGER, 1, Vec::new()).quiet_period(Duration::from_millis(20)).build().expect("it starts");
    let nobody = runtime.context("nobody").policy_value(policy(EAGER)).workers([]).build().expect("it is sound");
    let keep = runtime.codelet::<(ReadWrite<Arc<()>>,), ()>("keep").cpu("keep", |_, _| {}).build();
    let value = runtime.register(Arc::clone(&held));
    runtime.task(&keep, (&value,)).context(&nobody).submit().expect("it waits for a worker");
    let kept = Arc::clone(&held);
    runtime.lease_read(&value, move |_| drop(kept)).expect("it is the runtime's own");
    drop((value, keep, nobody, runtime));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_hundred_thousand_tasks() {
    for shape in SHAPES {
        let runtime = runtime(shape, 4);
        let runs = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&runs);
        let count = runtime
            .codelet::<(), ()>("count")
            .cpu("count", move |_, ()| {
                counter.fetch_add(1, Relaxed);
            })
            .build();
        for _ in 0..100_000 {
            runtime.task(&count, ()).submit().expect("the task is sound");
        }
        runtime.wait_all().expect("every task runs");
        assert_eq!(runs.load(Relaxed), 100_000);
    }
}

#[test]
fn more_workers_than_a_process_can_have_are_refused() {
    let error =
        builder(EAGER, 100_000, Vec::new()).build().map(|_| ()).expect_err("100 000 threads would end the process");
    assert_eq!(error.to_string(), "100000 workers were asked for, expected at most 8192");
}

#[test]
fn a_quiet_period_of_0_is_refused_and_the_longest_one_never_ends() {
    let error = builder(EAGER, 1, Vec::new()).quiet_period(Duration::ZERO).build().map(|_| ());
    let error = error.expect_err("every run would have stalled");
    assert_eq!(error.to_string(), "the quiet period is 0, after which every run would be reported as stalled");
    for period in [Duration::MAX, Duration::from_nanos(u64::MAX)] {
        let runtime = builder(EAGER, 2, Vec::new()).quiet_period(period).build().expect("it starts");
        let add = runtime.codelet::<(ReadWrite<u32>,), ()>("add").cpu("add", |_, (sum,)| *sum += 1).build();
        let sum = runtime.register(0_u32);
        for _ in 0..100 {
            runtime.task(&add, (&sum,)).submit().expect("the task is sound");
        }
        runtime.wait_all().expect("every task runs");
        assert_eq!(*runtime.read(&sum).expect("it was computed"), 100);
    }
}
