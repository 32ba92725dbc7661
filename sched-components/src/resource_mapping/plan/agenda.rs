//! What is to be done: the ready tasks, the plan, and what was sent.

use super::outlook::{Lane, Outlook, Sent};
use super::search::{Dice, Search};
use sched_core::{Child, MemoryNode, Node, Stage, Submitted, Task};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How much work a plan may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Plans that are tried for tasks that are all new.
    pub(super) effort: u64,
    /// Tasks in a plan.
    pub(super) window: usize,
    /// What the search may take, as a share of the plan's length.
    pub(super) time: f64,
}

/// Of more tasks fewer plans are tried, so that the search takes no longer.
const AT_FULL_EFFORT: f64 = 2048.0;

/// Kinds are forgotten when there are more: where lengths are measured, they change all the time.
const MOST_KINDS: usize = 4096;

/// A task in the plan of a lane.
#[derive(Clone, Copy, Debug)]
struct Planned {
    sequence: u64,
    start: u64,
    length: u64,
    /// Its data is on its way.
    fetched: bool,
}

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Agenda {
    /// Ready tasks, by their sequences.
    pub(super) held: BTreeMap<u64, Task>,
    pub(super) lanes: Vec<Lane>,
    classes: usize,
    /// By lane, in order.
    plan: Vec<VecDeque<Planned>>,
    /// The lane of each planned task; none for those that take no lane's time.
    lane_of: BTreeMap<u64, Option<usize>>,
    /// Of those that are held: the ones that take no lane's time, by priority.
    untimed: BTreeSet<(Reverse<i32>, u64)>,
    /// Some that are held are neither planned nor in `lane_of`.
    some_unplanned: bool,
    /// Behind the last task that was planned.
    end: u64,
    /// Tasks in the plan in the beginning.
    count: usize,
    sent: Vec<Sent>,
    /// Lanes that took no task lately.
    pub(super) full: Vec<bool>,
    /// Kinds of tasks by their lengths, and by kind and class, how well a class was liked in the last plan.
    kinds: BTreeMap<Vec<u64>, usize>,
    likings: Vec<f64>,
}

impl Agenda {
    /// Takes further tasks.
    pub(super) fn receive(&mut self, tasks: impl IntoIterator<Item = Task>) {
        for task in tasks {
            let sequence = task.id().sequence();
            match self.lane_of.get(&sequence) {
                Some(Some(_)) => {}
                Some(None) => _ = self.untimed.insert((Reverse(task.priority()), sequence)),
                None => self.some_unplanned = true,
            }
            self.held.insert(sequence, task);
        }
    }

    /// Looks at what has changed: who is there, and what has ended.
    pub(super) fn settle(&mut self, node: Node<'_>, submitted: Submitted<'_>, now: u64) {
        if self.lanes.is_empty() {
            self.find_lanes(node);
        }
        self.sent.retain(|sent| submitted.task(sent.sequence).is_some_and(|task| task.stage != Stage::Ended));
        for lane in &mut self.lanes {
            lane.free = now;
        }
        for sent in &mut self.sent {
            sent.end = sent.end.max(now);
            let lane = &mut self.lanes[sent.lane];
            lane.free = lane.free.max(sent.end);
        }
        // Tasks that a worker got in another way are in nobody's way.
        let held = &self.held;
        for plan in &mut self.plan {
            while plan.front().is_some_and(|next| {
                let taken = || submitted.task(next.sequence).is_none_or(|task| task.stage >= Stage::Taken);
                !held.contains_key(&next.sequence) && taken()
            }) {
                plan.pop_front();
            }
        }
    }

    fn find_lanes(&mut self, node: Node<'_>) {
        let mut archs = Vec::new();
        for child in node.children() {
            for worker in node.each_child_worker_in_context(child) {
                let arch = node.arch(worker);
                let class = archs.iter().position(|known| *known == arch).unwrap_or(archs.len());
                if class == archs.len() {
                    archs.push(arch);
                }
                let memory = node.memory_node(worker).map_or(0, |memory| memory.0 as usize);
                self.lanes.push(Lane { worker, child, memory, class, free: 0 });
            }
        }
        self.classes = archs.len();
        self.full = vec![false; self.lanes.len()];
        self.plan = vec![VecDeque::new(); self.lanes.len()];
    }

    /// Plans if there is reason to: tasks that are in no plan, and not enough to do for all, or much that is new.
    pub(super) fn keep_planned(
        &mut self,
        node: Node<'_>,
        submitted: Submitted<'_>,
        weigh: &super::Weights,
        limits: Limits,
    ) {
        if !self.some_unplanned || !self.is_stale(submitted, limits.window) {
            return;
        }
        if self.kinds.len() > MOST_KINDS {
            self.kinds.clear();
            self.likings.clear();
        }
        let (lanes, held) = (&self.lanes, &self.held);
        let kinds = &mut self.kinds;
        let outlook = Outlook::new(node, submitted, weigh, lanes, self.classes, &self.sent, held, kinds, limits.window);
        let fresh = outlook.sequences.iter().filter(|sequence| **sequence >= self.end).count();
        let count = outlook.len().max(1) as f64;
        let share = fresh as f64 / count;
        let tries = limits.effort as f64 * share * (AT_FULL_EFFORT / count).min(1.0);
        // Workers may be idle meanwhile. (Under a virtual clock they are not, since no time passes.)
        let most = |search: &Search<'_>| search.length() as f64 * limits.time;
        let took = || node.now().as_nanos().saturating_sub(outlook.now) as f64;
        let mut search = Search::new(&outlook, Dice(node.random()));
        search.begin(&self.likings, |search| took() <= most(search));
        search.improve(tries.ceil() as u64, |search| took() <= most(search) * share);
        self.count = outlook.len();
        let (best, likings) = search.finish();
        self.likings = likings;
        self.adopt(&outlook, &best);
    }

