//! Where not all data fits into a memory: when workers take tasks there, and what is evicted for these.
//!
//! A worker takes its next task while it executes one. That task gets memory for all of its data, or waits for it, in
//! the order in which tasks were taken. Data that is fetched before that evicts nothing. In a plan that is followed, a
//! worker takes its tasks in order; in one that is made by its execution, the task of which the least data is missing.

use super::realise::{LAST, UNASKED};
use super::{Execution, Waiting};
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::schedule::{Schedule, Scratch, refill};
use sched_core::Stage;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Number of tasks that a worker has taken at most.
const TAKEN: u32 = 2;

/// The source of a transfer is not known.
const UNKNOWN: u32 = u32::MAX;

/// What waits for room.
#[derive(Default, Debug)]
pub(super) struct Takings {
    /// By lane: number of tasks in its queue that its worker has taken, and of those that it has taken and not ended.
    taken: Vec<usize>,
    under_way: Vec<u32>,
    /// By task.
    stages: Vec<Stage>,
    /// Whether workers choose among the tasks that wait for them, rather than take those in their queues in order.
    choose: bool,
    /// By lane: the tasks that wait for it, among which it chooses.
    open: Vec<Vec<Waiting>>,
    /// By memory: the tasks that wait for room, in order; and the place of what is written home to make some.
    waiting: Vec<VecDeque<u32>>,
    evicting: Vec<Option<usize>>,
    /// By place: the memory from which the data comes.
    sources: Vec<u32>,
}

impl Schedule {
    /// A task is ready, or its data due.
    pub(super) fn come(&mut self, outlook: &Outlook, plan: &Schedule, scratch: &mut Scratch, task: usize, now: u64) {
        let (lane, stages) = (self.lanes[task], &mut scratch.execution.takings.stages);
        if stages[task] == Stage::Waiting {
            stages[task] = Stage::Ready;
            self.take(outlook, scratch, lane, now);
            let fetch = plan.fetched(outlook, task, now);
            if scratch.execution.takings.stages[task] == Stage::Ready && fetch.at() > now {
                scratch.execution.events.push(Reverse(fetch));
                return;
            }
        }
        if scratch.execution.takings.stages[task] == Stage::Ready {
            scratch.fetch_ahead(outlook, task, outlook.lanes[lane].memory, now);
        }
    }

    /// Lets a worker take tasks, and fetches their data.
    fn take(&mut self, outlook: &Outlook, scratch: &mut Scratch, lane: usize, now: u64) {
        let memory = outlook.lanes[lane].memory;
        loop {
            if scratch.execution.takings.under_way[lane] >= TAKEN {
                return;
            }
            if scratch.execution.takings.choose {
                scratch.choose_next(outlook, lane);
            }
            let Execution { takings, queues, .. } = &mut scratch.execution;
            let next = queues[lane].get(takings.taken[lane]).copied();
            let Some(task) = next.filter(|task| takings.choose || takings.stages[*task] == Stage::Ready) else {
                return;
            };
            takings.taken[lane] += 1;
            takings.under_way[lane] += 1;
            takings.stages[task] = Stage::Taken;
            takings.waiting[memory].push_back(task as u32);
            self.serve(outlook, scratch, memory, now);
        }
    }

    /// Adds a task to those among which a worker chooses.
    pub(super) fn offer(&mut self, outlook: &Outlook, scratch: &mut Scratch, task: Waiting, now: u64) {
        let lane = self.lanes[task.task.0 as usize];
        scratch.execution.lengths[task.task.0 as usize] = task.length;
        scratch.execution.takings.open[lane].push(task);
        self.take(outlook, scratch, lane, now);
        if scratch.execution.takings.stages[task.task.0 as usize] != Stage::Taken {
            scratch.fetch_ahead(outlook, task.task.0 as usize, outlook.lanes[lane].memory, now);
        }
    }

    /// Gives memory to the tasks that wait for it, until there is too little.
    fn serve(&mut self, outlook: &Outlook, scratch: &mut Scratch, memory: usize, now: u64) {
        while scratch.execution.takings.evicting[memory].is_none()
            && let Some(task) = scratch.execution.takings.waiting[memory].front().copied()
            && scratch.reserve(outlook, task as usize, memory, now)
        {
            self.give(outlook, scratch, memory, now);
        }
    }

    /// Gives memory to the first task that waits for it.
    fn give(&mut self, outlook: &Outlook, scratch: &mut Scratch, memory: usize, now: u64) {
        let Some(task) = scratch.execution.takings.waiting[memory].pop_front() else { return };
        scratch.ask(outlook, task as usize, memory, now);
        self.advance(outlook, scratch, self.lanes[task as usize], now);
    }

