//! What becomes of a plan: an execution in which transfers share links, event by event.

mod allocations;
mod dispatch;
mod evictions;
mod realise;

use super::flows::Flows;
use super::network::Traffic;
use super::outlook::{NEVER, Outlook};
use super::replicas::Replicas;
use super::schedule::{Schedule, Scratch, comparable, refill};
use allocations::Owed;
use evictions::Takings;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens at some time.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A task ends.
    End { task: usize },
    /// The data of a ready task is fetched.
    Fetch { task: usize },
    /// The memory for data is allocated, and its transfer from another memory is requested.
    Request { place: usize, from: usize },
    /// A worker begins a task, and takes the next one.
    Take { lane: usize },
}

/// An event among those to come: the least is the next. At one time, tasks end before transfers are requested,
/// these before workers take tasks, and these before data is fetched, for the task with the largest key first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    /// The time in the upper half, and what goes first at that time in the lower: one comparison decides nearly always.
    when: u128,
    /// The task, or the place.
    what: u32,
    from: u32,
}

/// What goes first at one time: ends, then requests, then what workers take, then all else.
const END: u64 = 0;
const REQUEST: u64 = 1;
const TAKE: u64 = 2;

impl Entry {
    fn new(at: u64, order: u64, what: usize, from: usize) -> Entry {
        let when = u128::from(at) << 64 | u128::from(order);
        Entry { when, what: what as u32, from: from as u32 }
    }

    fn end(at: u64, task: usize) -> Entry {
        Entry::new(at, END, task, 0)
    }

    fn request(at: u64, place: usize, from: usize) -> Entry {
        Entry::new(at, REQUEST, place, from)
    }

    fn take(at: u64, lane: usize) -> Entry {
        Entry::new(at, TAKE, lane, 0)
    }

    fn fetch(at: u64, key: f64, task: usize) -> Entry {
        Entry::new(at, (!comparable(key)).max(TAKE + 1), task, 0)
    }

    fn at(self) -> u64 {
        (self.when >> 64) as u64
    }

    fn event(self) -> Event {
        let (what, from) = (self.what as usize, self.from as usize);
        match self.when as u64 {
            END => Event::End { task: what },
            REQUEST => Event::Request { place: what, from },
            TAKE => Event::Take { lane: what },
            _ => Event::Fetch { task: what },
        }
    }
}

/// A task that waits for a lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Waiting {
    /// Its key, to be compared.
    key: u64,
    task: Reverse<u32>,
    /// What it takes there.
    length: u64,
}

/// The same, by the time when its data is there.
type Coming = (Reverse<u64>, Waiting);

/// The state of an execution, kept for reuse.
#[derive(Default, Debug)]
pub(super) struct Execution {
    events: BinaryHeap<Reverse<Entry>>,
    traffic: Traffic,
    /// By data and memory: whether memory is allocated.
    allocated: Vec<bool>,
    /// When the data of each task is there.
    arrivals: Vec<u64>,
    /// The tasks of each lane, in order.
    queues: Vec<Vec<usize>>,
    /// By task, what it takes on the lane that it has in the plan.
    lengths: Vec<u64>,
    /// The tasks that wait for each lane and whose data comes, by the time; and those whose data is there,
    /// by urgency.
    coming: Vec<BinaryHeap<Coming>>,
    there: Vec<BinaryHeap<Waiting>>,
    /// By lane: the next one in the queue.
    heads: Vec<usize>,
    /// By lane: total length of those in the queue, from that one on.
    left: Vec<u64>,
    /// An execution that ends after this time is given up.
    most: u64,
    /// Whether it will, by what is known: a lane still executes what is in its queue, and after a task come others.
    is_late: bool,
    /// By lane: total length of those that wait for it.
    backlog: Vec<u64>,
    /// Whether each lane executes something.
    busy: Vec<bool>,
    flows: Flows,
    /// By data and memory: the first of those who wait for a transfer there, in `waiting`; `UNASKED` if there is none.
    asked: Vec<u32>,
    /// Tasks that wait for a transfer, and the next one that does.
    waiting: Vec<(u32, u32)>,
    /// Number of transfers that each task waits for.
    missing: Vec<u32>,
    /// When the memory for the data of each task is allocated.
    memory: Vec<u64>,
    /// By task: the memory that it gets when a worker takes it; and the nanoseconds of these allocations.
    owed: Vec<Option<Owed>>,
    promised: u64,
    /// By lane: when it began its last task, and until when it waits to take the next one.
    began: Vec<u64>,
    due: Vec<u64>,
    /// Places where something has just arrived, and tasks that wait for nothing more.
    arrived: Vec<u32>,
    complete: Vec<u32>,
    /// By lane: the tasks that wait for it and for transfers.
    absent: Vec<Vec<Waiting>>,
    /// By data and memory: when the data should arrive there, of what was asked for.
    expected: Vec<u64>,
    /// Replicas in memories that are limited, and who waits for room there.
    replicas: Replicas,
    takings: Takings,
}

