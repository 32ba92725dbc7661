//! The primitives under the hard protocols ([gate](crate::tree::gate), [sleep](crate::runtime::sleep)), in one place so
//! that a model checker can stand in for them: the tests compile the same sources against loom's.

pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
pub use std::sync::{Condvar, Mutex, MutexGuard};

/// Lets others go on.
pub fn pause() {
    std::thread::yield_now();
}