    /// Ends the uses of a task that has ended, and lets its worker take the next one.
    pub(super) fn leave(&mut self, outlook: &Outlook, scratch: &mut Scratch, task: usize, now: u64) {
        let (lane, memories) = (self.lanes[task], outlook.memories);
        let memory = outlook.lanes[lane].memory;
        let execution = &mut scratch.execution;
        for used in outlook.uses(task).iter().filter(|used| used.writes) {
            for other in (0..memories).filter(|other| *other != memory) {
                execution.replicas.invalidate(used.data * memories + other);
            }
        }
        if !execution.replicas.limits(memory) {
            return;
        }
        outlook.uses(task).iter().for_each(|used| execution.unpin(used.data * memories + memory, false));
        scratch.execution.takings.under_way[lane] -= 1;
        self.serve(outlook, scratch, memory, now);
        self.take(outlook, scratch, lane, now);
    }

    /// Gives memory to all that wait for it, after transfers have arrived.
    pub(super) fn serve_all(&mut self, outlook: &Outlook, scratch: &mut Scratch, now: u64) {
        (0..outlook.memories).for_each(|memory| self.serve(outlook, scratch, memory, now));
    }

    /// Gives memory that is not there to a task, where none will come. Returns whether there was one.
    pub(super) fn force(&mut self, outlook: &Outlook, scratch: &mut Scratch, now: u64) -> bool {
        let waiting = &scratch.execution.takings.waiting;
        let Some(memory) = waiting.iter().position(|waiting| !waiting.is_empty()) else { return false };
        let task = waiting[memory][0] as usize;
        let missing = scratch.pin_uses(outlook, task, memory);
        scratch.execution.replicas.take(memory, missing);
        self.give(outlook, scratch, memory, now);
        true
    }
}

impl Scratch {
    /// The worker of a lane chooses the task of which the least data is missing, and of these the most urgent one.
    fn choose_next(&mut self, outlook: &Outlook, lane: usize) {
        let (memories, memory) = (outlook.memories, outlook.lanes[lane].memory);
        let Execution { takings, queues, asked, backlog, .. } = &mut self.execution;
        let open = &mut takings.open[lane];
        let missing = |waiting: &Waiting| {
            let uses = outlook.uses(waiting.task.0 as usize).iter().filter(|used| used.reads);
            let place = |data: usize| data * memories + memory;
            let absent =
                uses.filter(|used| self.copies[place(used.data)] == NEVER && asked[place(used.data)] == UNASKED);
            absent.fold(0, |sum: u64, used| sum.saturating_add(outlook.bytes[used.data]))
        };
        let best = (0..open.len()).min_by_key(|at| (missing(&open[*at]), Reverse(open[*at])));
        let Some(best) = best else { return };
        let chosen = open.swap_remove(best);
        backlog[lane] -= chosen.length;
        queues[lane].push(chosen.task.0 as usize);
    }

    /// No task has been taken but those that were sent.
    pub(super) fn begin_takings(&mut self, outlook: &Outlook, choose: bool) {
        let Execution { replicas, takings, queues, lengths, left, .. } = &mut self.execution;
        replicas.clone_from(&outlook.replicas);
        if !replicas.are_limited() {
            return;
        }
        let Takings { taken, under_way, stages, choose: chooses, open, waiting, evicting, sources } = takings;
        *chooses = choose;
        if choose {
            // Queues are made as workers choose.
            queues.resize(outlook.lanes.len(), Vec::new());
            queues.iter_mut().for_each(Vec::clear);
            refill(lengths, outlook.len(), 0);
            refill(left, outlook.lanes.len(), 0);
        }
        open.resize_with(outlook.lanes.len(), Vec::new);
        open.iter_mut().for_each(Vec::clear);
        refill(taken, outlook.lanes.len(), 0);
        refill(under_way, outlook.lanes.len(), 0);
        refill(stages, outlook.len(), Stage::Waiting);
        waiting.resize(outlook.memories, VecDeque::new());
        waiting.iter_mut().for_each(VecDeque::clear);
        refill(evicting, outlook.memories, None);
        refill(sources, outlook.copies.len(), UNKNOWN);
        for (task, lane, _) in &outlook.sent {
            under_way[*lane] += 1;
            let memory = outlook.lanes[*lane].memory;
            outlook.uses(*task).iter().for_each(|used| replicas.pin(used.data * outlook.memories + memory));
        }
    }

    /// Pins the data of a task in a memory. Returns the bytes of what has no memory there.
    fn pin_uses(&mut self, outlook: &Outlook, task: usize, memory: usize) -> u64 {
        let Execution { replicas, allocated, .. } = &mut self.execution;
        let uses = outlook.uses(task);
        let mut missing: u64 = 0;
        for (number, used) in uses.iter().enumerate() {
            let place = used.data * outlook.memories + memory;
            replicas.pin(place);
            if !allocated[place] && uses[..number].iter().all(|other| other.data != used.data) {
                missing = missing.saturating_add(outlook.bytes[used.data]);
            }
        }
        missing
    }

