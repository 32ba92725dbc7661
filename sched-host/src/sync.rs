//! The primitives under the hard protocols ([gate](crate::tree::gate), [sleep](crate::runtime::sleep)), in one place so
//! that a model checker can stand in for them: the tests compile the same sources against loom's.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// Lets others go on.
pub(crate) fn pause() {
    std::thread::yield_now();
}
