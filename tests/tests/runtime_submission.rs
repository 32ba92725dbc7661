//! Tasks are submitted from any thread, waited for in every way, and report their end.

use sched_core::Arch;
use sched_host::policy::library;
use sched_host::runtime::{
    Commute, Many, Outcome, Read, ReadWrite, Runtime, SubmitError, Submitter, TaskRef, Where, Write,
};
use sched_tests::hold::Hold;
use sched_tests::stock::{self, EAGER, SHAPES, runtime};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;

type Add = (Commute<u64>,);

#[test]
fn several_threads_submit_and_wait_at_once() {
    for shape in SHAPES {
        let runtime = runtime(shape, 3);
        let sum = runtime.register(0_u64);
        let add = runtime.codelet::<Add, u64>("add").cpu("add", |context, (sum,)| *sum += context.params).build();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 1..=250 {
                        runtime.task_with(&add, number, (&sum,)).submit().expect("the task is sound");
                    }
                    runtime.wait_all().expect("every task runs");
                });
            }
        });
        assert_eq!(*runtime.read(&sum).expect("the data is good"), 4 * 250 * 251 / 2);
    }
}

/// As long as others submit, tasks would be in flight.
#[test]
fn a_dropped_runtime_accepts_tasks_of_tasks_only() {
    let runtime = runtime(EAGER, 2);
    let ran = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ran);
    let count = runtime.codelet::<(), ()>("count").cpu("count", move |_, ()| _ = counted.fetch_add(1, SeqCst)).build();
    let inside: Submitter = (*runtime).clone();
    let wait = runtime.codelet::<(), mpsc::Receiver<()>>("wait").cpu("wait", move |context, ()| {
        // Until the other end is dropped.
        let _ = context.params.recv();
        inside.task(&count, ()).submit().expect("a task submits");
    });
    let (wait, outside) = (wait.build(), (*runtime).clone());
    let submitted = thread::scope(|scope| {
        let (began, has_begun) = mpsc::channel();
        let submits = scope.spawn(move || {
            // There is always one that waits.
            let mut last = None;
            let mut submitted = 0;
            loop {
                let (go_on, until) = mpsc::channel();
                match outside.task_with(&wait, until, ()).submit() {
                    Ok(_) => (last, submitted) = (Some(go_on), submitted + 1),
                    Err(refused) => {
                        assert!(matches!(refused, SubmitError::Ended { .. }), "{refused}");
                        drop(last);
                        return submitted;
                    }
                }
                let _ = began.send(());
            }
        });
        has_begun.recv().expect("it submits");
        drop(runtime);
        submits.join().expect("it does not panic")
    });
    assert_eq!(ran.load(SeqCst), submitted, "each task that was accepted has run, and its own");
}

type Fib = sched_host::runtime::Codelet<(), (u64, Arc<AtomicU64>)>;

/// Submits the two halves from inside: the leaves count 1 each.
fn fib(runtime: &Runtime) -> Fib {
    let itself: Arc<OnceLock<Fib>> = Arc::default();
    let inner = Arc::clone(&itself);
    let fib = runtime
        .codelet::<(), (u64, Arc<AtomicU64>)>("fib")
        .cpu("fib", move |context, ()| {
            let (n, leaves) = context.params;
            if *n < 2 {
                leaves.fetch_add(*n, Relaxed);
                return;
            }
            let fib = inner.get().expect("it is set before the first task");
            for part in [n - 1, n - 2] {
                let params = (part, Arc::clone(leaves));
                context.submitter().task_with(fib, params, ()).submit().expect("the task is sound");
            }
        })
        .build();
    let _ = itself.set(fib.clone());
    fib
}

#[test]
fn tasks_submit_tasks() {
    for shape in SHAPES {
        for workers in [1, 2, 4] {
            let runtime = runtime(shape, workers);
            let leaves = Arc::new(AtomicU64::new(0));
            let fib = fib(&runtime);
            runtime.task_with(&fib, (16, Arc::clone(&leaves)), ()).submit().expect("the task is sound");
            runtime.wait_all().expect("every task runs");
            assert_eq!(leaves.load(Relaxed), 987);
        }
    }
}

