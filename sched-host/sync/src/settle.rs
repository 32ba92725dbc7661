//! Something that many leave behind, and the first who needs it puts together.
//!
//! # Protocol
//!
//! Workers [leave](Settling::leave) parts, each in a place of its own. Those who need the whole come later: the order
//! of tasks says so, and what the parts were left with is seen by them for that reason. But several may come at once.
//! The first one puts the parts together under a lock that the others wait for ([`settle`](Settling::settle)); who
//! finds that nothing is pending has seen the result, since the flag is cleared after it is complete.
//!
//! If putting them together panics, parts are lost: all who come later panic too, until somebody replaces the whole
//! ([`start_over`](Settling::start_over)).

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicBool, Mutex, Ordering::*, lock};

/// See the [module](self).
pub struct Settling {
    is_pending: AtomicBool,
    /// Held while parts are put together; whether that has panicked.
    settling: Mutex<bool>,
}

impl Default for Settling {
    fn default() -> Settling {
        Settling { is_pending: AtomicBool::new(false), settling: Mutex::new(false) }
    }
}

impl Settling {
    /// Notes that a part is left, before it is.
    #[inline]
    pub fn leave(&self) {
        if !self.is_pending.load(Relaxed) {
            self.is_pending.store(true, Release);
        }
    }

    /// Puts the parts together by `together` if any are left and nobody has done it.
    ///
    /// # Panics
    /// If `together` does, or has panicked before.
    #[inline]
    pub fn settle(&self, together: impl FnOnce()) {
        if self.is_pending.load(Acquire) {
            self.settle_pending(together);
        }
    }

    /// Where putting parts together has panicked, drops what is left by `discard`, and all is as in the beginning: the
    /// caller is about to replace the whole, and nobody leaves parts or needs them meanwhile.
    pub fn start_over(&self, discard: impl FnOnce()) {
        if self.is_pending.load(Acquire) {
            let mut has_failed = lock(&self.settling);
            if *has_failed {
                discard();
                *has_failed = false;
                self.is_pending.store(false, Release);
            }
        }
    }

    #[cold]
    fn settle_pending(&self, together: impl FnOnce()) {
        let mut has_failed = lock(&self.settling);
        assert!(!*has_failed, "accumulators of this reduction are lost, since combining them panicked");
        if !self.is_pending.load(Acquire) {
            return;
        }
        *has_failed = true;
        together();
        *has_failed = false;
        self.is_pending.store(false, Release);
    }
}
