//! What tasks access, and how.

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

/// How a task accesses data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Reads.
    Read,
    /// Writes without reading what was there.
    Write,
    /// Reads and writes.
    ReadWrite,
    /// Reads and writes; such tasks may run in any order, one at a time.
    Commute,
    /// Uses memory of that size while it runs; what is in it before and after means nothing, and orders nothing.
    Scratch,
}

impl Mode {
    /// Whether what was there before matters.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Mode::Read | Mode::ReadWrite | Mode::Commute)
    }

    /// Whether others may see a change.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Mode::Write | Mode::ReadWrite | Mode::Commute)
    }
}

/// One argument of a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// What is accessed.
    pub data: DataId,
    /// How.
    pub mode: Mode,
}
