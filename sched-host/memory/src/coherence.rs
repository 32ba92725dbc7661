//! Which replicas of a piece of data are valid.

use sched_core::MemoryNode;

/// The state of a replica (MSI).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// It is valid, and no other is.
    Modified,
    /// It is valid, and so are others.
    Shared,
    /// It is not valid, whether memory is allocated for it or not.
    Invalid,
}

/// The replicas of one piece of data: the memory nodes that have one, and which of them are valid.
///
/// A copier reads the [`version`](Self::version) before it copies, and reports afterwards that the copy has
/// [arrived](Self::arrive): a copy that a write has overtaken is not valid. The caller must ensure that a replica is
/// neither read nor freed while it is written, and that at least one replica stays valid.
///
/// ```
/// use sched_core::MemoryNode;
/// use sched_memory::{Coherence, State};
///
/// const MAIN: MemoryNode = MemoryNode(0);
/// const DEVICE: MemoryNode = MemoryNode(1);
///
/// let mut replicas = Coherence::at(MAIN);
/// assert_eq!(replicas.state(MAIN), State::Modified);
/// let version = replicas.version();
/// replicas.allocate(DEVICE);
/// assert!(replicas.arrive(DEVICE, version));
/// assert_eq!((replicas.state(MAIN), replicas.state(DEVICE)), (State::Shared, State::Shared));
/// replicas.write(DEVICE);
/// assert_eq!((replicas.state(MAIN), replicas.state(DEVICE)), (State::Invalid, State::Modified));
/// // Its memory stays allocated, for the next copy.
/// assert!(replicas.is_allocated(MAIN));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coherence {
    valid: u64,
    allocated: u64,
    version: u32,
}

impl Coherence {
    /// Maximum number of memory nodes, numbered from 0.
    pub const MOST_NODES: usize = sched_machine::topology::MOST_MEMORY_NODES;

    /// The only valid replica is on `node`.
    #[must_use]
    pub const fn at(node: MemoryNode) -> Coherence {
        Coherence { valid: 1 << node.0, allocated: 1 << node.0, version: 0 }
    }

    /// The nodes with a valid replica: bit *n* stands for memory node *n*.
    #[must_use]
    pub const fn valid(&self) -> u64 {
        self.valid
    }

    /// Number of writes so far, modulo 2³².
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Whether the replica on `node` is valid.
    #[must_use]
    pub const fn is_valid(&self, node: MemoryNode) -> bool {
        self.valid & 1 << node.0 != 0
    }

    /// Whether memory is allocated for a replica on `node`.
    #[must_use]
    pub const fn is_allocated(&self, node: MemoryNode) -> bool {
        self.allocated & 1 << node.0 != 0
    }

    /// The nodes with memory for a replica, valid or not: bit *n* stands for memory node *n*.
    #[must_use]
    pub const fn allocated(&self) -> u64 {
        self.allocated
    }

    /// The state of the replica on `node`.
    #[must_use]
    pub const fn state(&self, node: MemoryNode) -> State {
        match self.is_valid(node) {
            true if self.valid == 1 << node.0 => State::Modified,
            true => State::Shared,
            false => State::Invalid,
        }
    }

    /// Records that memory for a replica on `node` was allocated. Returns whether there was none.
    pub const fn allocate(&mut self, node: MemoryNode) -> bool {
        let is_new = !self.is_allocated(node);
        self.allocated |= 1 << node.0;
        is_new
    }

    /// Records that the memory of the replica on `node` was freed.
    pub const fn free(&mut self, node: MemoryNode) {
        self.allocated &= !(1 << node.0);
        self.valid &= !(1 << node.0);
    }

    /// Records that a copy of the data at `version` has arrived on `node`, which has memory for it. Returns whether the
    /// copy is valid, that is, whether no write has overtaken it.
    pub const fn arrive(&mut self, node: MemoryNode, version: u32) -> bool {
        let is_current = self.version == version;
        if is_current {
            self.valid |= 1 << node.0;
        }
        is_current
    }

    /// Records a write to the replica on `node`, which invalidates all others.
    pub const fn write(&mut self, node: MemoryNode) {
        self.version = self.version.wrapping_add(1);
        self.allocated |= 1 << node.0;
        self.valid = 1 << node.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const NODES: u32 = 5;

    #[derive(Clone, Debug)]
    enum Step {
        /// A read on a node, after a copy if necessary.
        Read(MemoryNode),
        /// A write on a node, which may have no replica yet.
        Write(MemoryNode),
        /// The start of a copy to a node.
        Begin(MemoryNode),
        /// The end of the copy that started first.
        End,
        /// The removal of a replica, unless it is the last valid one.
        Free(MemoryNode),
    }

    fn step() -> impl Strategy<Value = Step> {
        let node = (0..NODES).prop_map(MemoryNode);
        prop_oneof![
            node.clone().prop_map(Step::Read),
            node.clone().prop_map(Step::Write),
            node.clone().prop_map(Step::Begin),
            Just(Step::End),
            node.prop_map(Step::Free),
        ]
    }

    proptest! {
        /// Compared with memories that hold numbers: valid replicas hold the last value written, and an overtaken copy
        /// never becomes valid.
        #[test]
        fn every_valid_replica_holds_what_was_written_last(steps in prop::collection::vec(step(), 0..200)) {
            let mut replicas = Coherence::at(MemoryNode(0));
            let mut memories: BTreeMap<MemoryNode, u64> = BTreeMap::from([(MemoryNode(0), 0)]);
            let (mut written, mut on_their_way) = (0, Vec::new());
            for step in steps {
                match step {
                    Step::Read(node) => {
                        if !replicas.is_valid(node) {
                            let value = memories[&MemoryNode(replicas.valid().trailing_zeros())];
                            prop_assert_eq!(replicas.allocate(node), memories.insert(node, value).is_none());
                            prop_assert!(replicas.arrive(node, replicas.version()));
                        }
                        prop_assert_eq!(memories[&node], written);
                    }
                    Step::Write(node) => {
                        written += 1;
                        memories.insert(node, written);
                        replicas.write(node);
                        prop_assert_eq!(replicas.state(node), State::Modified);
                    }
                    Step::Begin(node) if !replicas.is_valid(node) => {
                        let value = memories[&MemoryNode(replicas.valid().trailing_zeros())];
                        on_their_way.push((node, replicas.version(), value));
                    }
                    Step::End if !on_their_way.is_empty() => {
                        let (node, version, value) = on_their_way.remove(0);
                        // Readers use a valid replica directly, without a copy.
                        if !replicas.is_valid(node) {
                            replicas.allocate(node);
                            memories.insert(node, value);
                            prop_assert_eq!(replicas.arrive(node, version), value == written);
                        }
                    }
                    Step::Free(node) if replicas.state(node) != State::Modified => {
                        memories.remove(&node);
                        replicas.free(node);
                    }
                    Step::Begin(_) | Step::End | Step::Free(_) => {}
                }
                prop_assert!(replicas.valid() != 0, "the value is somewhere");
                for node in (0..NODES).map(MemoryNode) {
                    prop_assert_eq!(replicas.is_allocated(node), memories.contains_key(&node));
                    let expected = match (replicas.is_valid(node), replicas.valid().count_ones()) {
                        (true, 1) => State::Modified,
                        (true, _) => State::Shared,
                        (false, _) => State::Invalid,
                    };
                    prop_assert_eq!(replicas.state(node), expected);
                    if replicas.is_valid(node) {
                        prop_assert_eq!(memories[&node], written);
                    }
                }
            }
        }
    }
}