impl Schedule {
    /// Computes the times of `plan` if each lane executes its tasks in the order of their starts there. The data of a
    /// task is fetched when it is ready, but not earlier than [`Outlook::lead`] before its planned start. Gives up where
    /// the plan takes longer than until `most`, with the end of time as its end.
    pub(super) fn follow(&mut self, outlook: &Outlook, plan: &Schedule, most: u64, scratch: &mut Scratch) {
        self.begin_in_line(outlook, plan, most, scratch);
        let fetch = |task: usize, ready: u64| plan.fetched(outlook, task, ready);
        self.release_first(outlook, scratch, fetch);
        while let Some(Reverse(entry)) = scratch.execution.events.pop() {
            let at = entry.at();
            match entry.event() {
                Event::End { task } => self.end(outlook, scratch, task, at, fetch),
                Event::Fetch { task } => {
                    let lane = self.lanes[task];
                    scratch.bring(outlook, task, outlook.lanes[lane].memory, at);
                    self.advance(outlook, scratch, lane, at);
                }
                Event::Take { lane } => self.advance(outlook, scratch, lane, at),
                Event::Request { .. } => {}
            }
            if scratch.execution.is_late || scratch.stop.is_set() {
                self.end = NEVER;
                break;
            }
        }
        std::mem::swap(&mut self.arrivals, &mut scratch.execution.arrivals);
    }

    /// When the data of a task that is `ready` is fetched, by this plan.
    fn fetched(&self, outlook: &Outlook, task: usize, ready: u64) -> Entry {
        let start = self.starts[task];
        Entry::fetch(ready.max(start.saturating_sub(outlook.lead)), -(start as f64), task)
    }

    /// Begins an execution in which each lane executes its tasks in the order of their starts.
    fn begin_in_line(&mut self, outlook: &Outlook, plan: &Schedule, most: u64, scratch: &mut Scratch) {
        scratch.line_up(outlook, plan);
        self.begin(outlook, most, scratch);
        self.lanes.clone_from(&plan.lanes);
        let Execution { queues, lengths, left, .. } = &mut scratch.execution;
        let length = |queue: &Vec<usize>| queue.iter().fold(0, |sum: u64, task| sum.saturating_add(lengths[*task]));
        left.clear();
        left.extend(queues.iter().map(length));
    }

    /// Begins the tasks of a lane in their order, as far as it is known when their data is there.
    fn advance(&mut self, outlook: &Outlook, scratch: &mut Scratch, lane: usize, now: u64) {
        let Scratch { execution, free, .. } = scratch;
        while let Some(task) = execution.queues[lane].get(execution.heads[lane]).copied() {
            if execution.arrivals[task] == NEVER {
                break;
            }
            if !execution.take(outlook, task, lane, now) {
                break;
            }
            execution.heads[lane] += 1;
            let (start, length) = (execution.arrivals[task].max(free[lane]), execution.lengths[task]);
            free[lane] = self.start(outlook, execution, task, start, length);
            execution.began[lane] = start;
            execution.left[lane] = execution.left[lane].saturating_sub(length);
            execution.is_late |= free[lane].saturating_add(execution.left[lane]) > execution.most;
        }
    }

    fn begin(&mut self, outlook: &Outlook, most: u64, scratch: &mut Scratch) {
        self.clear(outlook);
        scratch.copies.clone_from(&outlook.copies);
        scratch.waits.clone_from(&outlook.waits);
        scratch.free.clear();
        scratch.free.extend(outlook.lanes.iter().map(|lane| lane.free.max(outlook.now)));
        let (lanes, execution) = (outlook.lanes.len(), &mut scratch.execution);
        (execution.most, execution.is_late) = (most, false);
        execution.events.clear();
        execution.traffic.clone_from(&outlook.traffic);
        execution.allocated.clone_from(&outlook.allocated);
        execution.replicas.forget_limits();
        refill(&mut execution.arrivals, outlook.len(), NEVER);
        execution.coming.resize_with(lanes, BinaryHeap::new);
        execution.coming.iter_mut().for_each(BinaryHeap::clear);
        execution.there.resize_with(lanes, BinaryHeap::new);
        execution.there.iter_mut().for_each(BinaryHeap::clear);
        execution.absent.resize_with(lanes, Vec::new);
        execution.absent.iter_mut().for_each(Vec::clear);
        refill(&mut execution.heads, lanes, 0);
        execution.begin_allocations(outlook);
        refill(&mut execution.backlog, lanes, 0);
        refill(&mut execution.busy, lanes, false);
    }

    /// Plans the ends of the tasks that were sent, and releases those that wait for nothing.
    fn release_first(&mut self, outlook: &Outlook, scratch: &mut Scratch, fetch: impl Fn(usize, u64) -> Entry) {
        for (task, lane, end) in outlook.sent.iter().copied() {
            (self.lanes[task], self.ends[task]) = (lane, end);
            scratch.execution.events.push(Reverse(Entry::end(end, task)));
        }
        for task in (0..outlook.len()).filter(|task| outlook.waits[*task] == 0 && outlook.is_open(*task)) {
            self.release(outlook, scratch, task, outlook.now, &fetch);
        }
    }

