//! Callbacks are called by the thread that ends a task, a worker or one of the program, and may do the same on both.

use sched_host::runtime::{Context, Handle, Lease, Outcome, ReadWrite, Runtime, WhenFull, Write};
use sched_tests::stock::{EAGER, builder, policy};
use std::cell::{OnceCell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

/// A runtime that takes one task at a time.
fn bounded() -> Arc<Runtime> {
    Arc::new(builder(EAGER, 1, Vec::new()).bound_tasks(1, WhenFull::Wait).build().expect("the runtime starts"))
}

#[test]
fn what_a_callback_submits_is_taken_on_any_thread() {
    let runtime = bounded();
    let set = runtime.codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (x,)| *x += 1).build();
    let x = runtime.register(0);
    let (send, receive) = channel();
    let submit = || {
        let (runtime, set, x, send) = (Arc::downgrade(&runtime), set.clone(), x.clone(), send.clone());
        move || {
            let runtime = runtime.upgrade().expect("it is there");
            send.send(runtime.task(&set, (&x,)).submit().map(|_| ())).expect("it is heard");
        }
    };
    // This thread holds the data, so it is the one that lets go of it.
    let held = runtime.write(&x).expect("it is computed");
    let (callback, of_access) = (submit(), submit());
    let task = runtime.task(&set, (&x,)).on_end(move |_| callback()).submit().expect("there is room");
    assert!(runtime.cancel(task));
    drop(held);
    receive.recv().expect("it is called").expect("the task whose end is told is not over before");
    runtime.wait_all().expect("every task runs");
    let held = runtime.write(&x).expect("it is computed");
    runtime.acquire_write(&x, move |_| of_access()).expect("it is its own");
    runtime.task(&set, (&x,)).submit().expect("there is room");
    drop(held);
    receive.recv().expect("it is called").expect("the task behind it waits for its return");
    runtime.wait_all().expect("every task runs");
    let held = runtime.write(&x).expect("it is computed");
    let of_lease = submit();
    runtime.lease_write(&x, move |_| of_lease()).expect("it is its own");
    runtime.task(&set, (&x,)).submit().expect("there is room");
    drop(held);
    receive.recv().expect("it is called").expect("the task behind it waits for its return");
    runtime.wait_all().expect("every task runs");
    assert_eq!(*runtime.read(&x).expect("it is computed"), 5);
}

#[test]
fn arguments_may_submit_when_they_are_dropped() {
    /// Submits a task when it is dropped.
    struct Submits(Box<dyn Fn() + Send>);
    impl Drop for Submits {
        fn drop(&mut self) {
            self.0();
        }
    }
    let runtime = bounded();
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    let fail = runtime.codelet::<(), Submits>("fail").cpu("fail", |_, ()| Err("unlucky")).build();
    let (send, receive) = channel();
    let inner = Arc::downgrade(&runtime);
    let submit = move || {
        let runtime = inner.upgrade().expect("it is there");
        send.send(runtime.task(&nothing, ()).submit().map(|_| ())).expect("it is heard");
    };
    runtime.task_with(&fail, Submits(Box::new(submit)), ()).submit().expect("there is room");
    receive.recv().expect("they are dropped").expect("the task that they belong to is not over before");
    assert!(runtime.wait_all().is_err(), "it failed");
}

#[test]
fn callbacks_have_the_context_of_their_task_on_any_thread() {
    let runtime = Arc::new(builder(EAGER, 2, Vec::new()).build().expect("the runtime starts"));
    let other = runtime.context("other").policy_value(policy(EAGER)).workers([1]).build();
    let other = other.expect("the policy is sound");
    let set = runtime.codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (x,)| *x += 1).build();
    let x = runtime.register(0);
    let held = runtime.write(&x).expect("it is computed");
    let (inner, again) = (Arc::downgrade(&runtime), set.clone());
    let callback = move |_: &Outcome| {
        let runtime = inner.upgrade().expect("it is there");
        let y = runtime.register(0);
        runtime.task(&again, (&y,)).submit().expect("the task is sound");
        let waits = catch_unwind(AssertUnwindSafe(|| drop(runtime.wait_all())));
        let text = waits.expect_err("it would wait for itself").downcast_ref::<String>().cloned();
        assert!(text.is_some_and(|text| text.contains("which might wait for itself")));
        runtime.task(&again, (&y,)).submit().expect("the task is sound");
    };
    let task = runtime.task(&set, (&x,)).context(&other).on_end(callback).submit().expect("the task is sound");
    assert!(runtime.cancel(task));
    drop(held);
    runtime.wait_all().expect("the tasks of the callback run");
    assert_eq!(other.stats().submitted, 3, "its own, and two of its callback");
}

