//! Exchange of a running tree for another one.
//!
//! # Protocol
//!
//! 1. **Build.** The new components are built and assembled before anything changes: errors of the policy and of
//!    `build` appear here. The new tree gets its own numbers in the ledger.
//! 2. **Quiesce.** The [gate](super::gate) closes, and the swapping thread waits until no call is inside. A component
//!    that does not return keeps the gate from closing; then the gate opens again, and the old tree continues.
//! 3. **Drain.** Every component gives up its stored tasks, the deepest first, since tasks nearest to the workers were
//!    released earliest. The result is not trusted: each handle must belong to a task that is in this tree according to
//!    the ledger, and the task is taken by compare-and-swap. Then the ledger is swept for tasks still held by a node of
//!    the old tree (one that panicked, lied or forgot), in order of submission; then the fallback store is emptied.
//!    From here on no node holds a task of this context: the swapping thread owns all of them.
//! 4. **Push.** The new tree replaces the old one, its components are notified of their workers and get what their
//!    predecessors [left](sched_core::Component::export) before the drain, and every task is pushed into its root. No
//!    other call is inside, so no later task overtakes these.
//! 5. **Commit.** The gate opens. The old tree is dropped afterwards.
//!
//! If a component of the new tree fails in step 4, every task of the new tree is taken back through the ledger (not by
//! `drain`, since it has failed), the old tree is restored, and the tasks are pushed into it. So a swap succeeds as a
//! whole, or the old tree continues, without those of its components that failed on the way.
//!
//! # Workers join or leave
//!
//! With the same policy, nodes of both trees correspond that have the same path, component, plugin and parameters: an
//! edit may have put another one in a place. Where that component [keeps its state](sched_core::Info::keeps_state), it
//! moves to the new tree with its tasks: it is not drained, and the ledger notes the new number of its node for each
//! task. The component that was built for the new tree goes to the old one, and is dropped with it. A component with a
//! task that no worker below it can execute any more does not stay: others may be able to. All other tasks move as
//! above. A task that stays is not pushed, so
//! every sleeping worker is woken once to look. If the new tree fails, these components are drained, get their old
//! nodes back, and the old tree gets all tasks.
//!
//! # Parts that contexts share
//!
//! The component of a [shared part](super::shared_part) stays where it is, with its tasks, while another tree has it:
//! the next one, or that of another context. The exchange is refused if a task would be out of reach.
//!
//! *No task is lost.* A task is in a call, held by a node, in the fallback store, or owned by the swapping thread. No
//! call is left once the gate is closed; the ledger knows the tasks of nodes. A pull marks its task as running before
//! it leaves. *No task is run twice.* A task changes hands by a compare-and-swap that makes all handles stale: a handle
//! that an old component keeps, or drops on its way out, has no effect.
//!
//! *No task waits unseen.* A push under the closed gate wakes as any push does: it stores the task, then looks for
//! sleepers. A worker that looks a second time before it sleeps waits at the gate, and finds the new tree. The members
//! of the new tree are published before the first push, so a woken worker knows where to look. A handle that a plugin's
//! own thread drops during the swap may reach the fallback store after it was emptied: hence the last look.

use super::assembly::LiveTree;
use super::attendance::Method;
use super::fault::Fault;
use super::ledger::{NodeId, NodeNumber, Phase, Slot, SlotId};
use super::node::TreeNode;
use super::shared_part::Staying;
use super::{Call, Part, Tree};
use sched_core::WorkerId;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// Time that a swap waits for calls that do not return.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why the old tree continues.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SwapError {
    /// A component did not return from a call.
    #[error("a component did not come back from a call within {PATIENCE:?}")]
    Busy,
    /// A part that contexts share failed, and the tree of another context has yet to leave it.
    #[error("the shared part `{part}` failed, and another context has not left it yet")]
    Failing {
        /// Its name.
        part: String,
    },
    /// A component of the new tree failed while it received the tasks.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Failed(Vec<Fault>),
    /// All trees together would have too many nodes.
    #[error("all trees together would have more than 2^24 nodes")]
    TooLarge,
    /// A part that contexts share is defined in another way by another context.
    #[error("the shared part `{part}` is `{there}` in another context, and would be `{here}` here")]
    DefinedOtherwise {
        /// Its name.
        part: String,
        /// What it would be in the new tree.
        here: String,
        /// What it is.
        there: String,
    },
    /// A part that contexts share, and that this one leaves, has tasks that no worker of another one can execute.
    #[error("the shared part `{part}` has {tasks} task(s) that no worker left to it can execute")]
    Stranded {
        /// Its name.
        part: String,
        /// Number of the tasks.
        tasks: u64,
    },
}

