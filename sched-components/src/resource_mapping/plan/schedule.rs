//! One plan: which worker executes each task, in which order, and when.

use super::execution::Execution;
use super::idle::Idle;
use super::outlook::{NEVER, Outlook};
use super::samples::Rehearsal;
use super::stop::Stop;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A plan.
#[derive(Clone, Default, Debug)]
pub(super) struct Schedule {
    /// The lane of each task; meaningless for tasks that take no lane's time.
    pub(super) lanes: Vec<usize>,
    pub(super) starts: Vec<u64>,
    pub(super) ends: Vec<u64>,
    /// When the data of each task is there, if this is what [became](Self::follow) of a plan.
    pub(super) arrivals: Vec<u64>,
    /// When all tasks are done.
    pub(super) end: u64,
}

/// How the owner of the data computes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Owned {
    /// How many times as long a task takes on the best lane of no owner from which on it stays with the owner of what it
    /// writes.
    pub(super) most: f64,
    /// How many times the number of owners is halved.
    pub(super) halvings: usize,
}

/// The preferences that lead to a plan.
#[derive(Clone, Debug)]
pub(super) struct Taste {
    /// Tasks with higher keys choose first.
    pub(super) keys: Vec<f64>,
    /// By [group](Outlook::groups) of tasks and class of lanes: the tolerated delay elsewhere, in lengths of the task.
    pub(super) by_kind: Vec<f64>,
    /// By task and class: as `by_kind`.
    pub(super) by_task: Vec<f64>,
    /// Whether the owner of the data computes.
    pub(super) owned: Option<Owned>,
    /// How much a nanosecond of transfers counts beyond the delay that it causes.
    pub(super) haul: f64,
    /// Whether tasks choose when they become ready ([`dispatch`](Schedule::dispatch)).
    pub(super) at_once: bool,
    /// Whether transfers share links at each moment in that plan, rather than follow each other.
    pub(super) shares: bool,
    /// Whether it is known in that plan what is evicted, where not all data fits into a memory and transfers share
    /// links: workers choose the task of which the least data is missing.
    pub(super) evicts: bool,
    /// Whether free lanes choose, where they are equal ([`list`](Schedule::list)) and tasks do not choose `at_once`.
    pub(super) late: bool,
    /// Whether tasks that choose at once choose as if memory were allocated in no time.
    pub(super) hasty: bool,
}

/// What one task prefers.
pub(super) struct Leanings<'a> {
    outlook: &'a Outlook,
    task: usize,
    owned: Option<Owned>,
    lengths: &'a [u64],
    /// By class.
    of_kind: &'a [f64],
    of_task: &'a [f64],
}

impl Taste {
    /// The preferences of a task.
    #[inline]
    pub(super) fn of<'a>(&'a self, outlook: &'a Outlook, task: usize) -> Leanings<'a> {
        let classes = outlook.classes;
        Leanings {
            outlook,
            task,
            owned: self.owned,
            lengths: outlook.lengths(task),
            of_kind: &self.by_kind[outlook.groups[task] * classes..][..classes],
            of_task: &self.by_task[task * classes..][..classes],
        }
    }
}

impl Leanings<'_> {
    /// The length of the task on a lane, and the tolerated delay elsewhere, in nanoseconds; `None` if the lane may not
    /// execute it at all.
    #[inline]
    pub(super) fn to(&self, lane: usize) -> Option<(u64, f64)> {
        let length = self.lengths[lane];
        let is_out = |owned| !self.outlook.is_with_owner(self.task, lane, owned);
        if length == NEVER || self.owned.is_some_and(is_out) {
            return None;
        }
        let class = self.outlook.lanes[lane].class;
        Some((length, (self.of_kind[class] + self.of_task[class]) * length as f64))
    }
}

/// Storage for making a plan, kept for reuse.
#[derive(Default, Debug)]
pub(super) struct Scratch {
    pub(super) waits: Vec<u32>,
    /// Tasks by their keys.
    pub(super) heap: BinaryHeap<(u64, Reverse<u32>)>,
    /// Tasks that have been placed, by their ends; and lanes, by when they are free.
    pub(super) ending: BinaryHeap<Reverse<(u64, usize)>>,
    pub(super) idle: BinaryHeap<Reverse<(u64, usize)>>,
    lanes: Idle,
    pub(super) copies: Vec<u64>,
    ready: Vec<u64>,
    pub(super) arrivals: Vec<u64>,
    /// Nanoseconds of transfers to each memory.
    pub(super) hauls: Vec<u64>,
    pub(super) order: Vec<usize>,
    pub(super) free: Vec<u64>,
    /// Number of used lanes of each of [`Outlook::squads`].
    pub(super) used: Vec<usize>,
    pub(super) execution: Execution,
    /// What becomes of a plan by the cheap prediction, where it is [rehearsed](super::samples).
    pub(super) followed: Schedule,
    pub(super) rehearsal: Rehearsal,
    /// Plans are left unfinished once this is set.
    pub(super) stop: Stop,
}

