//! Replicas on memory nodes: where copies of data are, how much memory they occupy, and which of them may be evicted.
//!
//! The states of a replica are those of [`State`]: data with one valid replica is modified, unless that replica is at
//! home. Data always has memory at home. On other nodes a replica occupies memory from its allocation to its eviction,
//! also while it is invalid. Replicas that a task uses, or that a transfer reads or writes, are pinned. Those on a node of
//! limited capacity that were used are in a list, whose first one without a pin is evicted first. Each use ends with a
//! move to the end of the list. While it is pinned a replica keeps its place, so that a use costs one move, and leaves
//! the list only where an eviction passes it. What was written home to be evicted goes first, unless it is used again.

use super::copies::{Copies, nodes_in};
use sched_core::MemoryNode;
use sched_graph::DataId;
use sched_memory::{Coherence, State};
use std::sync::Arc;

/// State of one piece of data.
#[derive(Clone, Debug)]
struct DataState {
    bytes: u64,
    home: MemoryNode,
    copies: Coherence,
    /// Number of accesses that are writing it.
    writers: u32,
    /// Whether it will not be used any more.
    unwanted: bool,
}

/// State of the memory of one node.
#[derive(Debug)]
struct NodeState {
    capacity: u64,
    /// Bytes of data at home there.
    home: u64,
    /// Bytes of all else there.
    used: u64,
    /// Largest sum of both.
    peak: u64,
    /// Whether the capacity is limited, so that replicas may be evicted.
    is_limited: bool,
}

impl NodeState {
    fn in_use(&self) -> u64 {
        // Data that no task accesses may be of any size.
        self.home.saturating_add(self.used)
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.in_use().saturating_add(bytes) <= self.capacity
    }
}

/// The replica of a piece of data on a node, or both ends of the node's list of replicas that may be evicted.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Number of tasks and transfers that use it.
    pins: u32,
    /// The next one in the list; [`UNLISTED`] if it is not there.
    next: DataId,
    /// The previous one in the list.
    previous: DataId,
}

/// Stands for the next replica of one that is not in the list.
const UNLISTED: DataId = DataId(u32::MAX);

impl Place {
    fn is_listed(self) -> bool {
        self.next != UNLISTED
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Replicas {
    data: Vec<DataState>,
    nodes: Vec<NodeState>,
    /// By data, then memory node; the last row has the ends of the lists.
    places: Vec<Place>,
    /// What others see of the valid replicas.
    published: Arc<Copies>,
}

/// Result of [`Replicas::make_room`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    /// There is room.
    Made,
    /// This data has its only valid replica on the node, where it is pinned now, and must be written home first.
    WriteBack(DataId),
    /// All replicas on the node are in use.
    None,
}

impl Replicas {
    /// All data at home: the size and home of each; the capacity of each memory node; where the valid replicas are
    /// published.
    pub(super) fn new(
        data: impl Iterator<Item = (u64, MemoryNode)>,
        capacities: &[Option<u64>],
        published: Arc<Copies>,
    ) -> Replicas {
        let state = |(bytes, home): (u64, MemoryNode)| {
            let copies = Coherence::at(home);
            DataState { bytes, home, copies, writers: 0, unwanted: false }
        };
        let data: Vec<DataState> = data.map(state).collect();
        let ends = DataId(data.len() as u32);
        let nodes = (0..).map(MemoryNode).zip(capacities).map(|(node, capacity)| {
            let at_home = data.iter().filter(|data| data.home == node);
            let home = at_home.fold(0, |sum: u64, data| sum.saturating_add(data.bytes));
            let is_limited = capacity.is_some();
            NodeState { capacity: capacity.unwrap_or(u64::MAX), home, used: 0, peak: home, is_limited }
        });
        let nodes: Vec<NodeState> = nodes.collect();
        let place = |at: DataId| Place { pins: 0, next: at, previous: at };
        let mut places = vec![place(UNLISTED); (data.len() + 1) * nodes.len()];
        places[data.len() * nodes.len()..].fill(place(ends));
        Replicas { data, nodes, places, published }
    }

    pub(super) fn bytes(&self, data: DataId) -> u64 {
        self.data[data.index()].bytes
    }

    pub(super) fn home(&self, data: DataId) -> MemoryNode {
        self.data[data.index()].home
    }

    pub(super) fn version(&self, data: DataId) -> u32 {
        self.data[data.index()].copies.version()
    }

    pub(super) fn is_valid(&self, data: DataId, node: MemoryNode) -> bool {
        self.data[data.index()].copies.is_valid(node)
    }