impl Tree {
    /// Exchanges the tree for one of these parts, which receives all tasks; see the text of the module.
    /// `members_changed` is called once the members of the new tree are published, before the first of them may be
    /// woken, and again if that is undone. Returns the number of tasks moved.
    ///
    /// The caller is not inside the tree.
    ///
    /// # Errors
    /// See [`SwapError`]: the old tree continues, with all of its tasks.
    pub fn swap(&self, parts: Vec<Part>, members_changed: &dyn Fn()) -> Result<u64, SwapError> {
        let renewed = self.live.inside(super::lane_of(None), |live| live.first);
        self.exchange(parts, members_changed, |_, _| Vec::new(), Some(renewed))
    }

    /// Exchanges the tree for one of the same policy over other workers: components that
    /// [keep their state](sched_core::Info::keeps_state) live on, with their tasks.
    ///
    /// # Errors
    /// As [`swap`](Self::swap).
    pub fn reshape(&self, parts: Vec<Part>, members_changed: &dyn Fn()) -> Result<u64, SwapError> {
        self.exchange(parts, members_changed, corresponding, None)
    }

    fn exchange(
        &self,
        parts: Vec<Part>,
        members_changed: &dyn Fn(),
        corresponding: fn(&LiveTree, &LiveTree) -> Vec<Pair>,
        renewed: Option<NodeNumber>,
    ) -> Result<u64, SwapError> {
        let has_shared = |live: &LiveTree| live.nodes.iter().any(|node| node.shared.is_some());
        let shares = LiveTree::shares(&parts) || self.live.inside(super::lane_of(None), has_shared);
        let alone_with_shared = shares.then(|| self.env.ledger.shared_parts.exchanging());
        let mut next = LiveTree::assemble(parts, &self.env, renewed)?;
        let began = Instant::now();
        let outcome = self.live.alone(
            || began.elapsed() > PATIENCE,
            |standing| {
                let mut kept = corresponding(standing, &next);
                let moves = standing.plan_shared(&next)?;
                standing.leave_out_stranded(&next, &mut kept);
                let left = standing.exports(&next, &kept, &moves.staying);
                let tasks = standing.give_up_tasks(&kept, &moves.staying);
                standing.hand_over(&mut next, &kept);
                moves.make();
                std::mem::swap(standing, &mut next);
                let old = &mut next;
                standing.take_over(&tasks, &left, members_changed);
                let failed = standing.nodes.iter().any(|node| node.is_quarantined());
                if failed {
                    let error = standing.failure();
                    moves.undo(standing, old);
                    let back = standing.take_back(tasks, &kept);
                    standing.hand_back(old, &kept);
                    std::mem::swap(standing, old);
                    // A shared component that failed has tasks of this tree as well.
                    standing.repairs.store(shares, Release);
                    standing.take_over(&back, &[], members_changed);
                    return Err(error);
                }
                if !kept.is_empty() || !moves.staying.is_empty() {
                    standing.wake_members();
                }
                moves.wake_others();
                self.past.lock().extend(old.faults());
                Ok(tasks.len() as u64)
            },
        );
        // The discarded tree is dropped here, not while the gate is closed.
        drop(next);
        drop(alone_with_shared);
        self.env.fallback.wake_again();
        if self.live.inside(super::lane_of(None), |live| live.repairs.load(Acquire)) {
            self.repair();
        }
        outcome.unwrap_or(Err(SwapError::Busy))
    }
}

/// A node of the old tree, and the node of the new tree that its component moves to.
#[derive(Clone, Copy)]
struct Pair {
    old: NodeId,
    new: NodeId,
}

/// The nodes of two trees of one policy that correspond, and whose component keeps its state.
fn corresponding(old: &LiveTree, new: &LiveTree) -> Vec<Pair> {
    let keeps = |node: &&TreeNode| node.keeps_state && node.shared.is_none();
    let by_path: HashMap<&str, &TreeNode> =
        new.nodes.iter().filter(keeps).map(|node| (node.place().path(), node)).collect();
    let pair = |node: &TreeNode| {
        let next = by_path.get(node.place().path())?;
        let failed = node.is_quarantined() || node.post.as_ref().is_some_and(|post| post.given_up().is_some());
        (node.origin == next.origin && !failed).then_some(Pair { old: node.id, new: next.id })
    };
    old.nodes.iter().filter(keeps).filter_map(pair).collect()
}

