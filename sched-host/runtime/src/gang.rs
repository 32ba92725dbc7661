//! How a worker takes part in parallel tasks: when it looks for them, and what it does then. Who meets whom is the business
//! of [`gathering`](sched_sync::gathering).

use super::core::TaskPlace;
use super::crew::Crews;
use super::worker::Worker;
use crate::context::enter_task;
use sched_core::{Arch, WorkerId};
use sched_sync::gathering::{Gathering, Gatherings};
use sched_tree::{Memberships, Part, Services, Slot};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

/// What a worker found to do.
pub(crate) enum Work {
    /// A task to execute by itself.
    Alone(&'static Slot),
    /// A parallel task, with others.
    Together(Arc<Gathering<Purpose>>),
}

/// What a team gathers for.
pub(crate) struct Purpose {
    slot: &'static Slot,
    /// The combined worker.
    combined: WorkerId,
    /// Expected length of the task in nanoseconds; 0 when it is not known.
    expected: u64,
}

/// Whether a tree of these parts has leaves for combined workers, which are numbered on from so many simple ones.
pub(crate) fn need_teams(parts: &[Part], simple: usize) -> bool {
    parts.iter().any(|part| part.worker.is_some_and(|worker| worker.0 as usize >= simple))
}

/// The combined workers of a runtime.
pub(crate) struct Gangs {
    gatherings: Gatherings<Purpose>,
    pub(crate) crews: Crews,
    memberships: Memberships,
    /// Parallel tasks that are in the tree. While there are none, nobody looks into the leaves of combined workers.
    waiting: AtomicU64,
    /// Some tree has, or had, leaves for combined workers: until then nobody needs to look for teams.
    begun: AtomicBool,
}

impl Gangs {
    /// `None` when there is no combined worker.
    pub(crate) fn new(workers: usize, members: &[Box<[WorkerId]>], crews: Crews) -> Option<Gangs> {
        (!members.is_empty()).then(|| Gangs {
            gatherings: Gatherings::new(workers),
            crews,
            memberships: Memberships::new(workers, members),
            waiting: AtomicU64::new(0),
            begun: AtomicBool::new(false),
        })
    }

    /// A tree with leaves for combined workers is about to take its place.
    pub(crate) fn begin(&self) {
        self.begun.store(true, SeqCst);
    }

    /// A parallel task is about to go into the tree.
    pub(crate) fn note_pushed(&self) {
        self.waiting.fetch_add(1, SeqCst);
    }

    /// A parallel task has come out of the tree.
    pub(crate) fn note_pulled(&self) {
        self.waiting.fetch_sub(1, SeqCst);
    }
}

/// The architecture of a combined worker, and its size; of a simple one, its own and 1.
pub(crate) fn arch_and_size(worker: WorkerId, archs: &[Arch], combined: &[Box<[WorkerId]>]) -> Option<(Arch, u16)> {
    let Some(number) = (worker.0 as usize).checked_sub(archs.len()) else {
        return Some((archs[worker.0 as usize], 1));
    };
    let team = combined.get(number)?;
    Some((*archs.get(team.first()?.0 as usize)?, u16::try_from(team.len()).unwrap_or(u16::MAX)))
}

impl Worker {
    /// Looks once for something to do. Tasks for the worker alone and those of teams that it is in take turns, so that neither
    /// has to wait for the others' end. Of teams, one that waits for this worker comes before one that it calls.
    #[inline(always)]
    pub(super) fn look(&mut self) -> Option<Work> {
        if self.core.gangs.as_ref().is_none_or(|gangs| !gangs.begun.load(Relaxed)) {
            return self.pull().map(Work::Alone);
        }
        self.look_with_teams()
    }

