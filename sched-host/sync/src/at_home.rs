//! Ready tasks that wait at home: each worker finds its own by a look at what they count down.
//!
//! # Protocol
//!
//! A graph that runs again and again is known before it runs, and so is the worker that is to run each task. Whoever
//! makes such a task ready need not put it anywhere: the count of what the task waits for is at zero, and the worker
//! looks at the counts of its tasks. So one cache line travels, which had to anyway.
//!
//! A [`Count`] says of a task in a [`Round`], a run of the graph, for how many others it waits, or that it is ready, or
//! that somebody has taken it. To take a task is to put its count back to what it begins with, so that
//! it is ready for the next round, and to note the parity of this round in it. So no count is touched between rounds,
//! and a worker that looks late, in a later round, takes what is ready then, or nothing.
//!
//! - **leave**: whoever ends the last predecessor of a task [releases](Count::release) it. It is free to take.
//! - **take at home**: the worker goes through its tasks in an order in which none waits for a later one, from the
//!   first that is not taken, [`WINDOW`] tasks far ([`Shelf::take`]).
//! - **steal**: others do the same from where the worker says that it is ([`Shelf::steal`]).
//! - **keep**: whoever makes a task ready may instead [take it at once](Count::release_and_take). Nobody else sees it
//!   ready then. So it is done with all tasks that a scheduler is to hear of.
//!
//! *Nothing lies where nobody looks.* Only tasks are left that the window [has room](Shelf::has_room) for. It begins
//! where the worker has said that it is, which is a step behind the truth and never ahead of it; what is not taken lies
//! in the window or behind it, where nothing is left yet. The note carries the number of the round, so that nobody
//! takes a place in an earlier round for one in this.
//!
//! *No sleeper misses a task.* Whoever leaves one then looks for sleeping workers, behind a light fence; a worker that
//! falls asleep looks for tasks once more behind a heavy one ([`sleep`](crate::sleep)). If it does not see the task,
//! the other one sees it sleep. It sees the window at least where the other saw it, so it looks far enough.

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicU32, AtomicU64, Ordering::*};

/// Number of tasks that a worker looks at.
pub const WINDOW: usize = if cfg!(loom) { 2 } else { 64 };

/// After how many tasks a worker says where it is: others that read it fetch a cache line each time.
const STEP: usize = if cfg!(loom) { 1 } else { 16 };

/// One run of a graph, by its number from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Round(pub u32);

/// The bit of a count that tells in which rounds the task was taken last: those of this parity.
const PARITY: u32 = 1 << 31;

impl Round {
    fn parity(self) -> u32 {
        self.0 << 31
    }

    fn ready(self) -> u32 {
        self.parity() ^ PARITY
    }
}

/// What one task waits for in a round, and whether it has been taken; see the [module](self).
#[derive(Debug)]
pub struct Count(AtomicU32);

impl Count {
    /// The count of a task that waits for this many others, before the first round.
    #[must_use]
    pub fn new(links: u32) -> Count {
        Count(AtomicU32::new(links & !PARITY))
    }

    /// Counts one predecessor less. Returns whether it was the last: then the task is free to take.
    #[inline]
    pub fn release(&self) -> bool {
        let seen = self.0.load(Acquire);
        // The last link is this one, so nobody else counts any more: no exchange is needed.
        if seen & !PARITY == 1 {
            self.0.store(seen - 1, Release);
            return true;
        }
        self.0.fetch_sub(1, AcqRel) & !PARITY == 1
    }

    /// Counts one predecessor less. Returns whether it was the last: then the task, which waits for `links` others, is
    /// taken.
    #[inline]
    pub fn release_and_take(&self, round: Round, links: u32) -> bool {
        let mut seen = self.0.load(Acquire);
        while seen & !PARITY != 1 {
            match self.0.compare_exchange_weak(seen, seen - 1, AcqRel, Acquire) {
                Ok(_) => return false,
                Err(now) => seen = now,
            }
        }
        self.0.store(round.parity() | links, Release);
        true
    }

