//! The primitives of [`set`](crate::set), in one place so that a model checker can replace them.

#[cfg(not(loom))]
pub(crate) use crate::mutex::{Mutex, MutexGuard};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic::AtomicU64};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::AtomicU64;
pub(crate) use std::sync::atomic::Ordering;

/// Locks `mutex`, waiting for it if necessary.
#[cfg(not(loom))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Waits for the lock.
#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics")
}
