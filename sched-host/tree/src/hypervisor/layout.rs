//! Workers of the governed contexts, and what moving one of them gains.

use sched_core::{WorkerId, WorkerSet};

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Layout {
    /// The workers of all governed contexts at the beginning.
    pool: WorkerSet,
    /// For each worker of the machine, its part of the speed of the pool.
    weights: Vec<f64>,
    /// The workers of each context.
    sets: Vec<WorkerSet>,
    /// Whether each context has tasks.
    active: Vec<bool>,
}

/// A move of a worker.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shift {
    pub(super) worker: WorkerId,
    /// `None` if it stays where it is.
    pub(super) from: Option<usize>,
    pub(super) to: usize,
    /// By how much the sum of squared distances from the targets shrinks.
    pub(super) gain: f64,
    /// The share that its new context gains.
    pub(super) size: f64,
}

impl Layout {
    /// Takes the present workers of each context, and whether it has tasks. The first call makes the pool.
    pub(super) fn renew(&mut self, sets: Vec<WorkerSet>, active: Vec<bool>, speeds: &[f64]) {
        if self.pool.is_empty() {
            sets.iter().for_each(|set| self.pool.union_with(set));
            let speed = |worker: WorkerId| speeds.get(worker.index()).copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
            let total: f64 = self.pool.iter().map(speed).sum();
            self.weights = (0..speeds.len() as u32).map(|worker| speed(WorkerId(worker)) / total).collect();
        }
        (self.sets, self.active) = (sets, active);
    }

    pub(super) fn pool(&self) -> &WorkerSet {
        &self.pool
    }

    pub(super) fn workers(&self, context: usize) -> &WorkerSet {
        &self.sets[context]
    }

    /// Weight of the fastest workers, of which there are `count`.
    pub(super) fn largest_weight(&self, count: usize) -> f64 {
        let mut weights: Vec<f64> = self.pool.iter().map(|worker| self.weight(worker)).collect();
        weights.sort_by(|a, b| b.total_cmp(a));
        weights.iter().take(count).sum()
    }

    fn weight(&self, worker: WorkerId) -> f64 {
        self.weights.get(worker.index()).copied().unwrap_or(0.0)
    }

    /// Number of contexts with tasks that a worker serves.
    fn servings(&self, worker: WorkerId) -> usize {
        self.sets.iter().zip(&self.active).filter(|(set, active)| **active && set.contains(worker)).count()
    }

    /// The share of each context that has tasks; 0 for the others.
    pub(super) fn shares(&self) -> Vec<f64> {
        self.shares_among(&self.active)
    }

    /// The share of each context if these have tasks.
    pub(super) fn shares_among(&self, active: &[bool]) -> Vec<f64> {
        let mut shares = vec![0.0; self.sets.len()];
        for worker in self.pool.iter() {
            let serves = |(set, active): &(&WorkerSet, &bool)| **active && set.contains(worker);
            let servings = self.sets.iter().zip(active).filter(serves).count();
            let part = self.weight(worker) / servings.max(1) as f64;
            for (share, (set, active)) in shares.iter_mut().zip(self.sets.iter().zip(active)) {
                if *active && set.contains(worker) {
                    *share += part;
                }
            }
        }
        shares
    }

    /// Adds a worker of the pool to a context which has none of those that are `able`, or lacks any: that which serves
    /// the fewest contexts, of these the fastest, of these the first.
    pub(super) fn rescue(&mut self, to: usize, able: Option<&WorkerSet>) -> Option<Shift> {
        let has = &self.sets[to];
        if able.is_some_and(|able| able.iter().any(|worker| has.contains(worker))) {
            return None;
        }
        let fits = |worker: &WorkerId| !has.contains(*worker) && able.is_none_or(|able| able.contains(*worker));
        let rank = |worker: &WorkerId| (self.servings(*worker), -self.weight(*worker));
        let before = |a: &WorkerId, b: &WorkerId| {
            let ((a, fast_a), (b, fast_b)) = (rank(a), rank(b));
            a.cmp(&b).then(fast_a.total_cmp(&fast_b))
        };
        let worker = self.pool.iter().filter(fits).min_by(before)?;
        self.sets[to].insert(worker);
        Some(Shift { worker, from: None, to, gain: 0.0, size: 0.0 })
    }

