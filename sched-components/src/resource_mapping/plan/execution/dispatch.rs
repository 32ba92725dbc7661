//! A plan that is made by its execution.

use super::realise::{Next, UNASKED};
use super::{Entry, Event, Execution, Waiting};
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::schedule::{Schedule, Scratch, Taste, comparable, refill};
use std::cmp::Reverse;
use std::ops::Range;

/// Maximum number of tasks in a queue of which only the more urgent ones count as work ahead of another.
const MOST_COMPARED: usize = 64;

impl Schedule {
    /// Makes a plan by its execution: each task chooses when it becomes ready, in the order of the keys, the lane on
    /// which it ends first, apart from the preferences; it accounts for what its transfers wait for. A lane executes
    /// the task with the largest key among those whose data is there; in a memory of which it is known what is evicted,
    /// it takes [that of which the least data is missing](super::evictions). Gives up as [`realise`](Self::realise)
    /// does.
    pub(in crate::resource_mapping::plan) fn dispatch(
        &mut self,
        outlook: &Outlook,
        taste: &Taste,
        most: u64,
        scratch: &mut Scratch,
    ) {
        self.begin(outlook, most, scratch);
        let shares = taste.shares && outlook.has_links();
        let are_limited = shares && taste.evicts && outlook.replicas.are_limited();
        if are_limited {
            scratch.begin_takings(outlook, true);
        }
        if shares {
            scratch.begin_flows(outlook);
        }
        outlook.squads.begin(&mut scratch.used);
        refill(&mut scratch.arrivals, outlook.memories, 0);
        refill(&mut scratch.hauls, outlook.memories, 0);
        for (busy, lane) in scratch.execution.busy.iter_mut().zip(&outlook.lanes) {
            *busy = lane.free > outlook.now;
        }
        let fetch = |task: usize, ready: u64| Entry::fetch(ready, taste.keys[task], task);
        self.release_first(outlook, scratch, fetch);
        let mut now = outlook.now;
        loop {
            match scratch.next(outlook, shares) {
                Next::Nothing if are_limited && self.force(outlook, scratch, now) => {}
                Next::Nothing => break,
                Next::Late => {
                    self.end = NEVER;
                    break;
                }
                Next::Arrival(at) => {
                    now = at;
                    self.receive_any(outlook, scratch, at);
                    if are_limited {
                        self.serve_all(outlook, scratch, at);
                    }
                }
                Next::Event(at, Event::End { task }) => {
                    now = at;
                    self.end(outlook, scratch, task, at, fetch);
                    let lane = self.lanes[task];
                    if are_limited && outlook.works[task] {
                        self.leave(outlook, scratch, task, at);
                    }
                    let memory = outlook.lanes[lane].memory;
                    if outlook.works[task] && scratch.free[lane] <= at && !scratch.execution.replicas.limits(memory) {
                        scratch.execution.busy[lane] = false;
                        self.start_best(outlook, scratch, lane, at);
                    }
                }
                Next::Event(at, Event::Fetch { task }) => self.place(outlook, taste, scratch, task, at),
                // Lanes that choose take a task and begin it in one step.
                Next::Event(_, Event::Take { .. }) => {}
                Next::Event(at, Event::Request { place, from }) => scratch.request(outlook, place, from, at),
            }
        }
    }

    /// Chooses the lane of a ready task, and fetches its data.
    fn place(&mut self, outlook: &Outlook, taste: &Taste, scratch: &mut Scratch, task: usize, now: u64) {
        let lane = scratch.best_lane(outlook, taste, task, now);
        outlook.squads.note_use(lane, &mut scratch.used);
        self.lanes[task] = lane;
        let length = outlook.length(task, lane);
        scratch.execution.backlog[lane] += length;
        let memory = outlook.lanes[lane].memory;
        let waiting = Waiting { key: comparable(taste.keys[task]), task: Reverse(task as u32), length };
        if scratch.execution.replicas.limits(memory) {
            return self.offer(outlook, scratch, waiting, now);
        }
        if taste.shares && outlook.has_links() {
            scratch.ask_ahead(outlook, task, memory, now);
        } else {
            scratch.bring(outlook, task, memory, now);
        }
        let arrival = scratch.execution.arrivals[task];
        if arrival == NEVER {
            scratch.execution.absent[lane].push(waiting);
        } else {
            scratch.execution.coming[lane].push((Reverse(arrival), waiting));
            if !scratch.execution.busy[lane] || scratch.free[lane] <= now {
                self.start_best(outlook, scratch, lane, now);
            }
        }
    }

