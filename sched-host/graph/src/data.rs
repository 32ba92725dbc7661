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

/// A piece of data: what the runtime would have a handle for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datum {
    /// What pictures and messages call it, if it has a name.
    pub name: Option<Box<str>>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Where it is before the first task. Data that is written before it is read need not be moved from there.
    pub home: MemoryNode,
}

impl Datum {
    /// Nameless data of so many bytes in main memory (memory node 0).
    #[must_use]
    pub const fn new(bytes: u64) -> Datum {
        Datum { name: None, bytes, home: MemoryNode(0) }
    }

    /// The same with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Box<str>>) -> Datum {
        self.name = Some(name.into());
        self
    }
}
