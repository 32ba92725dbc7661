//! Recorded graphs run again and again, in order with other tasks, with other parameters and other data.

use sched_host::runtime::{
    Commute, DataError, Outcome, Plan, Read, ReadWrite, Recording, Redux, ReplayError, Runtime, SubmitError, Write,
};
use sched_tests::hold::Hold;
use sched_tests::stock::{EAGER, SHAPES, builder, runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};

type Update = (Read<u64>, ReadWrite<u64>);

/// `to = to * 3 + from + params`, which no other order gives.
fn update(runtime: &Runtime) -> sched_host::runtime::Codelet<Update, u64> {
    let kernel = |context: &sched_host::runtime::Context<'_, u64>, (from, to): (&u64, &mut u64)| {
        *to = to.wrapping_mul(3).wrapping_add(*from).wrapping_add(*context.params);
    };
    runtime.codelet("update").cpu("update", kernel).build()
}

#[test]
fn a_replay_comes_after_what_was_submitted_and_before_what_is() {
    for shape in SHAPES {
        let runtime = runtime(shape, 3);
        let update = update(&runtime);
        let data: Vec<_> = (0..5).map(|number| runtime.register(number)).collect();
        let mut expected: Vec<u64> = (0..5).collect();
        let step = |values: &mut [u64], from: usize, to: usize, add: u64| {
            values[to] = values[to].wrapping_mul(3).wrapping_add(values[from]).wrapping_add(add);
        };
        let tasks: Vec<(usize, usize)> = (0..40).map(|task| (task * 7 % 5, (task * 7 + 1 + task % 4) % 5)).collect();
        let recording = runtime.record(|recorder| {
            tasks.iter().try_for_each(|(from, to)| {
                recorder.task_with(&update, 1, (&data[*from], &data[*to])).submit().map(drop)
            })
        });
        let recording = recording.expect("the tasks are sound");
        assert_eq!((recording.len(), recording.is_running()), (40, false));
        for round in 0..20 {
            let (from, to) = (round % 5, (round + 2) % 5);
            runtime.task_with(&update, 5, (&data[from], &data[to])).submit().expect("the task is sound");
            step(&mut expected, from, to, 5);
            let replay = runtime.replay(&recording).expect("it does not run");
            tasks.iter().for_each(|(from, to)| step(&mut expected, *from, *to, 1));
            // Behind the replay, without waiting for it.
            runtime.task_with(&update, 9, (&data[to], &data[from])).submit().expect("the task is sound");
            step(&mut expected, to, from, 9);
            assert_eq!(runtime.wait(replay).expect("every task runs"), Outcome::Done);
        }
        runtime.wait_all().expect("every task runs");
        let found: Vec<u64> = data.iter().map(|data| *runtime.read(data).expect("the data is good")).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn parts_reductions_and_commuting_tasks_are_replayed() {
    let runtime = runtime(EAGER, 3);
    let add = runtime
        .codelet::<(ReadWrite<[u64]>,), u64>("add")
        .cpu("add", |context, (part,)| part.iter_mut().for_each(|value| *value += context.params))
        .build();
    let sum = runtime
        .codelet::<(Read<[u64]>, Redux<u64>, Commute<Vec<u64>>), ()>("sum")
        .cpu("sum", |_, (part, sum, log)| {
            *sum += part.iter().sum::<u64>();
            log.push(part[0]);
        })
        .build();
    let x = runtime.array(vec![0_u64; 100]);
    let (quarters, halves) = (x.partition(&Plan::ranges(4)).unwrap(), x.partition(&Plan::ranges(2).halo(1)).unwrap());
    let (total, log) = (runtime.reduction(0_u64, || 0, |sum, part| *sum += part), runtime.register(Vec::new()));
    let recording = runtime.record(|recorder| {
        for (number, quarter) in quarters.iter().enumerate() {
            recorder.task_with(&add, number as u64, (quarter,)).submit()?;
        }
        for half in &halves {
            recorder.task(&sum, (half, &total, &log)).submit()?;
        }
        recorder.task_with(&add, 1, (&x,)).submit().map(drop)
    });
    let recording = recording.expect("the tasks are sound");
    let (mut values, mut expected) = (vec![0_u64; 100], 0);
    for _ in 0..10 {
        runtime.run(&recording).expect("every task runs");
        (0..100).for_each(|at| values[at] += at as u64 / 25);
        expected += values[..51].iter().sum::<u64>() + values[49..].iter().sum::<u64>();
        values.iter_mut().for_each(|value| *value += 1);
    }
    assert_eq!(runtime.read(&x).expect("the data is good").to_vec(), values);
    assert_eq!(*runtime.read(&total).expect("the data is good"), expected);
    assert_eq!(runtime.read(&log).expect("the data is good").len(), 20);
}

#[test]
fn a_recording_is_not_replayed_or_changed_while_it_runs() {
    let runtime = runtime(EAGER, 1);
    let free = runtime.codelet::<(), u64>("free").cpu("free", |_, ()| {}).build();
    let busy = Hold::new(&runtime).worker();
    let mut task = None;
    let recording = runtime.record(|recorder| {
        task = Some(recorder.task_with(&free, 1, ()).submit()?);
        Ok::<(), SubmitError>(())
    });
    let recording = recording.expect("the task is sound");
    let task = task.expect("it was captured");
    let replay = runtime.replay(&recording).expect("it does not run");
    assert!(recording.is_running());
    let data = runtime.register(1_u64);
    for refused in [
        runtime.replay(&recording).map(drop),
        recording.set_params(task, 2_u64),
        recording.swap(&data, &runtime.register(2_u64)),
    ] {
        assert!(matches!(refused, Err(ReplayError::Running { tasks: 1 })), "{refused:?}");
    }
    drop(busy);
    runtime.wait(replay).expect("every task runs");
    let refused = recording.set_params(task, 2_u32).expect_err("the parameter is a u64");
    assert_eq!(refused.to_string(), "task 1 of the recording has parameters of another type than `u32`");
    recording.set_params(task, 2_u64).expect("it does not run");
    runtime.run(&recording).expect("every task runs");
    assert_eq!(runtime.stats().iter().map(|worker| worker.tasks).sum::<u64>(), 3, "nothing refused has run");
}

#[test]
fn what_does_not_belong_to_a_recording_is_refused() {
    let (one, other) = (runtime(EAGER, 1), runtime(EAGER, 1));
    let (update, free) = (update(&one), one.codelet::<(), ()>("free").cpu("free", |_, ()| {}).build());
    let (x, y, z) = (one.register(1), one.register(2), one.register(3));
    let record = || one.record(|recorder| recorder.task_with(&update, 0, (&x, &y)).submit().map(drop));
    let recording = record().expect("the task is sound");
    let outside = one.task(&free, ()).submit().expect("the task is sound");
    let text = |refused: Result<(), ReplayError>| refused.expect_err("it is refused").to_string();
    assert_eq!(
        text(other.run(&recording)),
        "a recording is replayed by the runtime that recorded it, and this is another one"
    );
    assert_eq!(text(recording.set_params(outside, 0_u64)), "a task of another recording was passed to a recording");
    assert_eq!(text(recording.swap(&x, &other.register(1))), "a handle of another runtime was passed to a recording");
    assert_eq!(
        text(recording.swap(&z, &one.register(1))),
        "these handles cannot be swapped: the recording names neither"
    );
    let larger = one.register_sized(1_u64, 800);
    assert_eq!(text(recording.swap(&x, &larger)), "these handles cannot be swapped: they differ in size or shape");
    let sum = one.reduction(0_u64, || 0, |sum, part| *sum += part);
    assert_eq!(text(recording.swap(&x, &sum)), "these handles cannot be swapped: one of them is a reduction");
    let mut captured = None;
    let refused = one.record(|recorder| {
        captured = Some(recorder.task(&free, ()).submit()?);
        recorder.task(&free, ()).after(outside).submit().map(drop)
    });
    let captured = captured.expect("the first one was captured");
    assert_eq!(
        refused.unwrap_err().to_string(),
        "codelet `free` was given a task to wait for that is not of the same runtime or recording"
    );
    let refused = one.task(&free, ()).after(captured).submit().expect_err("it is no submitted task");
    assert_eq!(
        refused.to_string(),
        "codelet `free` was given a task to wait for that is not of the same runtime or recording"
    );
    let refused = one.record(|recorder| recorder.task(&free, ()).on_end(|_| {}).submit().map(drop));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "codelet `free` was recorded with a callback, which a recorded task cannot have"
    );
    one.wait_all().expect("every task runs");
}

#[test]
fn data_that_a_scope_lent_is_not_replayed_after_its_end() {
    let runtime = runtime(EAGER, 2);
    let ran = Arc::new(AtomicU64::new(0));
    let noted = Arc::clone(&ran);
    let free = runtime
        .codelet::<(), ()>("free")
        .cpu("free", move |_, ()| {
            noted.fetch_add(1, Relaxed);
        })
        .build();
    let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (value,)| *value += 1).build();
    let mut value = 0;
    let recording: Recording = runtime
        .scope(|scope| {
            let value = scope.lend(&mut value);
            let recording = runtime.record(|recorder| {
                recorder.task(&free, ()).submit()?;
                recorder.task(&add, (&value,)).submit().map(drop)
            });
            let recording = recording.expect("the tasks are sound");
            (0..3).for_each(|_| runtime.run(&recording).expect("every task runs"));
            recording
        })
        .expect("every task runs");
    assert_eq!((value, ran.load(Relaxed)), (3, 3));
    let refused = runtime.run(&recording).expect_err("the scope has ended");
    assert!(matches!(refused, ReplayError::Refused(SubmitError::Loan { .. })), "{refused}");
    runtime.wait_all().expect("nothing is left");
    assert_eq!((value, ran.load(Relaxed)), (3, 3), "nothing has run");
}

