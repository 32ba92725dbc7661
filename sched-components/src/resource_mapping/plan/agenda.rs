//! The planning thread's state: the ready tasks, the plan, and the tasks that were sent.

mod limits;
mod occasion;
mod sending;
mod sent;

use super::burst::Burst;
use super::coming::Coming;
use super::dice::Dice;
use super::experience::Experience;
use super::kinds::Kinds;
use super::outlook::{Lane, Outlook, Sent, View};
use super::schedule::Schedule;
use super::search::{Habits, Orders, Search};
use super::under_way::UnderWay;
use crate::resource_mapping::block_cyclic::Owners;
pub(super) use limits::Limits;
use limits::{ALL_ORDERS, REPAIR, more_for, searches_for, threads_for};
use occasion::{Occasion, SHORT_PLAN};
use sched_core::{MemoryNode, Node, Stage, Submitted, Task};
pub(super) use sending::Caller;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How long the first plan waits for the end of the submission, as a share of the time that the tasks submitted so far
/// take at least.
const AWAITED: f64 = 0.005;

/// A task in the plan of a lane.
#[derive(Clone, Copy, Debug)]
struct Planned {
    sequence: u64,
    start: u64,
    /// Expected length, without what was learnt.
    expected: f64,
    kind: usize,
    /// Whether its data is being fetched.
    fetched: bool,
}

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Agenda {
    /// Ready tasks, by sequence number.
    pub(super) held: BTreeMap<u64, Task>,
    pub(super) lanes: Vec<Lane>,
    classes: usize,
    /// The plan of each lane, in order.
    plan: Vec<VecDeque<Planned>>,
    /// The lane of each planned task; none for those that take no lane's time.
    lane_of: BTreeMap<u64, Option<usize>>,
    /// The held tasks that take no lane's time, by priority.
    untimed: BTreeSet<(Reverse<i32>, u64)>,
    /// Whether any held task is neither planned nor in `lane_of`.
    some_unplanned: bool,
    /// One past the last planned task.
    end: u64,
    /// Number of tasks in the plan when it was made.
    count: usize,
    /// One past the last submitted task that was seen, and when it was.
    submitted: u64,
    grew: u64,
    sent: Vec<Sent>,
    owners: Owners,
    under_way: UnderWay,
    coming: Coming,
    /// Whether each lane recently refused a task.
    pub(super) full: Vec<bool>,
    /// When each lane was last seen busy.
    busy: Vec<u64>,
    kinds: Kinds,
    /// What the last plan went by.
    habits: Habits,
    experience: Experience,
    /// Whether `experience` may have grown since it was last asked for news.
    has_learnt: bool,
    /// Number of tasks that have ended since the last plan, and since the last one for new tasks.
    ended: usize,
    done: usize,
    /// Whether the window was full then.
    is_full: bool,
    /// The share of the tries that the last plan got.
    effort: f64,
    /// How much later than planned the last task began, and the length of the plan.
    late: u64,
    length: u64,
    /// Whether tasks are being submitted, and how long those that are submitted take at least.
    goes_on: Option<bool>,
    burst: Burst,
    /// When the first tasks were seen, and nanoseconds spent on plans since.
    began: u64,
    spent: f64,
}

impl Agenda {
    /// Adds tasks.
    pub(super) fn receive(&mut self, tasks: impl IntoIterator<Item = Task>) {
        for task in tasks {
            let sequence = task.id().sequence();
            match self.lane_of.get(&sequence) {
                Some(Some(_)) => self.take_back(sequence),
                Some(None) => _ = self.untimed.insert((Reverse(task.priority()), sequence)),
                None => self.some_unplanned = true,
            }
            self.coming.pushed(sequence);
            self.held.insert(sequence, task);
        }
    }

