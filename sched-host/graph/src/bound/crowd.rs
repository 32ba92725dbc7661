//! Tasks are not divided: among more long tasks than there are workers, some worker executes two of them.

use super::Pool;
use super::spans::Spans;

/// Maximum number of tasks in a crowd, as a multiple of the number of workers; what one worker more or less executes
/// matters little in larger ones.
const ROUNDS: usize = 8;

/// Maximum number of tasks in a crowd, and of crowds that are tried.
const MOST: usize = 4096;
const CROWDS: usize = 64;

/// Lower bound in seconds of the makespan, by crowds of the tasks that take longest where they are fastest.
///
/// Of a crowd, a worker of pool *p* executes *k* tasks in no less than *h* + *l* + *e*: the least head of the crowd
/// there, the *k* shortest lengths, and the least tail. In less time than it takes until all workers together may have
/// executed as many tasks as there are in the crowd, one of them is missing.
pub(super) fn bound(spans: &Spans, pools: &[Pool]) -> f64 {
    let workers: usize = pools.iter().map(|pool| pool.workers as usize).sum();
    let count = pools.len().max(1);
    let least = |lengths: &[f64]| lengths.iter().copied().fold(f64::INFINITY, f64::min);
    let mut tasks: Vec<(f64, usize)> = spans.lengths.chunks(count).map(least).zip(0..).collect();
    tasks.retain(|(length, _)| *length > 0.0 && length.is_finite());
    tasks.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    tasks.truncate((ROUNDS * workers + 1).min(MOST));
    let step = (tasks.len().saturating_sub(workers) / CROWDS).max(1);
    let sampled = (workers + 1..=tasks.len()).step_by(step);
    let full = (1..=ROUNDS).map(|rounds| rounds * workers + 1);
    let crowds = sampled.chain(full).filter(|size| *size > workers && *size <= tasks.len());
    crowds.map(|size| of_crowd(spans, pools, &tasks[..size])).fold(0.0, f64::max)
}

/// The time until which all workers may have executed as many tasks of a crowd as there are.
fn of_crowd(spans: &Spans, pools: &[Pool], crowd: &[(f64, usize)]) -> f64 {
    let count = pools.len();
    // When a worker of each pool may have executed one more of them, and how many workers there are.
    let mut steps: Vec<(f64, u32)> = Vec::new();
    for (pool, Pool { workers }) in pools.iter().enumerate().filter(|(_, pool)| pool.workers > 0) {
        let places = || crowd.iter().map(|(_, task)| task * count + pool).filter(|at| spans.lengths[*at].is_finite());
        let least = |of: &[f64]| places().map(|at| of[at]).fold(f64::INFINITY, f64::min);
        let around = least(&spans.heads) + least(&spans.tails);
        let mut lengths: Vec<f64> = places().map(|at| spans.lengths[at]).collect();
        lengths.sort_by(f64::total_cmp);
        let ends = lengths.iter().scan(around, |end, length| {
            *end += length;
            Some((*end, *workers))
        });
        steps.extend(ends);
    }
    steps.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut done = 0;
    for (end, workers) in steps {
        done += workers as usize;
        if done >= crowd.len() {
            return end;
        }
    }
    // Some task can run nowhere, which is an error of the other bounds.
    0.0
}