#[test]
fn a_failed_task_cancels_what_depends_on_it_and_the_next_replay_runs() {
    for shape in SHAPES {
        let runtime = runtime(shape, 2);
        let fails = Arc::new(AtomicU64::new(1));
        let (source, ran) = (Arc::clone(&fails), Arc::new(AtomicU64::new(0)));
        let make = runtime
            .codelet::<(Write<u64>,), ()>("make")
            .cpu("make", move |_, (x,)| {
                *x = 7;
                if source.load(Relaxed) == 0 { Ok(()) } else { Err("no input") }
            })
            .build();
        let noted = Arc::clone(&ran);
        let copy = runtime
            .codelet::<(Read<u64>, Write<u64>), ()>("copy")
            .cpu("copy", move |_, (x, y)| {
                noted.fetch_add(1, Relaxed);
                *y = *x;
            })
            .build();
        let noted = Arc::clone(&ran);
        let free = runtime
            .codelet::<(), ()>("free")
            .cpu("free", move |_, ()| {
                noted.fetch_add(1, Relaxed);
            })
            .build();
        let (x, y) = (runtime.register(0), runtime.register(0));
        let recording = runtime.record(|recorder| {
            let made = recorder.task(&make, (&x,)).name("make x").submit()?;
            recorder.task(&copy, (&x, &y)).submit()?;
            let behind = recorder.task(&free, ()).after(made).submit()?;
            recorder.task(&free, ()).after([behind]).submit()?;
            recorder.task(&free, ()).submit().map(drop)
        });
        let recording = recording.expect("the tasks are sound");
        let refused = runtime.run(&recording).expect_err("a task fails");
        assert!(matches!(&refused, ReplayError::Failed(why) if why.name.as_deref() == Some("make x")), "{refused}");
        assert_eq!(ran.load(Relaxed), 1, "one task does not depend on it");
        assert!(matches!(runtime.read(&y).map(|y| *y), Err(DataError::Bad(_))));
        let report = runtime.wait_all().expect_err("it is reported").to_string();
        assert!(report.ends_with("3 tasks that depend on what failed were not run"), "{report}");
        fails.store(0, Relaxed);
        runtime.run(&recording).expect("every task runs");
        assert_eq!((ran.load(Relaxed), *runtime.read(&y).expect("it is written anew")), (5, 7));
    }
}

