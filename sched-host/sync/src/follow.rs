//! A list that is kept only while it has followers, and is then complete.
//!
//! # Protocol
//!
//! What belongs on the list can also be found by looking at everything there is, which is expensive. A maker of a
//! thing:
//! 1. stores it where that look finds it;
//! 2. asks whether the list is of interest ([`is_attended`](Follow::is_attended)): a light fence, and a read of a flag;
//! 3. if so, puts it on the list ([`add`](Follow::add)), which does nothing when there are no followers after all.
//!
//! The first follower ([`begin`](Follow::begin)), under the list's lock: sets the flag; a heavy fence; looks at
//! everything there is. The last that leaves ([`end`](Follow::end)) clears the flag and the list, under the lock as
//! well.
//!
//! *Nothing is missed.* A thing comes before its maker's look at the flag, the flag before the follower's look at the
//! things, with a fence between on either side; the follower pays for both ([`heavy_fence`]). So the follower sees the
//! thing, or the maker sees the flag; and then it waits for the lock, and adds to the list that was made. Both may
//! happen: adding a thing that is on the list already must do no harm.

#[cfg(all(test, loom))]
mod models;

use crate::fence::{heavy_fence, light_fence};
use crate::primitives::{AtomicBool, Mutex, MutexGuard, Ordering::Relaxed};

/// See the [module](self).
pub struct Follow<L> {
    attended: AtomicBool,
    /// Whether something besides the list has an interest in what is made.
    always: bool,
    kept: Mutex<Kept<L>>,
}

#[derive(Default)]
struct Kept<L> {
    followers: usize,
    list: L,
}

impl<L: Default> Follow<L> {
    /// A list without followers. With `always`, it is reported to be of interest even so.
    pub fn new(always: bool) -> Follow<L> {
        Follow { attended: AtomicBool::new(always), always, kept: Mutex::new(Kept::default()) }
    }

    /// Whether the list is of interest, asked after a thing was made.
    #[inline(always)]
    pub fn is_attended(&self) -> bool {
        light_fence();
        self.attended.load(Relaxed)
    }

    /// Lets `add` put a thing on the list, if the list is kept.
    pub fn add(&self, add: impl FnOnce(&mut L)) {
        let mut kept = self.lock();
        if kept.followers > 0 {
            add(&mut kept.list);
        }
    }

    /// Adds a follower; for the first, the list is made of what `gather` finds.
    pub fn begin(&self, gather: impl FnOnce() -> L) {
        let mut kept = self.lock();
        kept.followers += 1;
        if kept.followers == 1 {
            self.attended.store(true, Relaxed);
            heavy_fence();
            kept.list = gather();
        }
    }

    /// Removes a follower.
    pub fn end(&self) {
        let mut kept = self.lock();
        kept.followers -= 1;
        if kept.followers == 0 {
            self.attended.store(self.always, Relaxed);
            kept.list = L::default();
        }
    }

    /// Passes the list to `look`.
    pub fn look<T>(&self, look: impl FnOnce(&mut L) -> T) -> T {
        look(&mut self.lock().list)
    }

    fn lock(&self) -> MutexGuard<'_, Kept<L>> {
        self.kept.lock().expect("nobody panics with the list")
    }
}