impl Scratch {
    /// The lane on which a task ends first, apart from the preferences, and when it starts there.
    fn first_place(&mut self, outlook: &Outlook, taste: &Taste, task: usize, ready: u64) -> (usize, u64) {
        let (mut best, leanings) = ((f64::INFINITY, 0, 0), taste.of(outlook, task));
        for troop in outlook.squads.troops() {
            // Of lanes that take equally long, the one that is idle first is the best.
            let one = troop.first();
            let Some((length, leaning)) = leanings.to(one) else { continue };
            let memory = outlook.lanes[one].memory;
            let score = |start: u64, haul: f64| (start + length - outlook.now) as f64 + leaning + haul;
            let first = troop.least(&self.used, self.lanes.first());
            // Mostly the lanes alone are too late, and when the data is there need not be known.
            if score(first.max(ready), 0.0) >= best.0 {
                continue;
            }
            if self.arrivals[memory] == NEVER {
                (self.arrivals[memory], self.hauls[memory]) = self.arrival_alone(outlook, task, memory, ready);
            }
            let (arrival, haul) = (self.arrivals[memory], taste.haul * self.hauls[memory] as f64);
            if score(first.max(arrival), haul) >= best.0 {
                continue;
            }
            let mut soonest = (NEVER, one);
            for lanes in troop.candidates(&self.used) {
                soonest = self.lanes.soonest(lanes, arrival, length, soonest);
            }
            let (start, lane) = soonest;
            let score = score(start, haul);
            if score < best.0 {
                best = (score, lane, start);
            }
        }
        (best.1, best.2)
    }

    /// When the data that `task` reads can be in a memory, if its transfers start at `ready` and meet no others, and how
    /// long these take.
    fn arrival_alone(&self, outlook: &Outlook, task: usize, to: usize, ready: u64) -> (u64, u64) {
        let (mut latest, mut haul) = (ready, 0);
        for used in outlook.uses(task).iter().filter(|used| used.reads) {
            let copies = &self.copies[used.data * outlook.memories..][..outlook.memories];
            if copies[to] != NEVER {
                latest = latest.max(copies[to]);
                continue;
            }
            let there = copies.iter().enumerate().filter(|(_, copy)| **copy != NEVER);
            let ways = there.map(|(from, copy)| {
                let length = outlook.transfer(used.data, from, to);
                ((*copy).max(ready) + length, length)
            });
            if let Some((arrival, length)) = ways.min() {
                (latest, haul) = (latest.max(arrival), haul + length);
            }
        }
        (latest, haul)
    }
}

