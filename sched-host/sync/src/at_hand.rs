//! Tasks at hand: those that a worker has made ready, and goes on with before it looks anywhere else.
//!
//! # Protocol
//!
//! A worker that makes several tasks ready at once goes on with one of them, and with the others later, unless somebody
//! else has nothing to do. Putting those into a queue shared with others, and taking most of them out again, costs more
//! than such a task may take. So each worker has a [`Hand`]: a few places in one cache line, used in turn.
//!
//! - **put**: the worker stores the task in the next place, if that is empty. Nobody else puts anything there, so that
//!   is a plain store.
//! - **take**: the worker goes through the places that it has filled, from the oldest, until it has emptied one.
//! - **steal**: others do the same, from any place.
//!
//! All empty a place by an exchange of the number that they saw there: whoever succeeds has the task, and nobody else.
//! If somebody else was faster the worker's place is empty, since it alone fills places; others pass on.
//!
//! *No sleeper misses a task.* Whoever puts one then looks for sleeping workers, behind a light fence, and takes it
//! back if there are any: it goes where sleepers are woken for it. A worker that falls asleep looks at all hands once
//! more behind a heavy fence ([`sleep`](crate::sleep)). If it does not see the task, the other one sees it sleep.

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicU32, Ordering::*};

/// Number of tasks that a worker holds at most.
pub const ROOM: usize = if cfg!(loom) { 2 } else { 4 };

/// What a worker has at hand, by numbers other than 0; see the [module](self). Give it a cache line of its own.
#[derive(Default)]
pub struct Hand([AtomicU32; ROOM]);

/// Which places of a [`Hand`] its worker has filled, as far as it knows: others may have emptied some since. Only the
/// worker has it.
#[derive(Default, Debug)]
pub struct Filled {
    /// How many it has filled so far.
    count: usize,
    /// How many of these it has come back to: at least all but the last [`ROOM`].
    passed: usize,
}

impl Filled {
    /// Whether there are none.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == self.passed
    }
}

impl Hand {
    /// For the worker: puts something there. Returns whether there was room.
    #[inline]
    pub fn put(&self, filled: &mut Filled, number: u32) -> bool {
        debug_assert_ne!(number, 0, "an empty place");
        let place = &self.0[filled.count % ROOM];
        if place.load(Relaxed) != 0 {
            return false;
        }
        place.store(number, Release);
        filled.count += 1;
        filled.passed = filled.passed.max(filled.count.saturating_sub(ROOM));
        true
    }

    /// For the worker: takes the oldest.
    #[inline]
    pub fn take(&self, filled: &mut Filled) -> Option<u32> {
        while filled.passed < filled.count {
            let place = &self.0[filled.passed % ROOM];
            filled.passed += 1;
            let taken = empty(place, |_| true);
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// For the worker: takes back what it has just put, unless somebody has that.
    #[inline]
    pub fn take_back(&self, filled: &mut Filled) -> Option<u32> {
        let last = filled.count.checked_sub(1).filter(|last| *last >= filled.passed)?;
        let taken = empty(&self.0[last % ROOM], |_| true)?;
        filled.count = last;
        Some(taken)
    }

    /// For others: takes one that `suits`.
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
    fn the_worker_takes_the_oldest() {
        let (hand, mut filled) = (Hand::default(), Filled::default());
        assert!(filled.is_empty() && hand.is_empty());
        let mut numbers = 1..;
        let mut number = numbers.next();
        // Longer than the places are, so that they are used again.
        for taken in 1..=100 {
            while number.is_some_and(|number| hand.put(&mut filled, number)) {
                number = numbers.next();
            }
            assert_eq!(number, Some(taken + ROOM as u32), "there is room for no more");
            assert_eq!(hand.take(&mut filled), Some(taken));
            assert!(!filled.is_empty() && !hand.is_empty());
        }
        assert!((101..100 + ROOM as u32).all(|number| hand.take(&mut filled) == Some(number)));
        assert_eq!(hand.take(&mut filled), None);
        assert!(filled.is_empty() && hand.is_empty());
    }

    #[test]
    fn others_take_what_suits_them_and_leave_room() {
        let (hand, mut filled) = (Hand::default(), Filled::default());
        assert!((1..=ROOM as u32).all(|number| hand.put(&mut filled, number)));
        assert_eq!(hand.steal(|_| false), None);
        assert_eq!(hand.steal(|number| number == 2), Some(2));
        assert!(!hand.put(&mut filled, 50), "the next place is that of the oldest");
        assert_eq!(hand.steal(|_| true), Some(1));
        assert!(hand.put(&mut filled, 50) && hand.put(&mut filled, 51) && !hand.put(&mut filled, 52));
        assert!((3..=ROOM as u32).chain([50, 51]).all(|number| hand.take(&mut filled) == Some(number)));
        assert_eq!((hand.take(&mut filled), hand.steal(|_| true)), (None, None));
    }

    #[test]
    fn what_was_just_put_is_taken_back() {
        let (hand, mut filled) = (Hand::default(), Filled::default());
        assert_eq!(hand.take_back(&mut filled), None);
        assert!(hand.put(&mut filled, 1) && hand.put(&mut filled, 2));
        assert_eq!(hand.take_back(&mut filled), Some(2));
        assert!(hand.put(&mut filled, 3));
        assert_eq!(hand.steal(|number| number == 3), Some(3));
        assert_eq!(hand.take_back(&mut filled), None);
        assert_eq!((hand.take(&mut filled), hand.take(&mut filled)), (Some(1), None));
        assert_eq!(hand.take_back(&mut filled), None, "nothing was put since");
    }
}
