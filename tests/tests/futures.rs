//! Tasks and data are awaited as futures, by any executor.

use sched_host::runtime::{DataError, Outcome, ReadWrite, Runtime};
use sched_tests::hold::Hold;
use sched_tests::stock::{EAGER, SHAPES, runtime};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread, AtomicU64);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, SeqCst);
        self.0.unpark();
    }
}

fn unpark() -> Arc<Unpark> {
    Arc::new(Unpark(thread::current(), AtomicU64::new(0)))
}

/// The simplest executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let (waker, mut future) = (unpark().into(), pin!(future));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// All results, in order.
async fn all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *result = Some(value);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}

#[test]
fn tasks_and_data_are_awaited_in_their_order() {
    for shape in SHAPES {
        for workers in [1, 3] {
            let runtime = runtime(shape, workers);
            let add = runtime
                .codelet::<(ReadWrite<u64>,), u64>("add")
                .cpu("add", |context, (x,)| match *context.params {
                    13 => Err("unlucky"),
                    number => {
                        *x += number;
                        Ok(())
                    }
                })
                .build();
            let data: Vec<_> = (0..20).map(|_| runtime.register(0)).collect();
            let seen = block_on(async {
                let mut ended = Vec::new();
                let mut read = Vec::new();
                for (number, x) in (0..).zip(&data) {
                    let task = runtime.task_with(&add, number, (x,)).submit().expect("the task is sound");
                    ended.push(runtime.ended(task));
                    read.push(runtime.read_async(x));
                    runtime.task_with(&add, 100, (x,)).submit().expect("the task is sound");
                }
                let outcomes = all(ended).await;
                assert_eq!(outcomes.iter().filter(|outcome| **outcome != Outcome::Done).count(), 1);
                // Each is dropped as soon as it is there, so that the tasks behind go on.
                all(read.into_iter().map(async |read| read.await.map(|x| *x)).collect()).await
            });
            for (number, seen) in (0..).zip(seen) {
                match seen {
                    Ok(value) => assert_eq!(value, number, "the task behind comes later"),
                    Err(error) => assert!(number == 13 && matches!(error, DataError::Bad(_)), "{error}"),
                }
            }
            assert!(runtime.wait_all().is_err(), "13 has failed");
        }
    }
}

