//! Threads of the program that wait, and the worker that one of them is meanwhile.
//!
//! # Protocol
//!
//! A runtime may have a worker without a thread of its own: whoever waits is that worker, until what it waits for has
//! happened. While nobody is, the worker lies in `vacant`.
//!
//! A thread that waits ([`Waiters::wait_until`]):
//! 1. is done if what it waits for has happened;
//! 2. takes the worker if it is vacant, *serves* as it, and puts it back;
//! 3. else looks a few times whether it has happened meanwhile ([`looks`](crate::looks));
//! 4. looks at both again under the lock of those that park, and parks.
//!
//! *No end is missed.* A thread that makes something happen that others wait for [tells](Waiters::tell) them
//! afterwards, under the lock of those that park. Either the look under that lock comes later and sees what has
//! happened, or the thread has parked before and is notified. The thread that serves parks elsewhere, as workers do: it
//! is [disturbed](crate::sleep::Sleep::disturb) there.
//!
//! *The worker does not stay vacant while a thread waits.* Whoever puts it back tells those that park, which look
//! whether it is vacant.

#[cfg(all(test, loom))]
mod models;

use crate::looks::{LOOKS, pause_before};
use crate::pace::Pace;
use crate::primitives::{AtomicU64, Condvar, Mutex, Ordering::*, lock};
use std::time::Duration;

/// See the [module](self). `W` is a worker.
pub struct Waiters<W> {
    /// Number of threads that wait.
    waiting: AtomicU64,
    /// Number of threads that park.
    parked: Mutex<usize>,
    changed: Condvar,
    vacant: Mutex<Vacant<W>>,
}

struct Vacant<W> {
    worker: Option<W>,
    /// Whether the worker is dropped when it is put back.
    is_closed: bool,
}

impl<W> Default for Waiters<W> {
    fn default() -> Waiters<W> {
        Waiters {
            waiting: AtomicU64::new(0),
            parked: Mutex::new(0),
            changed: Condvar::new(),
            vacant: Mutex::new(Vacant { worker: None, is_closed: false }),
        }
    }
}

impl<W> Waiters<W> {
    /// Whether a thread waits.
    pub fn is_any(&self) -> bool {
        self.waiting.load(SeqCst) > 0
    }

    /// Whether there is a worker without a thread, and no thread is that worker now.
    pub fn is_vacant(&self) -> bool {
        lock(&self.vacant).worker.is_some()
    }

    /// Notifies the threads that park, after something has happened that one of them may wait for.
    pub fn tell(&self) {
        if *lock(&self.parked) > 0 {
            self.changed.notify_all();
        }
    }

    /// Puts a worker there, for threads that wait.
    pub fn put(&self, worker: W) {
        let mut vacant = lock(&self.vacant);
        let left = if vacant.is_closed { Some(worker) } else { vacant.worker.replace(worker) };
        drop(vacant);
        self.tell();
        // Not under the lock.
        drop(left);
    }

    /// Drops the worker, now or when the thread that is it puts it back.
    pub fn close(&self) {
        let mut vacant = lock(&self.vacant);
        vacant.is_closed = true;
        let worker = vacant.worker.take();
        drop(vacant);
        drop(worker);
    }

    /// Waits until `done`. A thread that `may_serve` is the worker meanwhile, if that is vacant: `serve` returns when
    /// the wait is over. After each `period` in which it parks, `go_on` decides whether to continue.
    pub fn wait_until(
        &self,
        period: Duration,
        may_serve: bool,
        done: impl Fn() -> bool,
        mut go_on: impl FnMut() -> bool,
        mut serve: impl FnMut(&mut W, &mut dyn FnMut() -> bool),
    ) {
        self.waiting.fetch_add(1, SeqCst);
        let mut pace = Pace::new(period);
        let mut looks = 0..LOOKS;
        while !done() {
            if may_serve && let Some(worker) = self.take() {
                let mut taken = PutBack { waiters: self, worker: Some(worker) };
                taken.worker.iter_mut().for_each(|worker| serve(worker, &mut go_on));
                break;
            }
            if let Some(look) = looks.next() {
                pause_before(look);
                continue;
            }
            let mut parked = lock(&self.parked);
            if done() || may_serve && self.is_vacant() {
                continue;
            }
            *parked += 1;
            let waited = self.changed.wait_timeout(parked, pace.left());
            let (mut parked, _) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
            *parked -= 1;
            drop(parked);
            if pace.is_due() && !done() && !go_on() {
                break;
            }
        }
        self.waiting.fetch_sub(1, SeqCst);
    }

    fn take(&self) -> Option<W> {
        lock(&self.vacant).worker.take()
    }
}

/// Puts the worker back when it is dropped.
struct PutBack<'a, W> {
    waiters: &'a Waiters<W>,
    worker: Option<W>,
}

impl<W> Drop for PutBack<'_, W> {
    fn drop(&mut self) {
        self.worker.take().into_iter().for_each(|worker| self.waiters.put(worker));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// How often a thread sleeps that waits for what has happened at its look of this number.
    fn sleeps(happens: u32) -> u32 {
        let (waiters, looks, slept) = (Waiters::<()>::default(), Cell::new(0), Cell::new(0));
        let done = || {
            looks.set(looks.get() + 1);
            looks.get() > happens
        };
        let go_on = || {
            slept.set(slept.get() + 1);
            true
        };
        waiters.wait_until(Duration::ZERO, true, done, go_on, |&mut (), _| ());
        assert!(!waiters.is_any());
        slept.get()
    }

    #[test]
    fn what_happens_soon_is_waited_for_without_sleep() {
        assert_eq!([0, 1, LOOKS / 2, LOOKS].map(sleeps), [0; 4]);
        assert!(sleeps(2 * LOOKS) > 0);
    }
}