/// A key as a number that is larger where the key is: compared in one step.
pub(super) fn comparable(key: f64) -> u64 {
    // Negative ones the other way round, below the others; and there is one zero.
    let bits = (key + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

pub(super) fn refill<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    list.clear();
    list.resize(len, value);
}

impl Schedule {
    pub(super) fn clear(&mut self, outlook: &Outlook) {
        refill(&mut self.lanes, outlook.len(), 0);
        refill(&mut self.starts, outlook.len(), outlook.now);
        refill(&mut self.ends, outlook.len(), outlook.now);
        self.end = outlook.now;
    }

    /// Places the tasks that were sent on their lanes.
    pub(super) fn place_sent(&mut self, outlook: &Outlook, copies: &mut [u64]) {
        for (task, lane, end) in &outlook.sent {
            self.lanes[*task] = *lane;
            self.ends[*task] = *end;
            self.end = self.end.max(*end);
            outlook.write(*task, *lane, *end, copies);
        }
    }

    /// Lets the tasks choose in the order of their keys: each takes the lane and the gap where it ends first, apart
    /// from the preferences. With `fixed`, a task keeps its lane. Transfer times count, but not contention between
    /// transfers.
    pub(super) fn choose(&mut self, outlook: &Outlook, taste: &Taste, fixed: Option<&[usize]>, scratch: &mut Scratch) {
        let memories = outlook.memories;
        self.clear(outlook);
        scratch.copies.clone_from(&outlook.copies);
        scratch.waits.clone_from(&outlook.waits);
        scratch.lanes.begin(outlook);
        refill(&mut scratch.ready, outlook.len(), outlook.now);
        refill(&mut scratch.arrivals, memories, 0);
        refill(&mut scratch.hauls, memories, 0);
        self.place_sent(outlook, &mut scratch.copies);
        outlook.squads.begin(&mut scratch.used);
        scratch.heap.clear();
        let entry = |task: usize| (comparable(taste.keys[task]), Reverse(task as u32));
        scratch.heap.extend((0..outlook.len()).filter(|task| outlook.waits[*task] == 0).map(entry));
        while let Some((_, Reverse(task))) = scratch.heap.pop() {
            if scratch.stop.is_set() {
                break;
            }
            let task = task as usize;
            let ready = scratch.ready[task];
            if outlook.is_open(task) {
                if outlook.works[task] {
                    self.find_place(outlook, taste, fixed, task, ready, scratch);
                } else {
                    (self.starts[task], self.ends[task]) = (ready, ready);
                }
            }
            let end = self.ends[task];
            self.end = self.end.max(end);
            for next in outlook.successors(task) {
                scratch.ready[*next] = scratch.ready[*next].max(end);
                scratch.waits[*next] -= 1;
                if scratch.waits[*next] == 0 {
                    scratch.heap.push(entry(*next));
                }
            }
        }
    }

    /// Places `task`, ready at `ready`, where it ends first, apart from the preferences.
    fn find_place(
        &mut self,
        outlook: &Outlook,
        taste: &Taste,
        fixed: Option<&[usize]>,
        task: usize,
        ready: u64,
        scratch: &mut Scratch,
    ) {
        scratch.arrivals.fill(NEVER);
        let (number, start) = match fixed {
            Some(fixed) => {
                let (number, memory) = (fixed[task], outlook.lanes[fixed[task]].memory);
                (scratch.arrivals[memory], scratch.hauls[memory]) = scratch.arrival_alone(outlook, task, memory, ready);
                (number, scratch.lanes.start(number, scratch.arrivals[memory], outlook.length(task, number)))
            }
            None => scratch.first_place(outlook, taste, task, ready),
        };
        outlook.squads.note_use(number, &mut scratch.used);
        let (end, memory) = (start + outlook.length(task, number), outlook.lanes[number].memory);
        scratch.lanes.occupy(number, start, end);
        (self.lanes[task], self.starts[task], self.ends[task]) = (number, start, end);
        for used in outlook.uses(task).iter().filter(|used| used.reads) {
            let copy = &mut scratch.copies[used.data * outlook.memories + memory];
            *copy = (*copy).min(scratch.arrivals[memory]);
        }
        outlook.write(task, number, end, &mut scratch.copies);
    }

    /// The latest start of each task that keeps the makespan, with each lane keeping its order.
    pub(super) fn latest_starts(&self, outlook: &Outlook, scratch: &mut Scratch) -> Vec<u64> {
        let mut latest = vec![self.end; outlook.len()];
        refill(&mut scratch.free, outlook.lanes.len(), self.end);
        scratch.order.clear();
        scratch.order.extend(0..outlook.len());
        scratch.order.sort_unstable_by_key(|task| Reverse((self.ends[*task], self.starts[*task], *task)));
        for task in scratch.order.iter().copied() {
            let end = outlook.successors(task).iter().map(|next| latest[*next]).fold(self.end, u64::min);
            latest[task] = end;
            if outlook.works[task] && outlook.is_open(task) {
                let lane = self.lanes[task];
                latest[task] = end.min(scratch.free[lane]).saturating_sub(outlook.length(task, lane));
                scratch.free[lane] = latest[task];
            }
        }
        latest
    }
}

impl Outlook {
    /// Records that a task that ends on a lane leaves the only valid copy of what it writes there.
    pub(super) fn write(&self, task: usize, lane: usize, end: u64, copies: &mut [u64]) {
        let memory = self.lanes[lane].memory;
        for used in self.uses(task).iter().filter(|used| used.writes) {
            let copies = &mut copies[used.data * self.memories..][..self.memories];
            copies.fill(NEVER);
            copies[memory] = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_compare_as_the_numbers_that_they_are(a in prop::num::f64::ANY, b in -3..3_i8) {
            prop_assume!(!a.is_nan());
            for (a, b) in [(a, f64::from(b)), (f64::from(b), a), (a, -a), (a, a)] {
                prop_assert_eq!(Some(comparable(a).cmp(&comparable(b))), a.partial_cmp(&b));
            }
        }
    }
}