#[test]
fn a_submitter_that_left_its_task_submits_from_other_threads() {
    let runtime = runtime(EAGER, 2);
    let (send, receive) = mpsc::channel::<Submitter>();
    let lend = runtime
        .codelet::<(), mpsc::Sender<Submitter>>("lend")
        .cpu("lend", |context, ()| context.params.send(context.submitter().clone()).expect("the test listens"))
        .build();
    let fail = runtime.codelet::<(), ()>("fail").cpu("fail", |_, ()| panic!("on purpose")).build();
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    runtime.task_with(&lend, send, ()).submit().expect("the task is sound");
    let submitter = receive.recv().expect("the task sends");
    runtime.wait_all().expect("every task runs");
    let failed = runtime.task(&fail, ()).submit().expect("the task is sound");
    assert!(matches!(runtime.wait(failed), Ok(Outcome::Failed(_))));

    // Each of these ends in its submission: the count of ended tasks must not suffer from the number of threads.
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    submitter.task(&nothing, ()).after(failed).submit().expect("the task is sound");
                    submitter.task(&nothing, ()).submit().expect("the task is sound");
                }
            });
        }
    });
    let end = runtime.wait_all().expect_err("tasks were cancelled");
    assert!(end.to_string().contains("6000 tasks"), "{end}");
}

#[test]
fn a_task_that_has_ended_is_known_to_have_ended() {
    let runtime = runtime(EAGER, 2);
    let done = Arc::new(AtomicUsize::new(0));
    let count = runtime
        .codelet::<(), Arc<AtomicUsize>>("count")
        .cpu("count", |context, ()| {
            context.params.fetch_add(1, SeqCst);
        })
        .build();
    let tasks: Vec<TaskRef> = (0..500)
        .map(|_| runtime.task_with(&count, Arc::clone(&done), ()).submit().expect("the task is sound"))
        .collect();
    for task in tasks.iter().rev() {
        assert!(matches!(runtime.wait(*task), Ok(Outcome::Done)));
    }
    assert_eq!(done.load(SeqCst), 500);
    assert!(matches!(runtime.wait(tasks[0]), Ok(Outcome::Done)), "also when asked again");
    assert_eq!(runtime.stats().iter().map(|worker| worker.tasks).sum::<u64>(), 500);
}

#[test]
fn who_waits_goes_on_after_the_callback() {
    let runtime = runtime(EAGER, 2);
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    for _ in 0..500 {
        let called = Arc::new(AtomicBool::new(false));
        let note = Arc::clone(&called);
        let task = runtime
            .task(&nothing, ())
            .on_end(move |outcome| {
                assert_eq!(*outcome, Outcome::Done);
                thread::yield_now();
                note.store(true, SeqCst);
            })
            .submit()
            .expect("the task is sound");
        runtime.wait(task).expect("it runs");
        assert!(called.load(SeqCst));
    }
}

#[test]
fn a_callback_may_submit() {
    let runtime = runtime(EAGER, 2);
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = runtime
        .codelet::<(), (&str, Arc<Mutex<Vec<&str>>>)>("note")
        .cpu("note", |context, ()| context.params.1.lock().expect("nobody panics").push(context.params.0))
        .build();
    let (send, receive) = mpsc::channel();
    let (again, inner_log) = (note.clone(), Arc::clone(&log));
    let submitter: Submitter = (*runtime).clone();
    runtime
        .task_with(&note, ("first", Arc::clone(&log)), ())
        .on_end(move |_| {
            let task = submitter.task_with(&again, ("second", inner_log), ()).submit();
            send.send(task.expect("the task is sound")).expect("the test listens");
        })
        .submit()
        .expect("the task is sound");
    runtime.wait_all().expect("every task runs");
    assert_eq!(*log.lock().expect("nobody panics"), ["first", "second"]);
    assert!(matches!(runtime.wait(receive.recv().expect("it was sent")), Ok(Outcome::Done)));
}

