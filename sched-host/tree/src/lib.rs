//! The tree: components assembled from a plan, and every call into them.
//!
//! The tree knows neither threads nor data. A back end ([`Services`]) gives it time, sleeping workers and models; the
//! [ledger] knows who holds each task; the [gate](sched_sync::gate) lets calls in, and keeps them out while the tree
//! is repaired, or exchanged for another one (`swap`) at the place where it [stands](sched_sync::gated).
//!
//! A component that fails does not stop a run: see [`fault`] for what is noted, `hop` for how calls pass through a
//! quarantined node, and [`ledger`] for how its tasks are taken back.

mod assembly;
pub mod attendance;
mod attended;
mod bare_tree;
mod call;
pub mod combined;
pub mod context;
mod deaf;
mod expected_ends;
mod fallback;
pub mod fault;
mod hop;
pub mod ledger;
mod lookahead;
mod memberships;
mod node;
mod observer;
pub mod plugin;
mod prospects;
pub mod seat;
pub mod services;
mod survey;
mod swap;
mod teams;
mod wake_routes;

pub use bare_tree::BareTree;
pub use fault::{Fault, FaultKind};
pub use ledger::{Ledger, NodeId, Phase, Slot};
pub use lookahead::Lookahead;
pub use memberships::Memberships;
pub use observer::{ObservedNode, TreeObserver};
pub use services::Services;
pub use survey::NodeState;
pub use swap::SwapError;

pub(crate) use assembly::LiveTree;

use assembly::TreeEnv;
use call::Call;
use fallback::Fallback;
use node::TreeNode;
use parking_lot::Mutex;
use sched_core::abi::ComponentObject;
use sched_core::abi::wire::{NO_ID, RawWorker};
use sched_core::{Arch, MemoryNode, Time, WorkerId, WorkerSet};
use sched_sync::gate::{Gate, Lane};
use sched_sync::gated::Gated;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};
use teams::Teams;

/// One worker, as a tree needs to know it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkerFacts {
    /// Its architecture.
    pub arch: Arch,
    /// The memory that it reaches without a transfer.
    pub memory_node: MemoryNode,
    /// Its speed relative to one CPU core.
    pub relative_speedup: f64,
}

impl WorkerFacts {
    /// A CPU core on memory node 0.
    pub const CPU: WorkerFacts = WorkerFacts { arch: Arch::CPU, memory_node: MemoryNode(0), relative_speedup: 1.0 };
}

/// One node of a tree to be: a built component and its neighbours.
pub struct Part {
    /// The component.
    pub component: ComponentObject,
    /// Its name.
    pub name: String,
    /// The plugin it came from.
    pub plugin: String,
    /// Name of the node, unique in the tree.
    pub path: String,
    /// What the node stands for in the topology, or nothing.
    pub object: String,
    /// Children by number, each with the slot that it fills (or nothing). Every child has a higher number than its
    /// parent.
    pub children: Vec<(NodeId, String)>,
    /// All workers below.
    pub workers: WorkerSet,
    /// The worker that the node stands for, if it is a leaf.
    pub worker: Option<WorkerId>,
    /// Pulls may pass the component by: it would only ask its parents.
    pub forwards_pull: bool,
    /// Pulls may pass the component by until a task was pushed to it: it would only ask its parents.
    pub empty_until_pushed: bool,
    /// The component need not be asked for its estimated end: it follows from what it notes.
    pub end_is_noted: bool,
    /// Calls of the component are [noted](attendance), so that one that does not come back can be named.
    pub attended: bool,
}

/// A tree of components at work, at the place where it stands: [`swap`](Tree::swap) puts another one there.
pub struct Tree {
    live: Gated<LiveTree>,
    env: TreeEnv,
    /// What components of earlier trees did wrong.
    past: Mutex<Vec<Fault>>,
}

/// How long a repair waits for calls that do not come back before it leaves the tasks of a failed node where they are,
/// until the next call ends.
const REPAIR_PATIENCE: Duration = Duration::from_millis(200);

