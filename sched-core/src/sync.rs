//! The primitives of [`set`](crate::set), in one place so that a model checker can replace them.

pub(crate) use crate::mutex::{Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

/// Locks `mutex`, waiting for it if necessary.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
