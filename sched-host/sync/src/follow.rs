//! A list that is kept only while somebody follows it, and then has everything.
//!
//! # Protocol
//!
//! What belongs on the list can be found in another way as well, by a look at everything there is, which is dear. Whoever makes
//! a thing:
//! 1. stores it where that look finds it;
//! 2. asks whether the list is of interest ([`is_attended`](Follow::is_attended)): a light fence, and a look at a flag;
//! 3. if so, puts it on the list ([`add`](Follow::add)), which does nothing when there are no followers after all.
//!
//! The first follower ([`begin`](Follow::begin)), under the list's lock: sets the flag; a heavy fence; looks at everything
//! there is. The last that leaves ([`end`](Follow::end)) takes the flag and the list away, under the lock as well.
//!
//! *Nothing is missed.* A thing comes before its maker's look at the flag, the flag before the follower's look at the things,
//! with a fence between on either side, of which who follows pays for both ([`heavy_fence`]). So the follower sees the thing, or
//! the maker sees the flag; and then it waits for the lock, and adds to the list that was made. Both may happen: the list
//! must bear a thing that is on it already.

use crate::fence::{heavy_fence, light_fence};
use crate::primitives::{AtomicBool, Mutex, MutexGuard, Ordering::Relaxed};

#[cfg(all(test, loom))]
mod models;

/// See the [module](self).
pub struct Follow<L> {
    attended: AtomicBool,
    /// Makers are of interest to somebody else too.
    always: bool,
    kept: Mutex<Kept<L>>,
}

#[derive(Default)]
struct Kept<L> {
    followers: usize,
    list: L,
}

impl<L: Default> Follow<L> {
    /// A list without followers. With `always`, makers are told that it is of interest all the same.
    pub fn new(always: bool) -> Follow<L> {
        Follow { attended: AtomicBool::new(always), always, kept: Mutex::new(Kept::default()) }
    }

    /// Whether what was just made is of interest.
    #[inline(always)]
    pub fn is_attended(&self) -> bool {
        light_fence();
        self.attended.load(Relaxed)
    }

    /// What was just made goes on the list, if that is kept.
    pub fn add(&self, add: impl FnOnce(&mut L)) {
        let mut kept = self.lock();
        if kept.followers > 0 {
            add(&mut kept.list);
        }
    }

    /// Somebody follows from now on; the first has the list made of all that `gather` finds.
    pub fn begin(&self, gather: impl FnOnce() -> L) {
        let mut kept = self.lock();
        kept.followers += 1;
        if kept.followers == 1 {
            self.attended.store(true, Relaxed);
            heavy_fence();
            kept.list = gather();
        }
    }

    /// Somebody follows no more.
    pub fn end(&self) {
        let mut kept = self.lock();
        kept.followers -= 1;
        if kept.followers == 0 {
            self.attended.store(self.always, Relaxed);
            kept.list = L::default();
        }
    }

    /// Looks at the list.
    pub fn look<T>(&self, look: impl FnOnce(&mut L) -> T) -> T {
        look(&mut self.lock().list)
    }

    fn lock(&self) -> MutexGuard<'_, Kept<L>> {
        self.kept.lock().expect("nobody panics with the list")
    }
}