#[test]
fn the_application_takes_its_turn_at_data() {
    let runtime = runtime(EAGER, 2);
    let data = runtime.register(vec![0_u64; 4]);
    let add = runtime
        .codelet::<(ReadWrite<Vec<u64>>,), u64>("add")
        .cpu("add", |context, (data,)| data.iter_mut().for_each(|value| *value += context.params))
        .build();
    let submit = |number| runtime.task_with(&add, number, (&data,)).submit().expect("the task is sound");
    submit(1);
    submit(2);
    {
        let mut values = runtime.write(&data).expect("the data is good");
        assert_eq!(*values, [3; 4]);
        let later = submit(100);
        values[0] = 10;
        drop(values);
        assert!(matches!(runtime.wait(later), Ok(Outcome::Done)));
    }
    {
        let values = runtime.read(&data).expect("the data is good");
        let also = runtime.read(&data).expect("the data is good");
        assert_eq!((*values).clone(), [110, 103, 103, 103]);
        assert_eq!(*also, *values, "readers do not wait for each other");
        submit(1);
        assert_eq!(values[0], 110, "the task waits for the readers");
    }
    let other = data.clone();
    let data = runtime.unregister(data).expect("the data is good").expect_err("there is another handle");
    drop(other);
    assert_eq!(runtime.unregister(data).expect("the data is good").expect("it was the last"), [111, 104, 104, 104]);
}

#[test]
fn threads_take_turns_at_data() {
    let runtime = runtime(EAGER, 2);
    let sum = runtime.register(0_u64);
    let add = runtime.codelet::<Add, ()>("add").cpu("add", |_, (sum,)| *sum += 1).build();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..200 {
                    *runtime.write(&sum).expect("the data is good") += 1;
                    runtime.task(&add, (&sum,)).submit().expect("the task is sound");
                    assert!(*runtime.read(&sum).expect("the data is good") > 0);
                }
            });
        }
    });
    assert_eq!(*runtime.read(&sum).expect("the data is good"), 1200);
}

