//! Which planned tasks are about to be pushed: those that wait for nothing any more. Whoever ends a task pushes the
//! tasks that waited for it one by one, in the order of their submission, and a more urgent one may be the last.

use super::outlook::Outlook;
use std::collections::{BTreeMap, BTreeSet};

/// Nanoseconds after which a task that waits for nothing is not expected any more: it waits for something else.
const SOON: u64 = 100_000;

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Coming {
    /// Places of the planned tasks in the lists, by sequence number.
    numbers: BTreeMap<u64, usize>,
    /// By place: the sequence number and the planned start.
    tasks: Vec<(u64, u64)>,
    /// By place: number of planned tasks that it waits for.
    waits: Vec<u32>,
    /// By place: whether it takes a lane's time.
    works: Vec<bool>,
    /// By place: the places of the tasks that wait for it.
    successors: Vec<Vec<usize>>,
    /// Those that are about to be pushed, by their planned starts.
    due: BTreeSet<(u64, u64)>,
    /// When the last of them was found.
    found: u64,
}

impl Coming {
    /// Takes note of a new plan, and of when its tasks start. `is_here` tells whether a task has been pushed.
    pub(super) fn plan(&mut self, outlook: &Outlook, starts: &[u64], is_here: impl Fn(u64) -> bool) {
        let all = 0..outlook.len();
        self.numbers = all.clone().map(|task| (outlook.sequences[task], task)).collect();
        self.tasks = all.clone().map(|task| (outlook.sequences[task], starts[task])).collect();
        self.waits.clone_from(&outlook.waits);
        self.works.clone_from(&outlook.works);
        self.successors = all.clone().map(|task| outlook.successors(task).to_vec()).collect();
        self.due.clear();
        for task in all.filter(|task| outlook.waits[*task] == 0 && outlook.is_open(*task)) {
            if !is_here(outlook.sequences[task]) {
                self.release(task, outlook.now);
            }
        }
    }

    /// Takes note that a task has ended.
    pub(super) fn ended(&mut self, sequence: u64, now: u64) {
        if let Some(task) = self.numbers.remove(&sequence) {
            for next in self.freed_by(task) {
                self.release(next, now);
            }
        }
    }

    /// The tasks that wait for nothing any more once `task` has ended.
    fn freed_by(&mut self, task: usize) -> Vec<usize> {
        let mut freed = std::mem::take(&mut self.successors[task]);
        freed.retain(|next| {
            let waits = &mut self.waits[*next];
            *waits = waits.saturating_sub(1);
            *waits == 0
        });
        freed
    }

    /// A task is about to be pushed; or those behind it are, if it takes no time. Chains of these may be long.
    fn release(&mut self, task: usize, now: u64) {
        let mut left = vec![task];
        while let Some(task) = left.pop() {
            if self.works[task] {
                let (sequence, start) = self.tasks[task];
                self.due.insert((start, sequence));
                self.found = now;
            } else {
                left.extend(self.freed_by(task));
            }
        }
    }

    /// Takes note that a task has been pushed.
    pub(super) fn pushed(&mut self, sequence: u64) {
        if let Some(task) = self.numbers.get(&sequence) {
            self.due.remove(&(self.tasks[*task].1, sequence));
        }
    }

    /// The planned start of the first of the tasks that are about to be pushed; the end of time if there are none.
    pub(super) fn first(&self, now: u64) -> u64 {
        let is_soon = now <= self.found.saturating_add(SOON);
        self.due.first().filter(|_| is_soon).map_or(u64::MAX, |(start, _)| *start)
    }
}
