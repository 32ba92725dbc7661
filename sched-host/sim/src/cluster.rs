//! Simulated clusters: nodes, each with workers, memories and a tree of its own, and a network between them.
//!
//! A [`ClusterSimulation`] runs a graph on a [`Cluster`] as `sched-cluster` runs a program on real ranks, by the same
//! rules ([`sched_graph::ranks`]): each datum has an owner, a task runs on the node that owns what it writes, and what
//! it reads from elsewhere is sent there once, and kept until it is written again. The scheduler of a node sees only
//! the tasks of that node.
//!
//! Each node is a simulation of its own ([`Platform`]); all share one clock. A message is sent when its value is
//! computed, and its task on the other side waits for it as for any other. The [`Network`] says how long it takes.
//!
//! ```
//! use sched_graph::generate::cholesky;
//! use sched_sim::cluster::{Cluster, ClusterSimulation};
//! # let registry = sched_tree::plugin::Registry::compiled_in();
//!
//! let cluster = Cluster::named("cluster:4x12")?;
//! let outcome = ClusterSimulation::new(cholesky(16, 512),
//! cluster).policy("tree-prio").registry(registry.into()).run()?; assert_eq!(outcome.nodes.iter().map(|node|
//! node.tasks).sum::<u64>(), 16 * 17 * 18 / 6); assert!(outcome.messages > 0);
//! # Ok::<(), sched_sim::SimError>(())
//! ```

mod files;
mod merged;
mod messages;
mod network;
mod outcome;
mod processors;
mod simulation;
#[cfg(test)]
mod tests;
mod view;

pub use network::{Network, SwitchLevel};
pub use outcome::{ClusterOutcome, NodeStats};
pub use simulation::ClusterSimulation;

use super::platform::{Costs, Platform};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of nodes of a cluster.
pub const MAX_NODES: usize = 16_384;

/// Maximum number of workers of all nodes of a cluster together: the records of each take some kilobytes.
pub const MAX_CLUSTER_WORKERS: usize = 1 << 20;

/// A cluster to simulate.
#[derive(Clone, PartialEq, Debug)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The comment above it, which gives the origin of its figures.
    pub doc: String,
    /// The nodes, by rank.
    pub nodes: Vec<Arc<Platform>>,
    /// The network between them.
    pub network: Network,
    /// Nodes that share cores, with no node in two of them. The others have a core for each of their workers.
    pub shared: Vec<SharedCores>,
}

/// Nodes that share cores, as ranks of a machine with fewer cores than they have workers. What their workers do on
/// cores goes on at the same part of its speed while they ask for more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedCores {
    /// The nodes, by rank.
    pub nodes: Range<usize>,
    /// Number of cores, at least one.
    pub cores: usize,
}

impl Cluster {
    /// The cluster with these costs only. Without transfers, messages take no time either.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Cluster {
        if costs == Costs::NoTransfer {
            self.network.is_free = true;
        }
        self.map(|platform| platform.with_costs(costs))
    }

    /// The cluster with each node changed. Nodes that are equal are changed once.
    #[must_use]
    pub fn map(mut self, change: impl Fn(Platform) -> Platform) -> Cluster {
        let mut changed: Vec<(Arc<Platform>, Arc<Platform>)> = Vec::new();
        for node in &mut self.nodes {
            let known = changed.iter().find(|(before, _)| Arc::ptr_eq(before, node));
            let after = known.map_or_else(|| Arc::new(change(Platform::clone(node))), |(_, after)| Arc::clone(after));
            let before = std::mem::replace(node, Arc::clone(&after));
            if known.is_none() {
                changed.push((before, after));
            }
        }
        self
    }

    /// Number of workers of all nodes.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.nodes.iter().map(|node| node.workers.len()).sum()
    }
}