    /// Takes note of transfers that arrive at `now`, and lets lanes begin the tasks that waited for them.
    fn receive_any(&mut self, outlook: &Outlook, scratch: &mut Scratch, now: u64) {
        let mut complete = std::mem::take(&mut scratch.execution.complete);
        scratch.receive(outlook, now, &mut complete);
        for task in &complete {
            let lane = self.lanes[*task as usize];
            if scratch.execution.replicas.limits(outlook.lanes[lane].memory) {
                self.advance(outlook, scratch, lane, now);
                continue;
            }
            let Execution { absent, coming, arrivals, .. } = &mut scratch.execution;
            let Some(at) = absent[lane].iter().position(|waiting| waiting.task.0 == *task) else { continue };
            coming[lane].push((Reverse(arrivals[*task as usize]), absent[lane].swap_remove(at)));
        }
        for task in complete.drain(..) {
            let lane = self.lanes[task as usize];
            if scratch.execution.replicas.limits(outlook.lanes[lane].memory) {
                continue;
            }
            if !scratch.execution.busy[lane] || scratch.free[lane] <= now {
                self.start_best(outlook, scratch, lane, now);
            }
        }
        scratch.execution.complete = complete;
    }

    /// Begins a task of those that wait for a lane: the most urgent whose data is there, or the first whose data comes.
    fn start_best(&mut self, outlook: &Outlook, scratch: &mut Scratch, lane: usize, now: u64) {
        let Scratch { execution, free, .. } = scratch;
        let (coming, there) = (&mut execution.coming[lane], &mut execution.there[lane]);
        while let Some((_, waiting)) = coming.peek().copied().filter(|(Reverse(at), _)| *at <= now) {
            coming.pop();
            there.push(waiting);
        }
        let first = there.pop().or_else(|| coming.pop().map(|(_, waiting)| waiting));
        let Some(Waiting { task: Reverse(task), length, .. }) = first else { return };
        let task = task as usize;
        execution.backlog[lane] -= length;
        execution.busy[lane] = true;
        let start = execution.arrivals[task].max(now).max(execution.taken(outlook, task, lane));
        execution.began[lane] = start;
        free[lane] = self.start(outlook, execution, task, start, length);
    }
}

impl Scratch {
    /// Asks for the data of a task in a memory, and takes note of when it should arrive.
    fn ask_ahead(&mut self, outlook: &Outlook, task: usize, to: usize, now: u64) {
        let are_expected = self.execution.replicas.are_limited();
        for used in outlook.uses(task).iter().filter(|used| used.reads && !are_expected) {
            let place = used.data * outlook.memories + to;
            if self.copies[place] == NEVER && self.execution.asked[place] == UNASKED {
                let Some(from) = self.source(outlook, used.data, to, now) else { continue };
                let length = outlook.transfer(used.data, from, to);
                let end = outlook.network.begin(&mut self.execution.traffic, from, to, now, length);
                self.execution.expected[place] = end;
            }
        }
        self.ask(outlook, task, to, now);
    }

