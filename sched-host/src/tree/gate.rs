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
//! Adding to the lane and reading `closed`, like setting `closed` and reading the lanes, are sequentially consistent:
//! of an enterer and a closer at the same moment, at least one sees the other. If the enterer sees `closed`, it steps
//! back. If only the closer sees the lane, it waits for the call to end. Both may see each other: the enterer steps back,
//! the closer waits a moment longer.
//!
//! A closer must not itself be inside, or it would wait for itself: a call that finds a node broken closes the gate after
//! it has left. A component that never returns keeps the gate from closing; `close_until` gives up then, and says so.

use crate::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering::*, pause};
use crossbeam::utils::CachePadded;

/// See the [module](self).
pub struct Gate {
    lanes: Box<[CachePadded<AtomicUsize>]>,
    closed: AtomicBool,
    closer: Mutex<()>,
}

impl Gate {
    /// An open gate with so many lanes (at least one). Threads may share a lane.
    pub fn new(lanes: usize) -> Gate {
        let lanes = (0..lanes.max(1)).map(|_| CachePadded::new(AtomicUsize::new(0))).collect();
        Gate { lanes, closed: AtomicBool::new(false), closer: Mutex::new(()) }
    }

    /// Waits while the gate is closed, and enters through a lane (taken modulo their number).
    pub fn enter(&self, lane: usize) -> Inside<'_> {
        let lane = &self.lanes[lane % self.lanes.len()];
        loop {
            lane.fetch_add(1, SeqCst);
            if !self.closed.load(SeqCst) {
                return Inside { lane };
            }
            lane.fetch_sub(1, SeqCst);
            while self.closed.load(Acquire) {
                pause();
            }
        }
    }

    /// Closes the gate and waits until nobody is inside, or until `give_up` says so. The gate opens when the result, or
    /// the attempt, is dropped.
    pub fn close_until(&self, mut give_up: impl FnMut() -> bool) -> Option<Closed<'_>> {
        let closed =
            Closed { gate: self, _one_closer: self.closer.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) };
        self.closed.store(true, SeqCst);
        for lane in &self.lanes {
            while lane.load(SeqCst) != 0 {
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
    lane: &'a AtomicUsize,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.lane.fetch_sub(1, Release);
    }
}

/// Nobody is inside until this is dropped.
pub struct Closed<'a> {
    gate: &'a Gate,
    _one_closer: MutexGuard<'a, ()>,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.gate.closed.store(false, SeqCst);
    }
}
