//! Breaches of contract that do not keep a component from going on: they are counted at its node, and are reported as
//! faults.
//!
//! The host makes up for each of them, so that no other component sees it. They are looked for only where a call has
//! already left the usual way: at a refusal, at a missing neighbour, at an unusable number.

use super::assembly::LiveTree;
use super::attendance::{self, Method};
use super::call::Call;
use super::ledger::{Slot, SlotId};
use super::node::TreeNode;
use super::observer::NoteKind;
use parking_lot::Mutex;
use sched_core::Refusal;
use sched_core::abi::wire::RawPush;
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeMap;

/// A breach of contract that does not keep a component from going on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Breach {
    /// A refusal handed back another task than the one that was pushed.
    OtherTaskRefused,
    /// The root refused a task, although it is declared to store any number of them.
    UnboundedRefused,
    /// A child was named that does not exist. A task pushed to it was refused.
    NoSuchChild,
    /// A parent was named that does not exist.
    NoSuchParent,
    /// A drain gave fewer tasks than the node held. The others were taken back.
    TasksKept,
    /// A load was negative, infinite or no number. It was replaced: by a very large one if it was infinite, else by 0.
    UnusableLoad,
}

impl Breach {
    /// The breach by `method`, in words.
    pub(super) fn describe(self, method: Method, count: u64) -> String {
        let times = times(count);
        match self {
            Breach::OtherTaskRefused => format!("`{method}` handed back another task than it was given, {times}"),
            Breach::UnboundedRefused => {
                format!("`{method}` refused a task at the root, {times}, although it is declared to store any number")
            }
            Breach::NoSuchChild => format!("`{method}` named a child that does not exist, {times}"),
            Breach::NoSuchParent => format!("`{method}` named a parent that does not exist, {times}"),
            Breach::TasksKept if count == 1 => format!("`{method}` kept a task, which was taken back from it"),
            Breach::TasksKept => format!("`{method}` kept {count} tasks, which were taken back from it"),
            Breach::UnusableLoad => {
                format!("`{method}` gave a load that is negative, infinite or not a number, {times}; it was replaced")
            }
        }
    }
}

/// How often, in words.
pub(super) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// The breaches of one component, counted.
#[derive(Default)]
pub(super) struct Breaches(Mutex<BTreeMap<(Breach, Method), u64>>);

impl Breaches {
    /// Counts a breach. Returns whether it is the first of its kind.
    #[cold]
    fn add(&self, breach: Breach, method: Method, count: u64) -> bool {
        let mut breaches = self.0.lock();
        let all = breaches.entry((breach, method)).or_insert(0);
        *all += count;
        *all == count
    }

    /// Each breach, the method, and how often.
    pub(super) fn all(&self) -> Vec<(Breach, Method, u64)> {
        self.0.lock().iter().map(|((breach, method), count)| (*breach, *method, *count)).collect()
    }
}

/// Stands for an infinite load: a sum of many stays finite.
const LARGEST_LOAD: f64 = 1e300;

thread_local! {
    /// The task that a component last handed back in place of another: the nodes above only pass it on.
    static HANDED_BACK: Cell<Option<(SlotId, u64)>> = const { Cell::new(None) };
}

impl TreeNode {
    /// Notes a breach by the call of the component that this thread is in.
    #[cold]
    pub(super) fn note_breach(&self, call: &Call<'_>, breach: Breach) {
        let method = self.post.as_ref().and_then(|post| attendance::method_at(post));
        self.count_breach(call, breach, method.unwrap_or(Method::PushTask));
    }

    /// Counts a breach; the first of its kind is reported to an observer.
    #[cold]
    fn count_breach(&self, call: &Call<'_>, breach: Breach, method: Method) {
        if self.health.breaches.add(breach, method, 1) {
            call.tree.note(call, self, NoteKind::Fault, || breach.describe(method, 1));
        }
    }

    /// Notes that a drain did not give these tasks. Failed components have a fault already.
    #[cold]
    pub(super) fn note_kept(&self, tasks: u64) {
        let is_given_up = self.post.as_ref().is_some_and(|post| post.given_up().is_some());
        if !self.is_quarantined() && !is_given_up {
            self.health.breaches.add(Breach::TasksKept, Method::Drain, tasks);
        }
    }

    /// Looks at a refusal that hands back another task.
    #[cold]
    pub(super) fn look_at_other_task(&self, call: &Call<'_>, answer: RawPush) {
        let Some(slot) = Slot::of(answer.refused).filter(|_| !self.is_quarantined()) else { return };
        let task = Some((slot.id(), answer.refused.generation));
        if HANDED_BACK.replace(task) != task {
            self.count_breach(call, Breach::OtherTaskRefused, Method::PushTask);
        }
    }

    /// A load in place of one that the component gave.
    #[cold]
    pub(super) fn usable_load(&self, call: &Call<'_>, load: f64) -> f64 {
        self.count_breach(call, Breach::UnusableLoad, Method::EstimatedLoad);
        if load > LARGEST_LOAD { LARGEST_LOAD } else { 0.0 }
    }
}

/// Whether sums of loads like this one mean something.
#[inline]
pub(super) fn is_usable_load(load: f64) -> bool {
    (0.0..=LARGEST_LOAD).contains(&load)
}

impl LiveTree {
    /// Moves the task that the root handed back, which was pushed `given`, to the fallback store.
    #[cold]
    pub(super) fn refused_by_root(&self, call: &Call<'_>, root: &TreeNode, given: &Slot, answer: RawPush) {
        let Some(slot) = Slot::of(answer.refused) else { return };
        let is_given = slot.id() == given.id();
        let for_nobody = Refusal::from_code(answer.why) == Refusal::NoWorker && !self.some_fits(root, slot.head());
        if root.stores_any_number && is_given && !for_nobody && !root.is_quarantined() {
            root.count_breach(call, Breach::UnboundedRefused, Method::PushTask);
        }
        self.fall_back(slot);
    }
}
