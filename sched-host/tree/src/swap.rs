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
//! 4. **Push.** The new tree replaces the old one, its components are notified of their workers, and every task is
//!    pushed into its root. No other call is inside, so no later task overtakes these.
//! 5. **Commit.** The gate opens. The old tree is dropped afterwards.
//!
//! If a component of the new tree fails in step 4, every task of the new tree is taken back through the ledger (not by
//! `drain`, since it has failed), the old tree is restored, and the tasks are pushed into it. So a swap succeeds as a
//! whole, or the old tree continues.
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
use super::fault::Fault;
use super::ledger::{Phase, Slot, SlotId};
use super::{Call, Part, Tree};
use std::collections::BTreeSet;
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
    /// A component of the new tree failed while it received the tasks.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Failed(Vec<Fault>),
    /// All trees together would have too many nodes.
    #[error("all trees together would have more than 2^24 nodes")]
    TooLarge,
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
        let mut next = LiveTree::assemble(parts, &self.env).ok_or(SwapError::TooLarge)?;
        let began = Instant::now();
        let outcome = self.live.alone(
            || began.elapsed() > PATIENCE,
            |standing| {
                let tasks = standing.give_up_tasks();
                std::mem::swap(standing, &mut next);
                let old = &mut next;
                standing.take_over(&tasks, members_changed);
                let failed = standing.nodes.iter().any(|node| node.is_quarantined());
                if failed {
                    let faults = standing.faults();
                    let back = standing.take_back(tasks);
                    std::mem::swap(standing, old);
                    standing.take_over(&back, members_changed);
                    return Err(SwapError::Failed(faults));
                }
                self.past.lock().extend(old.faults());
                Ok(tasks.len() as u64)
            },
        );
        // The discarded tree is dropped here, not while the gate is closed.
        drop(next);
        self.env.fallback.wake_again();
        if self.live.inside(super::lane_of(None), |live| live.repairs.load(Acquire)) {
            self.repair();
        }
        outcome.unwrap_or(Err(SwapError::Busy))
    }
}

impl LiveTree {
    /// Takes every task that this tree holds, or that fell out of it. The caller is alone, and then owns them.
    fn give_up_tasks(&self) -> Vec<&'static Slot> {
        let numbers = self.numbers();
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
        for node in nodes.into_iter().filter(|node| !node.is_quarantined()) {
            let given = node.with(&call, |component, raw| component.drain(raw));
            node.queued.store(0, Relaxed);
            let slots = given.into_iter().filter_map(Slot::of);
            tasks.extend(slots.filter(|slot| slot.take_from(&numbers, Phase::Waiting)));
        }
        for slot in self.ledger.held_by(&numbers) {
            let holder = slot.phase();
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
    /// fell out of it. The caller is alone, and then owns them.
    fn take_back(&self, given: Vec<&'static Slot>) -> Vec<&'static Slot> {
        let numbers = self.numbers();
        let fallen = self.fallback.take_all();
        fallen.iter().for_each(|slot| slot.set_phase(Phase::Waiting));
        let mut rest: BTreeSet<SlotId> = fallen.iter().map(|slot| slot.id()).collect();
        let is_back = |slot: &&Slot| slot.take_from(&numbers, Phase::Waiting) || rest.remove(&slot.id());
        let mut back: Vec<_> = given.into_iter().filter(is_back).collect();
        back.extend(fallen.into_iter().filter(|slot| rest.contains(&slot.id())));
        back
    }

    /// Notifies the components of an installed tree of their workers, and pushes the tasks. The caller is alone.
    fn take_over(&self, tasks: &[&'static Slot], members_changed: &dyn Fn()) {
        self.fallback.set_members(self.members());
        members_changed();
        self.notify_change_workers();
        tasks.iter().for_each(|slot| self.push(slot, None, None));
    }
}
