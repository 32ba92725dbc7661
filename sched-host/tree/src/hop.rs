//! Every hop from a component to another. Ownership, refusals, nesting and quarantine are handled here and nowhere
//! else.
//!
//! A quarantined node is passed through: a push continues to its children, a pull and `can_push` to its parents,
//! `can_pull` to its children, like the default methods of a component. So a tree stays connected when a component
//! fails.

use super::LiveTree;
use super::breach::{Breach, is_usable_load};
use super::call::{Call, Looks};
use super::ledger::{NodeId, Phase, Slot};
use super::node::{ParentLink, TreeNode};
use super::observer::NoteKind;
use sched_core::WorkerId;
use sched_core::abi::RawTask;
use sched_core::abi::wire::RawPush;
use sched_sync::light_fence;
use std::sync::atomic::Ordering::*;

const FULL: u32 = 1;

impl LiveTree {
    fn node(&self, id: NodeId) -> &TreeNode {
        &self.nodes[id.index()]
    }

    /// Node `from` pushes `task` to node `to`. A stale task is dropped: it has another owner.
    pub(super) fn hop_push(&self, call: &Call<'_>, from: NodeId, to: NodeId, task: RawTask) -> RawPush {
        let Some(slot) = Slot::of(task) else { return RawPush::TAKEN };
        let Some(_hop) = call.descend() else {
            self.note_cycle(call, to);
            return RawPush { refused: task, why: FULL };
        };
        let node = self.node(to);
        call.forget_time();
        if self.observed.is_some() {
            self.note_choice(call, from, to, slot);
        }
        let unaimed = call.note_move(slot);
        slot.hold(task, node.number);
        let answer = self.give(call, node, task, slot);
        call.end_move(unaimed);
        match Slot::of(answer.refused) {
            Some(slot) => {
                slot.hold(answer.refused, self.first.of(from));
                answer
            }
            None => {
                if call.looks.get() == Looks::Once {
                    self.note_brought(call, node, slot);
                }
                RawPush::TAKEN
            }
        }
    }

    /// Notes that a node has taken a task in a pull, if the worker that pulls may get it from there.
    #[inline(never)]
    fn note_brought(&self, call: &Call<'_>, node: &TreeNode, slot: &'static Slot) {
        if let Some(worker) = call.requester
            && slot.phase() == Phase::InTree(node.number)
            && node.has_in_context(worker)
            && self.can_execute(worker, slot)
        {
            call.looks.set(Looks::Again);
        }
    }

    /// Pushes a task, held by `node` in the ledger, to its component.
    #[inline(always)]
    pub(super) fn give(&self, call: &Call<'_>, node: &TreeNode, task: RawTask, slot: &'static Slot) -> RawPush {
        let answer = if self.is_full(node) {
            RawPush { refused: task, why: FULL }
        } else if node.accepts_push() {
            match self.claim(node) {
                Some(claim) => self.try_push(call, node, claim, task),
                None => node.with(call, |component, raw| component.push_task(raw, task)),
            }
        } else {
            self.pass_push(call, node, task, slot)
        };
        if node.pushes_on_pull {
            node.set_blocked(!answer.refused.is_none());
        }
        if answer.refused.is_none() {
            if let Some(observed) = &self.observed {
                observed.taken(call, node, slot);
            }
            return answer;
        }
        node.note_refusal(answer.why);
        if answer.refused.head != task.head {
            node.look_at_other_task(call, answer);
        }
        if let Some(observed) = &self.observed {
            observed.refused(call, node, answer.refused, answer.why);
        }
        answer
    }

    #[cold]
    fn pass_push(&self, call: &Call<'_>, node: &TreeNode, task: RawTask, slot: &'static Slot) -> RawPush {
        if !self.takes_along(node, task) {
            return RawPush::TAKEN;
        }
        if node.children.is_empty() {
            self.fall_back_from(node, slot);
            return RawPush::TAKEN;
        }
        let mut answer = RawPush { refused: task, why: FULL };
        let fits = |child: &&NodeId| self.some_fits(self.node(**child), slot.head());
        let is_any_fit = node.children.iter().any(|child| fits(&child));
        for child in node.children.iter().filter(|child| !is_any_fit || fits(child)) {
            answer = self.hop_push(call, node.id, *child, answer.refused);
            if answer.refused.is_none() || !self.takes_along(node, answer.refused) {
                return RawPush::TAKEN;
            }
        }
        answer
    }

    /// `node` pulls from one parent, or from each in order.
    pub(super) fn hop_pull(&self, call: &Call<'_>, node: &TreeNode, parent: Option<u32>) -> RawTask {
        let parents = match parent {
            None => &node.sources[..],
            Some(number) => match node.parents.get(number as usize) {
                Some(parent) => std::slice::from_ref(parent),
                None => {
                    node.note_breach(call, Breach::NoSuchParent);
                    &[]
                }
            },
        };
        match self.ask(call, parents) {
            Some((task, slot)) => {
                slot.hold(task, node.number);
                task
            }
            None => RawTask::NONE,
        }
    }