#[test]
fn a_recording_that_is_dropped_while_it_runs_runs_to_its_end() {
    let runtime = runtime(EAGER, 1);
    let count = runtime.codelet::<(ReadWrite<u64>,), ()>("count").cpu("count", |_, (x,)| *x += 1).build();
    let busy = Hold::new(&runtime).worker();
    let x = runtime.register(0);
    let record =
        || runtime.record(|recorder| (0..50).try_for_each(|_| recorder.task(&count, (&x,)).submit().map(drop)));
    let recording = record().expect("the tasks are sound");
    runtime.replay(&recording).expect("it does not run");
    drop(recording);
    drop(busy);
    assert_eq!(*runtime.read(&x).expect("the data is good"), 50);
    runtime.wait_all().expect("every task runs");
    // It lets go of its data with its slots.
    assert_eq!(runtime.unregister(x).expect("the data is good").expect("it is the only handle"), 50);
}

#[test]
fn replays_run_in_the_current_context_with_its_priorities() {
    let runtime = builder(EAGER, 2, Vec::new()).build().expect("the runtime starts");
    let context = runtime.context("narrow").workers([1]).priorities(0..=3).build().expect("it is made");
    let tell = runtime.codelet::<(), ()>("tell").cpu("tell", |context, ()| assert_eq!(context.worker.0, 1)).build();
    let record = |priority| {
        runtime
            .record(|recorder| (0..20).try_for_each(|_| recorder.task(&tell, ()).priority(priority).submit().map(drop)))
    };
    let (fits, too_urgent) = (record(3).expect("the tasks are sound"), record(4).expect("the tasks are sound"));
    for _ in 0..5 {
        let replay = context.with(|| runtime.replay(&fits)).expect("it does not run");
        assert_eq!(runtime.wait(replay).expect("every task runs"), Outcome::Done);
    }
    let refused = context.with(|| runtime.run(&too_urgent)).expect_err("the context ends at 3");
    assert_eq!(refused.to_string(), "codelet `a recording` was given priority 4; context `narrow` has 0 to 3");
    context.wait_all().expect("every task runs");
    assert_eq!(context.stats().finished, 100);
    let deleted = context.clone();
    context.delete().expect("its tasks have ended");
    let refused = deleted.with(|| runtime.run(&fits)).expect_err("it is deleted");
    assert!(matches!(refused, ReplayError::Refused(SubmitError::Deleted { .. })), "{refused}");
}

