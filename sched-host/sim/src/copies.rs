//! Which memory nodes have a valid copy of each piece of data, and how long the others are expected to take for one.
//!
//! The engine writes where copies are, and components that compare memory nodes read it through the back end, in the
//! same thread. The words are atomic so that both can have them without a lock.
//!
//! Schedulers ask what the data of a task costs far more often than data moves. So on machines with a few memory nodes
//! the answers are computed beforehand, for each size of data and set of nodes with a copy.

use super::platform::Platform;
use sched_core::MemoryNode;
use sched_graph::{DataId, TaskGraph};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Copies {
    graph: Arc<TaskGraph>,
    platform: Arc<Platform>,
    /// Number of memory nodes.
    memories: usize,
    data: Box<[DataCopies]>,
    /// Nanoseconds until a copy is there: by size, set of nodes with a copy, and node.
    nanos: Vec<u64>,
    /// Where it is copied from, likewise; where nothing has a copy, the node itself.
    sources: Vec<MemoryNode>,
}

/// The copies of one piece of data.
#[derive(Debug)]
struct DataCopies {
    /// The nodes with a valid copy: bit *n* stands for memory node *n*.
    valid: AtomicU64,
    /// Where the answers for its size begin; `None` if they are not computed beforehand.
    nanos: Option<u32>,
}

/// Maximum number of memory nodes for which times are computed beforehand: they have 64 sets.
const MOST_MEMORIES: usize = 6;

/// Maximum number of sizes of data for which times are computed beforehand.
const MOST_SIZES: usize = 16;

/// Where data can be copied from.
#[derive(Clone, Copy)]
struct Source {
    node: MemoryNode,
    /// Expected length of the transfer in nanoseconds.
    nanos: u64,
}

impl Copies {
    /// Each piece of data at home only.
    pub(super) fn new(graph: Arc<TaskGraph>, platform: Arc<Platform>) -> Copies {
        let memories = platform.memories.len();
        let mut sizes: Vec<(u64, u32)> = Vec::new();
        let (mut nanos, mut sources) = (Vec::new(), Vec::new());
        let mut start_of = |bytes: u64| {
            if let Some((_, start)) = sizes.iter().find(|(size, _)| *size == bytes) {
                return Some(*start);
            }
            if memories > MOST_MEMORIES || sizes.len() == MOST_SIZES {
                return None;
            }
            let start = nanos.len() as u32;
            sizes.push((bytes, start));
            for set in 0..1 << memories {
                for to in platform.memory_nodes() {
                    let nowhere = Source { node: to, nanos: u64::MAX };
                    let source = cheapest(set, to, bytes, &platform).unwrap_or(nowhere);
                    nanos.push(if set & 1 << to.0 == 0 { source.nanos } else { 0 });
                    sources.push(source.node);
                }
            }
            Some(start)
        };
        let at_home = graph
            .data
            .iter()
            .map(|datum| DataCopies { valid: AtomicU64::new(1 << datum.home.0), nanos: start_of(datum.bytes) });
        let data = at_home.collect();
        Copies { graph, platform, memories, data, nanos, sources }
    }

    /// The nodes with a valid copy: bit *n* stands for memory node *n*.
    #[inline]
    pub(super) fn valid(&self, data: DataId) -> u64 {
        self.data[data.index()].valid.load(Relaxed)
    }

    /// Sets the nodes with a valid copy.
    #[inline]
    pub(super) fn set_valid(&self, data: DataId, nodes: u64) {
        self.data[data.index()].valid.store(nodes, Relaxed);
    }

    /// Expected nanoseconds until a given node has a valid copy; 0 if it has one.
    #[inline]
    pub(super) fn nanos_to_each(&self, data: DataId) -> impl Fn(MemoryNode) -> u64 {
        let (set, foreseen) = (self.valid(data), self.foreseen(data));
        move |to| match foreseen {
            Some(start) => self.nanos[start + to.index()],
            None if set & 1 << to.0 != 0 => 0,
            None => self.source(data, to).nanos,
        }
    }

    /// Where the answers for the data, with its present copies, begin.
    #[inline]
    fn foreseen(&self, data: DataId) -> Option<usize> {
        let copies = &self.data[data.index()];
        copies.nanos.map(|start| start as usize + copies.valid.load(Relaxed) as usize * self.memories)
    }

    /// The memory node from which a copy of the data is cheapest for another.
    #[inline]
    pub(super) fn source_for(&self, data: DataId, to: MemoryNode) -> MemoryNode {
        match self.foreseen(data) {
            Some(start) => self.sources[start + to.index()],
            None => self.source(data, to).node,
        }
    }

    fn source(&self, data: DataId, to: MemoryNode) -> Source {
        let datum = &self.graph.data[data.index()];
        let nowhere = Source { node: datum.home, nanos: u64::MAX };
        cheapest(self.valid(data), to, datum.bytes, &self.platform).unwrap_or(nowhere)
    }
}

/// The cheapest source of a copy of this size in a set of nodes, without the target; the first of equal ones.
fn cheapest(set: u64, to: MemoryNode, bytes: u64, platform: &Platform) -> Option<Source> {
    let others = nodes_in(set & !(1 << to.0));
    let sources = others.map(|node| Source { node, nanos: platform.expected_transfer(node, to, bytes) });
    sources.min_by_key(|source| source.nanos)
}

/// The memory nodes in a set, where bit *n* stands for memory node *n*: of many nodes, few have a copy.
pub(super) fn nodes_in(mut set: u64) -> impl Iterator<Item = MemoryNode> {
    std::iter::from_fn(move || {
        let node = (set != 0).then(|| MemoryNode(set.trailing_zeros()))?;
        set &= set - 1;
        Some(node)
    })
}
