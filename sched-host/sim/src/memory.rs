//! Where copies of data are: replicas on memory nodes, what they take up there, and which of them may go.
//!
//! A replica is *valid* or not (modified, shared, invalid: data of which one copy is valid is modified, unless that copy is
//! at home). Data always has its place at home. Elsewhere a replica takes up memory from its allocation to its eviction, also
//! while it is not valid. What a task uses, or a transfer reads or writes, is pinned; the rest of a memory whose size is
//! limited is in a list, of which the replica that was not used for the longest time goes first.

use sched_memory::{Coherence, State};

/// What the simulation knows of one piece of data.
#[derive(Clone, Debug)]
struct Data {
    bytes: u64,
    home: u32,
    copies: Coherence,
    /// Nobody will use it any more.
    unwanted: bool,
}

/// One memory.
#[derive(Debug)]
struct Node {
    capacity: u64,
    /// Bytes of data at home there.
    home: u64,
    used: u64,
    peak: u64,
    /// Neighbours in the list of what may go, by number of data; the last place is both ends. Empty without a limit.
    next: Vec<u32>,
    previous: Vec<u32>,
}

const UNLISTED: u32 = u32::MAX;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Replicas {
    data: Vec<Data>,
    nodes: Vec<Node>,
    /// By data, then memory.
    pins: Vec<u16>,
}

/// What has to happen before there is room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    /// There is room now.
    Made,
    /// The only valid copy of this data is in the way: it is to be written home. It is pinned.
    WriteBack(u32),
    /// All that is there is in use.
    None,
}

impl Replicas {
    /// All data at home: size and home of each; capacity of each memory.
    pub(super) fn new(data: impl Iterator<Item = (u64, u32)>, capacities: &[Option<u64>]) -> Replicas {
        let data: Vec<Data> =
            data.map(|(bytes, home)| Data { bytes, home, copies: Coherence::at(home), unwanted: false }).collect();
        let ends = data.len() as u32;
        let nodes = capacities.iter().enumerate().map(|(node, capacity)| {
            let used = data
                .iter()
                .filter(|data| data.home == node as u32)
                .fold(0, |sum: u64, data| sum.saturating_add(data.bytes));
            let (mut next, mut previous) = (Vec::new(), Vec::new());
            if capacity.is_some() {
                next = vec![UNLISTED; data.len() + 1];
                next[ends as usize] = ends;
                previous.clone_from(&next);
            }
            Node { capacity: capacity.unwrap_or(u64::MAX), home: used, used, peak: used, next, previous }
        });
        let nodes: Vec<Node> = nodes.collect();
        let pins = vec![0; data.len() * nodes.len()];
        Replicas { data, nodes, pins }
    }

    pub(super) fn bytes(&self, data: u32) -> u64 {
        self.data[data as usize].bytes
    }

    pub(super) fn home(&self, data: u32) -> u32 {
        self.data[data as usize].home
    }

    pub(super) fn version(&self, data: u32) -> u32 {
        self.data[data as usize].copies.version()
    }

    /// Bit *n*: the copy on memory *n* is valid.
    pub(super) fn valid(&self, data: u32) -> u64 {
        self.data[data as usize].copies.valid()
    }

    pub(super) fn is_valid(&self, data: u32, node: u32) -> bool {
        self.data[data as usize].copies.is_valid(node)
    }

    pub(super) fn is_allocated(&self, data: u32, node: u32) -> bool {
        self.data[data as usize].copies.is_allocated(node)
    }

    /// Most bytes that were in use on a memory.
    pub(super) fn peak(&self, node: u32) -> u64 {
        self.nodes[node as usize].peak
    }

    /// Bytes that there are for what is not at home there.
    pub(super) fn room_for_copies(&self, node: u32) -> u64 {
        let node = &self.nodes[node as usize];
        node.capacity.saturating_sub(node.home)
    }

