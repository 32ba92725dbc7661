//! Which task is sent next, and to which lane.

use super::{Agenda, Planned, SHORT_PLAN};
use crate::resource_mapping::plan::outlook::Lane;
use sched_core::{Child, Node};

/// Where kernels do not take the expected times: maximum length of a task that is let past a later one, as a multiple of
/// the time that the lane has waited for that one.
const PATIENCE: f64 = 4.0;

/// What the component is called for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::resource_mapping::plan) enum Caller {
    /// A task is pushed, and others may follow.
    Pushes,
    /// A worker asks for a task, or a child has room.
    Pulls,
}

impl Agenda {
    /// The task to send now, and its lane: the one that starts first in the plan of those whose turn it is. Each lane
    /// gets its tasks in the plan's order.
    pub(in crate::resource_mapping::plan) fn next(
        &self,
        now: u64,
        lead: u64,
        caller: Caller,
        asks: impl Fn(Child) -> bool,
    ) -> Option<(u64, usize)> {
        // What is sent is settled, and gets memory in its turn. Under a virtual clock a worker gets each task when it
        // asks; in a run the answer takes time, so that it should have tasks before.
        let until = if self.goes_on.is_none() { now.saturating_add(lead) } else { now };
        let of = |lane: usize| {
            let Lane { child, free, .. } = self.lanes[lane];
            let next = self.head(lane, now)?;
            let turn = !self.full[lane] && (free <= until || asks(child));
            (turn && self.held.contains_key(&next.sequence)).then_some((next.start, next.sequence, lane))
        };
        let first = (0..self.lanes.len()).filter_map(of).min();
        match first.filter(|(start, ..)| *start <= self.coming.first(now)) {
            Some((_, sequence, lane)) => Some((sequence, lane)),
            // No sent task is under way, so nothing might call again: send any ready task.
            None if self.sent.is_empty() && !self.awaits_urgent(now, caller) => self.first_held(),
            None => None,
        }
    }

    /// Whether what is about to be pushed comes first, although no sent task is under way.
    fn awaits_urgent(&self, now: u64, caller: Caller) -> bool {
        caller == Caller::Pushes && self.coming.first(now) != u64::MAX
    }

    /// The child of a ready task that [awaits](Self::awaits_urgent) others. Its workers have to look, in case these do
    /// not come. Few pushes need `now` for that.
    pub(in crate::resource_mapping::plan) fn withheld(&self, now: impl FnOnce() -> u64) -> Option<Child> {
        let awaits = self.sent.is_empty() && !self.held.is_empty() && self.awaits_urgent(now(), Caller::Pushes);
        let (_, lane) = awaits.then(|| self.first_held()).flatten()?;
        Some(self.lanes[lane].child)
    }

    fn first_held(&self) -> Option<(u64, usize)> {
        let of = |lane: usize| {
            let next = self.plan[lane].iter().find(|next| self.held.contains_key(&next.sequence))?;
            (!self.full[lane]).then_some((next.start, next.sequence, lane))
        };
        let (_, sequence, lane) = (0..self.lanes.len()).filter_map(of).min()?;
        Some((sequence, lane))
    }

    /// The next task of a lane: the first of its plan. While that is not ready, and the times of the plan are not to be
    /// trusted, it may be one that is ready and short beside the time that the lane has waited: nobody knows how much
    /// longer it will be, but what has taken long is likely to take as long again.
    fn head(&self, lane: usize, now: u64) -> Option<&Planned> {
        let plan = &self.plan[lane];
        let first = plan.front()?;
        let waited = now.saturating_sub(first.start.max(self.busy[lane])) as f64;
        if waited <= 0.0 || self.held.contains_key(&first.sequence) || !self.experience.is_scattered() {
            return Some(first);
        }
        let length = |next: &Planned| next.expected * self.experience.factor(next.kind, lane, &self.lanes);
        let fits = |next: &&Planned| self.held.contains_key(&next.sequence) && length(next) <= PATIENCE * waited;
        plan.iter().take(SHORT_PLAN).find(fits).or(Some(first))
    }

    /// The task for a worker that pulls.
    pub(in crate::resource_mapping::plan) fn next_for(&self, node: Node<'_>, child: Child) -> Option<(u64, usize)> {
        let now = node.now().as_nanos();
        let is_there = |lane: &Lane| lane.child == child && node.requester().is_none_or(|worker| worker == lane.worker);
        let of = |lane: usize| {
            let held = |next: &&Planned| self.held.contains_key(&next.sequence);
            let any = || self.plan[lane].iter().find(held);
            let next = if self.sent.is_empty() { any() } else { self.head(lane, now).filter(held) };
            Some((next?.sequence, lane))
        };
        (0..self.lanes.len()).filter(|lane| is_there(&self.lanes[*lane])).find_map(of)
    }
}