    fn release(
        &mut self,
        outlook: &Outlook,
        scratch: &mut Scratch,
        task: usize,
        now: u64,
        fetch: &impl Fn(usize, u64) -> Entry,
    ) {
        let entry = if outlook.works[task] {
            fetch(task, now)
        } else {
            (self.starts[task], self.ends[task]) = (now, now);
            Entry::end(now, task)
        };
        scratch.execution.events.push(Reverse(entry));
    }

    /// Begins a task that takes so long. Returns its end.
    fn start(&mut self, outlook: &Outlook, execution: &mut Execution, task: usize, start: u64, length: u64) -> u64 {
        let end = start + length;
        (self.starts[task], self.ends[task]) = (start, end);
        execution.is_late |= end.saturating_add(outlook.tails[task]) > execution.most;
        execution.events.push(Reverse(Entry::end(end, task)));
        end
    }

    /// Ends a task, and releases those that waited for it.
    fn end(
        &mut self,
        outlook: &Outlook,
        scratch: &mut Scratch,
        task: usize,
        now: u64,
        fetch: impl Fn(usize, u64) -> Entry,
    ) {
        self.end = self.end.max(now);
        if outlook.works[task] {
            outlook.write(task, self.lanes[task], now, &mut scratch.copies);
        }
        for next in outlook.successors(task) {
            scratch.waits[*next] -= 1;
            if scratch.waits[*next] == 0 && outlook.is_open(*next) {
                self.release(outlook, scratch, *next, now, &fetch);
            }
        }
    }
}

impl Scratch {
    /// Gives each lane the tasks that it has in a plan, in the order of their starts, with what they should take there.
    fn line_up(&mut self, outlook: &Outlook, plan: &Schedule) {
        let Scratch { order, execution, .. } = self;
        order.clear();
        order.extend((0..outlook.len()).filter(|task| outlook.is_open(*task) && outlook.works[*task]));
        order.sort_unstable_by_key(|task| (plan.starts[*task], plan.ends[*task], *task));
        execution.queues.resize(outlook.lanes.len(), Vec::new());
        execution.queues.iter_mut().for_each(Vec::clear);
        refill(&mut execution.lengths, outlook.len(), 0);
        for task in order.iter().copied() {
            let lane = plan.lanes[task];
            execution.lengths[task] = outlook.length(task, lane);
            execution.queues[lane].push(task);
        }
    }

    /// The copy that data is fetched from: as the host does, the one from which it expects a transfer to take least, of
    /// those that are there at `now`.
    fn source(&self, outlook: &Outlook, data: usize, to: usize, now: u64) -> Option<usize> {
        let copies = &self.copies[data * outlook.memories..][..outlook.memories];
        let nearest = outlook.nearest(data, to);
        let is_there = |from: &&usize| copies[**from] <= now;
        nearest.iter().find(is_there).or_else(|| nearest.iter().find(|from| copies[**from] != NEVER)).copied()
    }

    /// Fetches the data of a task to a memory, and notes when it is there.
    fn bring(&mut self, outlook: &Outlook, task: usize, to: usize, now: u64) {
        let memories = outlook.memories;
        let mut latest = now;
        for used in outlook.uses(task) {
            let place = used.data * memories + to;
            let mut at = if used.reads && self.copies[place] == NEVER {
                outlook.network.allocated(&self.execution.traffic, to, now)
            } else {
                now
            };
            if self.execution.waits_to_be_taken(outlook, used, to) {
                self.execution.owe(outlook, task, to, now);
            } else if !std::mem::replace(&mut self.execution.allocated[place], true) {
                at = outlook.network.allocate(&mut self.execution.traffic, to, now);
            }
            if used.reads && self.copies[place] == NEVER {
                let Some(from) = self.source(outlook, used.data, to, now) else { continue };
                let length = outlook.transfer(used.data, from, to);
                let at = at.max(self.copies[used.data * memories + from]);
                self.copies[place] = outlook.network.begin(&mut self.execution.traffic, from, to, at, length);
            }
            latest = latest.max(at);
            if used.reads {
                latest = latest.max(self.copies[place]);
            }
        }
        self.execution.arrivals[task] = latest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_at_one_time_has_an_order() {
        let events = [
            Entry::fetch(6, f64::INFINITY, 9),
            Entry::end(7, 4),
            Entry::request(7, 3, 2),
            Entry::fetch(7, f64::INFINITY, 8),
            Entry::fetch(7, 1.0, 1),
            Entry::fetch(7, 1.0, 2),
            Entry::fetch(7, -0.0, 3),
            Entry::fetch(7, 0.0, 4),
            Entry::fetch(7, f64::NEG_INFINITY, 0),
            Entry::end(8, 0),
        ];
        assert!(events.is_sorted() && events.iter().all(|entry| (6..=8).contains(&entry.at())));
        assert!(matches!(events[2].event(), Event::Request { place: 3, from: 2 }));
        assert!(matches!((events[1].event(), events[8].event()), (Event::End { task: 4 }, Event::Fetch { task: 0 })));
    }
}
