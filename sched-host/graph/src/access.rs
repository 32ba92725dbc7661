//! How tasks access data.

use super::DataId;

/// How a task accesses data. [`AccessOrder`](super::AccessOrder) says what that makes it wait for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccessMode {
    /// Reads.
    Read,
    /// Writes without reading what was there.
    Write,
    /// Reads and writes.
    ReadWrite,
    /// Reads and writes; such tasks may run in any order, one at a time.
    Commute,
    /// Adds to the value, in any order and several at once: each worker has a value of its own, and these are combined
    /// before the next access of another mode.
    Redux,
    /// Uses memory of that size while it runs. Its contents before and after mean nothing, and order nothing.
    Scratch,
}

impl AccessMode {
    /// Whether the previous value matters.
    #[inline]
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, AccessMode::Read | AccessMode::ReadWrite | AccessMode::Commute)
    }

    /// Whether the value may change.
    #[inline]
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, AccessMode::Write | AccessMode::ReadWrite | AccessMode::Commute | AccessMode::Redux)
    }
}

/// One argument of a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// The data.
    pub data: DataId,
    /// How the task accesses it.
    pub mode: AccessMode,
}
