//! What a thread that ends tasks keeps from one end to the next.

use super::complete::aside;
use super::failure::Outcome;
use super::record::Dependent;
use crate::core::Vacant;
use crate::data::DataHeader;
use crate::recording::{Recorded, Visit};
use sched_core::{Arch, WorkerId};
use sched_graph::ContextId;
use sched_sync::at_hand::Filled;
use sched_tree::seat::DeferredWake;
use sched_tree::{Slot, SlotId};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Buffers of a thread that ends tasks, reused so that nothing is allocated.
#[derive(Default)]
pub(crate) struct WorkerScratch {
    pub(super) dependents: Vec<Dependent>,
    /// Tasks that end without having run, with their outcomes.
    pub(super) ending: Vec<(SlotId, Outcome)>,
    /// Tasks to schedule: again, after a commute turn was given back, or behind an entry that has ended.
    pub(super) retry: Vec<SlotId>,
    /// Whether this thread will pull a task next.
    pub(super) will_pull: bool,
    /// Its deferred wake, if so, and the task that it goes on with.
    pub(crate) deferred: DeferredWake,
    /// The only context that this worker serves, its number and its architecture: it may go on with a task that it makes
    /// ready.
    pub(crate) goes_on: Option<(ContextId, WorkerId, Arch)>,
    /// How many tasks it has [at hand](crate::worker::at_hand), at most.
    pub(crate) filled: Filled,
    /// Whether it may have some, or some that wait at home in a recording: then it looks for these first.
    pub(crate) looks_nearby: bool,
    /// Slots to return to their codelets.
    pub(super) freed: Freed,
    /// The recording of the last task that belonged to one.
    recorded: Option<Arc<Recorded>>,
    /// Where this worker looks for its tasks.
    visit: Visit,
}

impl WorkerScratch {
    /// Buffers of a worker, which pulls tasks itself.
    pub(crate) fn of_worker() -> WorkerScratch {
        WorkerScratch { will_pull: true, ..WorkerScratch::default() }
    }

    /// Schedules a task that waits for nothing any more, after the current step.
    pub(crate) fn schedule_later(&mut self, slot: SlotId) {
        self.retry.push(slot);
    }

    /// Ends an entry or a task without having run it, after the current step.
    pub(crate) fn end_later(&mut self, slot: SlotId, outcome: Outcome) {
        self.ending.push((slot, outcome));
    }

    /// Gives the turns at these data back.
    pub(crate) fn give_turns(&mut self, turns: &[Arc<DataHeader>]) {
        self.retry.extend(turns.iter().filter_map(|header| header.give_turn()));
    }

    /// Passes on the turns at these data that a task was scheduled to take, if it was, and does not.
    pub(super) fn pass_turns(&mut self, turns: &[Arc<DataHeader>]) {
        self.retry.extend(turns.iter().filter_map(|header| header.pass_turn()));
    }

    /// The recording of a task, to be [kept](Self::keep_recording) for the next one: a count of its users for each
    /// task would be shared by all workers.
    pub(crate) fn take_recording(&mut self, recorded: &Arc<Recorded>) -> Arc<Recorded> {
        match self.recorded.take() {
            Some(kept) if Arc::ptr_eq(&kept, recorded) => kept,
            other => {
                self.recorded = other;
                self.let_go(None);
                Arc::clone(recorded)
            }
        }
    }

    /// Whether a task of a recording was executed here.
    #[inline(always)]
    pub(crate) fn has_recording(&self) -> bool {
        self.recorded.is_some()
    }

    /// The recording of the last task that belonged to one, and the index of the task in this slot, if that is another
    /// one of the same replay and runs without a look at its record. To be [kept](Self::keep_recording).
    #[inline]
    pub(crate) fn take_unasked(&mut self, slot: &Slot) -> Option<(Arc<Recorded>, usize)> {
        let recorded = self.recorded.as_ref()?;
        let index = recorded.index_of(slot).filter(|index| recorded.is_unasked(*index))?;
        self.recorded.take().map(|recorded| (recorded, index))
    }

    /// See [`take_recording`](Self::take_recording).
    pub(crate) fn keep_recording(&mut self, recorded: Arc<Recorded>) {
        self.let_go(Some(recorded));
    }

    /// Keeps a recording that this worker begins to visit.
    pub(crate) fn visit(&mut self, recorded: Arc<Recorded>, visit: Visit) {
        self.let_go(Some(recorded));
        self.visit = visit;
    }

    /// The recording of the last task that belonged to one, and where this worker looks for its tasks.
    #[inline]
    pub(crate) fn visited(&mut self) -> Option<(&Arc<Recorded>, &mut Visit)> {
        Some((self.recorded.as_ref()?, &mut self.visit))
    }

    /// Whether tasks of a replay in progress wait where this worker looks for them.
    pub(crate) fn visits_a_replay(&self) -> bool {
        self.recorded.as_ref().is_some_and(|recorded| recorded.waits_at_home())
    }

    /// Lets go of the recording that was kept, and keeps `next`. The last one to let go drops kernels, and what they
    /// own.
    fn let_go(&mut self, next: Option<Arc<Recorded>>) {
        self.looks_nearby |= next.is_some();
        if let Some(kept) = std::mem::replace(&mut self.recorded, next) {
            aside(&AtomicU64::new(0), "the drop of a recording", || drop(kept));
        }
    }
}

/// Slots of ended tasks, returned in batches.
#[derive(Default)]
pub(super) struct Freed {
    pub(super) places: Vec<Vacant>,
    /// Slots of one codelet, while they are returned.
    pub(super) of_one: Vec<Vacant>,
    /// Codelet of all of them, unless they are `mixed`.
    pub(super) codelet: u32,
    pub(super) mixed: bool,
}

/// Size of a batch of slots.
const FREED_BATCH: usize = 64;

impl Freed {
    /// Adds the slot of a task of this codelet. Returns whether the batch is full.
    #[inline(always)]
    pub(super) fn push(&mut self, codelet: u32, place: Vacant) -> bool {
        if codelet != self.codelet {
            self.note_codelet(codelet);
        }
        self.places.push(place);
        self.places.len() >= FREED_BATCH
    }

    #[inline(never)]
    fn note_codelet(&mut self, codelet: u32) {
        self.mixed = !self.places.is_empty();
        self.codelet = codelet;
    }
}