impl Tree {
    /// Puts parts together; part 0 is the root. Without parts, tasks wait until there is a tree. `seed` seeds the
    /// randomness of every node.
    ///
    /// # Panics
    /// When a child's number is not that of a later part: plans are checked before. When there are more than 2²⁴ nodes.
    #[must_use]
    pub fn assemble(
        parts: Vec<Part>,
        workers: &[WorkerFacts],
        services: Arc<dyn Services>,
        ledger: Arc<Ledger>,
        seed: u64,
    ) -> Tree {
        Tree::assemble_foreseeing(parts, workers, services, ledger, seed, None)
    }

    /// [`assemble`](Self::assemble), with what the components of this tree, and of all that take its place, are told
    /// of tasks to come.
    ///
    /// # Panics
    /// As `assemble` does.
    #[must_use]
    pub fn assemble_foreseeing(
        parts: Vec<Part>,
        workers: &[WorkerFacts],
        services: Arc<dyn Services>,
        ledger: Arc<Ledger>,
        seed: u64,
        lookahead: Option<Arc<dyn Lookahead>>,
    ) -> Tree {
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
        let fallback = Arc::new(Fallback::new(simple.iter().copied().collect(), Arc::clone(&services)));
        let workers_and_teams = simple.into_iter().chain(combined).collect();
        let env = TreeEnv { workers: workers_and_teams, teams, services, ledger, fallback, lookahead, seed };
        let first = LiveTree::assemble(parts, &env).expect("there are fewer than 2^24 nodes");
        env.fallback.set_members(first.members());
        first.notify_change_workers();
        let gate = Gate::new(workers.len(), APPLICATION_LANES);
        Tree { live: Gated::new(gate, first), env, past: Mutex::default() }
    }

    /// Pushes a ready task into the root. A task that the root refuses waits in the fallback store.
    ///
    /// With `deferred`, the requester says that it will pull right after: the first wake is then not done but noted
    /// there, for it to do if it pulls another task.
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

    /// [`push`](Self::push) by a thread that is no worker.
    pub fn push_from_outside(&self, slot: &'static Slot) {
        let repairs = self.live.inside(lane_of(None), |live| {
            live.push(slot, None, None);
            live.repairs.load(Acquire)
        });
        if repairs {
            self.repair();
        }
    }

