//! Lower bounds of makespans on a platform.

use super::Platform;
use sched_core::MemoryNode;
use sched_graph::bound::{BoundError, Bounds, Origin, Pool, bounds, chain_with_transfers, team_bounds};
use sched_graph::{Dependencies, Task, TaskGraph};
use std::cell::RefCell;
use std::collections::HashMap;

impl Platform {
    /// Lower bounds of the makespan of `graph`.
    ///
    /// # Errors
    /// If a task can run nowhere, or the linear program is not solved.
    pub fn bounds(&self, graph: &TaskGraph, dependencies: &Dependencies) -> Result<Bounds, BoundError> {
        let pools: Vec<Pool> = self.workers_by_class().into_iter().map(|workers| Pool { workers }).collect();
        let runs = |task: &Task| graph.kind_of(task).runs;
        let seconds =
            |task: &Task, class, size| self.team_length(graph, task, class, size).map(|length| length.as_secs_f64());
        let sizes = self.team_sizes();
        let least = |task: &Task, class: usize, of: fn(f64, u16) -> f64| {
            let each = sizes[class].iter().filter_map(|size| Some(of(seconds(task, class, *size)?, *size)));
            if runs(task) { each.reduce(f64::min) } else { Some(0.0) }
        };
        let shortest = |task: &Task, class: usize| least(task, class, |seconds, _| seconds);
        let without = if sizes.iter().all(|sizes| sizes.len() == 1) {
            bounds(graph, dependencies, &pools, shortest)?
        } else {
            let work = |task: &Task, class| least(task, class, |seconds, size| seconds * f64::from(size));
            team_bounds(graph, dependencies, &pools, work, shortest)?
        };
        let travels = Travels { platform: self, memories: self.memories_by_class(), known: RefCell::default() };
        let travel = |from, class, bytes| travels.seconds(from, class, bytes);
        let there = |task: &Task, class: usize| shortest(task, class).filter(|_| pools[class].workers > 0);
        let chain = chain_with_transfers(graph, dependencies, pools.len(), there, travel);
        Ok(Bounds { transfers: chain.max(without.best()), ..without })
    }

    /// The memory nodes of the workers of each class.
    fn memories_by_class(&self) -> Vec<Vec<MemoryNode>> {
        let of = |class: usize| {
            let mut nodes: Vec<MemoryNode> =
                self.workers.iter().filter(|worker| worker.class == class).map(|worker| worker.memory).collect();
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        };
        (0..self.classes.len()).map(of).collect()
    }
}

/// Least times of transfers.
struct Travels<'a> {
    platform: &'a Platform,
    memories: Vec<Vec<MemoryNode>>,
    /// By bytes: seconds from each memory to each, by way of any others.
    known: RefCell<HashMap<u64, Vec<f64>>>,
}

/// Seconds by which a transfer may seem shorter than it is, since times are rounded to nanoseconds.
const ROUNDING: f64 = 2e-9;

impl Travels<'_> {
    fn seconds(&self, from: Origin, class: usize, bytes: u64) -> f64 {
        let mut known = self.known.borrow_mut();
        let table = known.entry(bytes).or_insert_with(|| self.table(bytes));
        let count = self.platform.memories.len();
        let home;
        let sources = match from {
            Origin::Home(node) => {
                home = [node];
                &home[..]
            }
            Origin::Pool(pool) => &self.memories[pool],
        };
        let pairs = sources.iter().flat_map(|from| self.memories[class].iter().map(move |to| (from, to)));
        let times = pairs.map(|(from, to)| table[from.index() * count + to.index()]);
        times.reduce(f64::min).unwrap_or(0.0)
    }

    /// Shortest ways between all memories (Floyd and Warshall), where no transfer waits for another.
    fn table(&self, bytes: u64) -> Vec<f64> {
        let count = self.platform.memories.len();
        let mut table: Vec<f64> = self
            .platform
            .memory_nodes()
            .flat_map(|from| self.platform.memory_nodes().map(move |to| (from, to)))
            .map(|(from, to)| if from == to { 0.0 } else { self.direct(from, to, bytes) })
            .collect();
        for by in 0..count {
            for from in 0..count {
                for to in 0..count {
                    let around = table[from * count + by] + table[by * count + to];
                    let direct = &mut table[from * count + to];
                    *direct = direct.min(around);
                }
            }
        }
        table
    }

    fn direct(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> f64 {
        let (route, prices) = (self.platform.route(from, to), self.platform.overheads);
        if prices.free_transfers || route.links.is_empty() {
            return 0.0;
        }
        let slowest = route.links.iter().map(|link| self.platform.links[*link].bandwidth).fold(f64::INFINITY, f64::min);
        let latency = route.latency as f64 * 1e-9 + prices.transfer_queueing.as_secs_f64();
        (latency + bytes as f64 / slowest * 1e-9 - ROUNDING).max(0.0)
    }
}