    /// Learns from tasks that have ended, and the nanoseconds that they took.
    pub(super) fn learn(&mut self, ended: Vec<(u64, u64)>, now: u64) {
        self.has_learnt |= !ended.is_empty();
        for (sequence, took) in ended {
            self.ended += 1;
            self.done += 1;
            self.coming.ended(sequence, now);
            if let Some(sent) = self.sent.iter().find(|sent| sent.sequence == sequence) {
                self.experience.note(sent.kind, sent.lane, self.lanes[sent.lane].class, took as f64 / sent.expected);
            }
        }
    }

    /// Updates the lanes.
    pub(super) fn settle(&mut self, node: Node<'_>, submitted: Submitted<'_>, now: u64) {
        if self.lanes.is_empty() {
            self.find_lanes(node);
            self.began = now;
        }
        self.goes_on = node.submission_goes_on();
        let end = submitted.range().end;
        if end > self.submitted {
            (self.submitted, self.grew) = (end, now);
        }
        for lane in &mut self.lanes {
            lane.free = now;
        }
        self.sent.iter().for_each(|sent| self.busy[sent.lane] = now);
        for sent in &mut self.sent {
            sent.end = sent.end.max(now);
            let lane = &mut self.lanes[sent.lane];
            lane.free = lane.free.max(sent.end);
        }
        // Tasks that a worker got in another way occupy no lane.
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
        let memories = self.lanes.iter().map(|lane| lane.memory + 1).max().unwrap_or(1);
        self.under_way = UnderWay::new(node, memories);
        self.full = vec![false; self.lanes.len()];
        self.busy = vec![0; self.lanes.len()];
        self.plan = vec![VecDeque::new(); self.lanes.len()];
    }

    /// Whether all tasks are submitted; where the host does not know that, no task was during the last `lead`
    /// nanoseconds: more will hardly come soon.
    pub(super) fn is_settled(&self, now: u64, lead: u64) -> bool {
        self.goes_on == Some(false) || self.grew.saturating_add(lead) <= now
    }

    /// Whether the first plan waits for more tasks, which are being submitted.
    pub(super) fn awaits_more(&mut self, submitted: Submitted<'_>, now: u64) -> bool {
        let begins = self.end == 0 && self.goes_on == Some(true);
        begins && self.burst.least(submitted, &self.lanes) * AWAITED >= now.saturating_sub(self.began) as f64
    }

    /// Plans if necessary: there are tasks outside the plan, and either too little work for some lane, or many new
    /// tasks, or no more to come; half of a full window is done; or kernels take other times than those that the plan
    /// went by.
    pub(super) fn keep_planned(
        &mut self,
        node: Node<'_>,
        submitted: Submitted<'_>,
        weigh: &super::Weights,
        limits: Limits,
    ) {
        let now = node.now().as_nanos();
        let is_late = self.is_settled(now, limits.lead) && self.end < self.submitted && !self.is_full;
        if is_late || self.is_half_done(limits.window) || (self.some_unplanned && self.is_stale(limits.window)) {
            self.make_plan(node, submitted, weigh, limits, Occasion::New);
        } else if self.is_due_again(now, limits) {
            self.make_plan(node, submitted, weigh, limits, Occasion::Again);
        }
    }

