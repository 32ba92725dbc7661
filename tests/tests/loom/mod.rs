//! What the host's sources find under `crate::sync`: loom's primitives, which try every order of what threads do.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "each model needs some of it")]

pub use loom::cell::UnsafeCell;
pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub use loom::sync::{Condvar, Mutex, MutexGuard};
pub use set::SharedSet;

#[path = "../../../sched-core/src/set.rs"]
mod set;

/// Waits for the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics")
}

/// Lets others go on.
pub fn pause() {
    loom::thread::yield_now();
}

/// The pair of fences orders as two full ones, so they are two full ones here.
pub fn light_fence() {
    fence(Ordering::SeqCst);
}

/// See [`light_fence`].
pub fn heavy_fence() {
    fence(Ordering::SeqCst);
}

/// Nothing to prepare.
pub fn prepare_fences() {}

/// Tries every order with so many preemptions.
pub fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}
