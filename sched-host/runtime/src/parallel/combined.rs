//! A worker's part in parallel tasks. The [`seat`](sched_tree::seat) decides when a worker looks for them, the
//! [`gathering`](sched_sync::gathering) who meets whom.

use super::crew::Crews;
use crate::context::enter_task;
use crate::core::TaskPlace;
use crate::task::nest::NestedHere;
use crate::worker::Worker;
use sched_core::{Arch, WorkerId};
use sched_sync::gathering::Gathering;
use sched_tree::combined::CombinedWorkers;
use sched_tree::{Services, Slot};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// Purpose of a gathering: a task and the combined worker that executes it.
pub(crate) struct Purpose {
    slot: &'static Slot,
    /// The combined worker.
    combined: WorkerId,
    /// Expected length of the task in nanoseconds; 0 if unknown.
    expected: u64,
}

/// The combined workers of a runtime.
pub(crate) struct Combined {
    pub(crate) workers: CombinedWorkers<Purpose>,
    pub(crate) crews: Crews,
}

impl Combined {
    /// `None` without combined workers.
    pub(crate) fn new(workers: usize, members: &[Box<[WorkerId]>], crews: Crews) -> Option<Combined> {
        (!members.is_empty()).then(|| Combined { workers: CombinedWorkers::new(workers, members), crews })
    }
}

/// Architecture and size of a worker; the size of a simple one is 1.
pub(crate) fn arch_and_size(worker: WorkerId, archs: &[Arch], combined: &[Box<[WorkerId]>]) -> Option<(Arch, u16)> {
    let Some(number) = worker.index().checked_sub(archs.len()) else {
        return Some((archs[worker.index()], 1));
    };
    let team = combined.get(number)?;
    Some((*archs.get(team.first()?.index())?, u16::try_from(team.len()).unwrap_or(u16::MAX)))
}

impl Worker {
    /// Purpose of the team that executes this task, whose members are expected to be busy with it.
    pub(crate) fn purpose_of(&self, slot: &'static Slot, combined: WorkerId) -> Purpose {
        let predicted = slot.head().predicted.load(Relaxed);
        let expected = if predicted == u64::MAX { 0 } else { predicted };
        if expected > 0
            && let Some(teams) = &self.core.combined
        {
            let team = teams.workers.memberships().team(combined);
            team.iter().for_each(|member| self.core.backend.times.expect_team(*member, expected));
        }
        Purpose { slot, combined, expected }
    }

    /// Executes a parallel task with the other members of its team: as the leader, or by waiting while the leader uses
    /// this worker.
    pub(crate) fn attend(&mut self, gathering: &Gathering<Purpose>) {
        let core = Arc::clone(&self.core);
        let Some(teams) = &core.combined else { return };
        let me = self.id.index();
        let Purpose { slot, combined, expected } = gathering.purpose;
        let counters = &core.counters[me];
        if expected > 0 {
            core.backend.times.joined_team(self.id, expected);
            core.backend.times.pre_exec(self.id, core.backend.now(), expected);
        }
        counters.in_team.set(Some(slot.id()));
        if gathering.is_led_by(me) {
            let team = gathering.lead();
            let watch = core.outcomes.watch();
            if watch.for_turns() && !core.take_turns(core.place(slot.id()), self.id, &mut self.scratch) {
                if expected > 0 {
                    let members = teams.workers.memberships().team(combined);
                    members.iter().for_each(|member| core.backend.times.post_exec(*member));
                }
                drop(team);
                counters.in_team.set(None);
                return;
            }
            if expected > 0 {
                // Early members have waited.
                let now = core.backend.now();
                let begin = |member: &WorkerId| core.backend.times.pre_exec(*member, now, expected);
                teams.workers.memberships().team(combined).iter().for_each(begin);
            }
            counters.executing.set(Some(slot.id()));
            let task = TaskPlace { slot, record: core.records.get(slot.id()) };
            let mut taken = task.record.body.lock().take();
            let submitter = self.submitter.clone();
            enter_task(core.id, task.record.context());
            let nested = taken.rare.as_ref().and_then(|rare| NestedHere::note(core.id, slot, rare));
            let outcome =
                self.outcome(slot, &mut taken, &teams.crews.of(combined, &submitter), combined, watch.for_bad_data());
            if expected > 0 {
                let members = teams.workers.memberships().team(combined);
                members.iter().for_each(|member| core.backend.times.post_exec(*member));
            }
            drop((nested, team));
            counters.executing.set(None);
            counters.executed.store(counters.executed.load(Relaxed) + 1, Relaxed);
            counters.in_team.set(None);
            core.end(task, &outcome, taken, Some(self.id), &mut self.scratch);
        } else {
            gathering.follow();
            counters.in_team.set(None);
        }
    }
}
