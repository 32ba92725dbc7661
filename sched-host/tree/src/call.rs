//! One call into the tree, from the thread that enters it to its way out.

use super::LiveTree;
use sched_core::abi::wire::CallRef;
use sched_core::{Time, WorkerId};
use std::cell::Cell;

/// Hops may be nested this deep; deeper ones go in a circle.
pub(super) const MAX_DEPTH: u32 = 256;

/// The host's record of one call. It lies on the stack of the thread that entered the tree; components see it as an
/// opaque [`CallRef`].
pub(super) struct Call<'a> {
    pub(super) tree: &'a LiveTree,
    /// For whom the call happens.
    pub(super) requester: Option<WorkerId>,
    /// Architectures that the tasks that moved in this call can use, so that a wake goes to who can run one; all bits when
    /// the call is none of a push.
    archs: Cell<u32>,
    /// The width of the widest of them: combined workers of this size at most are of use.
    width: Cell<u16>,
    /// A worker whose waking is put off, where the requester is about to pull the task that is pushed by itself.
    pub(super) deferred: Option<(u32, &'a Cell<Option<WorkerId>>)>,
    /// Another task moved as well, which a wake may be for.
    others: Cell<bool>,
    /// The time when the clock was looked at last; `FAR` for never.
    time: Cell<Time>,
    /// Hops nested now.
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

    /// The call that pushes one task into the root, and so is one hop deep.
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

    /// Architectures that a worker must have one of to be woken.
    pub(super) fn archs(&self) -> u32 {
        self.archs.get()
    }

    /// The size up to which combined workers are of use.
    pub(super) fn width(&self) -> u16 {
        self.width.get()
    }

    /// A task that can use these architectures moves. It may be another than the one that was pushed: a component that
    /// stores tasks sends on what has become possible.
    #[inline]
    pub(super) fn note_move(&self, slot: u32, archs: u32, width: u16) {
        self.archs.set(self.archs.get() | archs);
        self.width.set(self.width.get().max(width));
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

    /// What the clock says.
    pub(super) fn look_at_clock(&self) -> Time {
        let now = self.tree.services.now();
        self.time.set(now);
        now
    }

    /// The time, as it was when the clock was looked at last: it stands still while a component weighs where to push a
    /// task.
    pub(super) fn now(&self) -> Time {
        match self.time.get() {
            Time::FAR => self.look_at_clock(),
            time => time,
        }
    }

    /// A task moves: time goes on.
    pub(super) fn forget_time(&self) {
        self.time.set(Time::FAR);
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