    #[cold]
    fn look_with_teams(&mut self) -> Option<Work> {
        let core = Arc::clone(&self.core);
        let gangs = core.gangs.as_ref()?;
        let me = self.id.0 as usize;
        let teams_first = self.teams_next;
        if !teams_first && let Some(slot) = self.pull() {
            self.teams_next = true;
            return Some(Work::Alone(slot));
        }
        loop {
            if let Some(gathering) = gangs.gatherings.next(me) {
                self.wake_deferred();
                self.teams_next = false;
                return Some(Work::Together(gathering));
            }
            if gangs.waiting.load(SeqCst) == 0 || !self.gather(gangs) {
                break;
            }
        }
        if teams_first { self.pull().map(Work::Alone) } else { None }
    }

    /// Pulls a parallel task for a combined worker that this one is a member of, and calls its team. Whether there was one.
    fn gather(&mut self, gangs: &Gangs) -> bool {
        self.look_whom_to_serve();
        let core = Arc::clone(&self.core);
        for combined in gangs.memberships.of(self.id) {
            let Some(slot) = self.pull_for_team_in_turn(*combined) else { continue };
            gangs.note_pulled();
            let predicted = slot.head().predicted.load(Relaxed);
            let expected = if predicted == u64::MAX { 0 } else { predicted };
            let team = gangs.memberships.team(*combined);
            let members = team.iter().map(|member| member.0 as usize).collect();
            let gathering = Arc::new(Gathering::new(members, Purpose { slot, combined: *combined, expected }));
            if expected > 0 {
                team.iter().for_each(|member| core.clock.times.expect_team(member.0 as usize, expected));
            }
            gangs.gatherings.enlist(&gathering);
            for member in team.iter().filter(|member| **member != self.id) {
                core.clock.sleep.wake(member.0 as usize);
            }
            return true;
        }
        false
    }

    /// Asks each context, beginning behind the one that gave the last parallel task.
    fn pull_for_team_in_turn(&mut self, combined: WorkerId) -> Option<&'static Slot> {
        let count = self.contexts.len();
        for turn in 0..count {
            let asked = (self.next_for_team + turn) % count;
            if let Some(slot) = self.contexts[asked].tree.pull_for_team(self.id, combined) {
                self.next_for_team = asked + 1;
                return Some(slot);
            }
        }
        None
    }

    /// Executes a parallel task with the others of its team: leads them, or lets the leader have this worker.
    pub(super) fn attend(&mut self, gathering: &Gathering<Purpose>) {
        let core = Arc::clone(&self.core);
        let Some(gangs) = &core.gangs else { return };
        let me = self.id.0 as usize;
        let Purpose { slot, combined, expected } = gathering.purpose;
        let counters = &core.counters[me];
        if expected > 0 {
            core.clock.times.joined_team(me, expected);
            core.clock.times.pre_exec(me, core.clock.now(), expected);
        }
        counters.in_team.store(slot.index() + 1, Relaxed);
        if gathering.is_led_by(me) {
            let team = gathering.lead();
            if expected > 0 {
                // Those who came first have waited.
                let now = core.clock.now();
                let begin = |member: &WorkerId| core.clock.times.pre_exec(member.0 as usize, now, expected);
                gangs.memberships.team(combined).iter().for_each(begin);
            }
            counters.executing.store(slot.index() + 1, Relaxed);
            let task = TaskPlace { slot, record: core.records.get(slot.index()) };
            let mut taken = task.record.body.lock().take();
            let submitter = self.submitter.clone();
            enter_task(core.id, task.record.context());
            let outcome = self.outcome(slot, &mut taken, &gangs.crews.of(combined, &submitter), combined);
            if expected > 0 {
                gangs
                    .memberships
                    .team(combined)
                    .iter()
                    .for_each(|member| core.clock.times.post_exec(member.0 as usize));
            }
            drop(team);
            counters.executing.store(0, Relaxed);
            counters.executed.store(counters.executed.load(Relaxed) + 1, Relaxed);
            counters.in_team.store(0, Relaxed);
            core.end(task, &outcome, taken, Some(self.id), &mut self.hands);
        } else {
            gathering.follow();
            counters.in_team.store(0, Relaxed);
        }
    }
}
