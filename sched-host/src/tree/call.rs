//! One call into the tree, from the thread that enters it to its way out.

use super::Shared;
use sched_core::WorkerId;
use sched_core::abi::wire::CallRef;
use std::cell::Cell;

/// Hops may be nested this deep; deeper ones go in a circle.
pub(super) const MAX_DEPTH: u32 = 256;

/// The host's record of one call. It lies on the stack of the thread that entered the tree; components see it as an
/// opaque [`CallRef`].
pub(super) struct Call<'a> {
    pub(super) tree: &'a Shared,
    /// For whom the call happens.
    pub(super) requester: Option<WorkerId>,
    /// Architectures that the tasks that moved in this call can use, so that a wake goes to who can run one; all bits when
    /// the call is none of a push.
    archs: Cell<u32>,
    /// A worker whose waking is put off, where the requester is about to pull the task that is pushed by itself.
    pub(super) deferred: Option<(u32, &'a Cell<Option<WorkerId>>)>,
    /// Another task moved as well, which a wake may be for.
    others: Cell<bool>,
    /// Hops nested now.
    depth: Cell<u32>,
}

impl<'a> Call<'a> {
    pub(super) fn new(tree: &'a Shared, requester: Option<WorkerId>, archs: u32) -> Call<'a> {
        Call { tree, requester, archs: Cell::new(archs), deferred: None, others: Cell::new(false), depth: Cell::new(0) }
    }

    pub(super) fn reference(&self) -> CallRef<'_> {
        CallRef::new(self)
    }

    /// Architectures that a worker must have one of to be woken.
    pub(super) fn archs(&self) -> u32 {
        self.archs.get()
    }

    /// A task that can use these architectures moves. It may be another than the one that was pushed: a component that
    /// stores tasks sends on what has become possible.
    pub(super) fn note_move(&self, slot: u32, archs: u32) {
        self.archs.set(self.archs.get() | archs);
        if self.deferred.is_some_and(|(pushed, _)| pushed != slot) {
            self.others.set(true);
        }
    }

    /// Puts off the waking of `worker`. Whether that may be.
    pub(super) fn defer(&self, worker: WorkerId) -> bool {
        match self.deferred {
            Some((_, deferred)) if !self.others.get() && deferred.get().is_none() => {
                deferred.set(Some(worker));
                true
            }
            _ => false,
        }
    }

    /// Goes one hop deeper, or says that it is too deep.
    pub(super) fn descend(&self) -> Option<Hop<'_>> {
        let depth = self.depth.get();
        if depth >= MAX_DEPTH {
            return None;
        }
        self.depth.set(depth + 1);
        Some(Hop { depth: &self.depth })
    }
}

/// One hop; the call comes back up when it is dropped.
pub(super) struct Hop<'a> {
    depth: &'a Cell<u32>,
}

impl Drop for Hop<'_> {
    fn drop(&mut self) {
        self.depth.set(self.depth.get() - 1);
    }
}
