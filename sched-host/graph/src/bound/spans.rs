//! When each task can begin at the earliest, and what must follow it, in each pool.

use super::transfers::{LeastCosts, Origin, Values};
use crate::{Dependencies, TaskGraph, TaskId};
use std::collections::HashMap;

/// Least times in seconds of each task in each pool, task by task.
#[derive(Clone)]
pub(super) struct Spans {
    pools: usize,
    /// For initial values.
    loads: Vec<f64>,
    /// From the beginning of the schedule to that of the task.
    pub(super) heads: Vec<f64>,
    /// Execution times; infinite where a task cannot run.
    pub(super) lengths: Vec<f64>,
    /// From the end of the task to that of the schedule.
    pub(super) tails: Vec<f64>,
}

/// Relative difference up to which a sum may be off for the order of its parts.
const ROUNDING: f64 = 1e-9;

/// Least travel times between pools, by the number of bytes.
struct Moves<'a, C> {
    pools: usize,
    costs: &'a C,
    known: HashMap<u64, Vec<f64>>,
}

impl<C: LeastCosts> Moves<'_, C> {
    /// By source and destination.
    fn of(&mut self, bytes: u64) -> &[f64] {
        let Moves { pools, costs, known } = self;
        known.entry(bytes).or_insert_with(|| {
            let pairs = (0..*pools).flat_map(|from| (0..*pools).map(move |to| (from, to)));
            pairs.map(|(from, to)| costs.travel(Origin::Pool(from), to, bytes)).collect()
        })
    }
}

impl Spans {
    pub(super) fn of(
        graph: &TaskGraph,
        dependencies: &Dependencies,
        pools: usize,
        values: &Values,
        costs: &impl LeastCosts,
    ) -> Spans {
        let none = Vec::new;
        let mut spans = Spans { pools, loads: none(), heads: none(), lengths: none(), tails: none() };
        for (task, initial) in graph.tasks.iter().zip(&values.initial) {
            let runs = graph.kind_of(task).runs;
            for pool in 0..pools {
                let length = if runs { costs.seconds(task, pool) } else { Some(0.0) };
                spans.lengths.push(length.filter(|length| *length >= 0.0).unwrap_or(f64::INFINITY));
                spans.loads.push(if initial.is_empty() { 0.0 } else { costs.load(initial, pool) });
            }
        }
        spans.compute(dependencies, values, &mut Moves { pools, costs, known: HashMap::new() });
        spans
    }

    /// Sets heads and tails by lengths.
    fn compute(&mut self, dependencies: &Dependencies, values: &Values, moves: &mut Moves<'_, impl LeastCosts>) {
        let tasks = || (0..(self.lengths.len() / self.pools.max(1)) as u32).map(TaskId);
        let (first, last) = (tasks(), tasks().rev());
        self.heads.clone_from(&self.loads);
        self.tails = vec![0.0; self.lengths.len()];
        first.for_each(|task| self.delay_followers(task, dependencies, values, moves));
        last.for_each(|task| self.add_followers(task, dependencies, values, moves));
    }

    /// Takes tasks out of pools where they would not be done in time for a makespan of `most` seconds, which makes
    /// others begin later, or end earlier. Returns whether each task is left a pool.
    pub(super) fn within(
        &mut self,
        most: f64,
        dependencies: &Dependencies,
        values: &Values,
        costs: &impl LeastCosts,
    ) -> bool {
        let mut moves = Moves { pools: self.pools, costs, known: HashMap::new() };
        let most = most * (1.0 + ROUNDING);
        loop {
            let mut is_changed = false;
            for (at, length) in self.lengths.iter_mut().enumerate().filter(|(_, length)| length.is_finite()) {
                if self.heads[at] + *length + self.tails[at] > most {
                    (*length, is_changed) = (f64::INFINITY, true);
                }
            }
            if self.lengths.chunks(self.pools.max(1)).any(|each| each.iter().all(|length| length.is_infinite())) {
                return false;
            }
            if !is_changed {
                return true;
            }
            self.compute(dependencies, values, &mut moves);
        }
    }

    /// The longest of all chains, with each task where its chain is shortest.
    pub(super) fn longest(&self) -> f64 {
        let tasks = self.lengths.len().checked_div(self.pools).unwrap_or(0);
        let through = |task: usize| {
            let each = task * self.pools..(task + 1) * self.pools;
            each.map(|at| self.heads[at] + self.lengths[at] + self.tails[at]).fold(f64::INFINITY, f64::min)
        };
        // A task that can run nowhere is an error of the other bounds.
        (0..tasks).map(through).filter(|whole| whole.is_finite()).fold(0.0, f64::max)
    }

    /// Raises the heads of the tasks that wait for `task`.
    fn delay_followers(
        &mut self,
        task: TaskId,
        dependencies: &Dependencies,
        values: &Values,
        moves: &mut Moves<'_, impl LeastCosts>,
    ) {
        let pools = self.pools;
        let own = task.index() * pools;
        let ends: Vec<f64> = (own..own + pools).map(|at| self.heads[at] + self.lengths[at]).collect();
        let first = ends.iter().copied().fold(f64::INFINITY, f64::min);
        for next in dependencies.successors(task) {
            for head in &mut self.heads[next.index() * pools..][..pools] {
                *head = head.max(first);
            }
        }
        for flow in values.written_by(task) {
            let travels = moves.of(flow.bytes);
            for (to, head) in self.heads[flow.reader.index() * pools..][..pools].iter_mut().enumerate() {
                let arrivals = ends.iter().enumerate().map(|(from, end)| end + travels[from * pools + to]);
                *head = head.max(arrivals.fold(f64::INFINITY, f64::min));
            }
        }
    }

    /// Sets the tails of `task`, where those of the tasks that wait for it are known.
    fn add_followers(
        &mut self,
        task: TaskId,
        dependencies: &Dependencies,
        values: &Values,
        moves: &mut Moves<'_, impl LeastCosts>,
    ) {
        let pools = self.pools;
        let rest = |spans: &Spans, next: TaskId, pool: usize| {
            let at = next.index() * pools + pool;
            spans.lengths[at] + spans.tails[at]
        };
        let least = |next: &TaskId| (0..pools).map(|pool| rest(self, *next, pool)).fold(f64::INFINITY, f64::min);
        let order = dependencies.successors(task).iter().map(least).fold(0.0, f64::max);
        let mut tails = vec![order; pools];
        for flow in values.written_by(task) {
            let travels = moves.of(flow.bytes);
            for (from, tail) in tails.iter_mut().enumerate() {
                let ways = (0..pools).map(|to| travels[from * pools + to] + rest(self, flow.reader, to));
                *tail = tail.max(ways.fold(f64::INFINITY, f64::min));
            }
        }
        self.tails[task.index() * pools..][..pools].copy_from_slice(&tails);
    }
}