    /// The move with the largest gain. Contexts have bounds of their number of workers, and may not be `open` to
    /// changes; `fixed` workers stay.
    pub(super) fn best(
        &self,
        targets: &[f64],
        bounds: impl Fn(usize) -> (usize, usize),
        open: impl Fn(usize) -> bool,
        fixed: &WorkerSet,
    ) -> Option<Shift> {
        let shares = self.shares();
        let counts: Vec<usize> = self.sets.iter().map(WorkerSet::len).collect();
        let mut best: Option<Shift> = None;
        for worker in self.pool.iter().filter(|worker| !fixed.contains(*worker)) {
            for to in (0..self.sets.len()).filter(|to| self.active[*to] && open(*to)) {
                let arrives = !self.sets[to].contains(worker);
                if arrives && counts[to] >= bounds(to).1 {
                    continue;
                }
                for donor in (0..self.sets.len()).filter(|donor| *donor != to && self.sets[*donor].contains(worker)) {
                    let leaves = self.active[donor];
                    if leaves && (!open(donor) || counts[donor] <= bounds(donor).0.max(1)) || !leaves && !arrives {
                        continue;
                    }
                    let from = leaves.then_some(donor);
                    let (gain, size) = self.gain(worker, from, to, &shares, targets);
                    if best.is_none_or(|best| gain > best.gain) {
                        best = Some(Shift { worker, from, to, gain, size });
                    }
                }
            }
        }
        best
    }

    /// The move, of those that leave a context with tasks and more than its maximum of workers, with the largest gain.
    /// The worker goes to a context that it serves already, whether that has tasks or not, or else to any that has
    /// room.
    pub(super) fn surplus(
        &self,
        targets: &[f64],
        max: impl Fn(usize) -> usize,
        open: impl Fn(usize) -> bool,
        fixed: &WorkerSet,
    ) -> Option<Shift> {
        let shares = self.shares();
        let has_room = |to: usize| open(to) && self.sets[to].len() < max(to);
        let over = (0..self.sets.len()).filter(|from| self.active[*from] && open(*from));
        let over = over.filter(|from| self.sets[*from].len() > max(*from));
        let moves = over.flat_map(|from| {
            let workers =
                self.sets[from].iter().filter(|worker| self.pool.contains(*worker) && !fixed.contains(*worker));
            workers.flat_map(move |worker| (0..self.sets.len()).map(move |to| (worker, from, to)))
        });
        let possible =
            moves.filter(|(worker, from, to)| to != from && (self.sets[*to].contains(*worker) || has_room(*to)));
        let shifts = possible.map(|(worker, from, to)| {
            let (gain, size) = self.gain(worker, Some(from), to, &shares, targets);
            Shift { worker, from: Some(from), to, gain, size }
        });
        // Of equal ones the first.
        shifts.reduce(|best, shift| if shift.gain > best.gain { shift } else { best })
    }

    /// What a move gains, and by how much the share of the new context grows.
    fn gain(&self, worker: WorkerId, from: Option<usize>, to: usize, shares: &[f64], targets: &[f64]) -> (f64, f64) {
        let (weight, before) = (self.weight(worker), self.servings(worker));
        let arrives = !self.sets[to].contains(worker);
        let after = before + usize::from(arrives && self.active[to]) - usize::from(from.is_some());
        let part = |count: usize| if count == 0 { 0.0 } else { weight / count as f64 };
        let (mut gain, mut size) = (0.0, 0.0);
        for (context, (share, target)) in shares.iter().zip(targets).enumerate() {
            if !self.active[context] {
                continue;
            }
            let had = self.sets[context].contains(worker);
            let has = (had || context == to) && from != Some(context);
            let old = if had { part(before) } else { 0.0 };
            let new = if has { part(after) } else { 0.0 };
            gain += (share - target).powi(2) - (share - old + new - target).powi(2);
            if context == to {
                size = new - old;
            }
        }
        (gain, size)
    }

    /// Whether each kind of tasks of a context, executed by these sets of workers, keeps a worker when this one leaves.
    pub(super) fn can_spare(&self, context: usize, worker: WorkerId, needs: &[WorkerSet]) -> bool {
        let stays = |other: WorkerId| other != worker && self.sets[context].contains(other);
        // Where no worker of the context can execute some tasks, it is not this one that they lack.
        needs.iter().all(|able| !able.contains(worker) || able.iter().any(stays))
    }

    pub(super) fn apply(&mut self, shift: &Shift) {
        if let Some(from) = shift.from {
            self.sets[from].remove(shift.worker);
        }
        self.sets[shift.to].insert(shift.worker);
    }
}