#[test]
fn handles_may_go_before_their_tasks() {
    struct Noisy(Arc<AtomicUsize>);
    impl Drop for Noisy {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let runtime = runtime(EAGER, 2);
    let dropped = Arc::new(AtomicUsize::new(0));
    let touch = runtime
        .codelet::<(ReadWrite<Noisy>,), ()>("touch")
        .cpu("touch", |_, (noisy,)| assert!(noisy.0.load(SeqCst) < 100, "this one is not dropped yet"))
        .build();
    for _ in 0..100 {
        let data = runtime.register(Noisy(Arc::clone(&dropped)));
        runtime.task(&touch, (&data,)).submit().expect("the task is sound");
        runtime.task(&touch, (&data,)).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(dropped.load(SeqCst), 100, "data goes with its last task");
}

#[test]
fn a_task_reads_any_number_of_handles() {
    let runtime = runtime(EAGER, 2);
    let parts: Vec<_> = (0..20_u64).map(|number| runtime.register(number)).collect();
    let total = runtime.register(0_u64);
    let double = runtime.codelet::<(ReadWrite<u64>,), ()>("double").cpu("double", |_, (value,)| *value *= 2).build();
    let sum = runtime
        .codelet::<(Many<Read<u64>>, Write<u64>), ()>("sum")
        .cpu("sum", |_, (parts, total)| *total = parts.into_iter().sum())
        .build();
    for part in &parts {
        runtime.task(&double, (part,)).submit().expect("the task is sound");
    }
    // A handle may occur twice if no access writes.
    let mut twice = parts.clone();
    twice.push(parts[19].clone());
    runtime.task(&sum, (&twice, &total)).submit().expect("the task is sound");
    for part in &parts {
        runtime.task(&double, (part,)).submit().expect("the task is sound");
    }
    assert_eq!(*runtime.read(&total).expect("the data is good"), 2 * (190 + 19));
    assert_eq!(*runtime.read(&parts[3]).expect("the data is good"), 12);
}

#[test]
fn one_worker_takes_tasks_by_priority() {
    let runtime = runtime(EAGER, 1);
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = runtime
        .codelet::<(), (i32, Arc<Mutex<Vec<i32>>>)>("note")
        .cpu("note", |context, ()| context.params.1.lock().expect("nobody panics").push(context.params.0))
        .build();
    let held = Hold::new(&runtime).worker();
    for priority in [0, 5, -3, 5, 9] {
        let params = (priority, Arc::clone(&log));
        runtime.task_with(&note, params, ()).priority(priority).submit().expect("the task is sound");
    }
    drop(held);
    runtime.wait_all().expect("every task runs");
    assert_eq!(*log.lock().expect("nobody panics"), [9, 5, 5, 0, -3]);
}

#[test]
fn a_restricted_task_runs_where_it_may_under_every_policy() {
    for shipped in library() {
        let runtime = Runtime::builder().policy(shipped.name).registry(stock::registry(Vec::new())).workers(3);
        let runtime = runtime.bind(false).build().expect("it starts");
        let wrong = Arc::new(AtomicU64::new(0));
        let note = |params: &(Vec<u32>, Arc<AtomicU64>), worker: u32| {
            let (allowed, wrong) = params;
            wrong.fetch_add(u64::from(!allowed.contains(&worker)), Relaxed);
        };
        let check = runtime
            .codelet::<(), (Vec<u32>, Arc<AtomicU64>)>("check")
            .cpu("check", move |context, ()| note(context.params, context.worker.0))
            .build();
        // Pauses let workers fall asleep, so that wakes count too.
        for round in 0..4 {
            for task in 0..30 {
                let allowed = match task % 3 {
                    0 => vec![0, 1, 2],
                    1 => vec![(task / 3 + round) % 3],
                    _ => vec![0, 2],
                };
                let builder =
                    runtime.task_with(&check, (allowed.clone(), Arc::clone(&wrong)), ()).priority(task as i32 % 2);
                let builder = if allowed.len() < 3 { builder.only_on(Where::workers(allowed)) } else { builder };
                builder.submit().expect("somebody may execute it");
            }
            runtime.wait_all().unwrap_or_else(|error| panic!("{}: {error:?}", shipped.name));
        }
        assert_eq!(wrong.load(Relaxed), 0, "{}", shipped.name);
        assert_eq!(runtime.faults(), [], "{}", shipped.name);
    }
}

#[test]
fn codelets_and_settings_of_the_runtime_restrict_too_and_all_of_them_hold() {
    let builder =
        Runtime::builder().policy_value(stock::policy(EAGER)).registry(stock::registry(Vec::new())).workers(3);
    let builder = builder.bind(false).only_on("b", Where::workers([1, 2])).sched_data("b", 7);
    let runtime = builder.build().expect("it starts");
    let ran = Arc::new(Mutex::new(Vec::new()));
    let codelet = |name: &str, places: Where| {
        let ran = Arc::clone(&ran);
        let note = move |worker: u32| ran.lock().expect("nobody panics").push(worker);
        let codelet = runtime.codelet::<(), ()>(name).cpu(name, move |context, ()| note(context.worker.0));
        codelet.only_on(places).build()
    };
    let (a, b) = (codelet("a", Where::worker(2)), codelet("b", Where::arch(Arch::CPU).or_workers([0])));
    for _ in 0..8 {
        runtime.task(&a, ()).submit().expect("worker 2 may");
        runtime.task(&b, ()).only_on(Where::workers([0, 2])).submit().expect("worker 2 may");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(*ran.lock().expect("nobody panics"), [2; 16]);

    let refused = |codelet, places: Where| runtime.task(codelet, ()).only_on(places).submit().expect_err("nobody may");
    let message = refused(&a, Where::worker(0)).to_string();
    assert_eq!(message, "codelet `a` is restricted to 2 and 0: no worker there can execute it");
    let message = refused(&b, Where::arch(Arch::CUDA).or_workers([7])).to_string();
    assert_eq!(message, "codelet `b` is restricted to cpu+0 and 1-2 and cuda+7: no worker there can execute it");
    runtime.wait_all().expect("a refused task leaves nothing behind");
}
