//! One call into the tree, from entry to exit.

use super::LiveTree;
use super::ledger::{NodeId, NodeNumber, Phase, Slot, SlotId};
use sched_core::abi::TaskHead;
use sched_core::abi::wire::CallRef;
use sched_core::{Time, WorkerId};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum nesting of hops; deeper ones form a cycle.
pub(super) const MAX_DEPTH: u32 = 256;

/// The first node of each tree.
const ROOT: NodeId = NodeId(0);

/// Stands for several different sets of workers.
const SEVERAL: u64 = u64::MAX;

/// The host's record of one call, on the stack of the thread that entered the tree. Components see it as an opaque
/// [`CallRef`].
pub(super) struct Call<'a> {
    pub(super) tree: &'a LiveTree,
    /// The worker that makes the call.
    pub(super) requester: Option<WorkerId>,
    /// Architectures that can execute the tasks moved in this call, so that a wake goes to a suitable worker. In a call
    /// that is no push, all bits; but while a task is pushed on in it, those of that task and of what moves because of
    /// it.
    archs: Cell<u32>,
    /// Largest width of these tasks: combined workers up to this size are useful.
    width: Cell<u16>,
    /// The task that the call pushes, if it does.
    pushed: Option<&'static Slot>,
    /// The node that was last reported to an observer to store that task.
    stored_by: Cell<Option<NodeId>>,
    /// The pushed task and the place of its deferred wake, if the requester is about to pull that task itself.
    pub(super) deferred: Option<(SlotId, &'a Cell<Option<WorkerId>>)>,
    /// Number of the set of workers that the tasks moved in this call are restricted to; 0 if none is, [`SEVERAL`] if
    /// they have different sets.
    restriction: Cell<u64>,
    /// Whether another task moved as well, which a wake may be for.
    others: Cell<bool>,
    /// How often the requester looks for a task in this call.
    pub(super) looks: Cell<Looks>,
    /// Whether a component that asked was told that there is no room.
    pub(super) told_full: Cell<bool>,
    /// Of the nodes for which tasks are being [fetched](LiveTree::fetch), the one furthest below.
    fetching: Cell<NodeId>,
    /// The node whose answer to a push is [judged](super::room), while it is in that push.
    pub(super) on_trial: Cell<Option<NodeId>>,
    /// Time of the last clock read; `FAR` for none.
    time: Cell<Time>,
    /// Current nesting of hops.
    depth: Cell<u32>,
}

