//! A simulated worker at its seat: how it finds its contexts, wakes others, and records what it pulled.

use super::Engine;
use super::teams::Purpose;
use sched_core::WorkerId;
use sched_tree::combined::CombinedWorkers;
use sched_tree::seat::{DeferredWake, Seat, Seated};
use sched_tree::{Services, Slot, Tree};
use std::sync::Arc;

/// The worker of the engine whose turn it is.
pub(super) struct AtSeat<'a, 'e> {
    engine: &'a mut Engine<'e>,
    worker: WorkerId,
}

impl<'e> Engine<'e> {
    /// The worker at its seat.
    pub(super) fn at_seat(&mut self, worker: WorkerId) -> AtSeat<'_, 'e> {
        AtSeat { engine: self, worker }
    }
}

impl Seated for AtSeat<'_, '_> {
    type Context = Arc<Tree>;
    type Purpose = Purpose;

    fn seat(&mut self) -> &mut Seat<Arc<Tree>> {
        &mut self.engine.workers[self.worker.index()].seat
    }

    fn deferred(&mut self) -> &mut DeferredWake {
        &mut self.engine.workers[self.worker.index()].deferred
    }

    fn version(&self) -> u64 {
        self.engine.roster_version
    }

    fn served(&mut self) -> Vec<Arc<Tree>> {
        let trees = self.engine.contexts.iter().map(|context| &context.tree);
        trees.filter(|tree| tree.serves(self.worker)).cloned().collect()
    }

    fn combined(&self) -> Option<&CombinedWorkers<Purpose>> {
        Some(&self.engine.teams)
    }

    fn wake(&self, worker: WorkerId) {
        self.engine.backend.wake(worker);
    }

    fn wake_any(&self, suits: impl Fn(WorkerId) -> bool) {
        if let Some(sleeper) = self.engine.backend.find_sleeper(suits) {
            self.wake(sleeper);
        }
    }

    fn is_like(&self, other: WorkerId) -> bool {
        let platform = &self.engine.backend.platform;
        platform.class(other).arch == platform.class(self.worker).arch
    }

    fn purpose(&mut self, slot: &'static Slot, combined: WorkerId) -> Purpose {
        self.engine.purpose_of(slot, combined, self.worker)
    }

    fn hands_on(&mut self, slot: &'static Slot, combined: WorkerId) -> bool {
        let Engine { moves, teams, .. } = &*self.engine;
        // The data of a team is in the memory of its first member.
        let leader = teams.memberships().team(combined)[0];
        let is_handed_on = moves.may_lack_room && self.engine.hand_on(self.worker, leader, slot);
        if is_handed_on {
            self.engine.teams.note_pulled(slot);
        }
        is_handed_on
    }

    fn pulled(&mut self, slot: Option<&'static Slot>) {
        let Engine { now, changes, workers, .. } = &mut *self.engine;
        match slot {
            Some(_) => *changes += 1,
            None => workers[self.worker.index()].note_vain_look(*now, *changes),
        }
    }

    fn settle(&mut self) {
        self.engine.settle_notes();
    }
}
