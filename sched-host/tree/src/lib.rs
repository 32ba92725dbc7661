//! The tree: components assembled from a plan, and every call into them.
//!
//! The tree knows neither threads nor data. A back end ([`Services`]) provides time, sleeping workers and models; the
//! [ledger] tells who holds each task; the [gate](sched_sync::gate) lets calls in, and keeps them out while the tree
//! behind it ([`gated`](sched_sync::gated)) is repaired, or exchanged for another one (`swap`).
//!
//! A failing component does not stop a run: see [`fault`] for what is reported, `hop` for how calls pass through a
//! quarantined node, and [`ledger`] for how its tasks are taken back.

mod assembly;
pub mod attendance;
mod attended;
mod backlog;
mod bare_tree;
mod breach;
mod call;
mod claims;
pub mod combined;
pub mod context;
mod deaf;
pub mod exit_guard;
mod expected_ends;
mod fallback;
pub mod fault;
mod hop;
pub mod hypervisor;
pub mod ledger;
mod listener;
mod lookahead;
mod memberships;
mod neighbours;
mod node;
mod observer;
mod place;
pub mod plugin;
mod prospects;
mod restrictions;
mod room;
mod routes;
pub mod seat;
pub mod services;
mod shared_part;
mod straight_back;
mod survey;
mod swap;
mod teams;
mod wake_routes;
mod witness;

pub use attended::Unplaced;
pub use bare_tree::{BareTree, NotGivenBack};
pub use breach::Breach;
pub use claims::{Claims, Declaration, Silence};
pub use fault::{Fault, FaultKind};
pub use ledger::{Ledger, NodeId, NodeNumber, Phase, Slot, SlotId};
pub use listener::TaskEnd;
pub use lookahead::Lookahead;
pub use memberships::Memberships;
pub use neighbours::ContextFacts;
pub use observer::{Alternative, Choice, NoteKind, ObservedNode, TreeObserver};
pub use services::{CostPlace, ExpectedCost, LogLine, Services};
pub use shared_part::Sharing;
pub use survey::{NodeState, suspect};
pub use swap::SwapError;

pub(crate) use assembly::LiveTree;

use assembly::TreeEnv;
use attendance::{OverdueCall, PostNumber};
use call::{Call, Looks};
use fallback::Fallback;
use node::TreeNode;
use parking_lot::Mutex;
use sched_core::abi::wire::{NO_ID, RawWorker};
use sched_core::{Arch, MemoryNode, Params, Time, WorkerId, WorkerSet};
use sched_sync::gate::{Gate, Lane};
use sched_sync::gated::Gated;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};
use straight_back::StraightBack;
use teams::Teams;

/// Properties of a worker that a tree needs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkerFacts {
    /// Architecture.
    pub arch: Arch,
    /// Memory node that it accesses without a transfer.
    pub memory_node: MemoryNode,
    /// Speed relative to one CPU core.
    pub relative_speedup: f64,
}

impl WorkerFacts {
    /// A CPU core on memory node 0.
    pub const CPU: WorkerFacts = WorkerFacts { arch: Arch::CPU, memory_node: MemoryNode(0), relative_speedup: 1.0 };
}

/// A node of a tree before assembly: a built component and its neighbours.
pub struct Part {
    /// The component.
    pub component: Unplaced,
    /// Name of the component.
    pub name: String,
    /// Plugin that the component came from.
    pub plugin: String,
    /// Parameters that it was built with.
    pub params: Params,
    /// Name of the node, unique in the tree.
    pub path: String,
    /// Topology object that the node stands for; empty for none.
    pub object: String,
    /// Children, each with the slot that it fills (or nothing). The number of a child is higher than that of its
    /// parent.
    pub children: Vec<(NodeId, String)>,
    /// All workers below.
    pub workers: WorkerSet,
    /// Those of them that are in the context.
    pub workers_in_context: WorkerSet,
    /// Its instance in the trees of all contexts, if they share it: they have one component then.
    pub sharing: Option<Sharing>,
    /// Worker of the node, if it is a leaf.
    pub worker: Option<WorkerId>,
    /// Declarations of the component. Where calls are not attended, the host relies on them and saves calls.
    pub claims: Claims,
    /// Calls of the component are [noted](attendance), so that one that does not come back can be named, and are
    /// compared with its declarations in samples.
    pub attended: bool,
}

/// A running tree of components; [`swap`](Tree::swap) exchanges it for another one.
pub struct Tree {
    live: Gated<LiveTree>,
    env: TreeEnv,
    /// Faults of components of earlier trees.
    past: Mutex<Vec<Fault>>,
}

