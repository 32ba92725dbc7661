//! Work that turns out to be in vain while it is done, because of what another thread has found out meanwhile.

use crate::queue::Padded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// Whether the work of a thread is in vain. Clones are of the same work. A round sets and clears it under its lock, so
/// that what ended an earlier work does not end the next.
#[derive(Clone, Default, Debug)]
pub(super) struct Stop(Arc<Padded<AtomicBool>>);

impl Stop {
    /// Other work begins.
    pub(super) fn clear(&self) {
        self.0.0.store(false, Relaxed);
    }

    /// The work is in vain. (It comes to an end soon, with a result that means nothing.)
    pub(super) fn set(&self) {
        self.0.0.store(true, Relaxed);
    }

    #[inline]
    pub(super) fn is_set(&self) -> bool {
        self.0.0.load(Relaxed)
    }
}
