//! A plan that is made by its execution.

use super::realise::{Next, UNASKED};
use super::{Event, Execution};
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::schedule::{Key, Schedule, Scratch, Taste, refill};
use std::cmp::Reverse;

/// Maximum number of tasks in a queue of which only the more urgent ones count as work ahead of another.
const MOST_COMPARED: usize = 64;

impl Schedule {
    /// Makes a plan by its execution: each task chooses when it becomes ready, in the order of the keys, the lane on
    /// which it ends first, apart from the preferences; it accounts for what its transfers wait for. A lane executes
    /// the task with the largest key among those whose data is there. Gives up as [`realise`](Self::realise) does.
    pub(in crate::resource_mapping::plan) fn dispatch(
        &mut self,
        outlook: &Outlook,
        taste: &Taste,
        most: u64,
        scratch: &mut Scratch,
    ) {
        self.begin(outlook, scratch);
        let shares = taste.shares && outlook.has_links();
        if shares {
            scratch.begin_flows(outlook);
        }
        outlook.squads.begin(&mut scratch.used);
        refill(&mut scratch.arrivals, outlook.memories, 0);
        refill(&mut scratch.hauls, outlook.memories, 0);
        for (busy, lane) in scratch.execution.busy.iter_mut().zip(&outlook.lanes) {
            *busy = lane.free > outlook.now;
        }
        let fetch = |task: usize, ready: u64| Event::Fetch { at: ready, order: Reverse(Key(taste.keys[task])), task };
        self.release_first(outlook, scratch, fetch);
        loop {
            match scratch.next(outlook, shares, most) {
                Next::Nothing => break,
                Next::Late => {
                    self.end = NEVER;
                    break;
                }
                Next::Arrival(at) => self.receive_any(outlook, taste, scratch, at),
                Next::Event(Event::End { at, task }) => {
                    self.end(outlook, scratch, task, at, fetch);
                    let lane = self.lanes[task];
                    if outlook.works[task] && scratch.free[lane] <= at {
                        scratch.execution.busy[lane] = false;
                        self.start_best(outlook, scratch, lane, at);
                    }
                }
                Next::Event(Event::Fetch { at, task, .. }) => self.place(outlook, taste, scratch, task, at),
                Next::Event(Event::Request { at, place, from }) => scratch.request(outlook, place, from, at),
            }
        }
    }

    /// Chooses the lane of a ready task, and fetches its data.
    fn place(&mut self, outlook: &Outlook, taste: &Taste, scratch: &mut Scratch, task: usize, now: u64) {
        let lane = scratch.best_lane(outlook, taste, task, now);
        outlook.squads.note_use(lane, &mut scratch.used);
        self.lanes[task] = lane;
        scratch.execution.backlog[lane] += outlook.length(task, lane);
        let memory = outlook.lanes[lane].memory;
        if taste.shares && outlook.has_links() {
            scratch.ask_ahead(outlook, task, memory, now);
        } else {
            scratch.bring(outlook, task, memory, now);
        }
        let arrival = scratch.execution.arrivals[task];
        if arrival == NEVER {
            scratch.execution.absent[lane].push(task as u32);
        } else {
            scratch.execution.coming[lane].push((Reverse(arrival), Key(taste.keys[task]), Reverse(task)));
            if !scratch.execution.busy[lane] || scratch.free[lane] <= now {
                self.start_best(outlook, scratch, lane, now);
            }
        }
    }

    /// Takes note of transfers that arrive at `now`, and lets lanes begin the tasks that waited for them.
    fn receive_any(&mut self, outlook: &Outlook, taste: &Taste, scratch: &mut Scratch, now: u64) {
        let mut complete = std::mem::take(&mut scratch.execution.complete);
        scratch.receive(outlook, now, &mut complete);
        for task in complete.iter().map(|task| *task as usize) {
            let lane = self.lanes[task];
            let execution = &mut scratch.execution;
            execution.absent[lane].retain(|other| *other as usize != task);
            execution.coming[lane].push((Reverse(execution.arrivals[task]), Key(taste.keys[task]), Reverse(task)));
        }
        for task in complete.drain(..) {
            let lane = self.lanes[task as usize];
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
        while let Some((_, key, task)) = coming.peek().copied().filter(|(Reverse(at), ..)| *at <= now) {
            coming.pop();
            there.push((key, task));
        }
        let first = there.pop().map(|(_, Reverse(task))| task);
        let Some(task) = first.or_else(|| coming.pop().map(|(.., Reverse(task))| task)) else { return };
        execution.backlog[lane] -= outlook.length(task, lane);
        execution.busy[lane] = true;
        let start = execution.arrivals[task].max(now);
        free[lane] = self.start(outlook, execution, task, lane, start);
    }
}

impl Scratch {
    /// Asks for the data of a task in a memory, and takes note of when it should arrive.
    fn ask_ahead(&mut self, outlook: &Outlook, task: usize, to: usize, now: u64) {
        for used in outlook.uses(task).iter().filter(|used| used.reads) {
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
        let memories = outlook.memories;
        for to in 0..memories {
            let (mut latest, mut haul) = (now, 0);
            for used in outlook.uses(task).iter().filter(|used| used.reads) {
                let copy = self.copies[used.data * memories + to];
                if copy != NEVER {
                    latest = latest.max(copy);
                } else if taste.shares
                    && outlook.has_links()
                    && self.execution.asked[used.data * memories + to] != UNASKED
                {
                    latest = latest.max(self.execution.expected[used.data * memories + to]);
                } else if let Some(from) = self.source(outlook, used.data, to, now) {
                    let length = outlook.transfer(used.data, from, to);
                    let at = now.max(self.copies[used.data * memories + from]);
                    latest = latest.max(outlook.network.end(&self.execution.traffic, from, to, at, length));
                    haul += length;
                }
            }
            (self.arrivals[to], self.hauls[to]) = (latest, haul);
        }
        let mut best = (f64::INFINITY, 0);
        for number in outlook.squads.candidates(&self.used) {
            let lane = &outlook.lanes[number];
            let Some(leaning) = taste.leaning(outlook, task, number) else { continue };
            let Execution { coming, there, absent, .. } = &self.execution;
            let (coming, there, absent) = (&coming[number], &there[number], &absent[number]);
            let ahead = if coming.len() + there.len() + absent.len() > MOST_COMPARED {
                self.execution.backlog[number]
            } else {
                let waiting = coming.iter().map(|(.., task)| task.0).chain(there.iter().map(|(_, task)| task.0));
                let waiting = waiting.chain(absent.iter().map(|task| *task as usize));
                let before = waiting.filter(|other| taste.keys[*other] >= taste.keys[task]);
                before.map(|other| outlook.length(other, number)).sum()
            };
            let start = (self.free[number].max(now) + ahead).max(self.arrivals[lane.memory]);
            let haul = taste.haul * self.hauls[lane.memory] as f64;
            let score = (start - outlook.now + outlook.length(task, number)) as f64 + leaning + haul;
            if score < best.0 {
                best = (score, number);
            }
        }
        best.1
    }
}