    pub(super) fn is_allocated(&self, data: DataId, node: MemoryNode) -> bool {
        self.data[data.index()].copies.is_allocated(node)
    }

    /// Maximum number of bytes that were in use on a node.
    pub(super) fn peak(&self, node: MemoryNode) -> u64 {
        self.nodes[node.index()].peak
    }

    /// Number of bytes for data that is not at home on the node.
    pub(super) fn room_for_copies(&self, node: MemoryNode) -> u64 {
        let node = &self.nodes[node.index()];
        node.capacity.saturating_sub(node.home)
    }

    /// Makes room for `bytes` more bytes on `node`, until a replica must be written home.
    pub(super) fn make_room(&mut self, node: MemoryNode, bytes: u64) -> Room {
        let ends = self.ends();
        loop {
            if self.nodes[node.index()].has_room(bytes) {
                return Room::Made;
            }
            let victim = self.place(ends, node).next;
            if victim != ends && self.place(victim, node).pins > 0 {
                self.unlist(victim, node);
                continue;
            }
            if victim == ends {
                return Room::None;
            }
            if self.data[victim.index()].copies.state(node) == State::Modified {
                self.pin(victim, node);
                return Room::WriteBack(victim);
            }
            self.free(victim, node);
        }
    }

    /// Whether there is room without evictions.
    pub(super) fn has_room(&self, node: MemoryNode, bytes: u64) -> bool {
        self.nodes[node.index()].has_room(bytes)
    }

    /// Occupies memory that belongs to no data.
    pub(super) fn take(&mut self, node: MemoryNode, bytes: u64) {
        let memory = &mut self.nodes[node.index()];
        memory.used += bytes;
        memory.peak = memory.peak.max(memory.in_use());
    }

    /// Frees memory that was [taken](Self::take).
    pub(super) fn give_back(&mut self, node: MemoryNode, bytes: u64) {
        self.nodes[node.index()].used -= bytes;
    }

    /// Allocates memory for a replica, which must be pinned. Returns whether there was none.
    pub(super) fn allocate(&mut self, data: DataId, node: MemoryNode) -> bool {
        let entry = &mut self.data[data.index()];
        if !entry.copies.allocate(node) {
            return false;
        }
        let bytes = entry.bytes;
        self.take(node, bytes);
        true
    }

    fn free(&mut self, data: DataId, node: MemoryNode) {
        self.unlist(data, node);
        let entry = &mut self.data[data.index()];
        entry.copies.free(node);
        self.published.set_valid(data, entry.copies.valid());
        let bytes = entry.bytes;
        self.give_back(node, bytes);
    }

    /// Pins the replica, which is not evicted until as many calls of [`unpin`](Self::unpin).
    #[inline]
    pub(super) fn pin(&mut self, data: DataId, node: MemoryNode) {
        self.place(data, node).pins += 1;
    }

    /// Unpins the replica, which becomes the most recently used one after the last of its pins.
    #[inline]
    pub(super) fn unpin(&mut self, data: DataId, node: MemoryNode) {
        let place = self.place(data, node);
        place.pins -= 1;
        if place.pins == 0 && self.is_evictable(data, node) {
            self.unlist(data, node);
            self.list(data, node);
        }
    }

    /// Unpins the replica, which was written home in order to be evicted: unless it is in use again, it goes first.
    pub(super) fn unpin_evicted(&mut self, data: DataId, node: MemoryNode) {
        self.unpin(data, node);
        let place = *self.place(data, node);
        if place.pins == 0 && place.is_listed() {
            self.unlist(data, node);
            self.list_at(data, node, true);
        }
    }

    /// Pins the replica from which a copy for another node is cheapest, and returns its node.
    pub(super) fn pin_source(&mut self, data: DataId, to: MemoryNode) -> MemoryNode {
        let from = self.published.source_for(data, to);
        self.pin(data, from);
        from
    }

    #[inline]
    fn place(&mut self, data: DataId, node: MemoryNode) -> &mut Place {
        &mut self.places[data.index() * self.nodes.len() + node.index()]
    }

    /// Whether the replica on the node may be evicted when nobody uses it.
    #[inline]
    fn is_evictable(&self, data: DataId, node: MemoryNode) -> bool {
        self.nodes[node.index()].is_limited && self.home(data) != node
    }

