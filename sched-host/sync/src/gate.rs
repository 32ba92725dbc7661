//! The gate of a tree: calls enter and leave it, and it can be closed until no call is inside.
//!
//! # Protocol
//!
//! Calls are frequent and short; closing is rare (a node failed, the tree is swapped, workers change). So entering
//! must cost next to nothing, and closing may be expensive. Each thread counts itself in a *lane* of its own cache
//! line.
//!
//! - **enter**: add 1 to the lane, then read whether the gate is closed. If it is, take the 1 back, wait until it is
//!   open, and begin again.
//! - **leave**: subtract 1 from the lane.
//! - **close**: take the closing lock (one closer at a time), set `closed`, then wait until every lane is 0.
//!
//! A *light* fence stands between adding to the lane and reading `closed`, a *heavy* one between setting `closed` and
//! reading the lanes. The pair orders as two full fences would (Linux' `membarrier`: the heavy one makes every thread
//! of the process execute a fence, so the light one only keeps the compiler from reordering). So when a thread enters
//! while another closes, at least one sees the other. If the entering thread sees `closed`, it steps back. If only the
//! closer sees the lane, it waits for the call to end. If both see each other, the entering thread steps back and the
//! closer waits a moment longer.
//!
//! Threads that were kept out enter before the gate closes the next time: closers wait for that. So workers get on
//! with their tasks however often the tree is exchanged.
//!
//! A worker has a lane to itself, so it adds with a plain store. So has each of the first other threads, which may be
//! inside already, and adds by a load and a store. Threads beyond these share the other lanes.
//!
//! A closer must not itself be inside, or it would wait for itself: a call that finds a node broken closes the gate
//! after it has left. A component that never returns keeps the gate from closing; `close_until` then gives up, and
//! says so.

#[cfg(all(test, loom))]
mod models;

use crate::fence::{heavy_fence, light_fence, prepare_fences};
use crate::primitives::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering::*, pause};
use crossbeam::utils::CachePadded;

/// See the [module](self).
pub struct Gate {
    owned: Lanes,
    /// Those of single threads that are not workers.
    alone: Lanes,
    /// Those of all other threads; their number is a power of two.
    shared: Lanes,
    closed: AtomicBool,
    /// Threads that found the gate closed and have not come in yet.
    kept_out: AtomicUsize,
    closer: Mutex<()>,
}

/// How many are inside, by lane.
type Lanes = Box<[CachePadded<AtomicUsize>]>;

/// The lane by which a thread enters.
#[derive(Clone, Copy, Debug)]
pub enum Lane {
    /// A lane of one thread, which is not inside already.
    Owned(usize),
    /// The lane of the thread that has this number, and no other thread ever has it: the first ones have lanes to
    /// themselves.
    Thread(usize),
}

impl Gate {
    /// An open gate with `owned` lanes for workers, `alone` for one other thread each, and at least `shared` lanes for
    /// all others.
    pub fn new(owned: usize, alone: usize, shared: usize) -> Gate {
        prepare_fences();
        let lanes = |count| (0..count).map(|_| CachePadded::new(AtomicUsize::new(0))).collect();
        Gate {
            owned: lanes(owned),
            alone: lanes(alone),
            shared: lanes(shared.next_power_of_two()),
            closed: AtomicBool::new(false),
            kept_out: AtomicUsize::new(0),
            closer: Mutex::new(()),
        }
    }

    /// Enters through a lane, waiting while the gate is closed.
    #[inline]
    pub fn enter(&self, lane: Lane) -> Inside<'_> {
        match self.try_enter(lane) {
            Some(inside) => inside,
            None => self.enter_when_open(lane),
        }
    }

    /// Enters through a lane, unless the gate is closed.
    // Mostly the kind of the lane is known where it is called.
    #[inline(always)]
    fn try_enter(&self, lane: Lane) -> Option<Inside<'_>> {
        let inside = match lane {
            Lane::Owned(number) => {
                let count = &*self.owned[number];
                count.store(1, Relaxed);
                Inside { count, others: Some(0) }
            }
            Lane::Thread(number) => match self.alone.get(number) {
                Some(count) => {
                    let others = count.load(Relaxed);
                    count.store(others + 1, Relaxed);
                    Inside { count, others: Some(others) }
                }
                None => {
                    let count = &*self.shared[number & (self.shared.len() - 1)];
                    count.fetch_add(1, Relaxed);
                    Inside { count, others: None }
                }
            },
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

    /// Closes the gate and waits until no call is inside, or until `give_up` returns true. The gate opens when the
    /// result is dropped, or when the attempt is given up.
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
        for lane in self.owned.iter().chain(&self.alone).chain(&self.shared) {
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

/// A call inside the gate, until this is dropped.
pub struct Inside<'a> {
    count: &'a AtomicUsize,
    /// How many calls of this thread it is inside of, where only this thread counts.
    others: Option<usize>,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.others {
            Some(others) => self.count.store(others, Release),
            None => {
                self.count.fetch_sub(1, Release);
            }
        }
    }
}

/// A closed gate with no call inside, until this is dropped.
pub struct Closed<'a> {
    gate: &'a Gate,
    _one_closer: MutexGuard<'a, ()>,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.gate.closed.store(false, Release);
    }
}
