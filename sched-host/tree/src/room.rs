//! Which nodes have room for a task, for components: [`HostRoom`]; and refusals in the place of those that have none.
//!
//! A queue with a bound is full most of the time, where there is enough to do. A component above it that stores nothing
//! would take a decision, or try one child after the other, only to hand the task back. So a component reports when it
//! becomes full and when it has room again, and the host refuses a task before anybody is called: for the component
//! itself, and for those above that are declared to store nothing, once nobody below them has room.
//!
//! A node has a word for each 64 children, with a bit for each that has reported that it is full. A report changes the
//! bits of one child alone, in the order of its reports, which it makes under its lock. What follows for nodes above is
//! never written down: it is read anew for each task, so it cannot be out of date for longer than a report.
//!
//! Who reads a report late refuses a task for a component that has room now. So would that component have done a moment
//! ago: it tells its parents of the room after it has reported it, and whoever holds the task learns of it as after any
//! refusal.
//!
//! A component that says that it is full and is not would never get a task again. So one that is attended is called at
//! first in spite of its reports; they are heeded once it has refused [some tasks](TRIALS) while it said that it is
//! full, and never after it has taken one. The same holds for one that is declared to store nothing, while nobody below
//! it has room: if it keeps tasks, nobody above hears of it while it is not called.
//!
//! A task may be taken after such a report if another call has made room meanwhile, which that call reports. What the
//! push itself reports is no reason: without room it would have refused the task.
//!
//! Nothing is refused in the place of others where a node of the tree has failed, since calls pass through that; and
//! reports do not count of a component with nodes in several trees, whose tasks leave through all of these.

use super::LiveTree;
use super::attendance::Method;
use super::call::Call;
use super::claims::Declaration;
use super::ledger::NodeId;
use super::node::{TreeNode, record};
use super::witness::note_lie;
use sched_core::abi::RawTask;
use sched_core::abi::extension::HostRoom;
use sched_core::abi::wire::{CallRef, RawPush};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

pub(super) static ROOM: HostRoom = HostRoom { note, of_child, below };

/// What a node knows of room: whether it has reported that it is full, and which of its children have.
pub(super) struct Room {
    /// Whether the node has reported that it is full, and that is heeded.
    is_full: AtomicBool,
    /// Twice the number of its reports so far, but for those of pushes on trial, and one more while the last says that
    /// it is full.
    reports: AtomicU32,
    /// Number of tasks that it has to refuse while it should, before the host refuses for it.
    trials: AtomicU32,
    /// A bit for each child that is full; bits of no child are 1.
    full_children: Box<[AtomicU64]>,
    /// The bits of no child in the last word.
    beyond: u64,
}

const BITS: usize = u64::BITS as usize;

/// Number of tasks that an attended component refuses while it says that it is full, or nobody below it has room,
/// before the host refuses for it.
const TRIALS: u32 = 64;

/// [`Room::trials`] of a component that has lied.
const FOR_EVER: u32 = u32::MAX;

/// Why a component on trial should refuse a task.
#[derive(Clone, Copy)]
pub(super) enum Claim {
    /// It has said that it is full, in the report of this [number](Room::reports).
    Full(u32),
    /// It stores nothing, and nobody below has room.
    NoneBelow,
}

