//! The transfers of tasks that were sent, as far as they can be foreseen.

use super::flows::Flows;
use super::network::{Network, Traffic};
use sched_core::{MemoryNode, Node, Submitted};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the [module](self). Where the host does not know the routes, nothing is foreseen.
#[derive(Default, Debug)]
pub(super) struct UnderWay {
    /// Number of memories that tasks are planned for.
    pub(super) memories: usize,
    pub(super) network: Arc<Network>,
    pub(super) traffic: Traffic,
    /// The same transfers, each of which brings the data to the memory with that number in `places`.
    pub(super) flows: Flows,
    pub(super) places: Vec<(u64, usize)>,
    /// When each piece of data arrives in a memory.
    arrivals: BTreeMap<(u64, usize), u64>,
}

impl UnderWay {
    /// Nothing is under way between the first `memories` memory nodes.
    pub(super) fn new(node: Node<'_>, memories: usize) -> UnderWay {
        let network = Network::of(node, memories);
        UnderWay {
            memories,
            traffic: network.quiet(),
            flows: Flows::quiet(&network),
            places: Vec::new(),
            network: Arc::new(network),
            arrivals: BTreeMap::new(),
        }
    }

    /// When data arrives in a memory, if it is on its way there.
    pub(super) fn arrival(&self, data: u64, memory: usize, now: u64) -> Option<u64> {
        self.arrivals.get(&(data, memory)).copied().filter(|at| *at > now)
    }

    /// Forgets what has arrived.
    pub(super) fn settle(&mut self, now: u64) {
        self.arrivals.retain(|_, at| *at > now);
        self.flows.run(&self.network, now, |_, _| {});
        if self.flows.tidy() {
            self.places.clear();
        }
    }

    /// Takes note that the data of a task is fetched to a memory. Returns when it is there.
    pub(super) fn fetch(&mut self, submitted: Submitted<'_>, sequence: u64, to: usize, now: u64) -> u64 {
        let mut latest = now;
        if !self.network.is_known() {
            return latest;
        }
        let Some(task) = submitted.task(sequence) else { return latest };
        self.flows.run(&self.network, now, |_, _| {});
        for access in submitted.accesses(sequence, task).filter(|access| access.reads) {
            let has_copy = |memory: usize| submitted.has_copy(access.data, MemoryNode(memory as u32));
            if has_copy(to) {
                continue;
            }
            if let Some(at) = self.arrival(access.data, to, now) {
                latest = latest.max(at);
                continue;
            }
            let alone = |from: usize| self.network.alone(from, to, access.bytes);
            let expected = |from: &usize| {
                submitted.expected_transfer(MemoryNode(*from as u32), MemoryNode(to as u32), access.bytes)
            };
            let Some(from) = (0..self.memories).filter(|from| has_copy(*from)).min_by_key(expected) else { continue };
            let Some(length) = alone(from) else { continue };
            let at = self.network.begin(&mut self.traffic, from, to, now, length);
            self.flows.request(&self.network, self.network.pair(from, to), self.places.len() as u32, access.bytes, now);
            self.places.push((access.data, to));
            self.arrivals.insert((access.data, to), at);
            latest = latest.max(at);
        }
        latest
    }
}