    /// Records the arrival of a copy of the data at `version`. Returns whether no write has overtaken it.
    pub(super) fn arrive(&mut self, data: DataId, node: MemoryNode, version: u32) -> bool {
        let copies = &mut self.data[data.index()].copies;
        let is_current = copies.arrive(node, version);
        self.published.set_valid(data, copies.valid());
        is_current
    }

    /// Records the beginning of a write to the replica on `node`, which invalidates all others.
    pub(super) fn write(&mut self, data: DataId, node: MemoryNode) {
        let entry = &mut self.data[data.index()];
        let others = entry.copies.allocated() & !(1 << node.0) & !(1 << entry.home.0);
        entry.copies.write(node);
        self.published.set_valid(data, entry.copies.valid());
        entry.writers += 1;
        entry.unwanted = false;
        for other in nodes_in(others) {
            // Invalid replicas are evicted first.
            self.list_anew(data, other);
        }
    }

    /// Records the end of a write.
    pub(super) fn end_write(&mut self, data: DataId) {
        self.data[data.index()].writers -= 1;
    }

    /// Records that the data will not be used any more, unless it is being written again: its replicas are evicted
    /// first. If the only valid one is not at home, it is pinned and must be written home; returns its node.
    pub(super) fn wont_use(&mut self, data: DataId) -> Option<MemoryNode> {
        if self.data[data.index()].writers > 0 {
            return None;
        }
        self.data[data.index()].unwanted = true;
        for node in self.node_ids() {
            self.list_anew(data, node);
        }
        let entry = &self.data[data.index()];
        if entry.copies.is_valid(entry.home) {
            return None;
        }
        let node = MemoryNode(entry.copies.valid().trailing_zeros());
        self.pin(data, node);
        Some(node)
    }

    fn node_ids(&self) -> impl Iterator<Item = MemoryNode> + use<> {
        (0..self.nodes.len() as u32).map(MemoryNode)
    }

    /// Stands for both ends of the list of a node.
    fn ends(&self) -> DataId {
        DataId(self.data.len() as u32)
    }

    /// Moves the replica to its place in the list, if it is listed.
    fn list_anew(&mut self, data: DataId, node: MemoryNode) {
        if self.place(data, node).is_listed() {
            self.unlist(data, node);
            self.list(data, node);
        }
    }

    /// Lists the replica, which is evictable, unless it has no memory: as the last one, or as the first one if it is
    /// invalid or unwanted.
    fn list(&mut self, data: DataId, node: MemoryNode) {
        let entry = &self.data[data.index()];
        self.list_at(data, node, entry.unwanted || !entry.copies.is_valid(node));
    }

    /// Lists the replica, unless it has no memory, as the first one or the last one.
    fn list_at(&mut self, data: DataId, node: MemoryNode, goes_first: bool) {
        let (entry, ends) = (&self.data[data.index()], self.ends());
        if !entry.copies.is_allocated(node) {
            return;
        }
        let before = if goes_first { ends } else { self.place(ends, node).previous };
        let after = std::mem::replace(&mut self.place(before, node).next, data);
        let place = self.place(data, node);
        (place.next, place.previous) = (after, before);
        self.place(after, node).previous = data;
    }

