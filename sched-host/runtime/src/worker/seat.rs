//! The seat of a worker thread: how it finds its contexts, and wakes other workers.

use crate::context::ContextCore;
use crate::parallel::combined::Purpose;
use crate::worker::Worker;
use sched_core::WorkerId;
use sched_tree::combined::CombinedWorkers;
use sched_tree::seat::{DeferredWake, HasTree, Seat, Seated};
use sched_tree::{Slot, Tree};
use std::sync::Arc;

impl HasTree for ContextCore {
    #[inline(always)]
    fn tree(&self) -> &Tree {
        &self.tree
    }
}

impl Seated for Worker {
    type Context = Arc<ContextCore>;
    type Purpose = Purpose;

    #[inline(always)]
    fn seat(&mut self) -> &mut Seat<Arc<ContextCore>> {
        &mut self.seat
    }

    #[inline(always)]
    fn deferred(&mut self) -> &mut DeferredWake {
        &mut self.scratch.deferred
    }

    #[inline(always)]
    fn version(&self) -> u64 {
        self.core.roster.version()
    }

    fn served(&mut self) -> Vec<Arc<ContextCore>> {
        let served = self.core.roster.places().filter(|context| context.tree.serves(self.id));
        let served: Vec<Arc<ContextCore>> = served.cloned().collect();
        let may_be_called = self.combined().is_some_and(CombinedWorkers::are_in_use);
        self.scratch.goes_on = match &served[..] {
            [only] if !may_be_called && self.device().is_none() => Some((only.number, self.id, self.arch)),
            _ => None,
        };
        self.lay_down();
        if self.scratch.goes_on.is_none() && !served.is_empty() {
            self.core.schedule_what_was_left(self.id, &mut self.scratch);
            // It may be about to execute a task, instead of pulling one.
            if let Some(other) = self.scratch.deferred.cell().take() {
                self.wake(other);
            }
        }
        served
    }

    #[inline(always)]
    fn combined(&self) -> Option<&CombinedWorkers<Purpose>> {
        self.core.combined.as_ref().map(|combined| &combined.workers)
    }

    #[inline(always)]
    fn goes_on(&mut self) {
        self.count_went_on();
    }

    #[inline(always)]
    fn at_home(&mut self) -> Option<&'static Slot> {
        if self.scratch.looks_nearby { self.look_nearby() } else { None }
    }

    fn wake(&self, worker: WorkerId) {
        self.core.backend.sleep.wake(worker.index());
    }

    fn wake_any(&self, suits: impl Fn(WorkerId) -> bool) {
        self.core.backend.sleep.wake_any(|other| suits(WorkerId(other as u32)));
    }

    fn is_like(&self, other: WorkerId) -> bool {
        self.core.facts[other.index()].arch == self.arch
    }

    fn purpose(&mut self, slot: &'static Slot, combined: WorkerId) -> Purpose {
        self.purpose_of(slot, combined)
    }
}
