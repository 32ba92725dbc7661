//! What tasks access.

use sched_core::MemoryNode;

/// A piece of data in a graph: its place in [`TaskGraph::data`](super::TaskGraph::data).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DataId(pub u32);

impl DataId {
    /// Its place in [`TaskGraph::data`](super::TaskGraph::data).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A piece of data. The runtime has a handle for each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datum {
    /// Name in pictures and messages, if it has one.
    pub name: Option<Box<str>>,
    /// Size in bytes.
    pub bytes: u64,
    /// Memory node that holds it before the first task. Data that is written before it is read is not moved from there.
    pub home: MemoryNode,
}

impl Datum {
    /// Data of `bytes` bytes in main memory (memory node 0), without a name.
    #[must_use]
    pub const fn new(bytes: u64) -> Datum {
        Datum { name: None, bytes, home: MemoryNode(0) }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Box<str>>) -> Datum {
        self.name = Some(name.into());
        self
    }
}