    /// Makes room for so many more bytes on `node`, as far as that goes at once.
    pub(super) fn make_room(&mut self, node: u32, bytes: u64) -> Room {
        let ends = self.data.len() as u32;
        loop {
            let memory = &self.nodes[node as usize];
            if memory.used.saturating_add(bytes) <= memory.capacity {
                return Room::Made;
            }
            let victim = memory.next.get(ends as usize).copied().unwrap_or(ends);
            if victim == ends {
                return Room::None;
            }
            if self.data[victim as usize].copies.state(node) == State::Modified {
                self.pin(victim, node);
                return Room::WriteBack(victim);
            }
            self.free(victim, node);
        }
    }

    /// Whether there is room without anything having to go.
    pub(super) fn has_room(&self, node: u32, bytes: u64) -> bool {
        let memory = &self.nodes[node as usize];
        memory.used.saturating_add(bytes) <= memory.capacity
    }

    /// Takes up memory that belongs to no data.
    pub(super) fn take(&mut self, node: u32, bytes: u64) {
        let memory = &mut self.nodes[node as usize];
        memory.used += bytes;
        memory.peak = memory.peak.max(memory.used);
    }

    /// Gives memory back that was [taken](Self::take).
    pub(super) fn give_back(&mut self, node: u32, bytes: u64) {
        self.nodes[node as usize].used -= bytes;
    }

    /// Reserves memory for a copy, which is to be pinned. Whether there was none.
    pub(super) fn allocate(&mut self, data: u32, node: u32) -> bool {
        let entry = &mut self.data[data as usize];
        if !entry.copies.allocate(node) {
            return false;
        }
        let bytes = entry.bytes;
        self.take(node, bytes);
        true
    }

    fn free(&mut self, data: u32, node: u32) {
        self.unlist(data, node);
        let entry = &mut self.data[data as usize];
        entry.copies.free(node);
        let bytes = entry.bytes;
        self.give_back(node, bytes);
    }

    /// Somebody uses the copy, so that it stays.
    pub(super) fn pin(&mut self, data: u32, node: u32) {
        self.unlist(data, node);
        let at = data as usize * self.nodes.len() + node as usize;
        self.pins[at] += 1;
    }

    /// Somebody has used the copy.
    pub(super) fn unpin(&mut self, data: u32, node: u32) {
        let at = data as usize * self.nodes.len() + node as usize;
        self.pins[at] -= 1;
        if self.pins[at] == 0 {
            self.list(data, node);
        }
    }

    /// A copy has arrived, of what the data was at `version`. Whether it is still that.
    pub(super) fn arrive(&mut self, data: u32, node: u32, version: u32) -> bool {
        self.data[data as usize].copies.arrive(node, version)
    }

    /// The copy on `node` is changed: no other is valid any more.
    pub(super) fn write(&mut self, data: u32, node: u32) {
        let entry = &mut self.data[data as usize];
        let others = entry.copies.allocated() & !(1 << node) & !(1 << entry.home);
        entry.copies.write(node);
        entry.unwanted = false;
        for other in (0..self.nodes.len() as u32).filter(|other| others & 1 << other != 0) {
            // Worth nothing now: the first to go.
            if self.is_listed(data, other) {
                self.unlist(data, other);
                self.list(data, other);
            }
        }
    }

    /// Nobody will use the data any more: its copies are the first to go. The memory of the only valid copy, if that is not
    /// at home; the copy is pinned and is to be written home.
    pub(super) fn wont_use(&mut self, data: u32) -> Option<u32> {
        self.data[data as usize].unwanted = true;
        for node in 0..self.nodes.len() as u32 {
            if self.is_listed(data, node) {
                self.unlist(data, node);
                self.list(data, node);
            }
        }
        let entry = &self.data[data as usize];
        if entry.copies.is_valid(entry.home) {
            return None;
        }
        let node = entry.copies.valid().trailing_zeros();
        self.pin(data, node);
        Some(node)
    }

    fn is_listed(&self, data: u32, node: u32) -> bool {
        self.nodes[node as usize].next.get(data as usize).is_some_and(|next| *next != UNLISTED)
    }

