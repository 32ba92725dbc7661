//! Tasks at hand: those that a worker has made ready, and goes on with before it looks anywhere else.
//!
//! # Protocol
//!
//! A worker that makes several tasks ready at once goes on with one of them, and with the others later, unless somebody
//! else has nothing to do. Putting those into a queue shared with others, and taking most of them out again, costs more
//! than such a task may take. So each worker has a [`Hand`]: a few places in one cache line, where it stacks them.
//!
//! - **put**: the worker stores the task in the place above the last one. Nobody else puts anything there, so that is a
//!   plain store.
//! - **take**: the worker goes through the places from the top, until it has emptied one.
//! - **steal**: others do the same from the bottom, where the oldest task lies.
//!
//! Both empty a place by an exchange of the number that they saw there: whoever succeeds has the task, and nobody else.
//! If somebody else was faster the worker's place is empty, since it alone fills places; others pass on.
//!
//! *No sleeper misses a task.* Whoever puts one then looks for sleeping workers, behind a light fence, and takes what is
//! on top back if there are any: that goes where sleepers are woken for it. A worker that falls asleep looks at all
//! hands once more behind a heavy fence ([`sleep`](crate::sleep)). If it does not see the task, the other one sees it
//! sleep.

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicU32, Ordering::*};

/// Number of tasks that a worker holds at most.
pub const ROOM: usize = if cfg!(loom) { 2 } else { 4 };

/// What a worker has at hand, by numbers other than 0; see the [module](self).
#[derive(Default)]
#[repr(align(64))]
pub struct Hand([AtomicU32; ROOM]);

/// Number of places of a [`Hand`] that its worker has filled, some of which others may have emptied since. Only the
/// worker has it.
#[derive(Default, Debug)]
pub struct Filled(usize);

impl Filled {
    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl Hand {
    /// For the worker: puts something on top. Returns whether there was room.
    #[inline]
    pub fn put(&self, filled: &mut Filled, number: u32) -> bool {
        debug_assert_ne!(number, 0, "an empty place");
        let Some(place) = self.0.get(filled.0) else { return false };
        place.store(number, Release);
        filled.0 += 1;
        true
    }

    /// For the worker: takes what is on top.
    #[inline]
    pub fn take(&self, filled: &mut Filled) -> Option<u32> {
        while filled.0 > 0 {
            filled.0 -= 1;
            let taken = empty(&self.0[filled.0], |_| true);
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// For others: takes the lowest that `suits`.
    #[inline]
    pub fn steal(&self, suits: impl Fn(u32) -> bool) -> Option<u32> {
        self.0.iter().find_map(|place| empty(place, &suits))
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|place| place.load(Acquire) == 0)
    }
}

/// Empties a place if what is there `suits`. (An exchange with 0, whatever is there, might write a second 0 at the same
/// moment as the worker fills the place again.)
#[inline]
fn empty(place: &AtomicU32, suits: impl Fn(u32) -> bool) -> Option<u32> {
    let number = place.load(Acquire);
    (number != 0 && suits(number) && place.compare_exchange(number, 0, AcqRel, Relaxed).is_ok()).then_some(number)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_worker_takes_the_last_and_others_the_first() {
        let (hand, mut filled) = (Hand::default(), Filled::default());
        assert!(filled.is_empty());
        for number in 1..=ROOM as u32 {
            assert!(hand.put(&mut filled, number));
        }
        assert!(!hand.put(&mut filled, 99), "there is no room");
        assert_eq!(hand.steal(|_| false), None);
        assert_eq!(hand.steal(|number| number < 3), Some(1));
        assert_eq!(hand.take(&mut filled), Some(ROOM as u32));
        assert!(hand.put(&mut filled, 100));
        assert_eq!(hand.take(&mut filled), Some(100));
        for number in (2..ROOM as u32).rev() {
            assert_eq!(hand.take(&mut filled), Some(number));
        }
        assert_eq!((hand.take(&mut filled), hand.steal(|_| true)), (None, None));
        assert!(filled.is_empty() && hand.is_empty());
        assert!(hand.put(&mut filled, 7), "what was stolen leaves room");
        assert!(!hand.is_empty());
        assert_eq!(hand.steal(|_| true), Some(7));
        assert_eq!(hand.take(&mut filled), None);
    }
}