    fn is_stale(&self, submitted: Submitted<'_>, window: usize) -> bool {
        let left: usize = self.plan.iter().map(VecDeque::len).sum();
        let more = submitted.range().end.saturating_sub(self.end) as usize;
        let was_full = self.count >= window;
        left < self.lanes.len()
            || if was_full { left < window / 2 } else { more > self.count / 4 }
            // Those who submit at once may come out of order, so what is planned may wait for what is not.
            || (self.sent.is_empty() && !self.held.keys().any(|sequence| self.lane_of.contains_key(sequence)))
    }

    fn adopt(&mut self, outlook: &Outlook, best: &super::schedule::Schedule) {
        self.plan.iter_mut().for_each(VecDeque::clear);
        // What is held and was not told of is as good as a task whose length nobody knows.
        self.lane_of = self.held.keys().map(|sequence| (*sequence, None)).collect();
        self.some_unplanned = false;
        let mut order: Vec<usize> = (0..outlook.len()).filter(|task| outlook.is_open(*task)).collect();
        order.sort_unstable_by_key(|task| (best.starts[*task], best.ends[*task], *task));
        for task in order {
            let (sequence, lane) = (outlook.sequences[task], best.lanes[task]);
            self.lane_of.insert(sequence, outlook.works[task].then_some(lane));
            if outlook.works[task] {
                let (start, length) = (best.starts[task], outlook.length(task, lane));
                self.plan[lane].push_back(Planned { sequence, start, length, fetched: false });
            }
        }
        let untimed = self.held.iter().filter(|(sequence, _)| self.lane_of.get(sequence) == Some(&None));
        self.untimed = untimed.map(|(sequence, task)| (Reverse(task.priority()), *sequence)).collect();
        self.end = self.end.max(outlook.end);
    }

    /// Data of ready tasks that are to begin before `until` begins to move.
    pub(super) fn fetch(&mut self, node: Node<'_>, until: u64) {
        for (lane, plan) in self.lanes.iter().zip(&mut self.plan) {
            for planned in
                plan.iter_mut().take_while(|planned| planned.start <= until).filter(|planned| !planned.fetched)
            {
                if let Some(task) = self.held.get(&planned.sequence) {
                    node.prefetch_to(MemoryNode(lane.memory as u32), task);
                    planned.fetched = true;
                }
            }
        }
    }

    /// The first task, by priority, that was looked at and takes no lane's time, since nobody knows how long it takes, and for
    /// which there is a place.
    pub(super) fn unpredicted<T>(&self, place: impl Fn(&Task) -> Option<T>) -> Option<(u64, T)> {
        self.untimed.iter().find_map(|(_, sequence)| Some((*sequence, place(self.held.get(sequence)?)?)))
    }

    /// Lets go of a held task.
    pub(super) fn take(&mut self, sequence: u64) -> Option<Task> {
        let task = self.held.remove(&sequence)?;
        self.untimed.remove(&(Reverse(task.priority()), sequence));
        Some(task)
    }

    /// The task that is to be sent now, and its lane. Each lane gets its tasks in the order of the plan.
    pub(super) fn next(&self, now: u64, lead: u64, asks: impl Fn(Child) -> bool) -> Option<(u64, usize)> {
        let of = |lane: usize| {
            let Lane { child, free, .. } = self.lanes[lane];
            let next = self.plan[lane].front()?;
            let turn = !self.full[lane] && (free <= now.saturating_add(lead) || asks(child));
            (turn && self.held.contains_key(&next.sequence)).then_some((next.sequence, lane))
        };
        // Nothing that was sent is under way, so nobody may come by again: whatever is ready goes.
        (0..self.lanes.len()).find_map(of).or_else(|| if self.sent.is_empty() { self.first_held() } else { None })
    }

    fn first_held(&self) -> Option<(u64, usize)> {
        let of = |lane: usize| {
            let next = self.plan[lane].iter().find(|next| self.held.contains_key(&next.sequence))?;
            (!self.full[lane]).then_some((next.start, next.sequence, lane))
        };
        let (_, sequence, lane) = (0..self.lanes.len()).filter_map(of).min()?;
        Some((sequence, lane))
    }

    /// The task that a worker gets which asks itself.
    pub(super) fn next_for(&self, node: Node<'_>, child: Child) -> Option<(u64, usize)> {
        let is_there = |lane: &Lane| lane.child == child && node.requester().is_none_or(|worker| worker == lane.worker);
        let of = |lane: usize| {
            let held = |next: &&Planned| self.held.contains_key(&next.sequence);
            let mut plan = self.plan[lane].iter();
            let next = if self.sent.is_empty() { plan.find(held) } else { plan.next().filter(held) };
            Some((next?.sequence, lane))
        };
        (0..self.lanes.len()).filter(|lane| is_there(&self.lanes[*lane])).find_map(of)
    }

    /// A task was sent.
    pub(super) fn note_sent(&mut self, sequence: u64, lane: usize, now: u64) {
        let plan = &mut self.plan[lane];
        if let Some(at) = plan.iter().position(|next| next.sequence == sequence)
            && let Some(planned) = plan.remove(at)
        {
            let free = &mut self.lanes[lane].free;
            *free = (*free).max(now) + planned.length;
            self.sent.push(Sent { sequence, lane, end: *free });
        }
    }
}