    fn make_plan(
        &mut self,
        node: Node<'_>,
        submitted: Submitted<'_>,
        weigh: &super::Weights,
        limits: Limits,
        occasion: Occasion,
    ) {
        if self.kinds.are_too_many() {
            self.kinds = Kinds::default();
            self.experience = Experience::default();
            self.habits = Habits::default();
        }
        (self.ended, self.late) = (0, 0);
        self.experience.plan_made(&self.lanes);
        if node.has_transfers() {
            self.owners.learn(node, submitted);
        }
        self.foresee(submitted, node.now().as_nanos());
        let view = View {
            submitted,
            weights: weigh,
            lanes: &self.lanes,
            classes: self.classes,
            sent: &self.sent,
            held: &self.held,
            owners: &self.owners,
            window: limits.window,
            planned: (occasion == Occasion::Again).then_some((self.end, &self.lane_of)),
            under_way: &self.under_way,
            experience: &self.experience,
            lead: limits.lead,
        };
        let were_grouped = self.kinds.are_grouped();
        let mut outlook = Outlook::new(node, &view, &mut self.kinds);
        // Preferences had other numbers.
        if were_grouped != self.kinds.are_grouped() {
            self.habits = Habits::default();
        }
        let fresh = outlook.sequences.iter().filter(|sequence| **sequence >= self.end).count();
        let count = outlook.len().max(1) as f64;
        let share = fresh as f64 / count;
        let range = submitted.range();
        let effort = limits.effort_for(count, outlook.links() as f64, (range.end - range.start) as f64);
        self.effort = effort;
        // The closer prediction of transfers takes as long again, for which larger graphs leave no time. Where not all
        // data fits, the other one is too far from the truth.
        outlook.is_close = effort >= 1.0 || outlook.replicas.are_limited();
        // Workers may idle meanwhile. (Not under a virtual clock, where the search takes no time.)
        let most = |length: u64| length as f64 * limits.time;
        let took = || node.now().as_nanos().saturating_sub(outlook.now) as f64;
        let threads = if took() == 0.0 { threads_for(count) } else { 1 };
        let search = |orders: Orders| {
            let mut search = Search::new(&outlook, Dice(node.random()), threads);
            let mut tried = share;
            // Few plans are tried where nothing is new: the present one stays unless one of them is better.
            if let Some(present) = self.present(&outlook) {
                if occasion == Occasion::Again {
                    if outlook.is_close && self.experience.is_scattered() {
                        search.expect_deviations(self.experience.spread());
                    }
                    tried = tried.max(REPAIR);
                }
                search.resume(&self.habits, &present);
            }
            search.begin(&self.habits, share * (2.0 * effort).min(1.0), orders, |length| took() <= most(length));
            let tries = limits.effort as f64 * more_for(count) * tried * effort;
            search.improve(tries.ceil() as u64, |length| took() <= most(length) * tried);
            search
        };
        let searches = if took() == 0.0 { searches_for(count, share) } else { 1 };
        // A search seldom goes far from where it begins: of several, not all begin with the best of the same plans.
        // For a large graph, plans in the other orders would take too long.
        let by_ranks = |number: usize| effort < ALL_ORDERS || (searches > 1 && number.is_multiple_of(2));
        let orders = |number: usize| if by_ranks(number) { Orders::Ranks } else { Orders::All };
        let mut best = search(orders(0));
        for other in (1..searches).map(|number| search(orders(number))) {
            if other.length() < best.length() {
                best = other;
            }
        }
        if occasion == Occasion::New {
            (self.done, self.is_full) = (0, outlook.len() >= limits.window);
        }
        (self.count, self.length) = (outlook.len(), best.length());
        let (best, habits) = best.finish();
        self.habits = habits;
        self.spent += took();
        self.adopt(&outlook, &best, occasion);
    }

    /// What is left of the plan, unless a task that is to be planned is not in it.
    fn present(&self, outlook: &Outlook) -> Option<Schedule> {
        let mut present = Schedule::default();
        present.clear(outlook);
        let starts: BTreeMap<u64, u64> =
            self.plan.iter().flatten().map(|planned| (planned.sequence, planned.start)).collect();
        for task in (0..outlook.len()).filter(|task| outlook.is_open(*task) && outlook.works[*task]) {
            let sequence = outlook.sequences[task];
            present.lanes[task] = (*self.lane_of.get(&sequence)?)?;
            present.starts[task] = *starts.get(&sequence)?;
            present.ends[task] = present.starts[task] + outlook.length(task, present.lanes[task]);
        }
        Some(present)
    }

