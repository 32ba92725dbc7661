//! The transfers of tasks that were sent, as far as they can be foreseen.

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
    /// When each piece of data arrives in a memory.
    arrivals: BTreeMap<(u64, usize), u64>,
}

impl UnderWay {
    /// Nothing is under way between the first `memories` memory nodes.
    pub(super) fn new(node: Node<'_>, memories: usize) -> UnderWay {
        let network = Network::of(node, memories);
        UnderWay { memories, traffic: network.quiet(), network: Arc::new(network), arrivals: BTreeMap::new() }
    }

    /// When data arrives in a memory, if it is on its way there.
    pub(super) fn arrival(&self, data: u64, memory: usize, now: u64) -> Option<u64> {
        self.arrivals.get(&(data, memory)).copied().filter(|at| *at > now)
    }

    /// Forgets what has arrived.
    pub(super) fn settle(&mut self, now: u64) {
        self.arrivals.retain(|_, at| *at > now);
    }

    /// Takes note that the data of a task is fetched to a memory. Returns when it is there.
    pub(super) fn fetch(&mut self, submitted: Submitted<'_>, sequence: u64, to: usize, now: u64) -> u64 {
        let mut latest = now;
        if !self.network.is_known() {
            return latest;
        }
        let Some(task) = submitted.task(sequence) else { return latest };
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
            let sources = (0..self.memories).filter(|from| has_copy(*from));
            let Some((length, from)) = sources.filter_map(|from| Some((alone(from)?, from))).min() else { continue };
            let at = self.network.begin(&mut self.traffic, from, to, now, length);
            self.arrivals.insert((access.data, to), at);
            latest = latest.max(at);
        }
        latest
    }
}