impl Room {
    /// That of a node with this number of children. Nobody is full.
    pub(super) fn new(children: usize, is_attended: bool) -> Room {
        let full_children = (0..children.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect();
        let beyond = if children.is_multiple_of(BITS) { 0 } else { !0 << (children % BITS) };
        let trials = AtomicU32::new(if is_attended { TRIALS } else { 0 });
        let (is_full, reports) = (AtomicBool::new(false), AtomicU32::new(0));
        let room = Room { is_full, reports, trials, full_children, beyond };
        room.forget();
        room
    }

    /// Forgets all reports.
    fn forget(&self) {
        self.is_full.store(false, Relaxed);
        self.reports.fetch_and(!1, Relaxed);
        self.full_children.iter().for_each(|word| word.store(0, Relaxed));
        if let Some(last) = self.full_children.last() {
            last.store(self.beyond, Relaxed);
        }
    }

    /// Notes that the node itself has reported that it is full, or not; `on_trial` in a push that is judged. Returns
    /// whether it is taken for full.
    fn report(&self, is_full: bool, on_trial: bool) -> bool {
        let reports = self.reports.load(Relaxed);
        let number = if on_trial { reports & !1 } else { (reports | 1).wrapping_add(1) };
        self.reports.store(number | u32::from(is_full), Relaxed);
        let is_full = is_full && self.is_trusted();
        self.is_full.store(is_full, Release);
        is_full
    }

    /// Whether the component is no longer on trial.
    #[inline]
    fn is_trusted(&self) -> bool {
        self.trials.load(Relaxed) == 0
    }

    /// Notes that the component has refused a task as it should. Whoever lied meanwhile stays on trial.
    fn pass_trial(&self) {
        let fewer = |left: u32| (left != FOR_EVER).then(|| left.saturating_sub(1));
        let _ = self.trials.fetch_update(Relaxed, Relaxed, fewer);
    }

    /// Lets the component be called for every task from now on, also if it is taken for full at the moment.
    fn distrust(&self) {
        self.trials.store(FOR_EVER, Relaxed);
        self.is_full.store(false, Release);
    }

    /// Notes that a child is full, or not.
    fn note_child(&self, child: u32, is_full: bool) {
        let Some(word) = self.full_children.get(child as usize / BITS) else { return };
        let bit = 1 << (child as usize % BITS);
        match is_full {
            true => word.fetch_or(bit, Release),
            false => word.fetch_and(!bit, Release),
        };
    }

    /// Numbers of the children that have not reported that they are full.
    #[inline]
    fn not_full(&self) -> impl Iterator<Item = usize> {
        self.full_children.iter().enumerate().flat_map(|(at, word)| {
            let mut left = !word.load(Acquire);
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < BITS).then_some(at * BITS + bit)
            })
        })
    }
}

impl LiveTree {
    /// Forgets who is full: components were exchanged, or gave up their tasks. The caller is alone.
    pub(super) fn forget_room(&self) {
        self.nodes.iter().for_each(|node| node.room.forget());
    }

    /// Heeds no report of this node any more, nor the last one: it has not done what it declares.
    pub(super) fn distrust(&self, node: &TreeNode) {
        node.room.distrust();
        self.note_at_parents(node, false);
    }

    /// Notes where parents look that a node is full, or not.
    fn note_at_parents(&self, node: &TreeNode, is_full: bool) {
        for link in &node.parents {
            self.nodes[link.parent.index()].room.note_child(link.child, is_full);
        }
    }

    /// Why the component should refuse the next push, if it is on trial.
    #[inline]
    pub(super) fn claim(&self, node: &TreeNode) -> Option<Claim> {
        if node.room.is_trusted() { None } else { self.claim_on_trial(node) }
    }

    #[inline(never)]
    fn claim_on_trial(&self, node: &TreeNode) -> Option<Claim> {
        let (reports, trials) = (node.room.reports.load(Relaxed), node.room.trials.load(Relaxed));
        match trials {
            FOR_EVER => None,
            _ if reports & 1 == 1 => Some(Claim::Full(reports)),
            _ => (node.refuses_with_children && !self.has_room_below(node)).then_some(Claim::NoneBelow),
        }
    }

    /// Makes a push to a component on trial, and compares the answer with what it [should](Claim) have been.
    #[inline(never)]
    pub(super) fn try_push(&self, call: &Call<'_>, node: &TreeNode, claim: Claim, task: RawTask) -> RawPush {
        let outer = call.on_trial.replace(Some(node.id));
        let answer = node.with(call, |component, raw| component.push_task(raw, task));
        call.on_trial.set(outer);
        self.judge(call, node, claim, answer.refused.is_none());
        answer
    }