    /// Notes that the copy may go: last of all, or first if it is worth nothing.
    fn list(&mut self, data: u32, node: u32) {
        let (entry, ends) = (&self.data[data as usize], self.data.len() as u32);
        let memory = &mut self.nodes[node as usize];
        if memory.next.is_empty() || entry.home == node || !entry.copies.is_allocated(node) {
            return;
        }
        let before = if entry.unwanted || !entry.copies.is_valid(node) { ends } else { memory.previous[ends as usize] };
        let after = memory.next[before as usize];
        memory.next[before as usize] = data;
        memory.previous[data as usize] = before;
        memory.next[data as usize] = after;
        memory.previous[after as usize] = data;
    }

    fn unlist(&mut self, data: u32, node: u32) {
        if !self.is_listed(data, node) {
            return;
        }
        let memory = &mut self.nodes[node as usize];
        let (before, after) = (memory.previous[data as usize], memory.next[data as usize]);
        memory.next[before as usize] = after;
        memory.previous[after as usize] = before;
        memory.next[data as usize] = UNLISTED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four pieces of 10 bytes at home on memory 0, and a memory 1 of 25 bytes.
    fn replicas() -> Replicas {
        Replicas::new((0..4).map(|_| (10, 0)), &[None, Some(25)])
    }

    fn bring(replicas: &mut Replicas, data: u32) {
        assert!(replicas.allocate(data, 1));
        replicas.pin(data, 1);
        assert!(replicas.arrive(data, 1, replicas.version(data)));
        replicas.unpin(data, 1);
    }

    #[test]
    fn the_copy_that_was_not_used_for_the_longest_time_goes() {
        let mut replicas = replicas();
        bring(&mut replicas, 0);
        bring(&mut replicas, 1);
        replicas.pin(0, 1);
        replicas.unpin(0, 1);
        assert!(!replicas.has_room(1, 10));
        assert_eq!(replicas.make_room(1, 10), Room::Made);
        assert!(replicas.is_valid(0, 1) && !replicas.is_valid(1, 1) && !replicas.is_allocated(1, 1));
        assert_eq!(replicas.peak(1), 20);
    }

    #[test]
    fn what_is_in_use_stays() {
        let mut replicas = replicas();
        bring(&mut replicas, 0);
        bring(&mut replicas, 1);
        replicas.pin(0, 1);
        replicas.pin(1, 1);
        assert_eq!(replicas.make_room(1, 10), Room::None);
        replicas.unpin(1, 1);
        assert_eq!(replicas.make_room(1, 10), Room::Made);
        assert!(replicas.is_valid(0, 1));
    }

    #[test]
    fn a_write_leaves_one_valid_copy_which_is_written_home_before_it_goes() {
        let mut replicas = replicas();
        bring(&mut replicas, 0);
        bring(&mut replicas, 1);
        replicas.write(0, 1);
        assert_eq!(replicas.valid(0), 0b10);
        assert_eq!(replicas.make_room(1, 10), Room::WriteBack(0));
        // Meanwhile another copy can go.
        assert_eq!(replicas.make_room(1, 10), Room::Made);
        assert!(replicas.arrive(0, 0, 1));
        replicas.unpin(0, 1);
        assert_eq!(replicas.valid(0), 0b11);
        assert_eq!(replicas.make_room(1, 20), Room::Made);
        assert_eq!(replicas.valid(0), 0b01);
    }

    #[test]
    fn a_copy_that_was_overtaken_by_a_write_is_not_valid() {
        let mut replicas = replicas();
        assert!(replicas.allocate(0, 1));
        replicas.pin(0, 1);
        let version = replicas.version(0);
        replicas.write(0, 0);
        assert!(!replicas.arrive(0, 1, version));
        assert_eq!(replicas.valid(0), 0b01);
    }

    #[test]
    fn unwanted_data_goes_first_and_is_written_home() {
        let mut replicas = replicas();
        bring(&mut replicas, 0);
        bring(&mut replicas, 1);
        assert_eq!(replicas.wont_use(1), None);
        assert_eq!(replicas.make_room(1, 10), Room::Made);
        assert!(replicas.is_valid(0, 1) && !replicas.is_valid(1, 1));
        replicas.write(0, 1);
        assert_eq!(replicas.wont_use(0), Some(1));
    }
}
