//! A task of a recording, as its recording keeps it.

use super::Recorded;
use super::draft::DraftTask;
use super::job::RecordedJob;
use crate::core::TaskPlace;
use crate::data::DataHeader;
use crate::task::record::RareFields;
use crate::task::submit::Restriction;
use parking_lot::Mutex;
use sched_core::{Arch, WorkerId, fetch_ahead};
use sched_tree::{Phase, Slot};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::*};

/// A task of a recording, in one cache line: with its slot, all that starting, running and ending it needs. A graph of
/// many tasks leaves the caches between one replay and the next, and its tasks move between workers, so what a task
/// costs is the lines that it touches and changes. This one does not change while it runs.
#[repr(align(64))]
pub(crate) struct Planned {
    /// The kernel and its arguments.
    pub(super) job: Box<dyn RecordedJob>,
    /// Its head keeps the codelet and the footprint, which do not change.
    pub(super) slot: &'static Slot,
    /// Number of tasks that it waits for.
    pub(super) waits: u32,
    /// Where those that wait for it begin and end in [`Recorded::successors`].
    pub(super) successors: [u32; 2],
    pub(super) archs: u32,
    pub(super) width: u16,
    /// Number of the worker near which it is to run, or `u16::MAX`. Changes only with the workers of its context.
    home: AtomicU16,
    /// Its place among those that may wait at home there, or `u32::MAX` if it may not. Changes with its home.
    place: AtomicU32,
    /// Whether it asks for a priority, which its head keeps.
    pub(super) has_priority: bool,
    /// Whether it has turns to take.
    pub(super) has_turns: bool,
    /// Whether it has a [`RarelyPlanned`].
    pub(super) is_rare: bool,
}

const _: () = assert!(size_of::<Planned>() == 64, "see above");

/// What few tasks of recordings have.
pub(super) struct RarelyPlanned {
    pub(super) sched_data: u64,
    pub(super) restriction: Option<Restriction>,
    /// Data with commute accesses, in order of their ids.
    pub(super) turns: Mutex<Vec<Arc<DataHeader>>>,
}

/// A task that waits for another one of its recording.
#[derive(Clone, Copy)]
pub(crate) struct Successor(u32);

impl Successor {
    /// The task of this index waits; `explicit` if the program asked for that, so that a failure cancels it.
    pub(super) fn new(task: u32, explicit: bool) -> Successor {
        debug_assert!(task < 1 << 31, "a recording has fewer than 2^31 tasks");
        Successor(task << 1 | u32::from(explicit))
    }

    pub(super) fn task(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) fn is_explicit(self) -> bool {
        self.0 & 1 != 0
    }
}

/// What the record of a task of a recording knows of it.
pub(crate) struct Replayed {
    pub(super) recorded: Arc<Recorded>,
    pub(super) index: u32,
}

impl Replayed {
    /// Whether the task is the one of this sequence and has not begun; then it asks its record before it begins. See
    /// [`unasked`](sched_sync::unasked).
    pub(crate) fn will_ask(&self, sequence: u64) -> bool {
        let Replayed { recorded, index } = self;
        recorded.unasked.end();
        let slot = recorded.tasks[*index as usize].slot;
        // The phase first: who ends the task ends its sequence before.
        slot.phase() != Phase::Running && slot.head().sequence.load(Acquire) == sequence
    }
}

impl Planned {
    /// Whether no task waits for it.
    #[inline]
    pub(super) fn is_sink(&self) -> bool {
        self.successors[0] == self.successors[1]
    }

    /// Sets the worker near which it is to run, in replays to come.
    pub(super) fn set_home(&self, worker: Option<WorkerId>) {
        let number = worker.and_then(|worker| u16::try_from(worker.0).ok());
        self.home.store(number.unwrap_or(u16::MAX), Relaxed);
        self.set_place(None);
    }

    /// Sets its place among those that may wait at home there, if it may.
    pub(super) fn set_place(&self, place: Option<u32>) {
        self.place.store(place.unwrap_or(u32::MAX), Relaxed);
    }

    /// Its home, and its place among those that may wait there, if it may.
    #[inline]
    pub(super) fn place_at_home(&self) -> Option<(u32, usize)> {
        let place = self.place.load(Relaxed);
        (place != u32::MAX).then(|| (u32::from(self.home.load(Relaxed)), place as usize))
    }

    /// Whether it may [wait at home](super::at_home) with a worker of this architecture, if it has a home: nothing has
    /// to be asked about it, and somebody else finds out that it waits for nothing any more.
    pub(super) fn may_wait_at_home(&self, arch: Arch) -> bool {
        self.waits > 0 && !self.is_rare && self.width <= 1 && self.archs & 1 << arch.number() != 0
    }

    /// Number of the worker near which it is to run.
    #[inline]
    pub(super) fn home(&self) -> Option<u32> {
        Some(self.home.load(Relaxed)).filter(|home| *home != u16::MAX).map(u32::from)
    }

    /// Begins to bring near what starting the task writes, and running it reads.
    #[inline]
    pub(super) fn fetch(&self) {
        self.slot.fetch();
        fetch_ahead(&*self.job);
    }

    /// The plan of a task, and what else it has.
    pub(super) fn new(
        task: DraftTask,
        place: TaskPlace,
        successors: [u32; 2],
        waits: u32,
    ) -> (Planned, RareFields, Option<RarelyPlanned>) {
        let DraftTask { job, name, only, turns, priority, sched_data, footprint, restriction, .. } = task;
        let (facts, head) = (Arc::clone(job.facts()), place.slot.head());
        let (archs, width) = (facts.archs.bits(), facts.width);
        // What components wrote about the last task in this place is not restored later.
        head.reset();
        head.codelet.store(facts.number, Relaxed);
        head.footprint.store(footprint, Relaxed);
        priority.inspect(|priority| head.priority.store(*priority, Relaxed));
        let has_turns = !turns.is_empty();
        let is_rare = has_turns || sched_data != 0 || restriction.is_some();
        let rarely = is_rare.then(|| RarelyPlanned { sched_data, restriction, turns: Mutex::new(turns.clone()) });
        let planned = Planned {
            job,
            slot: place.slot,
            waits,
            successors,
            archs,
            width,
            home: AtomicU16::new(u16::MAX),
            place: AtomicU32::new(u32::MAX),
            has_priority: priority.is_some(),
            has_turns,
            is_rare,
        };
        (planned, RareFields { name, only, turns, ..RareFields::default() }, rarely)
    }
}
