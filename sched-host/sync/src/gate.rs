//! The gate of a tree: calls enter and leave it, and it can be closed until none is inside.
//!
//! # Protocol
//!
//! Calls are many and short; closing is rare (a node failed, the tree is swapped, workers change). So entering must cost
//! next to nothing, and closing may cost much. Each thread counts itself in a *lane* of its own cache line.
//!
//! - **enter**: add 1 to the lane, then look whether the gate is closed. If it is, take the 1 back, wait until it is
//!   open, and begin again.
//! - **leave**: subtract 1 from the lane.
//! - **close**: take the closing lock (one closer at a time), set `closed`, then wait until every lane is 0.
//!
//! Between adding to the lane and reading `closed` stands a *light* fence; between setting `closed` and reading the lanes
//! a *heavy* one. A pair of these orders as two full fences would (Linux' `membarrier`: the heavy one makes every thread
//! of the process execute a fence, so that the light one need only keep the compiler from reordering). So of an enterer
//! and a closer at the same moment, at least one sees the other. If the enterer sees `closed`, it steps back. If only the
//! closer sees the lane, it waits for the call to end. Both may see each other: the enterer steps back, the closer waits a
//! moment longer.
//!
//! Whoever was kept out is let in before the gate closes the next time: closers wait for that. So workers get on with
//! their tasks however often the tree is exchanged.
//!
//! A worker has a lane to itself, so that it adds with a plain store. Threads that are not workers share the rest.
//!
//! A closer must not itself be inside, or it would wait for itself: a call that finds a node broken closes the gate after
//! it has left. A component that never returns keeps the gate from closing; `close_until` gives up then, and says so.

use crate::fence::{heavy_fence, light_fence, prepare_fences};
use crate::primitives::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering::*, pause};
use crossbeam::utils::CachePadded;

#[cfg(all(test, loom))]
mod models;

/// See the [module](self).
pub struct Gate {
    /// One for each worker, then those that others share.
    lanes: Box<[CachePadded<AtomicUsize>]>,
    owned: usize,
    /// The number of shared ones, which is a power of two, less one.
    shared_mask: usize,
    closed: AtomicBool,
    /// Threads that found the gate closed and have not come in yet.
    kept_out: AtomicUsize,
    closer: Mutex<()>,
}

/// Who enters.
#[derive(Clone, Copy, Debug)]
pub enum Lane {
    /// The one thread that ever uses this lane, which it is not inside by already.
    Owned(usize),
    /// A thread that shares this lane with others (taken modulo their number).
    Shared(usize),
}

impl Gate {
    /// An open gate with so many lanes of their own and at least so many to share.
    pub fn new(owned: usize, shared: usize) -> Gate {
        prepare_fences();
        let shared = shared.next_power_of_two();
        let lanes = (0..owned + shared).map(|_| CachePadded::new(AtomicUsize::new(0))).collect();
        Gate {
            lanes,
            owned,
            shared_mask: shared - 1,
            closed: AtomicBool::new(false),
            kept_out: AtomicUsize::new(0),
            closer: Mutex::new(()),
        }
    }

    /// Waits while the gate is closed, and enters through a lane.
    #[inline]
    pub fn enter(&self, lane: Lane) -> Inside<'_> {
        match self.try_enter(lane) {
            Some(inside) => inside,
            None => self.enter_when_open(lane),
        }
    }

    /// Enters through a lane, unless the gate is closed.
    #[inline]
    fn try_enter(&self, lane: Lane) -> Option<Inside<'_>> {
        let inside = match lane {
            Lane::Owned(number) => {
                let count = &*self.lanes[number];
                count.store(1, Relaxed);
                Inside { count, owned: true }
            }
            Lane::Shared(number) => {
                let count = &*self.lanes[self.owned + (number & self.shared_mask)];
                count.fetch_add(1, Relaxed);
                Inside { count, owned: false }
            }
        };
        light_fence();
        (!self.closed.load(Acquire)).then_some(inside)
    }

    #[cold]
    fn enter_when_open(&self, lane: Lane) -> Inside<'_> {
        self.kept_out.fetch_add(1, SeqCst);
        loop {
            while self.closed.load(Acquire) {
                pause();
            }
            if let Some(inside) = self.try_enter(lane) {
                self.kept_out.fetch_sub(1, SeqCst);
                return inside;
            }
        }
    }

    /// Closes the gate and waits until nobody is inside, or until `give_up` says so. The gate opens when the result, or
    /// the attempt, is dropped.
    pub fn close_until(&self, mut give_up: impl FnMut() -> bool) -> Option<Closed<'_>> {
        let closed =
            Closed { gate: self, _one_closer: self.closer.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) };
        while self.kept_out.load(SeqCst) != 0 {
            if give_up() {
                return None;
            }
            pause();
        }
        self.closed.store(true, SeqCst);
        heavy_fence();
        for lane in &self.lanes {
            while lane.load(Acquire) != 0 {
                if give_up() {
                    return None;
                }
                pause();
            }
        }
        Some(closed)
    }
}

/// A call is inside until this is dropped.
pub struct Inside<'a> {
    count: &'a AtomicUsize,
    owned: bool,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.owned {
            self.count.store(0, Release);
        } else {
            self.count.fetch_sub(1, Release);
        }
    }
}

/// Nobody is inside until this is dropped.
pub struct Closed<'a> {
    gate: &'a Gate,
    _one_closer: MutexGuard<'a, ()>,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.gate.closed.store(false, Release);
    }
}
