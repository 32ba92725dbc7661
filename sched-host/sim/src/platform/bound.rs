//! Lower bounds of makespans on a platform.

#[cfg(test)]
mod tests;

use super::{Platform, Route};
use sched_core::{MemoryNode, WorkerId};
use sched_graph::bound::{BoundError, Bounds, LeastCosts, Origin, Pool, bound_with_transfers, bounds, team_bounds};
use sched_graph::{Dependencies, Task, TaskGraph, Where};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

impl Platform {
    /// Lower bounds of the makespan of `graph`, with each task where it may run.
    ///
    /// # Errors
    /// If a task can run nowhere, or the linear program is not solved.
    pub fn bounds(&self, graph: &TaskGraph, dependencies: &Dependencies) -> Result<Bounds, BoundError> {
        let sizes = self.team_sizes();
        let has_teams = sizes.iter().any(|sizes| sizes.len() > 1);
        let groups = self.groups(graph, has_teams);
        let pools: Vec<Pool> = groups.iter().map(|group| Pool { workers: group.workers.len() as u32 }).collect();
        let costs = Least {
            graph,
            sizes,
            travels: Travels {
                platform: self,
                memories: self.memories_by_group(&groups, has_teams),
                rates: self.rates_by_memory(),
                known: RefCell::default(),
            },
            groups,
        };
        let (work, seconds) =
            (|task: &Task, group| costs.work(task, group), |task: &Task, group| costs.length(task, group));
        let without = if has_teams {
            team_bounds(graph, dependencies, &pools, work, seconds)?
        } else {
            bounds(graph, dependencies, &pools, seconds)?
        };
        let with_transfers = bound_with_transfers(graph, dependencies, &pools, &costs, without.best())?;
        Ok(Bounds { transfers: with_transfers, ..without })
    }

    /// The workers of each class, divided by the places to which tasks of `graph` are restricted: all of a group may
    /// execute the same tasks. Not divided where teams may be made of several groups, or where there were too many.
    fn groups(&self, graph: &TaskGraph, has_teams: bool) -> Vec<Group> {
        let mut places: Vec<&Where> = Vec::new();
        for only in graph.tasks.iter().filter_map(|task| task.only.as_deref()) {
            if places.len() <= MOST_PLACES && !places.contains(&only) {
                places.push(only);
            }
        }
        let divide = |places: &[&Where]| -> Vec<Group> {
            let of_class = |class: usize| {
                let mut groups: BTreeMap<Vec<bool>, Vec<WorkerId>> = BTreeMap::new();
                for (id, _) in (0..).map(WorkerId).zip(&self.workers).filter(|(_, worker)| worker.class == class) {
                    groups.entry(places.iter().map(|only| self.allows(only, id)).collect()).or_default().push(id);
                }
                let groups = if groups.is_empty() { vec![Vec::new()] } else { groups.into_values().collect() };
                groups.into_iter().map(move |workers| Group { class, workers })
            };
            (0..self.classes.len()).flat_map(of_class).collect()
        };
        let divided = if has_teams || places.len() > MOST_PLACES { Vec::new() } else { divide(&places) };
        if divided.is_empty() || divided.len() > MOST_GROUPS { divide(&[]) } else { divided }
    }

    /// The memory nodes in which the workers of each group may have the data of a task: their own, and with teams,
    /// where groups are classes, also those of the others in a team, whose data is with one of its members.
    fn memories_by_group(&self, groups: &[Group], has_teams: bool) -> Vec<Vec<MemoryNode>> {
        let memory = |worker: &WorkerId| self.workers[worker.index()].memory;
        let mut memories: Vec<BTreeSet<MemoryNode>> =
            groups.iter().map(|group| group.workers.iter().map(memory).collect()).collect();
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

/// Maximum number of different places to which tasks are restricted, and of groups of workers that these make, by which
/// workers are divided: the linear program grows with them.
const MOST_PLACES: usize = 32;
const MOST_GROUPS: usize = 64;

/// Workers of one class.
struct Group {
    class: usize,
    workers: Vec<WorkerId>,
}

/// Least costs of the tasks of a graph.
struct Least<'a> {
    graph: &'a TaskGraph,
    groups: Vec<Group>,
    /// Sizes of teams, by class.
    sizes: Vec<BTreeSet<u16>>,
    travels: Travels<'a>,
}

impl Least<'_> {
    /// The least of what teams of all sizes need of something for a task, by the seconds and the size.
    fn least(&self, task: &Task, group: usize, of: fn(f64, u16) -> f64) -> Option<f64> {
        if !self.graph.kind_of(task).runs {
            return Some(0.0);
        }
        let platform = self.travels.platform;
        let Group { class, ref workers } = self.groups[group];
        if task.only.as_deref().is_some_and(|only| !workers.iter().any(|worker| platform.allows(only, *worker))) {
            return None;
        }
        let each = self.sizes[class].iter().filter_map(|size| {
            let length = platform.team_length(self.graph, task, class, *size)?;
            Some(of(length.as_secs_f64(), *size))
        });
        each.reduce(f64::min)
    }

    /// Least execution time, also where there is no worker.
    fn length(&self, task: &Task, group: usize) -> Option<f64> {
        self.least(task, group, |seconds, _| seconds)
    }
}

impl LeastCosts for Least<'_> {
    fn seconds(&self, task: &Task, group: usize) -> Option<f64> {
        self.length(task, group).filter(|_| !self.travels.memories[group].is_empty())
    }

    fn work(&self, task: &Task, group: usize) -> Option<f64> {
        self.least(task, group, |seconds, size| seconds * f64::from(size))
    }

    fn travel(&self, from: Origin, group: usize, bytes: u64) -> f64 {
        self.travels.seconds(from, group, bytes)
    }

    fn load(&self, values: &[(MemoryNode, u64)], group: usize) -> f64 {
        let to_group = |to: &MemoryNode| {
            let away = || values.iter().filter(|(home, _)| home != to);
            let longest = away().map(|(home, bytes)| self.travels.between(*home, *to, *bytes)).fold(0.0, f64::max);
            let volume: u64 = away().map(|(_, bytes)| *bytes).sum();
            longest.max(volume as f64 / self.travels.rates[to.index()] * 1e-9 - ROUNDING)
        };
        self.travels.memories[group].iter().map(to_group).reduce(f64::min).unwrap_or(0.0)
    }
}

/// Least times of transfers.
struct Travels<'a> {
    platform: &'a Platform,
    /// By group of workers.
    memories: Vec<Vec<MemoryNode>>,
    /// Largest number of bytes per nanosecond that arrive in each memory.
    rates: Vec<f64>,
    /// By bytes: seconds from each memory to each, by way of any others.
    known: RefCell<HashMap<u64, Vec<f64>>>,
}

/// Seconds by which a transfer may seem shorter than it is, since times are rounded to nanoseconds.
const ROUNDING: f64 = 2e-9;

impl Travels<'_> {
    fn seconds(&self, from: Origin, group: usize, bytes: u64) -> f64 {
        let home;
        let sources = match from {
            Origin::Home(node) => {
                home = [node];
                &home[..]
            }
            Origin::Pool(pool) => &self.memories[pool],
        };
        let pairs = sources.iter().flat_map(|from| self.memories[group].iter().map(move |to| (from, to)));
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
