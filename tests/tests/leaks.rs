//! What a program makes and drops again and again does not fill its memory: runtimes, codelets, data, contexts.
//!
//! A file of its own, with one test: it counts the memory of the whole process.

use sched_host::runtime::{Codelet, Outcome, Plan, Read, ReadWrite, Runtime};
use sched_tests::stock;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Instant;

/// The system's allocator, which counts the bytes in use.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes by which memory grows for each call of `body`: the least of several series, since lists that are reused may
/// still grow in some.
fn growth(mut body: impl FnMut()) -> i64 {
    let series = (0..6).map(|_| {
        let before = LIVE.load(Relaxed);
        (0..ROUNDS).for_each(|_| body());
        (LIVE.load(Relaxed) - before) / ROUNDS
    });
    series.min().unwrap_or_default().max(0)
}

const ROUNDS: i64 = 32;

/// A runtime that executes tasks of two codelets, with data and without.
fn one_runtime() {
    let runtime = stock::runtime(stock::EAGER, 2);
    one_codelet(&runtime, 3);
    one_codelet(&runtime, 2);
}

/// A codelet whose kernel owns memory, and `tasks` tasks of it.
fn one_codelet(runtime: &Runtime, tasks: usize) {
    let owned = Arc::new([1_u8; 256]);
    let add =
        runtime.codelet::<(ReadWrite<u64>,), ()>("add").cpu("add", move |_, (to,)| *to += u64::from(owned[0])).build();
    let data = runtime.register(0);
    for _ in 0..tasks {
        runtime.task(&add, (&data,)).submit().unwrap();
    }
    // Some codelets are dropped while their tasks are executed.
    if tasks.is_multiple_of(2) {
        assert_eq!(*runtime.read(&data).unwrap(), tasks as u64);
    }
}

#[test]
fn what_is_dropped_is_freed() {
    let runtimes = growth(one_runtime);
    let runtime = stock::runtime(stock::EAGER, 2);
    let unused = growth(|| drop(runtime.codelet::<(), ()>("unused").cpu("unused", |_, ()| {}).build()));
    let used = growth(|| one_codelet(&runtime, 4));
    let dropped_early = growth(|| {
        one_codelet(&runtime, 5);
        runtime.wait_all().unwrap();
    });
    let part = || runtime.context("part").policy_value(stock::policy(stock::EAGER)).workers([0]).build().unwrap();
    let contexts = growth(|| part().delete().unwrap());
    let swapped = part();
    let swaps = growth(|| swapped.swap_policy_value(stock::policy(stock::EAGER)).unwrap());
    assert_eq!([runtimes, unused, used, dropped_early, contexts, swaps], [0; 6], "bytes for each round");
    let exchanged = growth_of_many(&mut exchanges(&runtime));
    let recorded = growth_of_many(&mut recordings(&runtime));
    let late = growth_of_many(|| {
        let task = runtime.task(&nothing(&runtime), ()).deadline(Instant::now()).submit().unwrap();
        assert!(matches!(runtime.wait(task).unwrap(), Outcome::Cancelled(_)));
    });
    let (array, add) = (runtime.array(vec![0; 8]), add_to_array(&runtime));
    let parts = array.partition(&Plan::ranges(2)).unwrap();
    let late_on_parts = growth_of_many(|| {
        let task = runtime.task(&add, (&parts[0],)).deadline(Instant::now()).submit().unwrap();
        assert!(matches!(runtime.wait(task).unwrap(), Outcome::Cancelled(_)));
    });
    let grown = [exchanged, recorded, late, late_on_parts];
    assert!(grown.iter().all(|bytes| *bytes < 2 * MANY * 4), "{grown:?}: 4 bytes a round");
}

/// Bytes by which memory grows in many rounds. What is kept of a round in a list, which grows by doubling, is seen here
/// only; lists have reached their lengths before.
fn growth_of_many(mut body: impl FnMut()) -> i64 {
    (0..2 * MANY).for_each(|_| body());
    let before = LIVE.load(Relaxed);
    (0..2 * MANY).for_each(|_| body());
    LIVE.load(Relaxed) - before
}

const MANY: i64 = 4096;

type Scale = Codelet<(Read<u64>, ReadWrite<u64>)>;

fn scale(runtime: &Runtime) -> Scale {
    runtime.codelet("scale").cpu("scale", |_, (by, x): (&u64, &mut u64)| *x *= by).build()
}

fn nothing(runtime: &Runtime) -> Codelet<()> {
    runtime.codelet("nothing").cpu("nothing", |_, ()| {}).build()
}

fn add_to_array(runtime: &Runtime) -> Codelet<(ReadWrite<[u64]>,)> {
    runtime.codelet("add").cpu("add", |_, (x,): (&mut [u64],)| x.iter_mut().for_each(|x| *x += 1)).build()
}

/// Replays with other data each time, and the same constant, which nobody writes.
fn exchanges(runtime: &Runtime) -> impl FnMut() + '_ {
    let (scale, by) = (scale(runtime), runtime.register(1));
    let data = [runtime.register(1), runtime.register(1)];
    let recording = runtime.record(|recorder| recorder.task(&scale, (&by, &data[0])).submit().map(|_| ())).unwrap();
    move || {
        runtime.run(&recording).unwrap();
        recording.swap(&data[0], &data[1]).unwrap();
    }
}

/// Recordings that use the same constant.
fn recordings(runtime: &Runtime) -> impl FnMut() + '_ {
    let (scale, by, x) = (scale(runtime), runtime.register(1), runtime.register(1));
    move || {
        let recording = runtime.record(|recorder| recorder.task(&scale, (&by, &x)).submit().map(|_| ()));
        runtime.run(&recording.unwrap()).unwrap();
    }
}
