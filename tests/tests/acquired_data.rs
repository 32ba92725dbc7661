//! Callbacks and futures get data in their turn, and guards that the program holds are named when a run stalls.

use sched_host::runtime::{DataError, Plan, ReadData, ReadWrite, RunError, Runtime, WriteData};
use sched_tests::hold::Hold;
use sched_tests::stock::{EAGER, SHAPES, builder, runtime};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn callbacks_have_their_turn_among_tasks() {
    for shape in SHAPES {
        for workers in [1, 3] {
            let runtime = runtime(shape, workers);
            let add = runtime.codelet::<(ReadWrite<u64>,), u64>("add");
            let add = add.cpu("add", |context, (x,)| *x = *x * 3 % 1_000_003 + *context.params).build();
            let data = [0, 1].map(|value| runtime.register(value));
            let seen: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
            let (mut values, mut expected) = ([0, 1], Vec::new());
            for number in 0..200_u64 {
                let place = number as usize % 2;
                let (x, value) = (&data[place], &mut values[place]);
                match number % 7 {
                    3 => {
                        let seen = Arc::clone(&seen);
                        expected.push((number, *value));
                        let note = move |x: Result<ReadData<'_, u64>, DataError>| {
                            seen.lock().unwrap().push((number, *x.expect("it is computed")));
                        };
                        runtime.acquire_read(x, note).expect("it is the runtime's own");
                    }
                    5 => {
                        *value += 1;
                        runtime.acquire_write(x, |x| *x.expect("it is computed") += 1).expect("it is its own");
                    }
                    _ => {
                        *value = *value * 3 % 1_000_003 + number;
                        runtime.task_with(&add, number, (x,)).submit().expect("the task is sound");
                    }
                }
            }
            runtime.wait_all().expect("every task runs, and every callback");
            let mut seen = std::mem::take(&mut *seen.lock().unwrap());
            seen.sort_unstable();
            assert_eq!(seen, expected, "{shape}");
            let ended = data.map(|x| runtime.unregister(x).expect("it is computed").expect("callbacks let go of it"));
            assert_eq!(ended, values);
        }
    }
}

#[test]
fn a_long_row_of_callbacks_needs_no_stack() {
    const COUNT: u64 = 50_000;
    let runtime = runtime(EAGER, 1);
    let nothing = runtime.codelet::<(ReadWrite<u64>,), ()>("nothing").cpu("nothing", |_, _| {}).build();
    let x = runtime.register(0);
    let busy = Hold::new(&runtime).worker();
    runtime.task(&nothing, (&x,)).submit().expect("the task is sound");
    for _ in 0..COUNT {
        runtime.acquire_write(&x, |x| *x.expect("it is computed") += 1).expect("it is the runtime's own");
    }
    drop(busy);
    runtime.wait_all().expect("everything runs");
    assert_eq!(*runtime.read(&x).expect("it is computed"), COUNT);
}

#[test]
fn callbacks_get_parts_and_the_failures_of_data() {
    let runtime = runtime(EAGER, 2);
    let array = runtime.array(vec![1_u64; 100]);
    let halves = array.partition(&Plan::ranges(2)).expect("it has two");
    runtime.acquire_write(&halves[1], |x| x.expect("it is computed").fill(7)).expect("it is the runtime's own");
    assert_eq!(runtime.read(&array).expect("it is computed").iter().sum::<u64>(), 50 + 350);
    let fail = runtime.codelet::<(ReadWrite<u64>,), ()>("fail").cpu("fail", |_, _| Err("unlucky")).build();
    let x = runtime.register(0);
    runtime.task(&fail, (&x,)).submit().expect("the task is sound");
    let (send, receive) = channel();
    runtime.acquire_read(&x, move |x| send.send(x.map(|x| *x)).expect("it is heard")).expect("it is its own");
    let error = receive.recv().expect("it is called").expect_err("the task failed");
    assert!(error.to_string().contains("unlucky"), "{error}");
    let other = self::runtime(EAGER, 1);
    assert!(matches!(other.acquire_read(&x, |_| {}), Err(DataError::Foreign)));
    assert!(matches!(runtime.wait_all(), Err(RunError::Failed { .. })));
}

#[test]
fn a_callback_that_waits_is_an_error_on_any_thread() {
    let runtime = Arc::new(runtime(EAGER, 1));
    let nothing = runtime.codelet::<(ReadWrite<u64>,), ()>("nothing").cpu("nothing", |_, _| {}).build();
    let x = runtime.register(0);
    let wrong = |task: Option<_>| {
        let (seen, (send, receive)) = (Arc::downgrade(&runtime), channel());
        let wait = move |_: Result<WriteData<'_, u64>, DataError>| {
            let runtime = seen.upgrade().expect("it is there");
            let waits = || match task {
                Some(task) => drop(runtime.wait(task)),
                None => drop(runtime.wait_all()),
            };
            let payload = catch_unwind(AssertUnwindSafe(waits)).expect_err("it might wait for itself");
            let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
            send.send(text).expect("it is heard");
        };
        runtime.acquire_write(&x, wait).expect("it is the runtime's own");
        receive
    };
    let here = wrong(None).recv().expect("it was called at once");
    assert!(here.contains("by a callback that has data of the same runtime"), "{here}");
    let busy = Hold::new(&runtime).worker();
    let task = runtime.task(&nothing, (&x,)).submit().expect("the task is sound");
    let receive = wrong(Some(task));
    drop(busy);
    let there = receive.recv().expect("the worker calls it");
    assert!(there.contains("a task is waited for by a callback"), "{there}");
    runtime.wait_all().expect("everything else runs");
}

fn impatient(workers: usize) -> Runtime {
    builder(EAGER, workers, Vec::new()).quiet_period(Duration::from_millis(20)).build().expect("the runtime starts")
}

#[test]
fn a_guard_that_the_waiting_thread_holds_is_named() {
    let runtime = impatient(2);
    let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (x,)| *x += 1).build();
    let x = runtime.register(0);
    let (line, held) = (line!(), runtime.read(&x).expect("it is computed"));
    runtime.task(&add, (&x,)).submit().expect("the task is sound");
    runtime.task(&add, (&x,)).submit().expect("the task is sound");
    let Err(RunError::Stalled(report)) = runtime.wait_all() else { panic!("the guard is held") };
    let [guard] = &report.guards[..] else { panic!("{report}") };
    assert!(guard.is_of_this_thread && !guard.writes && guard.waiting == 1, "{guard:?}");
    assert!(guard.at.contains(file!()) && guard.at.contains(&format!(":{line}:")), "{guard:?}");
    let text = report.to_string();
    assert!(text.contains("the thread that waits holds a guard of data") && text.contains("drop the guard"), "{text}");
    assert_eq!(report.waiting, 2, "{text}");
    drop(held);
    // A loaded machine may be slower than this runtime is patient.
    while let Err(error) = runtime.wait_all() {
        assert!(matches!(error, RunError::Stalled(_)), "{error}");
    }
    assert_eq!(*runtime.read(&x).expect("it is computed"), 2);
}