#[test]
fn futures_that_are_dropped_let_go() {
    let runtime = runtime(EAGER, 1);
    let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (x,)| *x += 1).build();
    let x = runtime.register(0);
    let busy = Hold::new(&runtime).worker();
    let before = runtime.task(&add, (&x,)).submit().expect("the task is sound");
    let (polled, unpolled) = (runtime.read_async(&x), runtime.read_async(&x));
    let after = runtime.task(&add, (&x,)).submit().expect("the task is sound");
    let woken = unpark();
    let waker = Arc::clone(&woken).into();
    {
        let (mut polled, mut ended) = (pin!(polled), pin!(runtime.ended(before)));
        assert!(polled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(ended.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(ended.as_mut().poll(&mut Context::from_waker(&waker)).is_pending(), "and is noted once");
    }
    drop((unpolled, busy));
    assert_eq!(runtime.wait(after).expect("it ends"), Outcome::Done);
    assert_eq!(block_on(runtime.ended(before)), Outcome::Done, "it has ended");
    // One that was there and is dropped without having been taken.
    let ready = runtime.read_async(&x);
    drop(ready);
    runtime.task(&add, (&x,)).submit().expect("the task is sound");
    runtime.wait_all().expect("every task runs");
    assert_eq!(*block_on(runtime.read_async(&x)).expect("the data is good"), 3);
}

/// The end of each is the turn of the next.
#[test]
fn any_number_of_turns_that_end_where_they_come_may_follow_each_other() {
    const MANY: u64 = 100_000;
    let runtime = runtime(EAGER, 1);
    let x = runtime.register(0);
    let guard = runtime.write(&x).expect("it is good");
    for _ in 0..MANY {
        drop(runtime.write_async(&x));
    }
    drop(guard);
    let guard = runtime.write(&x).expect("they have been given up");
    for _ in 0..MANY {
        runtime.lease_write(&x, |mut lease| *lease.writing() += 1).expect("it is the runtime's own");
    }
    drop(guard);
    assert_eq!(*runtime.read(&x).expect("it is good"), MANY);
    let guard = runtime.write(&x).expect("it is good");
    for _ in 0..MANY {
        runtime.acquire_write(&x, |x| *x.expect("it is good") += 1).expect("it is the runtime's own");
    }
    drop(guard);
    runtime.wait_all().expect("nothing fails");
    assert_eq!(*runtime.read(&x).expect("it is good"), 2 * MANY);
}

#[test]
fn data_is_written_in_its_turn() {
    for workers in [1, 3] {
        let runtime = runtime(EAGER, workers);
        let double = runtime.codelet::<(ReadWrite<u64>,), ()>("double").cpu("double", |_, (x,)| *x *= 2).build();
        let x = runtime.register(1);
        let value = block_on(async {
            for _ in 0..20 {
                runtime.task(&double, (&x,)).submit().expect("the task is sound");
                let write = runtime.write_async(&x);
                let read = runtime.read_async(&x);
                runtime.task(&double, (&x,)).submit().expect("the task is sound");
                let written = {
                    let mut x = write.await.expect("it is computed");
                    *x = *x % 1000 + 1;
                    *x
                };
                assert_eq!(*read.await.expect("it is computed"), written);
            }
            *runtime.read_async(&x).await.expect("it is computed")
        });
        let expected = (0..20).fold(1, |x, _| (x * 2 % 1000 + 1) * 2);
        assert_eq!(value, expected);
    }
}

#[test]
fn a_task_of_the_runtime_does_not_await() {
    let runtime = Arc::new(runtime(EAGER, 1));
    let inner = Arc::downgrade(&runtime);
    let nested = runtime
        .codelet::<(), ()>("nested")
        .cpu("nested", move |_, ()| {
            let runtime = inner.upgrade().expect("it is there");
            let x = runtime.register(0);
            drop(block_on(runtime.read_async(&x)));
        })
        .build();
    runtime.task(&nested, ()).submit().expect("the task is sound");
    let report = runtime.wait_all().expect_err("it panics").to_string();
    assert!(report.contains("data is waited for by a task of the same runtime"), "{report}");
}

/// A waker is code of the executor: its last one drops the futures of the task that it wakes.
struct Owner {
    _owned: Mutex<Pin<Box<dyn Future<Output = Outcome> + Send>>>,
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_may_drop_other_futures_where_it_is_replaced_or_dropped() {
    // For its lifetime: the futures are dropped by wakers, which have none.
    let runtime: &'static Runtime = Box::leak(Box::new(runtime(EAGER, 1)));
    let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (x,)| *x += 1).build();
    let x = runtime.register(0);
    let held = runtime.write(&x).expect("it is good");
    let task = runtime.task(&add, (&x,)).submit().expect("the task is sound");
    let owner = || -> Waker {
        let owned: Pin<Box<dyn Future<Output = Outcome> + Send>> = Box::pin(runtime.ended(task));
        Arc::new(Owner { _owned: Mutex::new(owned) }).into()
    };
    let mut future = Box::pin(runtime.ended(task));
    for waker in [owner(), owner(), Waker::noop().clone(), owner()] {
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(future);
    drop(held);
    runtime.wait_all().expect("the task runs");
}

#[test]
fn a_waker_that_panics_keeps_no_turn() {
    /// Panics when it is dropped.
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("the drop of a waker");
        }
    }
    static TABLE: RawWakerVTable = RawWakerVTable::new(|_| panic!("the clone of a waker"), |_| {}, |_| {}, |_| {});
    // SAFETY: the functions use no data, and are those of any thread.
    let unsound = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) };
    let runtime = runtime(EAGER, 1);
    let add = runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", |_, (x,)| *x += 1).build();
    let x = runtime.register(0);
    let busy = Hold::new(&runtime).worker();
    runtime.task(&add, (&x,)).submit().expect("the task is sound");
    let mut futures = [Box::pin(runtime.write_async(&x)), Box::pin(runtime.write_async(&x))];
    let poll = AssertUnwindSafe(|| drop(futures[0].as_mut().poll(&mut Context::from_waker(&unsound))));
    assert!(catch_unwind(poll).is_err(), "it cannot be cloned");
    let panics = Arc::new(Panics);
    let waker = Arc::clone(&panics).into();
    assert!(futures[1].as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // The last one is that which the future leaves.
    drop((panics, waker));
    drop((futures, busy));
    runtime.task(&add, (&x,)).submit().expect("the task is sound");
    runtime.wait_all().expect("every task runs, and the worker is there still");
}
