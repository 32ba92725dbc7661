//! Tasks that a worker has at hand; see [`sched_sync::at_hand`].
//!
//! Of several tasks that it makes ready a worker goes on with one, where its next pull would give that
//! ([`Tree::comes_straight_back`]). The others would wait in the tree, for later pulls of this worker or for others who
//! find nothing else ([`Tree::waits_at_home`]). It holds a few of these instead, and others take them when they find
//! nothing in their trees. It goes on with the oldest: the wider the front of a graph, the more there is for others.
//! Nothing is held while any worker sleeps: a push wakes it.
//!
//! What is held is in no tree. It goes into that of its context when the worker comes to serve other contexts, when the
//! tree is no longer of that kind, and when a thread of the program stops being the worker.

use super::Worker;
use crate::core::Core;
use crate::parallel::combined::Purpose;
use crate::task::scratch::WorkerScratch;
use sched_core::WorkerId;
use sched_sync::light_fence;
use sched_tree::seat::{Seated, Work};
use sched_tree::{Phase, Slot, SlotId, Tree};
use std::sync::atomic::Ordering::*;

/// The number of a slot in a [`Hand`](sched_sync::at_hand::Hand), which is not 0. (There are fewer than 2³¹ slots.)
#[inline]
fn number(slot: &Slot) -> u32 {
    slot.id().0 + 1
}

impl Core {
    /// The slot of this number.
    #[inline]
    fn held(&self, number: u32) -> &'static Slot {
        self.place(SlotId(number - 1)).slot
    }

    /// Holds a task that this worker has made ready, unless it is at home elsewhere. Returns it if it is to be pushed.
    #[inline]
    pub(crate) fn hold(
        &self,
        tree: &Tree,
        slot: &'static Slot,
        worker: WorkerId,
        scratch: &mut WorkerScratch,
    ) -> Option<&'static Slot> {
        let has_home = slot.head().home().is_some_and(|home| home != worker.0);
        if has_home || !tree.waits_at_home() {
            return Some(slot);
        }
        // The worker would have gone on with it. It has not begun, and may be cancelled.
        if slot.phase() == Phase::Running {
            slot.set_phase(Phase::Waiting);
        }
        let hand = &self.hands[worker.index()];
        if !hand.put(&mut scratch.filled, number(slot)) {
            return Some(slot);
        }
        scratch.looks_nearby = true;
        light_fence();
        if self.backend.sleep.sleeping().is_empty() {
            return None;
        }
        hand.take_back(&mut scratch.filled).map(|number| self.held(number))
    }

    /// Begins a task that was held, for a worker that goes on with such tasks. Returns whether it does, or else the
    /// task is to be pushed.
    #[inline]
    fn begin_held(&self, slot: &'static Slot, scratch: &WorkerScratch) -> bool {
        let Some((context, _, arch)) = scratch.goes_on else { return false };
        let record = self.records.get(slot.id());
        let goes_on = record.context() == context && self.tree_of(record).comes_straight_back(slot, arch);
        if goes_on {
            slot.set_phase(Phase::Running);
        }
        goes_on
    }

    fn push_held(&self, slot: &'static Slot, worker: WorkerId, scratch: &mut WorkerScratch) {
        self.push_here(self.tree_of(self.records.get(slot.id())), slot, Some(worker), scratch);
    }
}

impl Worker {
    /// Looks for a task that this worker has at hand, or that waits at home with it.
    // Out of line: where there are none of either, a look is not longer for it.
    #[inline(never)]
    pub(super) fn look_nearby(&mut self) -> Option<&'static Slot> {
        let at_hand = self.take_at_hand();
        if at_hand.is_some() {
            return at_hand;
        }
        if self.scratch.has_recording() {
            return self.core.find_at_home(&mut self.scratch);
        }
        self.scratch.looks_nearby = !self.scratch.filled.is_empty();
        None
    }

    /// Takes the oldest task that this worker has at hand, if it goes on with that.
    #[inline]
    fn take_at_hand(&mut self) -> Option<&'static Slot> {
        let taken = self.core.hands[self.id.index()].take(&mut self.scratch.filled);
        let slot = self.core.held(taken?);
        if self.core.begin_held(slot, &self.scratch) {
            self.count_went_on();
            return Some(slot);
        }
        self.core.push_held(slot, self.id, &mut self.scratch);
        self.lay_down();
        None
    }

    /// Counts a task that this worker goes on with.
    #[inline]
    pub(super) fn count_went_on(&self) {
        let went_on = &self.counters.went_on;
        went_on.store(went_on.load(Relaxed) + 1, Relaxed);
    }

    /// Pushes what this worker has at hand, the oldest first.
    pub(super) fn lay_down(&mut self) {
        while let Some(number) = self.core.hands[self.id.index()].take(&mut self.scratch.filled) {
            self.core.push_held(self.core.held(number), self.id, &mut self.scratch);
        }
    }

    /// Looks for a task that another worker has at hand, for one that has nothing to do.
    #[inline(never)]
    pub(super) fn look_at_hands(&mut self) -> Option<Work<Purpose>> {
        let (count, me) = (self.core.hands.len(), self.id.index());
        (1..count).find_map(|turn| {
            let hand = &self.core.hands[(me + turn) % count];
            let suits = |number| {
                let slot = self.core.held(number);
                let context = self.core.roster.get(self.core.records.get(slot.id()).context());
                slot.head().archs.load(Relaxed) & 1 << self.arch.number() != 0 && context.tree.serves(self.id)
            };
            let slot = self.core.held(hand.steal(suits)?);
            if self.core.begin_held(slot, &self.scratch) {
                return Some(Work::Alone(slot));
            }
            self.core.push_held(slot, self.id, &mut self.scratch);
            self.look()
        })
    }
}