#[test]
fn an_empty_recording_ends_at_once() {
    let runtime = runtime(EAGER, 1);
    let recording = runtime.record(|_| Ok::<(), SubmitError>(())).expect("nothing fails");
    assert!(recording.is_empty());
    (0..3).for_each(|_| runtime.run(&recording).expect("there is nothing to run"));
    drop(recording);
    runtime.wait_all().expect("nothing is left");
}

/// The first task of a replay is held, others wait for it in the tree or not: some begin without a question by then.
#[test]
fn a_replay_is_cancelled_in_the_middle_and_the_next_one_runs() {
    for (shape, workers) in SHAPES.iter().flat_map(|shape| [1, 3].map(|workers| (*shape, workers))) {
        let runtime = Arc::new(runtime(shape, workers));
        let (ran, cancels) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&ran);
        let count = runtime.codelet::<(ReadWrite<u64>,), ()>("count").cpu("count", move |_, (x,)| {
            counted.fetch_add(1, Relaxed);
            *x += 1;
        });
        let count = count.build();
        let make = runtime.codelet::<(Write<u64>,), ()>("make").cpu("make", |_, (x,)| *x = 0).build();
        let (within, cancelling) = (Arc::downgrade(&runtime), Arc::clone(&cancels));
        let cancel = runtime.codelet::<(ReadWrite<u64>,), ()>("cancel").cpu("cancel", move |_, (x,)| {
            *x += 1;
            if let Some(runtime) = within.upgrade().filter(|_| cancelling.load(Relaxed) == 1) {
                cancelling.store(runtime.cancel_all() + 2, Relaxed);
            }
        });
        let cancel = cancel.build();
        let data: Vec<_> = (0..4).map(|_| runtime.register(0_u64)).collect();
        let recording = runtime.record(|recorder| {
            for _ in 0..25 {
                data.iter().try_for_each(|x| recorder.task(&count, (x,)).submit().map(drop))?;
            }
            recorder.task(&cancel, (&data[0],)).submit()?;
            for _ in 0..25 {
                data.iter().try_for_each(|x| recorder.task(&count, (x,)).submit().map(drop))?;
            }
            Ok::<(), SubmitError>(())
        });
        let recording = recording.expect("the tasks are sound");
        runtime.run(&recording).expect("nothing is cancelled");
        assert_eq!(ran.swap(0, Relaxed), 200);
        cancels.store(1, Relaxed);
        let refused = runtime.run(&recording).expect_err("tasks are cancelled");
        assert!(matches!(&refused, ReplayError::Failed(why) if why.cancelled), "{refused}");
        assert!(cancels.swap(0, Relaxed) >= 2, "it was called");
        let ran_then = ran.swap(0, Relaxed);
        assert!((25..=175).contains(&ran_then), "none of the same data runs behind it: {ran_then}");
        data.iter().for_each(|x| _ = runtime.task(&make, (x,)).submit().expect("the task is sound"));
        runtime.run(&recording).expect("nothing is cancelled any more");
        assert_eq!(ran.load(Relaxed), 200);
    }
}

