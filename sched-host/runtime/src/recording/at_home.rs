//! Tasks of a replay that wait at home; see [`sched_sync::at_home`].
//!
//! A replay leaves its tasks to the workers where they are [at home](super::homes) if the policy's tree would keep them
//! there anyway ([`Tree::waits_at_home`](sched_tree::Tree::waits_at_home)), no task has a priority, and nobody follows
//! single tasks. The first tasks of a graph are pushed nevertheless, and so is what has no home or is too far ahead of
//! its worker.
//!
//! A worker looks for tasks at home before it asks its tree. One that has nothing to do for a while takes those of
//! others, and goes on with that as long as there are any; before it falls asleep it looks once more.
//!
//! A worker that comes to serve several contexts looks at home no more: its contexts take turns, and tasks outside of
//! their trees would have none. Whoever changes a context ends that replays of these workers
//! [leave](Core::leave_no_more) tasks, then shows that contexts have changed. Each worker that sees this puts into the
//! tree what it or others have left: one that left a task before it knew sees the change afterwards.

use super::homes::Lists;
use super::recorded::Recorded;
use crate::context::ContextCore;
use crate::core::Core;
use crate::task::scratch::WorkerScratch;
use sched_core::{Arch, WorkerId, WorkerSet};
use sched_graph::ContextId;
use sched_sync::at_home::{Count, OnShelf, Position, Round};
use sched_sync::light_fence;
use sched_tree::{Phase, Slot};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// A worker that looks for tasks of a recording.
#[derive(Default)]
pub(crate) struct Visit {
    /// Number of the recording.
    of: u64,
    /// The tasks by homes, as of this distribution.
    lists: Option<Arc<Lists>>,
    distribution: u32,
    position: Position,
    /// Whether the worker takes tasks that are at home elsewhere.
    steals: bool,
}

/// A task was scheduled that was found.
pub(crate) struct Scheduled;

/// The tasks of a recording that are at home with one worker.
struct OfWorker<'a> {
    recorded: &'a Recorded,
    tasks: &'a [u32],
}

impl OnShelf for OfWorker<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.tasks.len()
    }

    #[inline]
    fn count(&self, place: usize) -> &Count {
        &self.recorded.counts[self.tasks[place] as usize]
    }

    #[inline]
    fn links(&self, place: usize) -> u32 {
        self.recorded.tasks[self.tasks[place] as usize].waits
    }
}

impl Recorded {
    /// Whether tasks of a replay in progress wait at home.
    #[inline]
    pub(crate) fn waits_at_home(&self) -> bool {
        self.waits_at_home.load(Acquire)
    }

    /// A task for this worker, which is in the context of the replay and has nothing else.
    #[inline]
    fn take_at_home(&self, worker: WorkerId, arch: Arch, visit: &mut Visit) -> Option<u32> {
        // The round first: the lists are those of this one, or of a later one, whose tasks may be taken as well.
        let round = Round(self.round.load(Acquire));
        let distribution = self.homes.distribution();
        if visit.of != self.id || visit.distribution != distribution {
            *visit = Visit { of: self.id, lists: Some(self.homes.lists()), distribution, ..Visit::default() };
        }
        let lists = visit.lists.as_ref().filter(|lists| lists.arch == Some(arch))?;
        let tasks = lists.of(worker);
        let shelf = self.shelves.get(worker.index())?;
        if let Some(place) = shelf.take(&mut visit.position, round, &OfWorker { recorded: self, tasks }) {
            visit.steals = false;
            return Some(tasks[place]);
        }
        if visit.steals {
            let stolen = self.steal(round, worker, lists);
            visit.steals = stolen.is_some();
            return stolen;
        }
        None
    }

    /// A task that is at home with this worker, or the nearest after it.
    fn steal(&self, round: Round, worker: WorkerId, lists: &Lists) -> Option<u32> {
        let count = self.shelves.len();
        (0..count).map(|turn| (worker.index() + turn) % count).find_map(|home| {
            let tasks = lists.of(WorkerId(home as u32));
            let place = self.shelves[home].steal(round, &OfWorker { recorded: self, tasks })?;
            Some(tasks[place])
        })
    }
}

impl Core {
    /// Whether a replay in this context may leave tasks to its workers: each serves no other, and drives no device.
    pub(super) fn may_leave_tasks(&self, context: &ContextCore, recorded: &Recorded) -> bool {
        let serve_no_other = |workers: &WorkerSet| {
            workers.iter().all(|worker| {
                let serving = self.roster.contexts().filter(|context| context.tree.serves(worker));
                self.device_of(worker).is_none() && serving.take(2).count() == 1
            })
        };
        let teams_wait = self.combined.as_ref().is_some_and(|combined| combined.workers.are_in_use());
        !teams_wait
            && context.tree.waits_at_home()
            && !recorded.homes.lists().is_empty()
            && context.with_workers(serve_no_other)
    }

    /// Leaves no more tasks to workers that serve several contexts now, or may be called by teams: they look elsewhere.
    /// Called after each change of a context, under its lock; returns whether there were any.
    pub(crate) fn leave_no_more(&self) -> bool {
        let mut has_changed = false;
        for recorded in self.replays.lock().iter().filter(|recorded| recorded.leaves.load(Acquire)) {
            if !self.may_leave_tasks(self.roster.get(recorded.context_now()), recorded) {
                recorded.leaves.store(false, Release);
                has_changed = true;
            }
        }
        has_changed
    }

