//! One call into the tree, from entry to exit.

use super::LiveTree;
use super::ledger::SlotId;
use sched_core::abi::wire::CallRef;
use sched_core::{Time, WorkerId};
use std::cell::Cell;

/// Maximum nesting of hops; deeper ones form a cycle.
pub(super) const MAX_DEPTH: u32 = 256;

/// The host's record of one call, on the stack of the thread that entered the tree. Components see it as an opaque
/// [`CallRef`].
pub(super) struct Call<'a> {
    pub(super) tree: &'a LiveTree,
    /// The worker that makes the call.
    pub(super) requester: Option<WorkerId>,
    /// Architectures that can execute the tasks moved in this call, so that a wake goes to a suitable worker; all bits
    /// if the call is no push.
    archs: Cell<u32>,
    /// Largest width of these tasks: combined workers up to this size are useful.
    width: Cell<u16>,
    /// The pushed task and the place of its deferred wake, if the requester is about to pull that task itself.
    pub(super) deferred: Option<(SlotId, &'a Cell<Option<WorkerId>>)>,
    /// Whether another task moved as well, which a wake may be for.
    others: Cell<bool>,
    /// Time of the last clock read; `FAR` for none.
    time: Cell<Time>,
    /// Current nesting of hops.
    depth: Cell<u32>,
}

impl<'a> Call<'a> {
    #[inline]
    pub(super) fn new(tree: &'a LiveTree, requester: Option<WorkerId>, archs: u32) -> Call<'a> {
        let width = if archs == u32::MAX { u16::MAX } else { 0 };
        Call {
            tree,
            requester,
            archs: Cell::new(archs),
            width: Cell::new(width),
            deferred: None,
            others: Cell::new(false),
            time: Cell::new(Time::FAR),
            depth: Cell::new(0),
        }
    }

    /// A call that pushes one task into the root, which is one hop deep.
    #[inline]
    pub(super) fn of_push(tree: &'a LiveTree, requester: Option<WorkerId>, archs: u32, width: u16) -> Call<'a> {
        let call = Call::new(tree, requester, archs);
        call.width.set(width);
        call.depth.set(1);
        call
    }

    pub(super) fn reference(&self) -> CallRef<'_> {
        CallRef::new(self)
    }

    /// A worker must have one of these architectures to be woken.
    pub(super) fn archs(&self) -> u32 {
        self.archs.get()
    }

    /// Maximum size of useful combined workers.
    pub(super) fn width(&self) -> u16 {
        self.width.get()
    }

    /// Notes the move of a task that these architectures can execute. It may differ from the pushed task: a component
    /// that stores tasks sends others on.
    #[inline]
    pub(super) fn note_move(&self, slot: SlotId, archs: u32, width: u16) {
        self.archs.set(self.archs.get() | archs);
        self.width.set(self.width.get().max(width));
        if self.deferred.is_some_and(|(pushed, _)| pushed != slot) {
            self.others.set(true);
        }
    }

    /// Defers the wake of `worker`, if allowed. Returns whether it did.
    pub(super) fn defer(&self, worker: WorkerId) -> bool {
        match self.deferred {
            Some((_, deferred)) if !self.others.get() && deferred.get().is_none() => {
                deferred.set(Some(worker));
                true
            }
            _ => false,
        }
    }

    /// Reads the clock.
    pub(super) fn look_at_clock(&self) -> Time {
        let now = self.tree.services.now();
        self.time.set(now);
        now
    }

    /// Time of the last clock read. It is constant while a component decides where to push a task.
    pub(super) fn now(&self) -> Time {
        match self.time.get() {
            Time::FAR => self.look_at_clock(),
            time => time,
        }
    }

    /// Lets time advance, since a task moves.
    pub(super) fn forget_time(&self) {
        self.time.set(Time::FAR);
    }

    /// Goes one hop deeper; `None` if that is too deep.
    pub(super) fn descend(&self) -> Option<Hop<'_>> {
        let depth = self.depth.get();
        if depth >= MAX_DEPTH {
            return None;
        }
        self.depth.set(depth + 1);
        Some(Hop { depth: &self.depth })
    }
}

/// One hop; its drop returns to the hop above.
pub(super) struct Hop<'a> {
    depth: &'a Cell<u32>,
}

impl Drop for Hop<'_> {
    fn drop(&mut self) {
        self.depth.set(self.depth.get() - 1);
    }
}