#[test]
fn a_task_that_fails_in_a_later_replay_is_reported_by_its_name() {
    for shape in SHAPES {
        let runtime = runtime(shape, 2);
        let fails = Arc::new(AtomicU64::new(0));
        let source = Arc::clone(&fails);
        let check = runtime.codelet::<(ReadWrite<u64>,), u64>("check").cpu("check", move |context, (x,)| {
            *x += 1;
            if source.load(Relaxed) == *context.params + 1 { Err("it is bad") } else { Ok(()) }
        });
        let check = check.build();
        let x = runtime.register(0_u64);
        let recording = runtime.record(|recorder| {
            (0..20).try_for_each(|number| {
                recorder.task_with(&check, number, (&x,)).name(format!("check {number}")).submit().map(drop)
            })
        });
        let recording = recording.expect("the tasks are sound");
        runtime.run(&recording).expect("nothing fails");
        fails.store(12, Relaxed);
        let refused = runtime.run(&recording).expect_err("a task fails");
        let ReplayError::Failed(why) = &refused else { panic!("{refused}") };
        assert_eq!(
            (why.name.as_deref(), why.codelet.as_str(), why.message.as_str()),
            (Some("check 11"), "check", "it is bad")
        );
        runtime.wait_all().expect_err("it is reported");
        fails.store(0, Relaxed);
        let make = runtime.codelet::<(Write<u64>,), ()>("make").cpu("make", |_, (x,)| *x = 0).build();
        runtime.task(&make, (&x,)).submit().expect("the task is sound");
        runtime.run(&recording).expect("the data is good again");
        assert_eq!(*runtime.read(&x).expect("the data is good"), 20);
    }
}

/// Another thread cancels while workers begin tasks, with or without a look at their records.
#[test]
fn a_replay_is_cancelled_at_any_moment() {
    for shape in SHAPES {
        let runtime = runtime(shape, 2);
        let ran: Arc<Vec<AtomicU64>> = Arc::new((0..4).map(|_| AtomicU64::new(0)).collect());
        let counted = Arc::clone(&ran);
        let count = runtime.codelet::<(ReadWrite<u64>,), usize>("count").cpu("count", move |context, (x,)| {
            counted[*context.params].fetch_add(1, Relaxed);
            *x += 1;
        });
        let count = count.build();
        let make = runtime.codelet::<(Write<u64>,), ()>("make").cpu("make", |_, (x,)| *x = 0).build();
        let data: Vec<_> = (0..4).map(|_| runtime.register(0_u64)).collect();
        let recording = runtime.record(|recorder| {
            let tasks = (0..200).map(|task| task % 4);
            tasks.into_iter().try_for_each(|x| recorder.task_with(&count, x, (&data[x],)).submit().map(drop))
        });
        let recording = recording.expect("the tasks are sound");
        for round in 0..100_u32 {
            ran.iter().for_each(|ran| ran.store(0, Relaxed));
            data.iter().for_each(|x| _ = runtime.task(&make, (x,)).submit().expect("the task is sound"));
            runtime.wait_all().expect("nothing is cancelled");
            let replay = runtime.replay(&recording).expect("it does not run");
            (0..round).for_each(|_| std::hint::spin_loop());
            runtime.cancel_all();
            let outcome = runtime.wait(replay).expect("it ends");
            let counts: Vec<u64> = ran.iter().map(|ran| ran.load(Relaxed)).collect();
            match outcome {
                Outcome::Done => assert_eq!(counts, [50; 4]),
                Outcome::Cancelled(why) => {
                    assert!(why.cancelled && counts.iter().all(|count| *count <= 50), "{why}: {counts:?}");
                    assert!(counts.iter().sum::<u64>() < 200, "a task that was cancelled did not run");
                }
                Outcome::Failed(why) => panic!("{why}"),
            }
        }
    }
}
