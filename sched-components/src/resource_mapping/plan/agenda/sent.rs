//! The tasks that were sent: when they begin, and end.

use super::{Agenda, Planned};
use crate::resource_mapping::plan::outlook::Sent;
use sched_core::{Stage, Submitted};

impl Agenda {
    /// Records that a task was sent.
    pub(in crate::resource_mapping::plan) fn note_sent(
        &mut self,
        submitted: Submitted<'_>,
        sequence: u64,
        lane: usize,
        now: u64,
    ) {
        let (ready, memory) = self.under_way.fetch(submitted, sequence, self.lanes[lane].memory, true, now);
        let plan = &mut self.plan[lane];
        if let Some(at) = plan.iter().position(|next| next.sequence == sequence)
            && let Some(planned) = plan.remove(at)
        {
            let Planned { start, expected, kind, .. } = planned;
            let length = expected * self.experience.factor(kind, lane, &self.lanes);
            let end = self.lanes[lane].free.max(ready) + length as u64;
            self.lanes[lane].free = end;
            self.sent.push(Sent { sequence, lane, end, start, began: None, memory, expected, kind });
        }
    }

    /// Takes note that a task has begun.
    pub(in crate::resource_mapping::plan) fn note_began(&mut self, sequence: u64, at: u64) {
        if let Some(sent) = self.sent.iter_mut().find(|sent| sent.sequence == sequence) {
            sent.began = Some(at);
            self.late = at.saturating_sub(sent.start);
        }
    }

    /// Foresees when the tasks end that were sent: one after the other on each lane, when their data is there.
    pub(super) fn foresee(&mut self, submitted: Submitted<'_>, now: u64) {
        self.under_way.settle(now);
        let Agenda { sent, lanes, experience, under_way, .. } = self;
        let mut free = vec![now; lanes.len()];
        for sent in sent {
            let length = (sent.expected * experience.factor(sent.kind, sent.lane, lanes)) as u64;
            let free = &mut free[sent.lane];
            let begins = sent.began.unwrap_or_else(|| {
                let complete = under_way.complete(submitted, sent.sequence, lanes[sent.lane].memory, now);
                complete.max(sent.memory).max(*free)
            });
            sent.end = begins.saturating_add(length).max(now);
            *free = sent.end.max(*free);
        }
        lanes.iter_mut().zip(free).for_each(|(lane, free)| lane.free = free);
    }

    /// Removes tasks that have ended.
    pub(in crate::resource_mapping::plan) fn forget_ended(&mut self, submitted: Submitted<'_>) {
        let Agenda { sent, under_way, .. } = self;
        sent.retain(|sent| {
            let goes_on = submitted.task(sent.sequence).is_some_and(|task| task.stage != Stage::Ended);
            if !goes_on {
                under_way.leave(sent.sequence);
            }
            goes_on
        });
    }

    /// A task that was sent, and that a worker has handed on to others, is not planned any more.
    pub(super) fn take_back(&mut self, sequence: u64) {
        if let Some(at) = self.sent.iter().position(|sent| sent.sequence == sequence) {
            self.sent.remove(at);
            self.under_way.leave(sequence);
            self.lane_of.remove(&sequence);
            self.some_unplanned = true;
        }
    }
}
