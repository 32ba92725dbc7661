//! The least makespan that satisfies all chains and all windows at once, up to rounding: a game between somebody who
//! places tasks in pools and somebody who objects.
//!
//! An objection is a chain of tasks, which takes the sum of their times where they have been placed, or a window: a
//! pool, a head *h* and a tail *e*. What was placed in that pool with a head of at least *h* and a tail of at least *e*
//! is done by its workers between *h* and the makespan less *e*. No schedule is shorter than any objection to its own
//! placement. So for objections with weights that add up to 1, none is shorter than their weighted mean with each task
//! where that is least: any weights give a lower bound, and the best ones the optimum of the linear program of all
//! chains and windows, with tasks placed in fractions (weak and strong duality).
//!
//! The weights are found by fictitious play (Brown, *Iterative solution of games by fictitious play*, 1951): in turn,
//! each of the two answers the mean of what the other has done so far, later moves counting more. It ends when the
//! bound is close to the longest objection to the mean placement.

use super::spans::Spans;
use super::{Durations, Pool};
use crate::priorities::bottom_levels;
use crate::{Dependencies, TaskId};

/// Maximum number of heads, and of tails, that windows begin and end at; fewer in small graphs.
const EDGES: usize = 32;
const LEAST_EDGES: usize = 8;

/// Number of moves, by the number of tasks and pools: this much work, and no fewer or more than so many. Small graphs
/// need few.
const WORK: usize = 12_000_000;
const FEWEST: usize = 10;
const MOST: usize = 2000;
const MOST_BY_TASK: usize = 10;

/// Number of moves after which the bound is computed, and the gap to the optimum at which it is close enough.
const ROUND: usize = 25;
const CLOSE: f64 = 1e-3;

/// Relative difference up to which answers count as equally good, at the end and at the beginning: a move is a mixture
/// of these, so that pools that are alike get alike.
const LEAST_ALIKE: f64 = 0.005;
const MOST_ALIKE: f64 = 0.1;

/// Figures for each pool, head and tail.
#[derive(Clone)]
struct Grid {
    heads: usize,
    tails: usize,
    figures: Vec<f64>,
}

impl Grid {
    fn new(pools: usize, heads: usize, tails: usize) -> Grid {
        Grid { heads, tails, figures: vec![0.0; pools * heads * tails] }
    }

    fn at(&mut self, pool: usize, head: usize, tail: usize) -> &mut f64 {
        &mut self.figures[(pool * self.heads + head) * self.tails + tail]
    }

    fn get(&self, pool: usize, head: usize, tail: usize) -> f64 {
        self.figures[(pool * self.heads + head) * self.tails + tail]
    }

    fn scale(&mut self, by: f64) {
        self.figures.iter_mut().for_each(|figure| *figure *= by);
    }

    /// Adds to each figure those of no larger heads and tails, or with `down` those of no smaller ones.
    fn sum(&mut self, down: bool) {
        let (heads, tails) = (self.heads, self.tails);
        for pool in self.figures.chunks_exact_mut((heads * tails).max(1)) {
            let place = |head: usize, tail: usize| match down {
                false => head * tails + tail,
                true => (heads - 1 - head) * tails + (tails - 1 - tail),
            };
            for head in 0..heads {
                for tail in 1..tails {
                    pool[place(head, tail)] += pool[place(head, tail - 1)];
                }
            }
            for head in 1..heads {
                for tail in 0..tails {
                    pool[place(head, tail)] += pool[place(head - 1, tail)];
                }
            }
        }
    }
}

/// See the [module](self).
pub(super) struct Game<'a> {
    dependencies: &'a Dependencies,
    work: &'a Durations,
    /// Execution times; the work of a task may be done by several workers.
    spans: &'a Spans,
    workers: Vec<f64>,
    /// Seconds than which no schedule is shorter. A window without work objects to nothing, so it must be as long.
    known: f64,
    heads: Vec<f64>,
    tails: Vec<f64>,
    /// By task and pool: the number of the last head that is no later than its own, and of the last such tail.
    levels: Vec<(u8, u8)>,
    /// The weights of windows, by pool, head and tail.
    windows: Grid,
    /// By task: the weights of the chains that it is on.
    chained: Vec<f64>,
    /// The mean placement: seconds of work by pool, head and tail, and seconds of each task.
    placed: Grid,
    lengths: Vec<f64>,
}

/// Up to `count` of these times up to `most`, from the least to the largest.
fn edges(times: &[f64], most: f64, count: usize) -> Vec<f64> {
    let mut times: Vec<f64> = times.iter().copied().filter(|time| *time <= most).chain([0.0]).collect();
    times.sort_by(f64::total_cmp);
    times.dedup_by(|a, b| *a - *b <= 1e-9 * *a);
    let step = times.len().div_ceil(count).max(1);
    times.into_iter().step_by(step).collect()
}

