//! Mutual exclusion without waiting and without lost requests.

use sched_core::Task;
use std::sync::atomic::{AtomicU32, Ordering::*};

/// Counts requests for some work. The first requester does the work; a later one leaves a request by counting, and the
/// thread at work repeats it before ending.
///
/// Nobody waits, so a turn may be held across hops: a thread that calls back into it leaves a request too.
#[derive(Default, Debug)]
pub(super) struct Turn {
    wishes: AtomicU32,
}

impl Turn {
    /// Runs `work`, and again for requests that arrive meanwhile; or leaves a request. Returns whether any run returned
    /// true.
    ///
    /// Changes made before a request are seen by a run that starts after it.
    pub(super) fn take(&self, mut work: impl FnMut() -> bool) -> bool {
        if self.wishes.fetch_add(1, AcqRel) != 0 {
            return false;
        }
        let mut any = false;
        let mut seen = 1;
        loop {
            any |= work();
            match self.wishes.compare_exchange(seen, 0, AcqRel, Acquire) {
                Ok(_) => return any,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the first task for a worker that pulls, or leaves a request. No decision runs meanwhile, so it is the
    /// first of all; for requests that arrive meanwhile, `work` runs.
    pub(super) fn pull(&self, first: impl FnOnce() -> Option<Task>, mut work: impl FnMut() -> bool) -> Option<Task> {
        let (mut first, mut taken) = (Some(first), None);
        self.take(|| match first.take() {
            Some(first) => {
                taken = first();
                false
            }
            None => work(),
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_note_left_during_the_work_repeats_it() {
        let (turn, runs) = (Turn::default(), Cell::new(0));
        let moved = turn.take(|| {
            runs.set(runs.get() + 1);
            if runs.get() < 3 {
                assert!(!turn.take(|| unreachable!("it is taken")));
            }
            runs.get() == 2
        });
        assert_eq!((runs.get(), moved), (3, true));
        assert!(turn.take(|| true), "it is free again");
    }

    #[test]
    fn no_wish_is_lost_between_threads() {
        let (turn, wished, done) = (Turn::default(), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        wished.fetch_add(1, Relaxed);
                        turn.take(|| {
                            done.store(wished.load(Relaxed), Relaxed);
                            true
                        });
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 4000);
    }
}
