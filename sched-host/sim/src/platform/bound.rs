//! Lower bounds of makespans on a platform.

use super::{Platform, Route};
use sched_core::MemoryNode;
use sched_graph::bound::{BoundError, Bounds, LeastCosts, Origin, Pool, bound_with_transfers, bounds, team_bounds};
use sched_graph::{Dependencies, Task, TaskGraph};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

impl Platform {
    /// Lower bounds of the makespan of `graph`.
    ///
    /// # Errors
    /// If a task can run nowhere, or the linear program is not solved.
    pub fn bounds(&self, graph: &TaskGraph, dependencies: &Dependencies) -> Result<Bounds, BoundError> {
        let pools: Vec<Pool> = self.workers_by_class().into_iter().map(|workers| Pool { workers }).collect();
        let sizes = self.team_sizes();
        let has_teams = sizes.iter().any(|sizes| sizes.len() > 1);
        let costs = Least {
            graph,
            sizes,
            travels: Travels {
                platform: self,
                memories: self.memories_by_class(has_teams),
                rates: self.rates_by_memory(),
                known: RefCell::default(),
            },
        };
        let (work, seconds) =
            (|task: &Task, class| costs.work(task, class), |task: &Task, class| costs.length(task, class));
        let without = if has_teams {
            team_bounds(graph, dependencies, &pools, work, seconds)?
        } else {
            bounds(graph, dependencies, &pools, seconds)?
        };
        let with_transfers = bound_with_transfers(graph, dependencies, &pools, &costs, without.best())?;
        Ok(Bounds { transfers: with_transfers, ..without })
    }

    /// The memory nodes in which the workers of each class may have the data of a task: their own, and with teams also
    /// those of the others in a team, whose data is with one of its members.
    fn memories_by_class(&self, has_teams: bool) -> Vec<Vec<MemoryNode>> {
        let mut memories = vec![BTreeSet::new(); self.classes.len()];
        for worker in &self.workers {
            memories[worker.class].insert(worker.memory);
        }
        for team in if has_teams { self.combined_members() } else { Vec::new() } {
            let members = || team.iter().map(|member| self.workers[member.index()]);
            let nodes: BTreeSet<MemoryNode> = members().map(|member| member.memory).collect();
            for class in members().map(|member| member.class).collect::<BTreeSet<usize>>() {
                memories[class].extend(&nodes);
            }
        }
        memories.into_iter().map(|nodes| nodes.into_iter().collect()).collect()
    }

    /// Largest number of bytes per nanosecond that arrive in each memory node: that of the links that all routes to it
    /// pass, or that of all of their last links together.
    fn rates_by_memory(&self) -> Vec<f64> {
        let bandwidth = |link: &usize| self.links[*link].bandwidth;
        let into = |to: MemoryNode| {
            let routes: Vec<&Route> =
                self.memory_nodes().filter(|from| *from != to).map(|from| self.route(from, to)).collect();
            let Some(first) = routes.first().filter(|_| !self.overheads.free_transfers) else { return f64::INFINITY };
            let common = first.links.iter().filter(|link| routes.iter().all(|route| route.links.contains(link)));
            if let Some(narrowest) = common.map(bandwidth).reduce(f64::min) {
                return narrowest;
            }
            let last: Option<BTreeSet<usize>> = routes.iter().map(|route| route.links.last().copied()).collect();
            last.map_or(f64::INFINITY, |last| last.iter().map(bandwidth).sum())
        };
        self.memory_nodes().map(into).collect()
    }
}

/// Least costs of the tasks of a graph.
struct Least<'a> {
    graph: &'a TaskGraph,
    /// Sizes of teams, by class.
    sizes: Vec<BTreeSet<u16>>,
    travels: Travels<'a>,
}

impl Least<'_> {
    /// The least of what teams of all sizes need of something for a task, by the seconds and the size.
    fn least(&self, task: &Task, class: usize, of: fn(f64, u16) -> f64) -> Option<f64> {
        if !self.graph.kind_of(task).runs {
            return Some(0.0);
        }
        let platform = self.travels.platform;
        let each = self.sizes[class].iter().filter_map(|size| {
            let length = platform.team_length(self.graph, task, class, *size)?;
            Some(of(length.as_secs_f64(), *size))
        });
        each.reduce(f64::min)
    }

    /// Least execution time, also where there is no worker.
    fn length(&self, task: &Task, class: usize) -> Option<f64> {
        self.least(task, class, |seconds, _| seconds)
    }
}

impl LeastCosts for Least<'_> {
    fn seconds(&self, task: &Task, class: usize) -> Option<f64> {
        self.length(task, class).filter(|_| !self.travels.memories[class].is_empty())
    }

    fn work(&self, task: &Task, class: usize) -> Option<f64> {
        self.least(task, class, |seconds, size| seconds * f64::from(size))
    }

    fn travel(&self, from: Origin, class: usize, bytes: u64) -> f64 {
        self.travels.seconds(from, class, bytes)
    }

    fn load(&self, values: &[(MemoryNode, u64)], class: usize) -> f64 {
        let to_class = |to: &MemoryNode| {
            let away = || values.iter().filter(|(home, _)| home != to);
            let longest = away().map(|(home, bytes)| self.travels.between(*home, *to, *bytes)).fold(0.0, f64::max);
            let volume: u64 = away().map(|(_, bytes)| *bytes).sum();
            longest.max(volume as f64 / self.travels.rates[to.index()] * 1e-9 - ROUNDING)
        };
        self.travels.memories[class].iter().map(to_class).reduce(f64::min).unwrap_or(0.0)
    }
}

/// Least times of transfers.
struct Travels<'a> {
    platform: &'a Platform,
    memories: Vec<Vec<MemoryNode>>,
    /// Largest number of bytes per nanosecond that arrive in each memory.
    rates: Vec<f64>,
    /// By bytes: seconds from each memory to each, by way of any others.
    known: RefCell<HashMap<u64, Vec<f64>>>,
}

/// Seconds by which a transfer may seem shorter than it is, since times are rounded to nanoseconds.
const ROUNDING: f64 = 2e-9;

impl Travels<'_> {
    fn seconds(&self, from: Origin, class: usize, bytes: u64) -> f64 {
        let home;
        let sources = match from {
            Origin::Home(node) => {
                home = [node];
                &home[..]
            }
            Origin::Pool(pool) => &self.memories[pool],
        };
        let pairs = sources.iter().flat_map(|from| self.memories[class].iter().map(move |to| (from, to)));
        pairs.map(|(from, to)| self.between(*from, *to, bytes)).reduce(f64::min).unwrap_or(0.0)
    }

    fn between(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> f64 {
        let mut known = self.known.borrow_mut();
        let table = known.entry(bytes).or_insert_with(|| self.table(bytes));
        table[from.index() * self.platform.memories.len() + to.index()]
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