    /// A task for `worker`, which owns it now, or `None` when there is none that it can execute.
    #[inline]
    pub fn pull(&self, worker: WorkerId) -> Option<&'static Slot> {
        let lane = Lane::Owned(worker.0 as usize);
        let (pulled, repairs) = self.live.inside(lane, |live| (live.pull(worker), live.repairs.load(Acquire)));
        if repairs {
            self.repair();
        }
        if pulled.is_some() { pulled } else { self.take_fallen_back(worker) }
    }

    #[inline]
    fn take_fallen_back(&self, worker: WorkerId) -> Option<&'static Slot> {
        let slot = self.env.fallback.take(worker)?;
        slot.set_phase(Phase::Running);
        Some(slot)
    }

    /// A parallel task for a combined worker, which owns it now, or `None` when there is none that it can execute. The
    /// caller is the thread of `member`.
    pub fn pull_for_team(&self, member: WorkerId, combined: WorkerId) -> Option<&'static Slot> {
        let lane = Lane::Owned(member.0 as usize);
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

    /// When a simple worker should have done what it executes, and what waits for it in the leaves that are for it;
    /// `now` at the earliest.
    #[must_use]
    pub fn free_at(&self, worker: WorkerId, now: Time) -> Time {
        self.live.inside(lane_of(None), |live| live.free_at(worker, now).unwrap_or(now))
    }

    /// Takes back what quarantined nodes hold. The caller is not inside the tree.
    #[cold]
    fn repair(&self) {
        let began = Instant::now();
        self.live.alone(|| began.elapsed() > REPAIR_PATIENCE, |live| live.repair());
    }

    /// Whether the worker is one of those that the tree schedules for.
    #[must_use]
    pub fn serves(&self, worker: WorkerId) -> bool {
        self.env.fallback.has_member(worker)
    }

    /// Number of tasks in the fallback store.
    #[must_use]
    pub fn fallen_back(&self) -> usize {
        self.env.fallback.len()
    }

    /// Forgets what components of earlier trees did wrong: the place is used anew.
    pub fn forget_past(&self) {
        self.past.lock().clear();
    }

    /// What components did wrong so far: those of earlier trees, then those of this one in order of their nodes.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = self.past.lock().clone();
        faults.extend(self.live.inside(lane_of(None), LiveTree::faults));
        faults
    }

    /// Where every task sits now, and why; see [`NodeState`].
    #[must_use]
    pub fn survey(&self) -> Vec<NodeState> {
        let began = Instant::now();
        let alone = self.live.alone(
            || began.elapsed() > REPAIR_PATIENCE,
            |live| {
                let states = live.survey(true);
                // One may have failed when it was asked.
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
    /// The simple workers that have a leaf, of their own or as members of a combined one.
    fn members(&self) -> impl Iterator<Item = usize> {
        self.leaves_for.iter().enumerate().filter(|(_, leaves)| !leaves.is_empty()).map(|(worker, _)| worker)
    }

    /// Pushes a task that the caller owns into the root; what the root refuses goes to the fallback store.
    #[inline(always)]
    fn push(&self, slot: &'static Slot, requester: Option<WorkerId>, deferred: Option<&Cell<Option<WorkerId>>>) {
        if let Some(observed) = &self.observed {
            observed.ready(self, requester, slot);
        }
        let Some(root) = self.nodes.first() else {
            self.fall_back(slot);
            return;
        };
        let head = slot.head();
        let mut call = Call::of_push(self, requester, head.archs.load(Relaxed), head.width.load(Relaxed));
        if let (Some(deferred), Some(worker)) = (deferred, requester)
            && self.can_execute(worker, slot)
        {
            call.deferred = Some((slot.index(), deferred));
        }
        let answer = self.give(&call, root, slot.enter(root.number), slot);
        if let Some(slot) = Slot::of(answer.refused) {
            self.fall_back(slot);
        }
    }

    #[inline(always)]
    fn pull(&self, worker: WorkerId) -> Option<&'static Slot> {
        let leaf = self.leaf(worker)?;
        let call = Call::new(self, Some(worker), u32::MAX);
        let slot = self.pull_at_leaf(&call, &self.nodes[leaf as usize])?;
        if !self.can_execute(worker, slot) {
            self.note_wrong_worker(leaf, slot);
            return None;
        }
        // Before the way out: from there on the tree may be exchanged, and what a node of it still holds is moved.
        slot.set_phase(Phase::Running);
        Some(slot)
    }

    /// A task from a leaf. One that has nothing is passed by, unless it was pushed a task meanwhile.
    #[inline(always)]
    fn pull_at_leaf(&self, call: &Call<'_>, node: &TreeNode) -> Option<&'static Slot> {
        if node.is_passed_by() {
            let found = self.ask_first(call, &node.sources);
            if found.is_some() || node.is_passed_by() {
                return found;
            }
        }
        Slot::of(node.with(call, |component, raw| component.pull_task(raw, NO_ID)))
    }

    /// A worker was given a task that it cannot execute: by the node that held it last.
    #[cold]
    fn note_wrong_worker(&self, leaf: NodeId, slot: &'static Slot) {
        let held_by = match slot.phase() {
            Phase::InTree(node) if self.numbers().contains(&node) => node - self.first,
            _ => leaf,
        };
        self.nodes[held_by as usize].health.wrong_worker.fetch_add(1, Relaxed);
        self.fall_back(slot);
    }
}

/// Gate lanes of threads that are not workers.
const APPLICATION_LANES: usize = 8;

/// The way in for a worker, or for a thread that is none.
fn lane_of(requester: Option<WorkerId>) -> Lane {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! {
        /// 0 until it is known: a value that needs no look at how it is made.
        static SHARED: Cell<usize> = const { Cell::new(0) };
    }
    #[cold]
    fn first_time() -> usize {
        SHARED.set(NEXT.fetch_add(1, Relaxed));
        SHARED.get()
    }
    match (requester, SHARED.get()) {
        (Some(worker), _) => Lane::Owned(worker.0 as usize),
        (None, 0) => Lane::Shared(first_time()),
        (None, number) => Lane::Shared(number),
    }
}
