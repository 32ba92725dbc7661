//! The primitives under the protocols, in one place so that a model checker's can stand in for them.

pub(crate) use chosen::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, UnsafeCell, fence, pause,
};

/// Locks `mutex`, waiting for it if necessary. A thread that panicked while it held the lock left nothing half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(loom)]
mod chosen {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now as pause;
}

#[cfg(not(loom))]
mod chosen {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    /// Lets other threads go on.
    pub(crate) use std::thread::yield_now as pause;

    /// A value behind a protocol rather than a lock. Access is through closures, so that a model checker sees its
    /// extent.
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        /// Passes the value to `body` for reading.
        #[inline(always)]
        pub(crate) fn with<R>(&self, body: impl FnOnce(*const T) -> R) -> R {
            body(self.0.get())
        }

        /// Passes the value to `body` for changing.
        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, body: impl FnOnce(*mut T) -> R) -> R {
            body(self.0.get())
        }
    }
}
