//! What the tasks of all contenders execute.

use super::pattern::Pattern;
use crossbeam::utils::CachePadded;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Instant;

/// A grid of steps and columns, whose tasks check that those which they wait for have ended, and compute for a while.
pub(super) struct Grid {
    pub(super) pattern: Pattern,
    pub(super) width: usize,
    pub(super) steps: usize,
    /// Length of a kernel, in iterations.
    iterations: AtomicU32,
    /// Number of steps done in each column.
    pub(super) done: Vec<CachePadded<AtomicU32>>,
}

impl Grid {
    pub(super) fn new(pattern: Pattern, width: usize, steps: usize) -> Grid {
        let done = (0..width).map(|_| CachePadded::new(AtomicU32::new(0))).collect();
        Grid { pattern, width, steps, iterations: AtomicU32::new(0), done }
    }

    /// Number of tasks.
    pub(super) fn len(&self) -> usize {
        self.width * self.steps
    }

    /// Begins again, with kernels of this length.
    pub(super) fn restart(&self, iterations: u32) {
        self.iterations.store(iterations, Relaxed);
        self.done.iter().for_each(|done| done.store(0, Relaxed));
    }

    /// Executes a task.
    ///
    /// # Panics
    /// If a task that it waits for has not ended: the contender is wrong, and its figures are worthless.
    #[inline]
    pub(super) fn execute(&self, step: usize, column: usize) {
        for before in self.pattern.before(self.width, step, column) {
            assert!(self.done[before].load(Relaxed) as usize >= step, "step {step}, column {column} is too early");
        }
        black_box(compute(self.iterations.load(Relaxed)));
        if self.pattern == Pattern::Trivial {
            // Tasks of a column end in any order.
            self.done[column].fetch_add(1, Release);
        } else {
            self.done[column].store(step as u32 + 1, Release);
        }
    }

    /// Whether every task was executed. (Exactly once, where the tasks of a column are in order.)
    pub(super) fn is_done(&self) -> bool {
        self.done.iter().all(|done| done.load(Acquire) as usize == self.steps)
    }
}

/// Values that a kernel works on, as Task Bench's compute-bound kernel does.
const VALUES: usize = 64;

/// Task Bench's compute-bound kernel: in each iteration a multiplication and an addition for each of its values, and at
/// the end their product. Beginning and end take as long as some iterations; no contender is spared them.
#[inline(never)]
fn compute(iterations: u32) -> f64 {
    let mut values = [black_box(1.2345_f64); VALUES];
    for _ in 0..iterations {
        values.iter_mut().for_each(|value| *value = *value * *value + *value);
    }
    values.iter().product()
}

/// Nanoseconds of an iteration in a long kernel.
pub(super) fn nanoseconds_per_iteration() -> f64 {
    const ITERATIONS: u32 = 20_000;
    let began = Instant::now();
    black_box(compute(black_box(ITERATIONS)));
    (began.elapsed().as_nanos() as f64 / f64::from(ITERATIONS)).max(1e-3)
}