    fn adopt(&mut self, outlook: &Outlook, best: &Schedule, occasion: Occasion) {
        self.plan.iter_mut().for_each(VecDeque::clear);
        // A held task that was not among the submitted ones counts as a task of unknown length.
        let planned = std::mem::take(&mut self.lane_of);
        let is_known =
            |sequence: &u64| occasion == Occasion::New || *sequence < self.end || planned.contains_key(sequence);
        self.lane_of = self.held.keys().filter(|held| is_known(held)).map(|sequence| (*sequence, None)).collect();
        self.some_unplanned = self.lane_of.len() < self.held.len();
        let mut order: Vec<usize> = (0..outlook.len()).filter(|task| outlook.is_open(*task)).collect();
        order.sort_unstable_by_key(|task| (best.starts[*task], best.ends[*task], *task));
        for task in order {
            let (sequence, lane) = (outlook.sequences[task], best.lanes[task]);
            self.lane_of.insert(sequence, outlook.works[task].then_some(lane));
            if outlook.works[task] {
                let (start, kind) = (best.starts[task], outlook.kinds[task]);
                let factor = self.experience.factor(kind, lane, &self.lanes);
                let expected = outlook.length(task, lane) as f64 / factor;
                self.plan[lane].push_back(Planned { sequence, start, expected, kind, fetched: false });
            }
        }
        let untimed = self.held.iter().filter(|(sequence, _)| self.lane_of.get(sequence) == Some(&None));
        self.untimed = untimed.map(|(sequence, task)| (Reverse(task.priority()), *sequence)).collect();
        self.end = self.end.max(outlook.end);
        // Where planning takes time, as in a real run, pushes do too, and waiting for them is worse than their order.
        self.coming = Coming::default();
        if self.spent == 0.0 {
            self.coming.plan(outlook, &best.starts, |sequence| self.held.contains_key(&sequence));
        }
    }

    /// Starts fetching the data of ready tasks that are to start before `until`, in the order of their starts; of those
    /// that start after one that is about to be pushed, not yet.
    pub(super) fn fetch(&mut self, node: Node<'_>, submitted: Submitted<'_>, until: u64) {
        let now = node.now().as_nanos();
        let until = until.min(self.coming.first(now));
        let mut wanted: Vec<(u64, u64, usize)> = Vec::new();
        for (lane, plan) in self.plan.iter_mut().enumerate() {
            for planned in
                plan.iter_mut().take_while(|planned| planned.start <= until).filter(|planned| !planned.fetched)
            {
                if self.held.contains_key(&planned.sequence) {
                    planned.fetched = true;
                    wanted.push((planned.start, planned.sequence, self.lanes[lane].memory));
                }
            }
        }
        wanted.sort_unstable();
        for (_, sequence, memory) in wanted {
            if let Some(task) = self.held.get(&sequence) {
                node.prefetch_to(MemoryNode(memory as u32), task);
                self.under_way.fetch(submitted, sequence, memory, false, now);
            }
        }
    }

    /// The first task by priority that has been seen, takes no lane's time because its length is unknown, and has a
    /// place to go.
    pub(super) fn unpredicted<T>(&self, place: impl Fn(&Task) -> Option<T>) -> Option<(u64, T)> {
        self.untimed.iter().find_map(|(_, sequence)| Some((*sequence, place(self.held.get(sequence)?)?)))
    }

    /// Removes a held task.
    pub(super) fn take(&mut self, sequence: u64) -> Option<Task> {
        let task = self.held.remove(&sequence)?;
        self.untimed.remove(&(Reverse(task.priority()), sequence));
        Some(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_graphs_and_denser_ones_get_fewer_tries() {
        let limits = Limits { effort: 300, window: 1 << 17, time: 0.01, lead: 0 };
        let effort = |count: f64, links_of_each: f64| limits.effort_for(count, links_of_each * count, count);
        assert_eq!((effort(1.0, 0.0), effort(8192.0, 7.0)), (1.0, 1.0));
        assert_eq!((effort(81_920.0, 7.0), effort(81_920.0, 80.0)), (0.1, 0.01));
        // Small graphs take no time, however dense they are.
        assert_eq!(effort(100.0, 99.0), 1.0);
        assert_eq!(limits.effort_for(8192.0, 0.0, f64::from(1 << 19)), 0.25);
    }
}