    fn judge(&self, call: &Call<'_>, node: &TreeNode, claim: Claim, is_taken: bool) {
        // Nothing is concluded from a call that failed.
        if node.is_quarantined() {
            return;
        }
        match (claim, is_taken) {
            // Another report meanwhile says why the task was taken.
            (Claim::Full(reports), _) if node.room.reports.load(Relaxed) | 1 != reports => {}
            (_, false) => node.room.pass_trial(),
            (Claim::Full(_), true) => note_lie(call, node, Declaration::NoRoom, Method::PushTask),
            // There may have been room below by then. A witness sees what it keeps.
            (Claim::NoneBelow, true) => {}
        }
    }

    /// Whether a push to the node would be refused for want of room.
    #[inline]
    pub(super) fn is_full(&self, node: &TreeNode) -> bool {
        (node.room.is_full.load(Acquire) || is_spared(node) && !self.has_room_below(node))
            && !self.has_failures.load(Relaxed)
    }

    /// Whether any child of the node may have room, or there is none.
    #[inline]
    fn has_room_below(&self, node: &TreeNode) -> bool {
        node.children.is_empty() || node.room.not_full().any(|child| self.may_have_room(node.children[child]))
    }

    /// Whether a node may have room that has not reported that it is full.
    #[inline]
    fn may_have_room(&self, node: NodeId) -> bool {
        let node = &self.nodes[node.index()];
        !is_spared(node) || self.has_room_below(node)
    }
}

/// Whether the component is spared pushes that all of its children would refuse: it declares so, and is trusted.
#[inline]
fn is_spared(node: &TreeNode) -> bool {
    node.refuses_with_children && node.room.is_trusted()
}

extern "C" fn note(call: CallRef<'_>, node: u32, has_room: bool) {
    let call = record(call);
    let tree = call.tree;
    let Some(node) = tree.nodes.get(node as usize).filter(|node| node.shared.is_none()) else { return };
    let is_full = node.room.report(!has_room, call.on_trial.get() == Some(node.id));
    tree.note_at_parents(node, is_full);
}

extern "C" fn of_child(call: CallRef<'_>, node: u32, child: u32) -> bool {
    let call = record(call);
    let tree = call.tree;
    let child = tree.nodes.get(node as usize).and_then(|node| node.children.get(child as usize));
    told(call, child.is_none_or(|child| !tree.is_full(&tree.nodes[child.index()])))
}

extern "C" fn below(call: CallRef<'_>, node: u32) -> bool {
    let call = record(call);
    let tree = call.tree;
    let has_room = tree.nodes.get(node as usize).is_none_or(|node| tree.has_room_below(node));
    told(call, has_room || tree.has_failures.load(Relaxed))
}

/// The answer, noted if it spares a push.
#[inline]
fn told(call: &Call<'_>, has_room: bool) -> bool {
    if !has_room {
        call.told_full.set(true);
    }
    has_room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_full_that_have_said_so() {
        for children in [1, 2, 63, 64, 65, 128, 130] {
            let room = Room::new(children, false);
            let not_full = || room.not_full().collect::<Vec<_>>();
            for child in 0..children {
                assert_eq!(not_full(), (child..children).collect::<Vec<_>>());
                room.note_child(child as u32, true);
            }
            assert_eq!(not_full(), [0; 0], "all {children} are full");
            room.note_child(children as u32 - 1, false);
            assert_eq!(not_full(), [children - 1]);
            room.forget();
            assert_eq!(not_full(), (0..children).collect::<Vec<_>>());
        }
    }
    #[test]
    fn who_is_on_trial_is_heeded_after_it() {
        let room = Room::new(0, true);
        for _ in 0..TRIALS {
            assert!(!room.report(true, false));
            room.pass_trial();
        }
        assert!(room.report(true, false) && !room.report(false, false));
    }

    #[test]
    fn who_lied_stays_on_trial_whatever_was_refused_meanwhile() {
        let room = Room::new(0, true);
        room.distrust();
        room.pass_trial();
        assert!(room.trials.load(Relaxed) == FOR_EVER && !room.report(true, false));
    }
}