    /// Reserves memory for the data of a task, or makes some. Returns whether there was enough.
    fn reserve(&mut self, outlook: &Outlook, task: usize, memory: usize, now: u64) -> bool {
        let missing = self.pin_uses(outlook, task, memory);
        while !self.execution.replicas.has_room(memory, missing) {
            let victim = self.execution.replicas.victim(memory);
            if victim.is_some_and(|place| self.evict(outlook, place, now)) {
                continue;
            }
            for used in outlook.uses(task) {
                let place = used.data * outlook.memories + memory;
                self.execution.unpin(place, self.copies[place] == NEVER);
            }
            return false;
        }
        self.execution.replicas.take(memory, missing);
        true
    }

    /// Evicts a replica, or begins to write it home. Returns whether it is gone.
    fn evict(&mut self, outlook: &Outlook, place: usize, now: u64) -> bool {
        let (data, memory) = (place / outlook.memories, place % outlook.memories);
        let home = data * outlook.memories;
        let copies = &self.copies[home..][..outlook.memories];
        let is_valid = copies[memory] != NEVER;
        let is_elsewhere = || (0..outlook.memories).any(|other| other != memory && copies[other] != NEVER);
        if !is_valid || is_elsewhere() {
            self.execution.replicas.evict(place, outlook.bytes[data]);
            (self.execution.allocated[place], self.copies[place]) = (false, NEVER);
            return true;
        }
        self.execution.takings.evicting[memory] = Some(place);
        self.execution.replicas.pin(place);
        if self.execution.asked[home] == UNASKED {
            self.execution.asked[home] = LAST;
            self.note_transfer(outlook, home, memory, now);
            self.request(outlook, home, memory, now);
        }
        false
    }

    /// Begins to fetch the data of a task that nobody has taken, as far as there is room.
    fn fetch_ahead(&mut self, outlook: &Outlook, task: usize, to: usize, now: u64) {
        for used in outlook.uses(task).iter().filter(|used| used.reads) {
            let (place, bytes) = (used.data * outlook.memories + to, outlook.bytes[used.data]);
            let Execution { replicas, allocated, asked, traffic, .. } = &mut self.execution;
            let is_there = self.copies[place] != NEVER || asked[place] != UNASKED;
            if is_there || !(allocated[place] || replicas.has_room(to, bytes)) {
                continue;
            }
            if !std::mem::replace(&mut allocated[place], true) {
                replicas.take(to, bytes);
                outlook.network.allocate(traffic, to, now);
            }
            if self.send_for(outlook, used.data, to, now) {
                self.execution.asked[place] = LAST;
            }
        }
    }

    /// Takes note of a transfer that is requested.
    pub(super) fn note_transfer(&mut self, outlook: &Outlook, place: usize, from: usize, now: u64) {
        let Execution { replicas, takings, expected, traffic, .. } = &mut self.execution;
        if !replicas.are_limited() {
            return;
        }
        let (data, to) = (place / outlook.memories, place % outlook.memories);
        replicas.pin(place);
        replicas.pin(data * outlook.memories + from);
        takings.sources[place] = from as u32;
        if takings.choose {
            expected[place] = outlook.network.begin(traffic, from, to, now, outlook.transfer(data, from, to));
        }
    }

    /// Takes note of a transfer that has arrived.
    pub(super) fn note_arrival(&mut self, outlook: &Outlook, place: usize) {
        let execution = &mut self.execution;
        if !execution.replicas.are_limited() {
            return;
        }
        execution.unpin(place, false);
        let source = std::mem::replace(&mut execution.takings.sources[place], UNKNOWN);
        if source != UNKNOWN {
            execution.unpin(place - place % outlook.memories + source as usize, false);
        }
        for memory in 0..outlook.memories {
            let evicting = &mut execution.takings.evicting[memory];
            if let Some(evicted) = evicting.take_if(|evicted| *evicted - memory == place) {
                execution.unpin(evicted, true);
            }
        }
    }
}

impl Execution {
    /// Total length of what a worker of a limited memory has taken and not begun, and of what waits for it and comes
    /// before a task with this key.
    pub(super) fn taken_ahead(&self, lane: usize, key: u64) -> u64 {
        let taken = self.queues[lane][self.heads[lane]..].iter().map(|task| self.lengths[*task]).sum::<u64>();
        let before = self.takings.open[lane].iter().filter(|other| other.key >= key);
        taken + before.map(|other| other.length).sum::<u64>()
    }

    /// Ends a use of a replica: after the last one it is evicted last, or first.
    fn unpin(&mut self, place: usize, goes_first: bool) {
        if self.replicas.unpin(place) && self.allocated[place] {
            self.replicas.list(place, goes_first);
        }
    }
}