    #[inline]
    fn unlist(&mut self, data: DataId, node: MemoryNode) {
        let place = self.place(data, node);
        if place.is_listed() {
            let Place { next, previous, .. } = *place;
            place.next = UNLISTED;
            self.place(previous, node).next = next;
            self.place(next, node).previous = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Platform;
    use sched_graph::{Datum, TaskGraph};
    use std::time::Duration;

    const MAIN: MemoryNode = MemoryNode(0);
    const DEVICE: MemoryNode = MemoryNode(1);
    const A: DataId = DataId(0);
    const B: DataId = DataId(1);

    /// Four pieces of data of 10 bytes at home in main memory, and a device with memory of 25 bytes.
    fn replicas() -> Replicas {
        let mut graph = TaskGraph::new("four");
        (0..4).for_each(|_| _ = graph.add_data(Datum::new(10)));
        let copies = Copies::new(graph.into(), Platform::flat(1, Duration::from_millis(1)).into());
        Replicas::new((0..4).map(|_| (10, MAIN)), &[None, Some(25)], copies.into())
    }

    fn bring(replicas: &mut Replicas, data: DataId) {
        assert!(replicas.allocate(data, DEVICE));
        replicas.pin(data, DEVICE);
        assert!(replicas.arrive(data, DEVICE, replicas.version(data)));
        replicas.unpin(data, DEVICE);
    }

    #[test]
    fn a_copy_may_be_in_use_more_often_than_a_machine_has_workers() {
        let mut replicas = replicas();
        bring(&mut replicas, A);
        let most = crate::platform::MAX_WORKERS * 2;
        (0..most).for_each(|_| replicas.pin(A, DEVICE));
        assert_eq!(replicas.make_room(DEVICE, 20), Room::None);
        (0..most).for_each(|_| replicas.unpin(A, DEVICE));
        assert_eq!(replicas.make_room(DEVICE, 20), Room::Made);
    }

    #[test]
    fn the_copy_that_was_not_used_for_the_longest_time_goes() {
        let mut replicas = replicas();
        bring(&mut replicas, A);
        bring(&mut replicas, B);
        replicas.pin(A, DEVICE);
        replicas.unpin(A, DEVICE);
        assert!(!replicas.has_room(DEVICE, 10));
        assert_eq!(replicas.make_room(DEVICE, 10), Room::Made);
        assert!(replicas.is_valid(A, DEVICE) && !replicas.is_valid(B, DEVICE) && !replicas.is_allocated(B, DEVICE));
        assert_eq!(replicas.peak(DEVICE), 20);
    }

    #[test]
    fn what_is_in_use_stays() {
        let mut replicas = replicas();
        bring(&mut replicas, A);
        bring(&mut replicas, B);
        replicas.pin(A, DEVICE);
        replicas.pin(B, DEVICE);
        assert_eq!(replicas.make_room(DEVICE, 10), Room::None);
        replicas.unpin(B, DEVICE);
        assert_eq!(replicas.make_room(DEVICE, 10), Room::Made);
        assert!(replicas.is_valid(A, DEVICE));
    }

    #[test]
    fn a_write_leaves_one_valid_copy_which_is_written_home_before_it_goes() {
        let mut replicas = replicas();
        bring(&mut replicas, A);
        bring(&mut replicas, B);
        replicas.write(A, DEVICE);
        assert_eq!(replicas.published.valid(A), 0b10);
        assert_eq!(replicas.make_room(DEVICE, 10), Room::WriteBack(A));
        // Meanwhile another copy can go.
        assert_eq!(replicas.make_room(DEVICE, 10), Room::Made);
        assert!(replicas.arrive(A, MAIN, 1));
        replicas.unpin(A, DEVICE);
        assert_eq!(replicas.published.valid(A), 0b11);
        assert_eq!(replicas.make_room(DEVICE, 20), Room::Made);
        assert_eq!(replicas.published.valid(A), 0b01);
    }

    #[test]
    fn what_was_written_home_to_be_evicted_goes_first_unless_it_is_used_again() {
        for is_used_again in [false, true] {
            let mut replicas = replicas();
            bring(&mut replicas, A);
            bring(&mut replicas, B);
            replicas.write(A, DEVICE);
            assert_eq!(replicas.make_room(DEVICE, 10), Room::WriteBack(A));
            assert!(replicas.arrive(A, MAIN, replicas.version(A)));
            if is_used_again {
                replicas.pin(A, DEVICE);
            }
            replicas.unpin_evicted(A, DEVICE);
            if is_used_again {
                replicas.unpin(A, DEVICE);
            }
            assert_eq!(replicas.make_room(DEVICE, 10), Room::Made);
            assert_eq!([A, B].map(|data| replicas.is_allocated(data, DEVICE)), [is_used_again, !is_used_again]);
        }
    }

    #[test]
    fn a_copy_that_was_overtaken_by_a_write_is_not_valid() {
        let mut replicas = replicas();
        assert!(replicas.allocate(A, DEVICE));
        replicas.pin(A, DEVICE);
        let version = replicas.version(A);
        replicas.write(A, MAIN);
        assert!(!replicas.arrive(A, DEVICE, version));
        assert_eq!(replicas.published.valid(A), 0b01);
    }

    #[test]
    fn unwanted_data_goes_first_and_is_written_home() {
        let mut replicas = replicas();
        bring(&mut replicas, A);
        bring(&mut replicas, B);
        assert_eq!(replicas.wont_use(B), None);
        assert_eq!(replicas.make_room(DEVICE, 10), Room::Made);
        assert!(replicas.is_valid(A, DEVICE) && !replicas.is_valid(B, DEVICE));
        replicas.write(A, DEVICE);
        assert_eq!(replicas.wont_use(A), None, "it is being written");
        replicas.end_write(A);
        assert_eq!(replicas.wont_use(A), Some(DEVICE));
    }
}
