//! Combined workers of a back end: their members, the gathering of teams, and waiting parallel tasks.

use super::{Memberships, Part, Slot};
use sched_core::WorkerId;
use sched_sync::gathering::{Gathering, Gatherings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

/// See the [module](self). `P` is the purpose of a gathering.
pub struct CombinedWorkers<P> {
    gatherings: Gatherings<P>,
    memberships: Arc<Memberships>,
    /// Number of parallel tasks in trees. While it is 0, no worker looks into the leaves of combined workers.
    waiting: AtomicU64,
    /// Whether some tree has, or had, leaves for combined workers; no worker looks for teams before.
    in_use: AtomicBool,
}

impl<P> CombinedWorkers<P> {
    /// Combined workers with these members, numbered after `workers` simple ones. No tree has leaves for them yet.
    #[must_use]
    pub fn new(workers: usize, members: &[Box<[WorkerId]>]) -> CombinedWorkers<P> {
        CombinedWorkers {
            gatherings: Gatherings::new(workers),
            memberships: Arc::new(Memberships::new(workers, members)),
            waiting: AtomicU64::new(0),
            in_use: AtomicBool::new(false),
        }
    }

    /// Members of the combined workers.
    #[must_use]
    pub fn memberships(&self) -> &Arc<Memberships> {
        &self.memberships
    }

    /// Announces that a tree with leaves for combined workers is about to be installed.
    pub fn begin_use(&self) {
        self.in_use.store(true, SeqCst);
    }

    /// Whether workers have to look for teams.
    #[inline]
    #[must_use]
    pub fn are_in_use(&self) -> bool {
        self.in_use.load(Relaxed)
    }

    /// Counts a task that is about to enter a tree.
    #[inline]
    pub fn note_pushed(&self, slot: &Slot) {
        if is_parallel(slot) {
            self.waiting.fetch_add(1, SeqCst);
        }
    }

    /// Counts a task that has left a tree.
    #[inline]
    pub fn note_pulled(&self, slot: &Slot) {
        if is_parallel(slot) {
            self.waiting.fetch_sub(1, SeqCst);
        }
    }

    /// Whether a parallel task is in a tree.
    #[must_use]
    pub fn any_waits(&self) -> bool {
        self.waiting.load(SeqCst) > 0
    }

    /// Whether a team may want a worker that has nothing else to do.
    #[must_use]
    pub fn may_want(&self, worker: WorkerId) -> bool {
        self.gatherings.want(worker.index()) || (self.any_waits() && !self.memberships.of(worker).is_empty())
    }

    /// The next team that wants a worker. The worker has to attend it before it asks again.
    #[must_use]
    pub fn next(&self, worker: WorkerId) -> Option<Arc<Gathering<P>>> {
        self.gatherings.next(worker.index())
    }

    /// Appends a gathering of the members of `combined` to their lists. The caller wakes them afterwards.
    pub fn call(&self, combined: WorkerId, purpose: P) {
        let members = self.memberships.team(combined).iter().map(|member| member.index()).collect();
        self.gatherings.enlist(&Arc::new(Gathering::new(members, purpose)));
    }
}

/// Whether a tree of these parts has leaves for combined workers, which are numbered after `simple` simple ones.
#[must_use]
pub fn has_team_leaves(parts: &[Part], simple: usize) -> bool {
    parts.iter().any(|part| part.worker.is_some_and(|worker| worker.index() >= simple))
}

#[inline]
fn is_parallel(slot: &Slot) -> bool {
    slot.head().width.load(Relaxed) > 1
}