    /// Schedules what waits at home in contexts of this worker, which serves several or may be called by a team. Each
    /// worker does so once, when it learns that: what was left before, by itself too, takes its turn with other tasks.
    #[cold]
    pub(crate) fn schedule_what_was_left(&self, worker: WorkerId, scratch: &mut WorkerScratch) {
        if self.at_home.load(SeqCst) == 0 {
            return;
        }
        let replays = self.replays.lock().clone();
        let is_served = |recorded: &Recorded| self.roster.get(recorded.context_now()).tree.serves(worker);
        for recorded in replays.iter().filter(|recorded| recorded.waits_at_home() && is_served(recorded)) {
            let round = Round(recorded.round.load(Acquire));
            let lists = recorded.homes.lists();
            while let Some(index) = recorded.steal(round, worker, &lists) {
                self.start_planned(recorded, index, Some(worker), scratch);
            }
        }
        self.settle(Some(worker), scratch);
    }

    /// Looks for a task that waits at home with this worker, of the recording of the last task that belonged to one.
    #[inline]
    pub(crate) fn find_at_home(&self, scratch: &mut WorkerScratch) -> Option<&'static Slot> {
        let (context, worker, arch) = scratch.goes_on?;
        let (recorded, visit) = scratch.visited()?;
        if !recorded.waits_at_home() || recorded.context_now() != context {
            return None;
        }
        let index = recorded.take_at_home(worker, arch, visit)?;
        if let Some(slot) = self.begin_at_home(recorded, index, context, worker) {
            return Some(slot);
        }
        let recorded = Arc::clone(recorded);
        self.schedule_from_home(&recorded, index, worker, scratch);
        None
    }

    /// Looks for a task of any replay that waits at home with any worker, for one that has nothing to do. If it cannot
    /// begin like that any more, it is scheduled: then this returns `Err`, and another look is due.
    pub(crate) fn find_elsewhere(
        &self,
        worker: WorkerId,
        arch: Arch,
        scratch: &mut WorkerScratch,
    ) -> Result<Option<&'static Slot>, Scheduled> {
        if self.at_home.load(Acquire) == 0 {
            return Ok(None);
        }
        let found = self.replays.lock().iter().find_map(|recorded| {
            let context = recorded.context_now();
            if !recorded.waits_at_home() || !self.roster.get(context).tree.serves(worker) {
                return None;
            }
            let round = Round(recorded.round.load(Acquire));
            let lists = recorded.homes.lists();
            let index = (lists.arch == Some(arch)).then(|| recorded.steal(round, worker, &lists))??;
            Some((Arc::clone(recorded), index, context))
        });
        let Some((recorded, index, context)) = found else { return Ok(None) };
        let Some(slot) = self.begin_at_home(&recorded, index, context, worker) else {
            self.schedule_from_home(&recorded, index, worker, scratch);
            return Err(Scheduled);
        };
        let visit = Visit { of: recorded.id, steals: true, ..Visit::default() };
        scratch.visit(recorded, visit);
        Ok(Some(slot))
    }

    /// Begins a task that this worker of the context has taken, unless its record has to be asked.
    #[inline]
    fn begin_at_home(
        &self,
        recorded: &Recorded,
        index: u32,
        context: ContextId,
        worker: WorkerId,
    ) -> Option<&'static Slot> {
        let planned = &recorded.tasks[index as usize];
        planned.fetch();
        recorded.set_up(index, planned);
        planned.slot.head().sequence.store(recorded.first.load(Relaxed) + u64::from(index), Release);
        // As where a task is started; and a worker that looked late may have one of a later replay, in another context.
        if !recorded.unasked.is_still() || recorded.context_now() != context {
            return None;
        }
        planned.slot.set_phase(Phase::Running);
        let at_home = &self.counters[worker.index()].at_home;
        at_home.store(at_home.load(Relaxed) + 1, Relaxed);
        Some(planned.slot)
    }

    /// Schedules a task that was taken at home and did not begin.
    #[cold]
    fn schedule_from_home(&self, recorded: &Recorded, index: u32, worker: WorkerId, scratch: &mut WorkerScratch) {
        self.start_rarely_planned(recorded, index, Some(worker), scratch);
        self.settle(Some(worker), scratch);
        // The worker looks elsewhere for the next.
        self.push_kept(Some(worker), scratch);
    }

    /// Wakes a worker for a task that was left to this one, if that or another one sleeps.
    #[inline]
    pub(super) fn note_left(&self, context: ContextId, home: u32) {
        light_fence();
        if !self.backend.sleep.sleeping().is_empty() {
            self.wake_for_left(context, home);
        }
    }

    #[cold]
    fn wake_for_left(&self, context: ContextId, home: u32) {
        let (sleep, tree) = (&self.backend.sleep, &self.roster.get(context).tree);
        if !(tree.serves(WorkerId(home)) && sleep.wake(home as usize)) {
            sleep.wake_any(|worker| tree.serves(WorkerId(worker as u32)));
        }
    }
}