    /// A task from one of these nodes, for its child of the given number. In the ledger the node still holds the task.
    #[inline(always)]
    pub(super) fn ask(&self, call: &Call<'_>, nodes: &[ParentLink]) -> Option<(RawTask, &'static Slot)> {
        for ParentLink { parent, child } in nodes {
            let Some(_hop) = call.descend() else {
                self.note_cycle(call, *parent);
                return None;
            };
            let task = self.pull_at(call, self.node(*parent), *child);
            if let Some(slot) = Slot::of(task) {
                return Some((task, slot));
            }
        }
        None
    }

    /// A task from one of these nodes for the host itself, whose call is not nested in a hop yet.
    #[inline(always)]
    pub(super) fn ask_first(&self, call: &Call<'_>, nodes: &[ParentLink]) -> Option<&'static Slot> {
        nodes.iter().find_map(|link| Slot::of_pulled(self.pull_at(call, self.node(link.parent), link.child)))
    }

    /// A task from `node` for child number `to`. A component without tasks is passed by, unless a task was pushed to it
    /// meanwhile.
    #[inline]
    pub(super) fn pull_at(&self, call: &Call<'_>, node: &TreeNode, to: u32) -> RawTask {
        if node.is_passed_by() {
            let task = self.ask_above(call, node);
            if !task.is_none() || node.is_passed_by() {
                return task;
            }
        }
        node.with(call, |component, raw| component.pull_task(raw, to))
    }

    /// A task from above a node that is passed by, which does not come to hold it: see
    /// [`takes_along`](Self::takes_along).
    #[inline(never)]
    fn ask_above(&self, call: &Call<'_>, node: &TreeNode) -> RawTask {
        self.ask(call, &node.sources).map_or(RawTask::NONE, |(task, _)| task)
    }

    /// Reports room at `node` to each parent in order, until one sends a task.
    pub(super) fn hop_can_push(&self, call: &Call<'_>, node: &TreeNode) -> bool {
        node.parents.iter().any(|ParentLink { parent, child }| {
            let Some(_hop) = call.descend() else {
                self.note_cycle(call, *parent);
                return false;
            };
            let above = self.node(*parent);
            if above.pushes_on_pull {
                above.set_blocked(false);
            }
            if above.is_quarantined() {
                self.hop_can_push(call, above)
            } else {
                above.with(call, |component, raw| component.can_push(raw, *child))
            }
        })
    }

    /// Reports work at `node` to one child, or to each in order, until a worker is woken, or to all. A leaf wakes its
    /// worker. For a component that pushes when it is pulled, tasks are fetched instead, although nobody may sleep:
    /// where a task goes, and that its data comes, should not wait until a worker asks for more.
    ///
    /// The (light) fence is one half of a pair: a thread that stored a task looks for sleepers *after* storing it, and
    /// a worker looks for tasks once more *after* it is marked as sleeping (`sched_sync::sleep` has the other half).
    /// One of the two sees the other.
    #[inline]
    pub(super) fn hop_can_pull(&self, call: &Call<'_>, node: &TreeNode, child: Option<u32>, all: bool) -> bool {
        light_fence();
        let is_of_use = !self.sleeping.is_empty() || (node.fetches_below && call.is_push());
        is_of_use && self.wake_below(call, node, child, all)
    }

    /// The rest of [`hop_can_pull`](Self::hop_can_pull), if a worker sleeps, or tasks may be fetched.
    #[inline(never)]
    fn wake_below(&self, call: &Call<'_>, node: &TreeNode, child: Option<u32>, all: bool) -> bool {
        if let Some(worker) = node.place().leaf_worker() {
            return self.wake_worker(call, worker);
        }
        let is_of_use = |node: &TreeNode| node.fetches_below || self.sleeps_below(call, node);
        if !is_of_use(node) {
            return false;
        }
        let all = all || call.wakes_all();
        let mut woken = false;
        // Returns whether that is enough.
        let mut visit = |child: NodeId| {
            let below = self.node(child);
            if below.pushes_on_pull && self.fetch(call, node, below) {
                woken = true;
                return !all;
            }
            if !is_of_use(below) {
                return false;
            }
            let Some(_hop) = call.descend() else {
                self.note_cycle(call, child);
                return true;
            };
            woken |= if below.is_quarantined() {
                self.hop_can_pull(call, below, None, all)
            } else {
                below.with(call, |component, raw| component.can_pull(raw))
            };
            woken && !all
        };
        match (child, &node.wake_routes) {
            (Some(number), _) => match node.children.get(number as usize) {
                Some(child) => _ = visit(*child),
                None => node.note_breach(call, Breach::NoSuchChild),
            },
            (None, Some(routes)) if !node.fetches_below => {
                let below = &node.place().raw().workers_in_context;
                let asleep = self.sleeping.words(node.words.clone()).map(|(word, asleep)| (word, asleep & below[word]));
                routes.to_sleepers(asleep, |number| visit(node.children[number as usize]));
            }
            (None, _) => _ = node.children.iter().any(|child| visit(*child)),
        }
        woken
    }

    /// Has the parents of a node push to it what they have, in a call that pushes a task, when `above` reports work.
    /// Returns whether the task is gone.
    ///
    /// Once the node has refused a task, nothing is fetched until somebody below reports room. (That is a hint: if the
    /// report was missed, a task waits until a worker pulls.) A parent that gets a task back, while others look for
    /// one, reports it again; within the same call nothing is fetched for the node then.
    fn fetch(&self, call: &Call<'_>, above: &TreeNode, node: &TreeNode) -> bool {
        if node.is_blocked() {
            return false;
        }
        let Some(before) = call.begin_to_fetch(node.id) else { return false };
        if let (Some(observed), Some(slot)) = (&self.observed, call.pushed_to(above.number)) {
            observed.taken(call, above, slot);
        }
        let sent = self.hop_can_push(call, node);
        call.fetched(before);
        // What was pushed may still be there, behind a task for others.
        sent && call.pushed_to(above.number).is_none()
    }

    /// Whether a worker below sleeps that is useful to the call.
    pub(super) fn sleeps_below(&self, call: &Call<'_>, node: &TreeNode) -> bool {
        (node.archs & call.archs() != 0 || call.is_restricted())
            && (self.sleeping.meets(&node.place().raw().workers_in_context, node.words.clone())
                || node.teams.as_ref().is_some_and(|teams| teams.sleeps(call, &self.sleeping)))
    }

    fn wake_worker(&self, call: &Call<'_>, worker: WorkerId) -> bool {
        let eligible = self.workers.get(worker.index()).is_some_and(|facts| call.is_for(worker, facts.arch));
        if let Some(team) = self.teams.of(worker) {
            return eligible && self.wake_team(call, team);
        }
        if !eligible || !self.sleeping.contains(worker.0) {
            return false;
        }
        call.defer(worker) || self.services.wake(worker)
    }

    /// Expected end of the workers below a node.
    #[inline]
    pub(super) fn hop_estimated_end(&self, call: &Call<'_>, target: NodeId) -> u64 {
        let node = self.node(target);
        if node.is_quarantined() {
            return self.pass_estimated_end(call, node);
        }
        // No component is called, so the nesting is bounded by the depth of the tree.
        match self.straight_end(call, node) {
            Some(end) => end,
            None if node.end_is_noted => self.noted_end(call, node),
            None => self.ask_estimated_end(call, node),
        }
    }

    #[inline(never)]
    fn ask_estimated_end(&self, call: &Call<'_>, node: &TreeNode) -> u64 {
        let Some(_hop) = call.descend() else {
            self.note_cycle(call, node.id);
            return 0;
        };
        node.with(call, |component, raw| component.estimated_end(raw))
    }

    #[cold]
    fn pass_estimated_end(&self, call: &Call<'_>, node: &TreeNode) -> u64 {
        let Some(_hop) = call.descend() else {
            self.note_cycle(call, node.id);
            return 0;
        };
        let ends = node.children.iter().map(|child| self.hop_estimated_end(call, *child));
        ends.min().unwrap_or_else(|| call.now().as_nanos())
    }

    /// Load of a node.
    pub(super) fn hop_estimated_load(&self, call: &Call<'_>, target: NodeId) -> f64 {
        let Some(_hop) = call.descend() else {
            self.note_cycle(call, target);
            return 0.0;
        };
        let node = self.node(target);
        if node.is_quarantined() {
            node.children.iter().map(|child| self.hop_estimated_load(call, *child)).sum()
        } else {
            let load = node.with(call, |component, raw| component.estimated_load(raw));
            if is_usable_load(load) { load } else { node.usable_load(call, load) }
        }
    }

    #[cold]
    fn note_cycle(&self, call: &Call<'_>, node: NodeId) {
        let node = self.node(node);
        if !node.health.cycle.swap(true, Relaxed) {
            self.note(call, node, NoteKind::Fault, || "calls went in a circle through it".to_owned());
        }
        self.quarantine(node);
    }

    /// Quarantines the node: calls pass through it from now on, and its tasks are taken back once no call is in the
    /// tree.
    pub(super) fn quarantine(&self, node: &TreeNode) {
        node.set_quarantined();
        self.has_failures.store(true, Relaxed);
        node.queued.set(0);
        if let Some(shared) = &node.shared {
            shared.fail(self.first);
        }
        self.repairs.store(true, Release);
    }
}