impl LiveTree {
    /// Leaves out components that hold a task which no worker below their new node can execute: others may. The caller
    /// is alone.
    fn leave_out_stranded(&self, next: &LiveTree, kept: &mut Vec<Pair>) {
        if kept.is_empty() {
            return;
        }
        let mut stranded = HashSet::new();
        let places: HashMap<NodeNumber, NodeId> = kept.iter().map(|pair| (self.first.of(pair.old), pair.new)).collect();
        for slot in self.ledger.held_by(&self.numbers()) {
            if let Phase::InTree(number) = slot.phase()
                && let Some(to) = places.get(&number)
                && !next.some_fits(&next.nodes[to.index()], slot.head())
            {
                stranded.insert(*to);
            }
        }
        kept.retain(|pair| !stranded.contains(&pair.new));
    }

    /// Moves these components to their nodes in `next`, with their tasks. The caller is alone.
    fn hand_over(&mut self, next: &mut LiveTree, kept: &[Pair]) {
        if kept.is_empty() {
            return;
        }
        let mut numbers = HashMap::new();
        for Pair { old, new } in kept {
            let (node, to) = (&mut self.nodes[old.index()], &mut next.nodes[new.index()]);
            node.exchange_component(to);
            numbers.insert(node.number, to.number);
        }
        for slot in self.ledger.held_by(&self.numbers()) {
            if let Phase::InTree(from) = slot.phase()
                && let Some(to) = numbers.get(&from)
            {
                slot.move_with(from, *to);
            }
        }
    }

    /// Gives these components, which have no tasks, back to their nodes in `old`. One that has failed meanwhile may
    /// have stale handles, or a thread inside that does not come back: calls pass through its node there, too. The
    /// caller is alone.
    fn hand_back(&mut self, old: &mut LiveTree, kept: &[Pair]) {
        for Pair { old: id, new } in kept {
            let (node, back) = (&mut self.nodes[new.index()], &mut old.nodes[id.index()]);
            node.exchange_component(back);
            let panic = node.health.panic.get_mut().take();
            let has_failed = panic.is_some() || back.post.as_ref().is_some_and(|post| post.given_up().is_some());
            if has_failed {
                *back.health.panic.get_mut() = panic;
                old.quarantine(&old.nodes[id.index()]);
            }
        }
        old.forget_room();
    }