    /// Where the task, which waits for others at first, is in a round.
    #[must_use]
    pub fn whereabouts(&self, round: Round) -> Whereabouts {
        match self.0.load(Relaxed) {
            seen if seen == round.ready() => Whereabouts::Left,
            seen if seen & PARITY == round.parity() => Whereabouts::Taken,
            _ => Whereabouts::Waits,
        }
    }

    /// Takes the task, which waits for `links` others, if it is ready. What its predecessors did is seen then.
    #[inline]
    fn take(&self, round: Round, links: impl FnOnce() -> u32) -> Seen {
        let seen = self.0.load(Relaxed);
        if seen != round.ready() {
            return if seen & PARITY == round.parity() { Seen::Taken } else { Seen::Waits };
        }
        match self.0.compare_exchange(seen, round.parity() | links(), AcqRel, Relaxed) {
            Ok(_) => Seen::Got,
            Err(_) => Seen::Taken,
        }
    }
}

/// Where a task is in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whereabouts {
    /// It waits for others.
    Waits,
    /// It is ready, and waits at home.
    Left,
    /// Somebody has taken it.
    Taken,
}

/// What became of an attempt to take a task.
#[derive(PartialEq, Eq)]
enum Seen {
    Waits,
    Taken,
    Got,
}

/// The tasks at home with one worker, as others see them. They are named by their places, from 0, in an order in which
/// none waits for a later one; how to look at the task in a place is passed to each call.
#[derive(Default)]
#[repr(align(64))]
pub struct Shelf(AtomicU64);

/// Where a worker is on its shelf.
#[derive(Clone, Copy, Default, Debug)]
pub struct Position {
    round: Round,
    /// The first place whose task is not taken.
    first: usize,
}

/// The tasks on one shelf.
pub trait OnShelf {
    /// The number of places.
    fn len(&self) -> usize;

    /// The count of the task in a place.
    fn count(&self, place: usize) -> &Count;

    /// For how many others it waits.
    fn links(&self, place: usize) -> u32;

    /// Whether there are no places.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Shelf {
    /// Whether the task in this place may be left to the worker: then it looks there.
    #[inline]
    pub fn has_room(&self, round: Round, place: usize) -> bool {
        place < self.said(round) + WINDOW
    }

    /// Where the worker said that it is, at the beginning of the window.
    #[inline]
    fn said(&self, round: Round) -> usize {
        let said = self.0.load(Relaxed);
        if (said >> 32) as u32 == round.0 { said as u32 as usize } else { 0 }
    }

    /// A ready task, for the worker: the first in the window. Nobody else calls this meanwhile.
    #[inline]
    pub fn take(&self, at: &mut Position, round: Round, tasks: &impl OnShelf) -> Option<usize> {
        if at.round != round {
            *at = Position { round, first: self.said(round) };
        }
        let began = at.first;
        let end = tasks.len().min(began - began % STEP + WINDOW);
        let mut found = None;
        for place in began..end {
            match tasks.count(place).take(round, || tasks.links(place)) {
                Seen::Waits => continue,
                Seen::Taken => {}
                Seen::Got => found = Some(place),
            }
            at.first += usize::from(at.first == place);
            if found.is_some() {
                break;
            }
        }
        if at.first / STEP != began / STEP {
            let said = at.first - at.first % STEP;
            self.0.store(u64::from(round.0) << 32 | said as u64, Relaxed);
        }
        found
    }

    /// A ready task, for somebody else.
    pub fn steal(&self, round: Round, tasks: &impl OnShelf) -> Option<usize> {
        let said = self.said(round);
        (said..tasks.len().min(said + WINDOW))
            .find(|place| tasks.count(*place).take(round, || tasks.links(*place)) == Seen::Got)
    }
}
