//! The primitives under the hard protocols ([gate](crate::gate), `runtime::sleep`, `runtime::link`),
//! in one place so that a model checker can stand in for them: the tests compile the same sources against loom's.

use rustix::thread::{MembarrierCommand, membarrier};
pub use sched_core::SharedSet;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub use std::sync::{Condvar, Mutex, MutexGuard};

/// What stands behind a protocol rather than a lock. Access is through closures, so that a model checker sees its extent.
#[derive(Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Reads.
    #[inline(always)]
    pub(crate) fn with<R>(&self, body: impl FnOnce(*const T) -> R) -> R {
        body(self.0.get())
    }

    /// Changes.
    pub(crate) fn with_mut<R>(&self, body: impl FnOnce(*mut T) -> R) -> R {
        body(self.0.get())
    }
}

/// Waits for the lock. Who panicked under it left nothing half done.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Lets others go on.
pub(crate) fn pause() {
    std::thread::yield_now();
}

/// The cheap side of a pair of fences: see [`heavy_fence`].
#[inline]
pub fn light_fence() {
    if MEMBARRIER.load(Relaxed) {
        std::sync::atomic::compiler_fence(SeqCst);
    } else {
        fence(SeqCst);
    }
}

/// The dear side of a pair of fences: together with a [`light_fence`] in another thread it orders as two sequentially
/// consistent fences do. Linux' `membarrier` makes every running thread of the process execute a fence; a thread that
/// does not run executes one when it is switched in.
pub fn heavy_fence() {
    fence(SeqCst);
    if MEMBARRIER.load(Relaxed) {
        // Registered, so that it cannot fail; on an error the light side is a full fence from now on.
        if membarrier(MembarrierCommand::PrivateExpedited).is_err() {
            MEMBARRIER.store(false, SeqCst);
        }
    }
}

/// Makes light fences light, where the system can. To be called before the first of them.
pub fn prepare_fences() {
    if membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok() {
        MEMBARRIER.store(true, SeqCst);
    }
}

/// Light fences count on heavy ones to reach them.
static MEMBARRIER: AtomicBool = AtomicBool::new(false);