    /// Takes every task that this tree holds, or that fell out of it, but those of components that are `kept` or
    /// `staying`. The caller is alone, and then owns them.
    fn give_up_tasks(&self, kept: &[Pair], staying: &[Staying]) -> Vec<&'static Slot> {
        let numbers = self.numbers();
        let stays: HashSet<NodeId> =
            kept.iter().map(|pair| pair.old).chain(staying.iter().map(|node| node.old)).collect();
        let mut tasks = Vec::new();
        let mut depths = vec![0; self.nodes.len()];
        for node in &self.nodes {
            for child in &node.children {
                depths[child.index()] = depths[child.index()].max(depths[node.id.index()] + 1);
            }
        }
        let mut nodes: Vec<_> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(depths[node.id.index()]));
        let call = Call::new(self, None, u32::MAX);
        for node in nodes.into_iter().filter(|node| !node.is_quarantined() && !stays.contains(&node.id)) {
            let given = node.with(&call, |component, raw| component.drain(raw));
            self.quarantine_if_late(node, Method::Drain);
            node.queued.set(0);
            let slots = given.into_iter().filter_map(Slot::of);
            tasks.extend(slots.filter(|slot| slot.take_from(&numbers, Phase::Waiting)));
        }
        for slot in self.ledger.held_by(&numbers) {
            let holder = slot.phase();
            if matches!(holder, Phase::InTree(number) if stays.contains(&number.in_tree(self.first))) {
                continue;
            }
            if slot.take_from(&numbers, Phase::Waiting) {
                if let Phase::InTree(number) = holder {
                    let node = &self.nodes[number.in_tree(self.first).index()];
                    node.health.rehomed.fetch_add(1, Relaxed);
                    node.note_kept(1);
                }
                tasks.push(slot);
            }
        }
        let fallen = self.fallback.take_all();
        fallen.iter().for_each(|slot| slot.set_phase(Phase::Waiting));
        tasks.extend(fallen);
        tasks
    }

    /// Takes back the tasks that this tree, which has failed, just received: those that its nodes hold, and those that
    /// fell out of it. Components that were `kept` give up theirs. The caller is alone, and then owns them.
    fn take_back(&self, given: Vec<&'static Slot>, kept: &[Pair]) -> Vec<&'static Slot> {
        let numbers = self.numbers();
        let mut back = Vec::new();
        let call = Call::new(self, None, u32::MAX);
        for node in kept.iter().map(|pair| &self.nodes[pair.new.index()]) {
            // A component that failed may keep handles, which are stale from now on.
            let kept = node.with(&call, |component, raw| component.drain(raw));
            back.extend(kept.into_iter().filter_map(Slot::of).filter(|slot| slot.take_from(&numbers, Phase::Waiting)));
        }
        let fallen = self.fallback.take_all();
        fallen.iter().for_each(|slot| slot.set_phase(Phase::Waiting));
        let mut rest: BTreeSet<SlotId> = fallen.iter().map(|slot| slot.id()).collect();
        let is_back = |slot: &&Slot| slot.take_from(&numbers, Phase::Waiting) || rest.remove(&slot.id());
        back.extend(given.into_iter().filter(is_back));
        let left = self.ledger.held_by(&numbers).into_iter();
        back.extend(left.filter(|slot| slot.take_from(&numbers, Phase::Waiting)));
        back.extend(fallen.into_iter().filter(|slot| rest.contains(&slot.id())));
        back
    }

    /// What components leave to their successors in `next`: for each of those its node, and the state. The caller is
    /// alone.
    ///
    /// The successor has the same component, plugin and topology object: the node of the same path, or else the first
    /// that is left.
    fn exports(&self, next: &LiveTree, kept: &[Pair], staying: &[Staying]) -> Vec<(NodeId, Vec<u8>)> {
        let lives_on = |node: &&TreeNode| {
            kept.iter().any(|pair| pair.old == node.id) || staying.iter().any(|shared| shared.old == node.id)
        };
        let is_taken = |node: &&TreeNode| {
            kept.iter().any(|pair| pair.new == node.id) || staying.iter().any(|shared| shared.new == Some(node.id))
        };
        let key = |node: &TreeNode| {
            (node.origin.component.clone(), node.origin.plugin.clone(), node.place().raw().object.as_str().to_owned())
        };
        let mut waiting: HashMap<_, Vec<&TreeNode>> = HashMap::new();
        for node in next.nodes.iter().filter(|node| !is_taken(node)) {
            waiting.entry(key(node)).or_default().push(node);
        }
        let leaving = self.nodes.iter().filter(|node| !lives_on(node));
        let mut left = Vec::new();
        for (node, state) in leaving.filter_map(|node| Some((node, self.export(node)?))) {
            let Some(heirs) = waiting.get_mut(&key(node)).filter(|heirs| !heirs.is_empty()) else { continue };
            let same = heirs.iter().position(|heir| heir.place().path() == node.place().path());
            left.push((heirs.remove(same.unwrap_or(0)).id, state));
        }
        left
    }

    /// Notifies the components of an installed tree of their workers, hands them what others left, and pushes the
    /// tasks, with the priorities that the application gave: components of the other tree may have changed them. The
    /// caller is alone.
    fn take_over(&self, tasks: &[&'static Slot], left: &[(NodeId, Vec<u8>)], members_changed: &dyn Fn()) {
        self.fallback.set_members(self.members());
        self.straight_back.set(self.saves);
        members_changed();
        self.notify_change_workers();
        left.iter().for_each(|(node, state)| self.import(&self.nodes[node.index()], state));
        for slot in tasks {
            slot.head().restore_priority();
            self.push(slot, None, None);
        }
    }

    /// Why the tree, of which a node is quarantined, is given up.
    fn failure(&self) -> SwapError {
        let faults = self.faults();
        let part = || self.nodes.iter().filter_map(|node| node.shared.as_ref()).find(|part| part.has_failed());
        match faults.is_empty().then(part).flatten() {
            // In a call of another tree, where the fault is.
            Some(part) => SwapError::Failing { part: part.name().to_owned() },
            None => SwapError::Failed(faults),
        }
    }

    /// Wakes every worker of the tree that sleeps.
    pub(super) fn wake_members(&self) {
        for member in self.members().map(|member| WorkerId(member as u32)) {
            if self.sleeping.contains(member.0) {
                self.services.wake(member);
            }
        }
    }
}