/// How often the requester of a call looks for a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Looks {
    /// It does not pull.
    Never,
    Once,
    /// Its pull has brought a task to where it pulls from. It is awake, so that nobody wakes it for that, and it may have
    /// asked there before: where its leaf has several parents, each of them can lead to a component above all that sends
    /// a task to another one.
    Again,
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
            pushed: None,
            stored_by: Cell::new(None),
            deferred: None,
            restriction: Cell::new(0),
            others: Cell::new(false),
            looks: Cell::new(Looks::Never),
            told_full: Cell::new(false),
            fetching: Cell::new(ROOT),
            on_trial: Cell::new(None),
            time: Cell::new(Time::FAR),
            depth: Cell::new(0),
        }
    }

    /// A call that pushes one task into the root, which is one hop deep.
    #[inline]
    pub(super) fn of_push(tree: &'a LiveTree, requester: Option<WorkerId>, slot: &'static Slot) -> Call<'a> {
        let head = slot.head();
        let archs = head.archs.load(Relaxed);
        let mut call = Call::new(tree, requester, archs);
        if archs == 0 {
            call.note_restriction(head);
        }
        call.width.set(head.width.load(Relaxed));
        call.depth.set(1);
        call.pushed = Some(slot);
        call
    }

    /// A call in which a worker pulls.
    #[inline]
    pub(super) fn of_pull(tree: &'a LiveTree, requester: WorkerId) -> Call<'a> {
        let call = Call::new(tree, Some(requester), u32::MAX);
        call.looks.set(Looks::Once);
        call
    }

    pub(super) fn reference(&self) -> CallRef<'_> {
        CallRef::new(self)
    }

    /// Whether the call pushes a task.
    #[inline]
    pub(super) fn is_push(&self) -> bool {
        self.pushed.is_some()
    }

    /// The task that the call pushes, if it is at this node.
    pub(super) fn pushed_to(&self, node: NodeNumber) -> Option<&'static Slot> {
        self.pushed.filter(|slot| slot.phase() == Phase::InTree(node))
    }

    /// Notes that a node is reported to store a task. Returns false if it was reported last for the task that the call
    /// pushes.
    pub(super) fn note_stored(&self, slot: &Slot, node: NodeId) -> bool {
        let is_pushed = self.pushed.is_some_and(|pushed| pushed.id() == slot.id());
        !is_pushed || self.stored_by.replace(Some(node)) != Some(node)
    }

    /// Notes that tasks are fetched for a node, unless they are already being fetched for it or one below. Returns what
    /// to restore with [`fetched`](Self::fetched).
    pub(super) fn begin_to_fetch(&self, node: NodeId) -> Option<NodeId> {
        (self.is_push() && node > self.fetching.get()).then(|| self.fetching.replace(node))
    }

    pub(super) fn fetched(&self, before: NodeId) {
        self.fetching.set(before);
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
    /// that stores tasks sends others on. In a call that is no push, wakes are for this task until the
    /// [end](Self::end_move) of its move: the first sleeper of all might be one that cannot execute it.
    #[inline]
    pub(super) fn note_move(&self, slot: &Slot) -> Option<Unaimed> {
        let head = slot.head();
        let archs = head.archs.load(Relaxed);
        let unaimed = (self.archs.get() == u32::MAX).then(|| self.take_aim());
        if archs == 0 {
            self.note_restriction(head);
        }
        self.archs.set(self.archs.get() | archs);
        self.width.set(self.width.get().max(head.width.load(Relaxed)));
        if self.deferred.is_some_and(|(pushed, _)| pushed != slot.id()) {
            self.others.set(true);
        }
        unaimed
    }

    fn take_aim(&self) -> Unaimed {
        self.archs.set(0);
        self.width.set(0);
        Unaimed { restriction: self.restriction.replace(0) }
    }

    /// Notes that the task which moved has arrived, with all that moved because of it.
    #[inline]
    pub(super) fn end_move(&self, unaimed: Option<Unaimed>) {
        let Some(Unaimed { restriction }) = unaimed else { return };
        self.archs.set(u32::MAX);
        self.width.set(u16::MAX);
        if restriction != 0 {
            self.restriction.set(both(restriction, self.restriction.get()));
        }
    }

    #[cold]
    fn note_restriction(&self, head: &TaskHead) {
        self.restriction.set(both(head.restriction(), self.restriction.get()));
    }

    /// Whether a restricted task moved in this call.
    pub(super) fn is_restricted(&self) -> bool {
        self.restriction.get() != 0
    }

    /// Whether every sleeping worker must be woken: one that is woken for another task would not take the restricted
    /// one.
    pub(super) fn wakes_all(&self) -> bool {
        self.is_restricted() && (self.archs.get() != 0 || self.restriction.get() == SEVERAL)
    }

    /// Whether a worker of this architecture is useful to the call.
    pub(super) fn is_for(&self, worker: WorkerId, arch: u32) -> bool {
        let open = self.archs.get() & 1 << arch != 0;
        let restricted = || match self.restriction.get() {
            0 => false,
            SEVERAL => true,
            set => self.tree.may_execute(set, worker),
        };
        open || restricted()
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

/// The set of workers that restricts the tasks of two sets, of which the second may be none.
fn both(one: u64, other: u64) -> u64 {
    if other == 0 || one == other { one } else { SEVERAL }
}

/// A call that is no push, in which a task moves: the restrictions of those that moved before.
#[must_use = "wakes are for one task until the end of its move"]
pub(super) struct Unaimed {
    restriction: u64,
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
