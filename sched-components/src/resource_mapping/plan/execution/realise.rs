//! An execution in which transfers share links at each moment.

use super::{Entry, Event, Execution};
use crate::resource_mapping::plan::flows::NOWHERE;
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::schedule::{Schedule, Scratch, refill};
use std::cmp::Reverse;

/// Nobody has asked for the data there.
pub(super) const UNASKED: u32 = u32::MAX;

/// The end of a list of those who wait.
pub(super) const LAST: u32 = u32::MAX - 1;

/// What happens next.
pub(super) enum Next {
    Nothing,
    /// Something, but too late.
    Late,
    /// Transfers arrive.
    Arrival(u64),
    Event(u64, Event),
}

impl Schedule {
    /// As [`follow`](Self::follow), with transfers that share links at each moment. Gives up where the plan takes
    /// longer than until `most`, with the end of time as its end.
    pub(in crate::resource_mapping::plan) fn realise(
        &mut self,
        outlook: &Outlook,
        plan: &Schedule,
        most: u64,
        scratch: &mut Scratch,
    ) {
        self.begin_in_line(outlook, plan, most, scratch);
        scratch.begin_takings(outlook, false);
        scratch.begin_flows(outlook);
        let limits = |task: usize| outlook.replicas.limits(outlook.lanes[plan.lanes[task]].memory);
        let fetch = |task: usize, ready: u64| match limits(task) {
            true => Entry::fetch(ready, -(plan.starts[task] as f64), task),
            false => plan.fetched(outlook, task, ready),
        };
        self.release_first(outlook, scratch, fetch);
        let are_limited = outlook.replicas.are_limited();
        let mut now = outlook.now;
        loop {
            match scratch.next(outlook, true) {
                Next::Nothing if are_limited && self.force(outlook, scratch, now) => {}
                Next::Nothing => break,
                Next::Late => {
                    self.end = NEVER;
                    break;
                }
                Next::Arrival(at) => {
                    now = at;
                    self.receive(outlook, scratch, at);
                    if are_limited {
                        self.serve_all(outlook, scratch, at);
                    }
                }
                Next::Event(at, Event::End { task }) => {
                    now = at;
                    self.end(outlook, scratch, task, at, fetch);
                    if are_limited && outlook.works[task] {
                        self.leave(outlook, scratch, task, at);
                    }
                }
                Next::Event(at, Event::Fetch { task }) if limits(task) => self.come(outlook, plan, scratch, task, at),
                Next::Event(at, Event::Fetch { task }) => {
                    let lane = self.lanes[task];
                    scratch.ask(outlook, task, outlook.lanes[lane].memory, at);
                    scratch.execution.take_ahead(outlook, task, lane, at);
                    self.advance(outlook, scratch, lane, at);
                }
                Next::Event(at, Event::Take { lane }) => self.advance(outlook, scratch, lane, at),
                Next::Event(at, Event::Request { place, from }) => scratch.request(outlook, place, from, at),
            }
        }
        std::mem::swap(&mut self.arrivals, &mut scratch.execution.arrivals);
    }

    /// Takes note of transfers that arrive at `now`, and begins the tasks that waited for them.
    fn receive(&mut self, outlook: &Outlook, scratch: &mut Scratch, now: u64) {
        let mut complete = std::mem::take(&mut scratch.execution.complete);
        scratch.receive(outlook, now, &mut complete);
        for task in complete.drain(..) {
            self.advance(outlook, scratch, self.lanes[task as usize], now);
        }
        scratch.execution.complete = complete;
    }
}

impl Execution {
    /// Takes note that the data of a task is there, and its memory allocated if it has waited for that.
    fn there(&mut self, task: usize, now: u64) {
        // Until then, `allocations` is when its memory is there.
        self.arrivals[task] = self.memory[task].max(now);
    }
}

impl Scratch {
    /// What happens next, among transfers too if they share links.
    pub(super) fn next(&mut self, outlook: &Outlook, shares: bool) -> Next {
        let Scratch { execution: Execution { events, flows, most, is_late, .. }, stop, .. } = self;
        let event = events.peek().map_or(NEVER, |Reverse(entry)| entry.at());
        let arrival = if shares { flows.next(&outlook.network) } else { NEVER };
        let at = event.min(arrival);
        if at == NEVER {
            Next::Nothing
        } else if at > *most || *is_late || stop.is_set() {
            Next::Late
        } else if arrival <= event {
            Next::Arrival(arrival)
        } else {
            events.pop().map_or(Next::Nothing, |Reverse(entry)| Next::Event(event, entry.event()))
        }
    }