#[test]
fn a_callback_may_drop_the_runtime_on_any_thread() {
    let runtime = builder(EAGER, 1, Vec::new()).build().expect("the runtime starts");
    // Before its drop takes what is left for stalled, it asks.
    assert!(runtime.quiet_hook(|_| true));
    let (send, receive) = channel();
    let tell = move |_: &Context<'_>, (x,): (&mut u64,)| {
        *x = 1;
        send.send(()).expect("it is heard");
    };
    let tell = runtime.codelet::<(Write<u64>,), ()>("tell").cpu("tell", tell).build();
    let x = runtime.register(0);
    let (give, take) = channel();
    runtime.lease_write(&x, move |lease| give.send(lease).expect("it is taken")).expect("it is its own");
    let lease = take.recv().expect("it has come");
    let place: Arc<Mutex<Option<Runtime>>> = Arc::default();
    let ends = Arc::clone(&place);
    let callback = move |_: &Outcome| drop(ends.lock().unwrap().take());
    let task = runtime.task(&tell, (&x,)).on_end(callback).submit().expect("the task is sound");
    runtime.task(&tell, (&x,)).submit().expect("the task is sound");
    assert!(runtime.cancel(task));
    drop(tell);
    *place.lock().unwrap() = Some(runtime);
    drop(lease);
    receive.recv().expect("the task behind it runs");
}

/// What a thread keeps for itself may be the last to name a runtime, or hold the turn that others wait for.
#[test]
fn threads_end_with_what_they_keep() {
    thread_local! {
        static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
        static LEASE: RefCell<Option<Lease<Handle<u64>>>> = const { RefCell::new(None) };
    }
    for is_worker in [false, true] {
        let (send, receive) = channel();
        let body = move || {
            let builder = builder(EAGER, 2, Vec::new());
            let builder = if is_worker { builder.main_worker() } else { builder };
            let use_it = |runtime: &OnceCell<Runtime>| {
                let runtime = runtime.get_or_init(|| builder.build().expect("the runtime starts"));
                let tell = move |_: &Context<'_>, (x,): (&mut u64,)| {
                    *x += 1;
                    send.send(*x).expect("it is heard");
                };
                let tell = runtime.codelet::<(ReadWrite<u64>,), ()>("tell").cpu("tell", tell).build();
                let x = runtime.register(0);
                runtime.task(&tell, (&x,)).submit().expect("the task is sound");
                assert_eq!(*runtime.read(&x).expect("it is computed"), 1);
                runtime.task(&tell, (&x,)).submit().expect("the task is sound");
            };
            RUNTIME.with(use_it);
        };
        thread::spawn(body).join().expect("the thread ends");
        assert_eq!(receive.iter().collect::<Vec<u64>>(), [1, 2]);
    }
    let runtime = Arc::new(builder(EAGER, 2, Vec::new()).build().expect("the runtime starts"));
    let (inner, (send, receive)) = (Arc::clone(&runtime), channel());
    let body = move || {
        let x = inner.register(0);
        inner.lease_write(&x, drop).expect("it is its own");
        inner.lease_read(&x, |lease| LEASE.set(Some(lease))).expect("it is its own");
        inner.lease_write(&x, move |_| send.send(()).expect("it is heard")).expect("it is its own");
    };
    thread::spawn(body).join().expect("the thread ends");
    receive.recv().expect("the next one has its turn");
    runtime.wait_all().expect("nothing is left");
}
