//! Sleeping workers: how they fall asleep without missing a task, and how they are woken.
//!
//! # Protocol
//!
//! Waking a parked thread costs the waker about a hundred times what scheduling a task costs, so nobody wakes in vain,
//! and nobody pays anything while all workers are awake: the *sleeping* bits, one for each worker, are all that a
//! scheduling thread reads, in a [`SharedSet`].
//!
//! A worker that found nothing:
//! 1. [`announce`](Sleep::announce): sets its bit, then a heavy fence;
//! 2. looks for a task **once more**;
//! 3. found one: [`retract`](Sleep::retract) clears the bit; else [`sleep`](Sleep::sleep) parks it, and `retract` follows.
//!
//! Whoever stores a task: stores it; a light fence (`tree::hop`); reads the bits; [`wake`](Sleep::wake)s a worker whose bit is
//! set, by clearing the bit. Only one waker can clear it, so one sleeper is not woken twice.
//!
//! *No task is missed.* The worker's bit comes before its second look, the task before the waker's look at the bits, with
//! a fence between on either side, of which the one who falls asleep pays for both ([`heavy_fence`]). So the worker sees the task, or the waker sees the bit.
//!
//! *No wake is lost.* A waker that clears a bit counts on that worker for its task. If the worker took another task in
//! its second look, `retract` finds the bit cleared and says so: the worker then wakes somebody else in its place.
//!
//! *A late notice does no harm.* Between a waker's clearing of the bit and its notice on the bed, the worker may have
//! gone to work and come to bed again. It then wakes for nothing, with its bit still set, so it always retracts after
//! sleeping.

use crate::fence::{heavy_fence, prepare_fences};
use crate::primitives::{Condvar, Mutex, Ordering::*, fence, lock};
use crossbeam::utils::CachePadded;
use sched_core::SharedSet;
use std::sync::Arc;

#[cfg(all(test, loom))]
mod models;

/// See the [module](self).
pub struct Sleep {
    sleeping: Arc<SharedSet>,
    beds: Box<[CachePadded<Bed>]>,
}

/// Where one worker parks.
struct Bed {
    noticed: Mutex<bool>,
    notice: Condvar,
}

impl Sleep {
    /// Beds for so many workers, all awake.
    pub fn new(workers: usize) -> Sleep {
        prepare_fences();
        let bed = || CachePadded::new(Bed { noticed: Mutex::new(false), notice: Condvar::new() });
        Sleep { sleeping: Arc::new(SharedSet::new(workers)), beds: (0..workers).map(|_| bed()).collect() }
    }

    /// Which workers sleep.
    #[inline]
    pub fn sleeping(&self) -> &Arc<SharedSet> {
        &self.sleeping
    }

    /// Step 1: from now on the worker may be woken.
    pub fn announce(&self, worker: usize) {
        *lock(&self.beds[worker].noticed) = false;
        self.sleeping.insert(worker as u32);
        heavy_fence();
    }

    /// The worker is awake. Whether a waker had counted on it.
    pub fn retract(&self, worker: usize) -> bool {
        !self.sleeping.remove(worker as u32)
    }

    /// Parks until noticed. The caller retracts afterwards.
    pub fn sleep(&self, worker: usize) {
        let bed = &self.beds[worker];
        let mut noticed = lock(&bed.noticed);
        while !*noticed {
            noticed = bed.notice.wait(noticed).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Wakes a worker. Whether it slept, or was about to.
    pub fn wake(&self, worker: usize) -> bool {
        if !self.sleeping.remove(worker as u32) {
            return false;
        }
        let bed = &self.beds[worker];
        *lock(&bed.noticed) = true;
        bed.notice.notify_one();
        true
    }

    /// Wakes the first worker that sleeps and that `wanted` accepts. Whether there was one.
    pub fn wake_any(&self, wanted: impl Fn(usize) -> bool) -> bool {
        fence(SeqCst);
        self.sleeping.iter().map(|worker| worker as usize).any(|worker| wanted(worker) && self.wake(worker))
    }

    /// Wakes everybody.
    pub fn wake_all(&self) {
        for worker in 0..self.beds.len() {
            self.wake(worker);
        }
    }
}