    /// Begins an execution with the transfers that are under way.
    pub(super) fn begin_flows(&mut self, outlook: &Outlook) {
        let Execution { flows, asked, waiting, missing, memory, expected, .. } = &mut self.execution;
        flows.clone_from(&outlook.flows);
        refill(asked, outlook.copies.len(), UNASKED);
        refill(missing, outlook.len(), 0);
        refill(memory, outlook.len(), 0);
        expected.clone_from(&outlook.copies);
        waiting.clear();
        for copy in self.copies.iter_mut().filter(|copy| **copy != NEVER) {
            *copy = outlook.now;
        }
        let replicas = &mut self.execution.replicas;
        if replicas.are_limited() {
            let coming = outlook.flows.coming().filter(|place| *place != NOWHERE);
            coming.for_each(|place| replicas.pin(place as usize));
            outlook.requests.iter().for_each(|(_, place, _)| replicas.pin(*place));
        }
        let Execution { events, asked, .. } = &mut self.execution;
        for place in outlook.flows.coming().filter(|place| *place != NOWHERE) {
            (asked[place as usize], self.copies[place as usize]) = (LAST, NEVER);
        }
        for (at, place, from) in outlook.requests.iter().copied() {
            (asked[place], self.copies[place]) = (LAST, NEVER);
            events.push(Reverse(Entry::request(at, place, from)));
        }
    }

    /// Takes note of transfers that arrive at `now`, and lists the tasks whose data is complete by them.
    pub(super) fn receive(&mut self, outlook: &Outlook, now: u64, complete: &mut Vec<u32>) {
        let mut arrived = std::mem::take(&mut self.execution.arrived);
        self.execution.flows.arrive(&outlook.network, now, |place| arrived.push(place));
        for place in arrived.drain(..).filter(|place| *place != NOWHERE) {
            self.copies[place as usize] = now;
            self.note_arrival(outlook, place as usize);
            let execution = &mut self.execution;
            let mut next = std::mem::replace(&mut execution.asked[place as usize], UNASKED);
            while let Some((task, after)) = execution.waiting.get(next as usize).copied() {
                next = after;
                execution.missing[task as usize] -= 1;
                if execution.missing[task as usize] == 0 {
                    execution.there(task as usize, now);
                    complete.push(task);
                }
            }
        }
        self.execution.arrived = arrived;
    }

    /// Asks for the data of a task in a memory.
    pub(super) fn ask(&mut self, outlook: &Outlook, task: usize, to: usize, now: u64) {
        let memories = outlook.memories;
        let mut allocated = now;
        for used in outlook.uses(task) {
            let place = used.data * memories + to;
            if self.execution.waits_to_be_taken(outlook, used, to) {
                self.execution.owe(outlook, task, to, now);
            } else if !std::mem::replace(&mut self.execution.allocated[place], true) {
                allocated = outlook.network.allocate(&mut self.execution.traffic, to, now);
            }
            if !used.reads || self.copies[place] != NEVER {
                continue;
            }
            let first = self.execution.asked[place];
            if first == UNASKED && !self.send_for(outlook, used.data, to, now) {
                continue;
            }
            let execution = &mut self.execution;
            execution.asked[place] = execution.waiting.len() as u32;
            execution.waiting.push((task as u32, if first == UNASKED { LAST } else { first }));
            execution.missing[task] += 1;
        }
        self.execution.memory[task] = allocated;
        if self.execution.missing[task] == 0 {
            self.execution.there(task, now);
        }
    }

    /// Sends for data that nobody has asked for in a memory, if it is anywhere.
    pub(super) fn send_for(&mut self, outlook: &Outlook, data: usize, to: usize, now: u64) -> bool {
        let Some(from) = self.source(outlook, data, to, now) else { return false };
        let place = data * outlook.memories + to;
        self.note_transfer(outlook, place, from, now);
        let begins = outlook.network.allocated(&self.execution.traffic, to, now);
        if begins > now {
            self.execution.events.push(Reverse(Entry::request(begins, place, from)));
        } else {
            self.request(outlook, place, from, now);
        }
        true
    }

    pub(super) fn request(&mut self, outlook: &Outlook, place: usize, from: usize, now: u64) {
        let (data, to) = (place / outlook.memories, place % outlook.memories);
        let network = &outlook.network;
        self.execution.flows.request(network, network.pair(from, to), place as u32, outlook.bytes[data], now);
    }
}