/// Time that a repair waits for calls that do not return, before it leaves the tasks of a failed node in place until
/// the next call ends.
const REPAIR_PATIENCE: Duration = Duration::from_millis(200);

impl Tree {
    /// Assembles parts; part 0 is the root. Without parts, tasks wait until there is a tree. `seed` seeds the
    /// randomness of every node.
    ///
    /// # Panics
    /// If the number of a child is not that of a later part (plans are checked before), with more than 2²⁴ nodes, or if
    /// a part is shared with another tree of the ledger that defines it otherwise.
    #[must_use]
    pub fn assemble(
        parts: Vec<Part>,
        workers: &[WorkerFacts],
        services: Arc<dyn Services>,
        ledger: Arc<Ledger>,
        seed: u64,
    ) -> Tree {
        Tree::assemble_in_context(parts, workers, services, ledger, seed, None, ContextFacts::default())
            .expect("it is the first tree of its ledger, of fewer than 2^24 nodes")
    }

    /// [`assemble`](Self::assemble) with a source of tasks to come, and the context, for the components of this tree
    /// and of all later ones.
    ///
    /// # Errors
    /// [`SwapError::TooLarge`], and [`SwapError::DefinedOtherwise`].
    ///
    /// # Panics
    /// If the number of a child is not that of a later part: plans are checked before.
    pub fn assemble_in_context(
        parts: Vec<Part>,
        workers: &[WorkerFacts],
        services: Arc<dyn Services>,
        ledger: Arc<Ledger>,
        seed: u64,
        lookahead: Option<Arc<dyn Lookahead>>,
        context: ContextFacts,
    ) -> Result<Tree, SwapError> {
        let simple: Vec<RawWorker> = workers
            .iter()
            .map(|worker| RawWorker {
                arch: u32::from(worker.arch.number()),
                memory_node: worker.memory_node.0,
                relative_speedup: worker.relative_speedup,
            })
            .collect();
        let teams = Arc::new(Teams::new(workers.len(), &*services));
        let combined = teams.facts(&simple);
        let restrictions = Arc::clone(&ledger.restrictions);
        let fallback = Fallback::new(simple.iter().copied().collect(), Arc::clone(&services), restrictions);
        let fallback = Arc::new(fallback);
        let workers_and_teams = simple.into_iter().chain(combined).collect();
        let context = Mutex::new(Arc::new(context));
        let straight_back = Arc::new(StraightBack::default());
        let env = TreeEnv {
            workers: workers_and_teams,
            teams,
            services,
            ledger,
            fallback,
            straight_back,
            lookahead,
            seed,
            context,
        };
        let first = {
            let _alone = LiveTree::shares(&parts).then(|| env.ledger.shared_parts.exchanging());
            LiveTree::assemble(parts, &env, None)?
        };
        env.fallback.set_members(first.members());
        env.straight_back.set(first.saves);
        first.notify_change_workers();
        let gate = Gate::new(workers.len(), APPLICATION_LANES, APPLICATION_LANES);
        Ok(Tree { live: Gated::new(gate, first), env, past: Mutex::default() })
    }

    /// Sets the context that later trees serve, when the place is used for another one.
    pub fn set_context(&self, context: ContextFacts) {
        *self.env.context.lock() = Arc::new(context);
    }

    /// Pushes a ready task into the root. A task that the root refuses waits in the fallback store.
    ///
    /// With `deferred`, the requester is about to pull: the first wake is not done but noted there, for the requester
    /// to do if it pulls another task.
    pub fn push(&self, slot: &'static Slot, requester: Option<WorkerId>, deferred: Option<&Cell<Option<WorkerId>>>) {
        let repairs = self.live.inside(lane_of(requester), |live| {
            // Components know the workers of their context only.
            let requester = requester.filter(|worker| live.leaf(*worker).is_some());
            live.push(slot, requester, deferred);
            live.repairs.load(Acquire)
        });
        if repairs {
            self.repair();
        }
    }

    /// [`push`](Self::push) from a thread that is no worker.
    pub fn push_from_outside(&self, slot: &'static Slot) {
        let repairs = self.live.inside(lane_of(None), |live| {
            live.push(slot, None, None);
            live.repairs.load(Acquire)
        });
        if repairs {
            self.repair();
        }
    }

