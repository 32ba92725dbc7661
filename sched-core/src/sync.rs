//! What [`set`](crate::set) is made of, in one place so that a model checker can stand in for it.

pub(crate) use crate::mutex::{Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

/// Waits for the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