impl<'a> Game<'a> {
    /// A game of which it is `known` that no schedule is shorter than that.
    pub(super) fn new(
        dependencies: &'a Dependencies,
        spans: &'a Spans,
        work: &'a Durations,
        pools: &[Pool],
        known: f64,
    ) -> Game<'a> {
        let count = (LEAST_EDGES + work.n_tasks() / 4).min(EDGES);
        let (heads, tails) = (edges(&spans.heads, known, count), edges(&spans.tails, known, count));
        let level = |edges: &[f64], time: f64| edges.partition_point(|edge| *edge <= time).saturating_sub(1) as u8;
        let levels = spans.heads.iter().zip(&spans.tails);
        let levels = levels.map(|(head, tail)| (level(&heads, *head), level(&tails, *tail))).collect();
        let least = |lengths: &[f64]| lengths.iter().copied().fold(f64::INFINITY, f64::min);
        let grid = Grid::new(pools.len(), heads.len(), tails.len());
        Game {
            dependencies,
            work,
            spans,
            workers: pools.iter().map(|pool| f64::from(pool.workers)).collect(),
            known,
            heads,
            tails,
            levels,
            windows: grid.clone(),
            chained: vec![0.0; work.n_tasks()],
            placed: grid,
            lengths: spans.lengths.chunks(pools.len().max(1)).map(least).collect(),
        }
    }

    /// Number of moves that are worth their time with so many tasks and pools.
    pub(super) fn moves(tasks: usize, pools: usize) -> usize {
        let most = (FEWEST + MOST_BY_TASK * tasks).min(MOST);
        (WORK / (tasks * (pools + 4)).max(1)).clamp(FEWEST, most)
    }

    /// Plays so many moves, fewer where the bound is known well before or more than `enough`. Returns the largest lower
    /// bound found, in seconds.
    pub(super) fn play(mut self, moves: usize, enough: f64) -> f64 {
        for turn in 0..moves {
            // Each move counts for as much as its number.
            let share = 2.0 / (turn as f64 + 2.0);
            self.windows.scale(1.0 - share);
            self.chained.iter_mut().for_each(|weight| *weight *= 1.0 - share);
            let alike = (4.0 / (turn as f64 + 4.0)).clamp(LEAST_ALIKE, MOST_ALIKE);
            let longest = self.object(share, alike);
            let bound = self.place(share, alike);
            self.known = self.known.max(bound);
            if self.known > enough {
                break;
            }
            if turn % ROUND == ROUND - 1 && turn > FEWEST && longest <= self.known * (1.0 + CLOSE) {
                break;
            }
        }
        self.known
    }

    /// Gives the objections that are longest against the mean placement a share of the weight: a chain, or for each
    /// pool a window, of pools whose windows are `alike`. Returns their length.
    fn object(&mut self, share: f64, alike: f64) -> f64 {
        let mut inside = self.placed.clone();
        inside.sum(true);
        let mut windows = Vec::new();
        for (pool, workers) in self.workers.iter().enumerate().filter(|(_, workers)| **workers > 0.0) {
            let mut longest = (0.0, pool, 0, 0);
            for (head, begin) in self.heads.iter().enumerate() {
                for (tail, end) in self.tails.iter().enumerate() {
                    let load = inside.get(pool, head, tail);
                    let length = begin + end + load / workers;
                    if load > 0.0 && length > longest.0 && begin + end <= self.known {
                        longest = (length, pool, head, tail);
                    }
                }
            }
            windows.push(longest);
        }
        let longest = windows.iter().map(|window| window.0).fold(0.0, f64::max);
        windows.retain(|window| window.0 > 0.0 && window.0 >= longest * (1.0 - alike));
        let levels = bottom_levels(self.dependencies, |task| self.lengths[task.index()]);
        let first = |tasks: &mut dyn Iterator<Item = TaskId>| {
            tasks.reduce(|best, task| if levels[task.index()] > levels[best.index()] { task } else { best })
        };
        let mut next = first(&mut self.dependencies.entries());
        let chain = next.map_or(0.0, |task| levels[task.index()]);
        if chain < longest {
            let all: f64 = windows.iter().map(|(_, pool, ..)| self.workers[*pool]).sum();
            for (_, pool, head, tail) in windows {
                *self.windows.at(pool, head, tail) += share * self.workers[pool] / all;
            }
            return longest;
        }
        while let Some(task) = next {
            self.chained[task.index()] += share;
            next = first(&mut self.dependencies.successors(task).iter().copied());
        }
        chain
    }

    /// Places each task where the objections mind it least, in parts where that is `alike`, which counts for a share.
    /// Returns the weighted mean of the objections.
    fn place(&mut self, share: f64, alike: f64) -> f64 {
        let pools = self.workers.len();
        let mut prices = self.windows.clone();
        prices.sum(false);
        let mut bound = 0.0;
        for (pool, workers) in self.workers.iter().enumerate() {
            for (head, begin) in self.heads.iter().enumerate() {
                for (tail, end) in self.tails.iter().enumerate() {
                    bound += self.windows.get(pool, head, tail) * (begin + end);
                    *prices.at(pool, head, tail) /= workers.max(1.0);
                }
            }
        }
        self.placed.scale(1.0 - share);
        let mut costs = vec![0.0; pools];
        for task in 0..self.lengths.len() {
            let each = task * pools..(task + 1) * pools;
            let (work, lengths) = (self.work.of_task(TaskId(task as u32)), &self.spans.lengths[each.clone()]);
            for (pool, (head, tail)) in self.levels[each.clone()].iter().enumerate() {
                let can = work[pool].is_finite() && lengths[pool].is_finite();
                let price = || prices.get(pool, *head as usize, *tail as usize) * work[pool];
                costs[pool] = if can { price() + self.chained[task] * lengths[pool] } else { f64::INFINITY };
            }
            let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
            if least.is_infinite() {
                continue;
            }
            bound += least;
            let is_alike = |pool: &usize| costs[*pool] <= least * (1.0 + alike);
            let all: f64 = (0..pools).filter(is_alike).map(|pool| self.workers[pool]).sum();
            let mut length = 0.0;
            for pool in (0..pools).filter(is_alike) {
                let part = self.workers[pool] / all;
                let (head, tail) = self.levels[each.start + pool];
                *self.placed.at(pool, head as usize, tail as usize) += share * part * work[pool];
                length += part * lengths[pool];
            }
            self.lengths[task] += share * (length - self.lengths[task]);
        }
        bound
    }
}
