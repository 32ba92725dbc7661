//! Sleeping workers: how they fall asleep without missing a task, and how they are woken.
//!
//! # Protocol
//!
//! Waking a parked thread costs the waker about a hundred times what scheduling a task costs, so no worker is woken
//! needlessly, and scheduling pays nothing while all workers are awake: the *sleeping* bits, one for each worker in a
//! [`SharedSet`], are all that a scheduling thread reads.
//!
//! A worker that found nothing:
//! 1. [`announce`](Sleep::announce): sets its bit, then a heavy fence;
//! 2. looks for a task **once more**;
//! 3. found one: [`retract`](Sleep::retract) clears the bit; else [`sleep`](Sleep::sleep) parks it, and `retract`
//!    follows.
//!
//! A thread that stores a task: stores it; a light fence (`tree::hop`); reads the bits; [`wake`](Sleep::wake)s a
//! worker whose bit is set, by clearing the bit. Only one waker can clear it, so one sleeper is not woken twice.
//!
//! *No task is missed.* The worker's bit comes before its second look, the task before the waker's look at the bits,
//! with a fence between on either side; the worker that falls asleep pays for both ([`heavy_fence`]). So the worker
//! sees the task, or the waker sees the bit.
//!
//! *No wake is lost.* A waker that clears a bit counts on that worker for its task. If the worker took another task in
//! its second look, `retract` finds the bit cleared and reports it: the worker then wakes another one in its place.
//!
//! *A late notice does no harm.* Between a waker's clearing of the bit and its notice on the bed, the worker may have
//! gone to work and come to bed again. It then wakes for nothing, with its bit still set, so it always retracts after
//! sleeping.
//!
//! *A disturbance is no wake.* A worker that is [disturbed](Sleep::disturb) finds its bit still set, so it knows that
//! nobody counts on it. If its bit is not set, a waker is about to give it notice, and it will look up for that.

#[cfg(all(test, loom))]
mod models;

use crate::fence::{heavy_fence, prepare_fences};
use crate::primitives::{Condvar, Mutex, Ordering::*, fence, lock};
use crossbeam::utils::CachePadded;
use sched_core::SharedSet;
use std::sync::Arc;
use std::time::Duration;

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
    /// Beds for `workers` workers, all awake.
    pub fn new(workers: usize) -> Sleep {
        prepare_fences();
        let bed = || CachePadded::new(Bed { noticed: Mutex::new(false), notice: Condvar::new() });
        Sleep { sleeping: Arc::new(SharedSet::new(workers)), beds: (0..workers).map(|_| bed()).collect() }
    }

    /// The workers that sleep.
    #[inline]
    pub fn sleeping(&self) -> &Arc<SharedSet> {
        &self.sleeping
    }

    /// Step 1: marks the worker as one that may be woken.
    pub fn announce(&self, worker: usize) {
        *lock(&self.beds[worker].noticed) = false;
        self.sleeping.insert(worker as u32);
        heavy_fence();
    }

    /// Marks the worker as awake. Returns whether a waker had counted on it.
    pub fn retract(&self, worker: usize) -> bool {
        !self.sleeping.remove(worker as u32)
    }

    /// Parks until woken. The caller retracts afterwards.
    pub fn sleep(&self, worker: usize) {
        let bed = &self.beds[worker];
        let mut noticed = lock(&bed.noticed);
        while !*noticed {
            noticed = bed.notice.wait(noticed).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// [`sleep`](Self::sleep), but for this time at most.
    pub fn sleep_for(&self, worker: usize, time: Duration) {
        let bed = &self.beds[worker];
        let mut noticed = lock(&bed.noticed);
        while !*noticed {
            let (held, result) =
                bed.notice.wait_timeout(noticed, time).unwrap_or_else(|poisoned| poisoned.into_inner());
            noticed = held;
            if result.timed_out() {
                return;
            }
        }
    }

    /// Lets a worker that sleeps, or is about to, look up, for another reason than a task: nobody counts on it. What it
    /// shall see was stored before.
    pub fn disturb(&self, worker: usize) {
        fence(SeqCst);
        if self.sleeping.contains(worker as u32) {
            let bed = &self.beds[worker];
            *lock(&bed.noticed) = true;
            bed.notice.notify_one();
        }
    }

    /// Wakes a worker. Returns whether it slept or was about to.
    pub fn wake(&self, worker: usize) -> bool {
        if !self.sleeping.remove(worker as u32) {
            return false;
        }
        let bed = &self.beds[worker];
        *lock(&bed.noticed) = true;
        bed.notice.notify_one();
        true
    }

    /// Wakes the first sleeping worker that `wanted` accepts. Returns whether there was one.
    pub fn wake_any(&self, wanted: impl Fn(usize) -> bool) -> bool {
        fence(SeqCst);
        self.sleeping.iter().map(|worker| worker as usize).any(|worker| wanted(worker) && self.wake(worker))
    }

    /// Wakes all workers.
    pub fn wake_all(&self) {
        for worker in 0..self.beds.len() {
            self.wake(worker);
        }
    }
}