    /// Pulls a task for `worker`, which then owns it; `None` if there is none that it can execute.
    #[inline]
    pub fn pull(&self, worker: WorkerId) -> Option<&'static Slot> {
        let lane = Lane::Owned(worker.index());
        let (pulled, repairs) = self.live.inside(lane, |live| (live.pull(worker), live.repairs.load(Acquire)));
        if repairs {
            self.repair();
        }
        if pulled.is_some() { pulled } else { self.take_fallen_back(worker) }
    }

    #[inline]
    fn take_fallen_back(&self, worker: WorkerId) -> Option<&'static Slot> {
        if self.env.fallback.is_quiet() { None } else { self.look_at_fallen_back(worker) }
    }

    #[cold]
    fn look_at_fallen_back(&self, worker: WorkerId) -> Option<&'static Slot> {
        if self.env.fallback.takes_attention() {
            // Where a call keeps this repair from being made, it makes it when it ends.
            self.live.inside(lane_of(Some(worker)), |live| live.repairs.store(true, Release));
            self.repair();
        }
        let slot = self.env.fallback.take(worker)?;
        slot.set_phase(Phase::Running);
        Some(slot)
    }

    /// Pulls a parallel task for a combined worker, which then owns it; `None` if there is none that it can execute.
    /// The caller is the thread of `member`.
    pub fn pull_for_team(&self, member: WorkerId, combined: WorkerId) -> Option<&'static Slot> {
        let lane = Lane::Owned(member.index());
        let (pulled, repairs) = self.live.inside(lane, |live| (live.pull(combined), live.repairs.load(Acquire)));
        if repairs {
            self.repair();
        }
        pulled
    }

    /// Whether a worker, simple or combined, has a leaf.
    #[must_use]
    pub fn has_leaf(&self, worker: WorkerId) -> bool {
        self.live.inside(lane_of(None), |live| live.leaf(worker).is_some())
    }

    /// Expected time when a simple worker is done with its current task and with everything queued in its leaves; at
    /// least `now`.
    #[must_use]
    pub fn free_at(&self, worker: WorkerId, now: Time) -> Time {
        self.live.inside(lane_of(None), |live| live.free_at(worker, now).unwrap_or(now))
    }

    /// Takes back the tasks of quarantined nodes. The caller is not inside the tree.
    #[cold]
    fn repair(&self) {
        let began = Instant::now();
        self.live.alone(|| began.elapsed() > REPAIR_PATIENCE, |live| live.repair());
    }

    /// Whether the tree schedules for the worker.
    #[must_use]
    pub fn serves(&self, worker: WorkerId) -> bool {
        self.env.fallback.has_member(worker)
    }

    /// Whether the call is one into a component of this tree.
    #[must_use]
    pub fn is_called_by(&self, call: &OverdueCall) -> bool {
        let is_of = |post: &Arc<PostNumber>| post.is_of(call);
        self.live.inside(lane_of(None), |tree| tree.nodes.iter().any(|node| node.post.as_ref().is_some_and(is_of)))
    }

    /// Number of tasks in the fallback store.
    #[must_use]
    pub fn fallen_back(&self) -> usize {
        self.env.fallback.len()
    }

    /// Forgets the faults of earlier trees, when the place is reused.
    pub fn forget_past(&self) {
        self.past.lock().clear();
    }

    /// Faults so far: of earlier trees, then of this one in order of nodes.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = self.past.lock().clone();
        faults.extend(self.live.inside(lane_of(None), LiveTree::faults));
        faults
    }

    /// State of each node; see [`NodeState`].
    #[must_use]
    pub fn survey(&self) -> Vec<NodeState> {
        let began = Instant::now();
        let alone = self.live.alone(
            || began.elapsed() > REPAIR_PATIENCE,
            |live| {
                let states = live.survey(true);
                // A component may have failed when it was asked.
                if live.repairs.load(Acquire) {
                    live.repair();
                }
                states
            },
        );
        alone.unwrap_or_else(|| self.live.inside(lane_of(None), |live| live.survey(false)))
    }
}

impl LiveTree {
    /// Simple workers that have a leaf, their own or that of a combined worker.
    fn members(&self) -> impl Iterator<Item = usize> {
        self.leaves_for.iter().enumerate().filter(|(_, leaves)| !leaves.is_empty()).map(|(worker, _)| worker)
    }

