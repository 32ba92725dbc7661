//! A lock for moments.
//!
//! # Protocol
//!
//! A flag says whether the lock is taken. A thread takes it by changing the flag from false to true, and gives it back
//! by storing false: a plain store, where a lock with a list of sleeping threads needs an atomic exchange to see
//! whether somebody sleeps. So locking costs half.
//!
//! The price is that nobody wakes a thread that waits. It looks again: at first at once, since such a lock is held for
//! a few instructions; then after it has let other threads run, of which one may have been interrupted while it held
//! the lock; at last after it has slept, for longer and longer, up to a millisecond. So a thread that waits for long
//! costs next to nothing, and the holder runs whatever its priority is.

use parking_lot::lock_api::{GuardNoSend, RawMutex};
use std::hint::{cold_path, spin_loop};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread::{sleep, yield_now};
use std::time::Duration;

/// A lock that is held for a few instructions, by threads that seldom meet: the list of who waits for a task, a queue.
/// Unlocking is a plain store, so locking costs half of what it costs elsewhere; a thread that has to wait for longer
/// is late by up to a millisecond.
///
/// ```
/// use sched_core::Brief;
///
/// let waiting = Brief::new(Vec::new());
/// waiting.lock().push(7);
/// assert_eq!(*waiting.lock(), [7]);
/// ```
pub type Brief<T> = parking_lot::lock_api::Mutex<RawBrief, T>;

/// Access to the value of a [`Brief`] lock; unlocks it when dropped.
pub type BriefGuard<'a, T> = parking_lot::lock_api::MutexGuard<'a, RawBrief, T>;

/// A [`Brief`] lock without a value.
#[derive(Debug)]
pub struct RawBrief {
    is_taken: AtomicBool,
}

/// Looks at a lock that is taken before other threads are let run.
const LOOKS: u32 = 64;
/// Times that other threads are let run before this one sleeps.
const YIELDS: u32 = 64;
/// How long a thread sleeps at first, and at most.
const SLEEPS: (Duration, Duration) = (Duration::from_micros(10), Duration::from_millis(1));

// SAFETY: only the thread that has changed the flag from false to true goes on; the change reads what the store that
// unlocked has released.
unsafe impl RawMutex for RawBrief {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for a constant")]
    const INIT: RawBrief = RawBrief { is_taken: AtomicBool::new(false) };

    type GuardMarker = GuardNoSend;

    #[inline(always)]
    fn lock(&self) {
        if !self.try_lock() {
            cold_path();
            self.lock_later();
        }
    }

    #[inline(always)]
    fn try_lock(&self) -> bool {
        self.is_taken.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    }

    #[inline(always)]
    unsafe fn unlock(&self) {
        self.is_taken.store(false, Release);
    }
}

impl RawBrief {
    #[cold]
    #[inline(never)]
    fn lock_later(&self) {
        let (mut looks, mut nap) = (0, SLEEPS.0);
        loop {
            while self.is_taken.load(Relaxed) {
                looks += 1;
                if looks <= LOOKS {
                    spin_loop();
                } else if looks <= LOOKS + YIELDS {
                    yield_now();
                } else {
                    sleep(nap);
                    nap = SLEEPS.1.min(2 * nap);
                }
            }
            if self.try_lock() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        const TIMES: usize = if cfg!(miri) { 20 } else { 20_000 };
        let sums = Brief::new((0, 0));
        let add = || {
            for _ in 0..TIMES {
                let mut sums = sums.lock();
                sums.0 += 1;
                sums.1 += 1;
                assert_eq!(sums.0, sums.1, "nobody else is between the two");
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(add)));
        assert_eq!(*sums.lock(), (4 * TIMES, 4 * TIMES));
    }

    #[test]
    fn a_thread_waits_however_long_the_lock_is_held() {
        let value = Brief::new(0);
        let (begun, begins) = channel();
        std::thread::scope(|scope| {
            let mut held = value.lock();
            scope.spawn(|| {
                begun.send(()).expect("the other end is there");
                *value.lock() *= 2;
            });
            begins.recv().expect("it begins");
            assert!(value.try_lock().is_none());
            // Time enough for it to sleep; it waits as well if it has not come to that.
            (0..10_000).for_each(|_| yield_now());
            *held = 21;
        });
        assert_eq!(*value.lock(), 42);
    }

    #[test]
    fn a_panic_under_the_lock_unlocks_it() {
        let value = Brief::new(1);
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = value.lock();
            panic!("under the lock");
        }));
        assert!(panics.is_err() && value.try_lock().is_some());
    }
}
