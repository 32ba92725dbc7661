//! How much work goes into a plan.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// Limits of the work that goes into a plan.
#[derive(Clone, Copy, Debug)]
pub(in crate::resource_mapping::plan) struct Limits {
    /// Number of plans tried when all tasks are new.
    pub(in crate::resource_mapping::plan) effort: u64,
    /// Maximum number of tasks in a plan.
    pub(in crate::resource_mapping::plan) window: usize,
    /// Time limit of the search, as a share of the plan's length.
    pub(in crate::resource_mapping::plan) time: f64,
    /// Nanoseconds before its planned start at which the data of a task is fetched.
    pub(in crate::resource_mapping::plan) lead: u64,
}

/// With more tasks than this, fewer plans are tried, so that the search takes no longer. With fewer, more are, by the
/// root of the ratio, but no more than `MOST_MORE` times as many.
const AT_FULL_EFFORT: f64 = 8192.0;
const MOST_MORE: f64 = 4.0;

/// Accesses and dependencies of a task from which on it counts as more than one: a plan looks at each of them.
const LINKS: f64 = 8.0;

/// Plans that are tried where a plan is made [again](super::Occasion::Again), as a share of those for new tasks.
pub(super) const REPAIR: f64 = 0.4;

/// The least share of the tries that is made for a graph whose first plans are made in all orders of its tasks.
pub(super) const ALL_ORDERS: f64 = 0.5;

/// Minimum number of tasks of a plan for whose search threads are started: making it takes longer than that.
const LEAST_FOR_THREADS: f64 = 200.0;

/// Maximum number of threads of a search: each has tables of the graph.
const MOST_THREADS: usize = 8;

/// Maximum number of searches for a plan, and of tasks that several searches go through together.
const MOST_SEARCHES: f64 = 16.0;
const MOST_SEARCHED: f64 = 1536.0;

/// Minimum share of new tasks in a plan for which there is more than one search.
const LEAST_FRESH: f64 = 0.5;

impl Limits {
    /// The share of the tries that is made for a plan of `count` tasks with `links` accesses and dependencies, out of a
    /// graph of `all` tasks: of a graph of many windows, each gets less.
    pub(super) fn effort_for(&self, count: f64, links: f64, all: f64) -> f64 {
        let size = count.max(links / LINKS);
        (AT_FULL_EFFORT / size).min(1.0) * (2.0 * self.window as f64 / all.max(1.0)).min(1.0).powi(2)
    }
}

/// How many times as many plans are tried for `count` tasks.
pub(super) fn more_for(count: f64) -> f64 {
    (AT_FULL_EFFORT / count).sqrt().clamp(1.0, MOST_MORE)
}

/// Number of threads of a search for a plan of `count` tasks, where it takes no time: those that this one may use.
pub(super) fn threads_for(count: f64) -> usize {
    if count < LEAST_FOR_THREADS {
        return 1;
    }
    available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS)
}

/// Number of searches for a plan of `count` tasks, where they take no time; the best plan counts. `fresh` is the share
/// of new tasks.
///
/// A search ends where no change of a few preferences helps. By bad luck that is far from the best, in graphs of a few
/// dozen tasks on slow links by a third; by other random choices it is elsewhere.
pub(super) fn searches_for(count: f64, fresh: f64) -> usize {
    if fresh < LEAST_FRESH { 1 } else { (MOST_SEARCHED / count).clamp(1.0, MOST_SEARCHES) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_new_graphs_are_searched_several_times() {
        let searches = [1.0, 96.0, 192.0, 384.0, 400.0, 768.0, 800.0, 1e6].map(|count| searches_for(count, 1.0));
        assert_eq!(searches, [16, 16, 8, 4, 3, 2, 1, 1]);
        assert_eq!(searches_for(10.0, 0.4), 1);
    }
}