    /// The lane on which a task that is ready ends first, apart from the preferences.
    fn best_lane(&mut self, outlook: &Outlook, taste: &Taste, task: usize, now: u64) -> usize {
        self.arrivals.fill(NEVER);
        let (key, leanings) = (comparable(taste.keys[task]), taste.of(outlook, task));
        let mut best = (f64::INFINITY, 0);
        for troop in outlook.squads.troops() {
            // Of lanes that take equally long, the one that begins first is the best.
            let one = troop.first();
            let Some((length, leaning)) = leanings.to(one) else { continue };
            let memory = outlook.lanes[one].memory;
            let score = |start: u64, haul: f64| (start - outlook.now + length) as f64 + leaning + haul;
            let first = troop.least(&self.used, &self.free).max(now);
            // Mostly the lanes alone are too late, or their memory, and the rest need not be known.
            if score(first, 0.0) >= best.0 {
                continue;
            }
            if self.arrivals[memory] == NEVER {
                (self.arrivals[memory], self.hauls[memory]) = self.arrival(outlook, taste, task, memory, now);
            }
            let (arrival, haul) = (self.arrivals[memory], taste.haul * self.hauls[memory] as f64);
            let first = first.max(arrival);
            if score(first, haul) >= best.0 {
                continue;
            }
            let mut soonest = (NEVER, one);
            for lanes in troop.candidates(&self.used) {
                soonest = self.soonest(outlook, lanes, key, (now, arrival), soonest);
            }
            let (start, lane) = soonest;
            let score = score(start, haul);
            if score < best.0 {
                best = (score, lane);
            }
        }
        best.1
    }

    /// When the first of some lanes begins a task with this key whose data arrives then, if that is sooner than `sooner`.
    fn soonest(
        &self,
        outlook: &Outlook,
        lanes: Range<usize>,
        key: u64,
        (now, arrival): (u64, u64),
        sooner: (u64, usize),
    ) -> (u64, usize) {
        let mut soonest = sooner;
        for (lane, free) in lanes.clone().zip(&self.free[lanes]) {
            let free = (*free).max(now);
            if free.max(arrival) < soonest.0 {
                soonest = soonest.min(((free + self.work_ahead(outlook, lane, key)).max(arrival), lane));
            }
        }
        soonest
    }

    /// When the data that a task reads can be in a memory, if its transfers start `now`, and how long these take.
    fn arrival(&self, outlook: &Outlook, taste: &Taste, task: usize, to: usize, now: u64) -> (u64, u64) {
        let memories = outlook.memories;
        let asks = taste.shares && outlook.has_links();
        let memory = if taste.hasty { now } else { self.execution.memory_at(outlook, task, to, now) };
        let (mut latest, mut haul) = (memory, 0);
        for used in outlook.uses(task).iter().filter(|used| used.reads) {
            let place = used.data * memories + to;
            let copy = self.copies[place];
            if copy != NEVER {
                latest = latest.max(copy);
            } else if asks && self.execution.asked[place] != UNASKED {
                latest = latest.max(self.execution.expected[place]);
            } else if let Some(from) = self.source(outlook, used.data, to, now) {
                let length = outlook.transfer(used.data, from, to);
                let at = memory.max(self.copies[used.data * memories + from]);
                latest = latest.max(outlook.network.end(&self.execution.traffic, from, to, at, length));
                haul += length;
            }
        }
        (latest, haul)
    }

    /// Total length of what waits for a lane and comes before a task with this key.
    fn work_ahead(&self, outlook: &Outlook, lane: usize, key: u64) -> u64 {
        if self.execution.replicas.limits(outlook.lanes[lane].memory) {
            return self.execution.taken_ahead(lane, key);
        }
        let Execution { coming, there, absent, backlog, .. } = &self.execution;
        let (coming, there, absent) = (&coming[lane], &there[lane], &absent[lane]);
        if coming.len() + there.len() + absent.len() > MOST_COMPARED {
            return backlog[lane];
        }
        let before = |other: &Waiting| if other.key >= key { other.length } else { 0 };
        let coming: u64 = coming.iter().map(|(_, waiting)| before(waiting)).sum();
        coming + there.iter().chain(absent).map(before).sum::<u64>()
    }
}
