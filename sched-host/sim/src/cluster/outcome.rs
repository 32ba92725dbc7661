//! Results of simulated clusters.

use crate::SimOutcome;
use sched_core::WorkerId;
use std::time::Duration;

/// Result of the simulation of a cluster. Times are virtual.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterOutcome {
    /// The result of all nodes together. Workers are numbered through all nodes, links are those of the network and
    /// then those within each node, and transfers are those within nodes.
    pub total: SimOutcome,
    /// The nodes, by rank.
    pub nodes: Vec<NodeStats>,
    /// Number of messages between nodes.
    pub messages: u64,
    /// Bytes of all messages.
    pub message_bytes: u64,
}

/// Statistics of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeStats {
    /// Name of its platform.
    pub platform: String,
    /// Number of its first worker among those of all nodes.
    pub first_worker: u32,
    /// Number of its workers.
    pub workers: u32,
    /// Number of tasks that it executed.
    pub tasks: u64,
    /// Time from the first submission to the end of its last task or message.
    pub makespan: Duration,
    /// Number of messages that it sent.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Number of messages that it received.
    pub received: u64,
    /// Bytes of these.
    pub received_bytes: u64,
}

impl NodeStats {
    /// A node that has done nothing.
    pub(super) fn new(platform: String, first_worker: u32, makespan: Duration) -> NodeStats {
        NodeStats {
            platform,
            first_worker,
            workers: 0,
            tasks: 0,
            makespan,
            sent: 0,
            sent_bytes: 0,
            received: 0,
            received_bytes: 0,
        }
    }

    /// Adds what its simulation has given.
    pub(super) fn add(&mut self, outcome: &SimOutcome) {
        self.workers = outcome.workers.len() as u32;
        self.tasks = outcome.workers.iter().map(|worker| worker.tasks).sum();
    }
}

impl SimOutcome {
    /// The result of nothing.
    pub(super) fn nothing() -> SimOutcome {
        SimOutcome {
            makespan: Duration::ZERO,
            tasks: 0,
            flops: 0.0,
            critical_path: Duration::ZERO,
            energy: Some(0.0),
            workers: Vec::new(),
            links: Vec::new(),
            memories: Vec::new(),
            transfers: 0,
            bytes: 0,
            events: 0,
            contexts: Vec::new(),
            faults: Vec::new(),
            governance: None,
        }
    }

    /// Adds the result of a node, whose first worker has this number.
    pub(super) fn join(&mut self, mut node: SimOutcome, rank: usize, first_worker: u32) {
        self.energy = self.energy.zip(node.energy).map(|(all, here)| all + here);
        node.workers.iter_mut().for_each(|worker| worker.id = WorkerId(first_worker + worker.id.0));
        self.workers.append(&mut node.workers);
        let named = |name: String| format!("node {rank}: {name}");
        self.links.extend(node.links.into_iter().map(|mut link| {
            link.name = named(link.name);
            link
        }));
        self.memories.extend(node.memories.into_iter().map(|mut memory| {
            memory.name = named(memory.name);
            memory
        }));
        self.transfers += node.transfers;
        self.bytes += node.bytes;
        self.events += node.events;
        self.faults.extend(node.faults.into_iter().map(|mut fault| {
            fault.context = format!("node {rank}");
            fault
        }));
    }
}