    /// Pushes a task that the caller owns into the root; a refused task goes to the fallback store.
    #[inline(always)]
    fn push(&self, slot: &'static Slot, requester: Option<WorkerId>, deferred: Option<&Cell<Option<WorkerId>>>) {
        if let Some(observed) = &self.observed {
            observed.ready(self, requester, slot);
        }
        let Some(root) = self.nodes.first() else {
            self.fall_back(slot);
            return;
        };
        self.note_priority(slot);
        let mut call = Call::of_push(self, requester, slot);
        if let (Some(deferred), Some(worker)) = (deferred, requester)
            && self.can_execute(worker, slot)
        {
            call.deferred = Some((slot.id(), deferred));
        }
        let answer = self.give(&call, root, slot.enter(root.number), slot);
        if !answer.refused.is_none() {
            self.refused_by_root(&call, root, slot, answer);
        }
    }

    #[inline(always)]
    fn pull(&self, worker: WorkerId) -> Option<&'static Slot> {
        let leaf = self.leaf(worker)?;
        let node = &self.nodes[leaf.index()];
        let call = Call::of_pull(self, worker);
        let mut slot = match self.pull_at_leaf(&call, node) {
            Some(slot) => slot,
            None => self.pull_again(&call, worker, node)?,
        };
        if !self.can_execute(worker, slot) {
            slot = self.pull_past(&call, worker, leaf, slot)?;
        }
        // Before the call leaves: afterwards the tree may be exchanged, and tasks still held by its nodes are moved.
        slot.set_phase(Phase::Running);
        Some(slot)
    }

    /// Pulls a task from a leaf. An empty leaf is passed by, unless a task was pushed to it meanwhile.
    #[inline(always)]
    fn pull_at_leaf(&self, call: &Call<'_>, node: &TreeNode) -> Option<&'static Slot> {
        if node.is_passed_by() {
            let found = self.ask_first(call, &node.sources);
            if found.is_some() || node.is_passed_by() {
                return found;
            }
        }
        Slot::of_pulled(node.with(call, |component, raw| component.pull_task(raw, NO_ID)))
    }

    /// Pulls after a call in vain, as long as the last one has brought a task to where the worker pulls from.
    #[inline(never)]
    fn pull_again(&self, call: &Call<'_>, worker: WorkerId, leaf: &TreeNode) -> Option<&'static Slot> {
        let mut looks = call.looks.get();
        // Tasks move down only, so this ends.
        while looks == Looks::Again {
            let call = Call::of_pull(self, worker);
            let found = self.pull_at_leaf(&call, leaf);
            if found.is_some() {
                return found;
            }
            looks = call.looks.get();
        }
        None
    }

    /// Pulls until a worker gets a task that it can execute, after this one that it cannot. Others may be behind it,
    /// and whoever pushed them relies on this worker, which sleeps after a pull in vain.
    #[cold]
    fn pull_past(
        &self,
        call: &Call<'_>,
        worker: WorkerId,
        leaf: NodeId,
        wrong: &'static Slot,
    ) -> Option<&'static Slot> {
        let mut slot = wrong;
        while !self.can_execute(worker, slot) {
            self.note_wrong_worker(leaf, slot);
            let node = &self.nodes[leaf.index()];
            slot = match self.pull_at_leaf(call, node) {
                Some(slot) => slot,
                None => self.pull_again(call, worker, node)?,
            };
        }
        Some(slot)
    }

    /// Notes that the last holder of a task gave it to a worker that cannot execute it.
    #[cold]
    fn note_wrong_worker(&self, leaf: NodeId, slot: &'static Slot) {
        let held_by = match slot.phase() {
            Phase::InTree(node) if self.numbers().contains(&node) => node.in_tree(self.first),
            _ => leaf,
        };
        let node = &self.nodes[held_by.index()];
        node.health.wrong_worker.fetch_add(1, Relaxed);
        self.fall_back_from(node, slot);
    }
}

/// Number of gate lanes for single threads that are not workers, and of those that all further threads share.
const APPLICATION_LANES: usize = 8;

/// Gate lane of a worker, or of another thread.
fn lane_of(requester: Option<WorkerId>) -> Lane {
    const NONE: usize = usize::MAX;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        /// The number of this thread, once it is assigned: a constant that needs no lazy initialization.
        static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    }
    #[cold]
    fn first_time() -> usize {
        NUMBER.set(NEXT.fetch_add(1, Relaxed));
        NUMBER.get()
    }
    match (requester, NUMBER.get()) {
        (Some(worker), _) => Lane::Owned(worker.index()),
        (None, NONE) => Lane::Thread(first_time()),
        (None, number) => Lane::Thread(number),
    }
}

#[cfg(test)]
mod tests;
