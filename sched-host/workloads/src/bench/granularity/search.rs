//! The search for METG(50 %) of several contenders, measured in turn.
//!
//! Neighbours on the machine, its clock and its interrupts only ever make a measurement longer, some for milliseconds
//! and some for seconds. So each contender is measured once, then the next, and what each length of the kernels took at
//! least is kept: a slow second hits all of them, and no single measurement is believed. A length that seemed too short
//! is measured again once the search has come to its end there, and the search goes on below where it was not.

use super::kernel::{Grid, nanoseconds_per_iteration};
use std::collections::BTreeMap;
use std::time::Duration;

/// Length of the first kernels that are tried, in iterations.
const FIRST_ITERATIONS: u32 = 32;

/// The longest kernels that are tried, in iterations: some 0.1 ms. On a machine whose workers do not get their cores no
/// length is enough, and the search ends soon nevertheless.
const MOST_ITERATIONS: u32 = 1 << 13;

/// METG(50 %) of each contender, in nanoseconds; `None` where no length of the kernels that was tried is enough.
///
/// # Panics
/// If a contender does not execute every task: the figures would be worthless.
pub(super) fn in_turn<const N: usize, E>(
    contenders: [&dyn Fn() -> Result<Duration, E>; N],
    grid: &Grid,
    workers: usize,
    rounds: usize,
) -> Result<[Option<f64>; N], E> {
    let mut searches = [const { Search::new() }; N];
    let mut iteration = f64::INFINITY;
    loop {
        iteration = nanoseconds_per_iteration().min(iteration);
        let mut is_over = true;
        for (search, run) in searches.iter_mut().zip(contenders) {
            let Some(iterations) = search.next(iteration, rounds) else { continue };
            is_over = false;
            grid.restart(iterations);
            let time = run()?;
            assert!(grid.is_done(), "every task is executed once");
            search.add(iterations, time.as_nanos() as f64 * workers as f64 / grid.len() as f64);
        }
        if is_over {
            return Ok(searches.map(|search| search.found(iteration)));
        }
    }
}

/// What is known of a contender.
struct Search {
    /// By the length of the kernels.
    points: BTreeMap<u32, Point>,
}

/// What was measured with kernels of one length.
#[derive(Clone, Copy)]
struct Point {
    /// Length of the kernels.
    iterations: u32,
    /// Least time of the workers for a task, in nanoseconds.
    granularity: f64,
    /// Number of measurements.
    count: usize,
}

impl Point {
    /// By how much the granularity exceeds that of an efficiency of one half, if an iteration takes this time.
    fn excess(&self, iteration: f64) -> f64 {
        self.granularity - 2.0 * f64::from(self.iterations) * iteration
    }
}

impl Search {
    const fn new() -> Search {
        Search { points: BTreeMap::new() }
    }

    /// Notes what the workers took for a task, in nanoseconds.
    fn add(&mut self, iterations: u32, granularity: f64) {
        let point = self.points.entry(iterations).or_insert(Point { iterations, granularity, count: 0 });
        point.granularity = granularity.min(point.granularity);
        point.count += 1;
    }

    /// The shortest kernels that are enough for an efficiency of one half, and before them the longest of those that are
    /// shorter.
    fn enclosing(&self, iteration: f64) -> [Option<Point>; 2] {
        let above = self.points.values().find(|point| point.excess(iteration) <= 0.0);
        let below = self.points.range(..above.map_or(u32::MAX, |point| point.iterations)).next_back();
        [below.map(|(_, point)| *point), above.copied()]
    }

    /// The length to be measured next; none once METG(50 %) is known: it lies between two lengths that differ by one or
    /// by at most 3 %, each measured `rounds` times.
    fn next(&self, iteration: f64, rounds: usize) -> Option<u32> {
        let [below, above] = self.enclosing(iteration);
        let few = below.map_or(0, |point| point.iterations);
        let untried = match above.map(|point| point.iterations) {
            None if few <= MOST_ITERATIONS / 4 => Some((4 * few).max(FIRST_ITERATIONS)),
            Some(many) if many - few > (many / 32).max(1) => Some(few + (many - few) / 2),
            // No iteration at all is never enough.
            Some(_) if below.is_none() => Some(0),
            _ => None,
        };
        let is_due = |point: &Point| point.count < rounds;
        untried.or_else(|| [below, above].into_iter().flatten().find(is_due).map(|point| point.iterations))
    }

    /// The granularity with an efficiency of one half, interpolated.
    fn found(&self, iteration: f64) -> Option<f64> {
        let [Some(below), Some(above)] = self.enclosing(iteration) else { return None };
        let part = below.excess(iteration) / (below.excess(iteration) - above.excess(iteration));
        Some(below.granularity + part * (above.granularity - below.granularity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found with iterations of this time, where `measure` says what a task takes with some number of them; and
    /// how often it was asked.
    fn found(iteration: f64, rounds: usize, mut measure: impl FnMut(u32) -> f64) -> (Option<f64>, usize) {
        let (mut search, mut count) = (Search::new(), 0);
        while let Some(iterations) = search.next(iteration, rounds) {
            search.add(iterations, measure(iterations));
            count += 1;
        }
        (search.found(iteration), count)
    }

    #[test]
    fn the_least_granularity_is_where_the_efficiency_is_one_half() {
        // As if each task cost an overhead besides its iterations, some of it within its kernel.
        let with = |overhead: f64| found(12.0, 3, |iterations| f64::from(iterations) * 12.0 + overhead).0;
        for overhead in [10.0, 180.0, 2_500.0, 60_000.0] {
            let found = with(overhead).expect("it is within what is tried");
            assert!((found / (2.0 * overhead) - 1.0).abs() < 1e-6, "{found} {overhead}");
        }
        assert_eq!(with(1e9), None);
        // Whose overhead is less than an iteration.
        assert!(with(0.5).is_some_and(|found| (found - 1.0).abs() < 1e-6));
    }

    #[test]
    fn disturbed_measurements_are_made_up_for_by_others() {
        for disturbed in 0..12_u32 {
            // Three measurements, one after the other, take a hundred times as long.
            let mut count = 0;
            let measure = |iterations| {
                count += 1;
                let slow = if (disturbed..disturbed + 3).contains(&count) { 100.0 } else { 1.0 };
                slow * (f64::from(iterations) * 12.0 + 700.0)
            };
            let (found, _) = found(12.0, 5, measure);
            let found = found.expect("it is within what is tried");
            assert!((found / 1_400.0 - 1.0).abs() < 1e-6, "{found}");
        }
    }

    #[test]
    fn a_length_that_is_never_enough_is_given_up() {
        let (found, count) = found(12.0, 10, |_| 1e9);
        assert_eq!(found, None);
        assert!(count < 20, "{count}");
    }
}
