//! Locks and atomics for shared state, in one place so that a model checker can replace them.

pub(crate) use chosen::{AtomicBool, AtomicU64, AtomicUsize, Mutex, fence};
pub(crate) use std::sync::atomic::Ordering;

#[cfg(not(loom))]
mod chosen {
    pub(crate) use sched_core::Mutex;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
}

#[cfg(loom)]
mod chosen {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};

    /// With the interface of `sched_core::Mutex`.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("nobody panics")
        }
    }
}
