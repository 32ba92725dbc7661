//! Expected ends and teams of workers, for components: [`HostTimes`], [`HostEnds`] and [`HostTeams`].
//!
//! The back end knows when a worker should be done with its current task ([`Services::busy_until`]). The worker's leaf
//! knows what is queued for it, and notes that at its node whenever it changes. So the note is dropped with the tree,
//! and cannot drift. Queues above leaves do the same, so that a component that compares the ends of many children need
//! not enter other components.
//!
//! [`Services::busy_until`]: super::services::Services::busy_until

use super::LiveTree;
use super::backlog::QueuedSum;
use super::call::Call;
use super::ledger::NodeId;
use super::node::{TreeNode, record};
use sched_core::abi::extension::{HostEnds, HostTeams, HostTimes, NO_TIME};
use sched_core::abi::std_types::RSliceMut;
use sched_core::abi::wire::{CallRef, NO_ID};
use sched_core::{Time, WorkerId};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

pub(super) static TIMES: HostTimes = HostTimes { busy_until, free_at, note_queued };
pub(super) static ENDS: HostEnds = HostEnds { below: ends_below };
pub(super) static TEAMS: HostTeams = HostTeams { size, member, load };

impl LiveTree {
    /// Maximum of `of` over the members of a worker; `None` if it is unknown for one of them, or there is no such
    /// worker.
    fn latest(&self, worker: u32, of: impl Fn(WorkerId) -> Option<Time>) -> Option<Time> {
        match self.teams.of(WorkerId(worker)) {
            None => of(WorkerId(worker)),
            Some([]) => None,
            Some(team) => team.iter().map(|member| of(*member)).try_fold(Time::ZERO, |end, next| Some(end.max(next?))),
        }
    }

    /// Expected time when a simple worker is done with its current task, with everything queued in its leaves, and with
    /// what other contexts have queued for it.
    pub(super) fn free_at(&self, worker: WorkerId, now: Time) -> Option<Time> {
        let busy = self.services.busy_until(worker)?.max(now);
        let leaves = self.leaves_for.get(worker.index()).map_or(&[][..], |leaves| leaves);
        let queued =
            leaves.iter().map(|leaf| self.queued_at(*leaf)).fold(self.queued_elsewhere(worker), u64::saturating_add);
        Some(busy + std::time::Duration::from_nanos(queued))
    }

    /// Expected end of a node above one worker, if all nodes below [note](TreeNode::straight) their queues.
    #[inline]
    pub(super) fn straight_end(&self, call: &Call<'_>, node: &TreeNode) -> Option<u64> {
        let (worker, nodes) = node.straight.as_ref()?;
        let busy = self.services.busy_until(*worker)?;
        let queued =
            nodes.iter().map(|node| self.queued_at(*node)).fold(self.queued_elsewhere(*worker), u64::saturating_add);
        Some(busy.max(call.now()).as_nanos().saturating_add(queued))
    }

    /// Expected ends of children from number `first` on, if nothing is in quarantine: the
    /// [`straight_end`](Self::straight_end) of each. Returns false if expected ends are not kept.
    fn straight_ends(&self, call: &Call<'_>, below: &StraightBelow, first: usize, into: &mut [u64]) -> bool {
        let workers = below.workers.get(first..).unwrap_or(&[]);
        let queued = below.queued.get(first..).unwrap_or(&[]);
        if !self.services.busy_until_each(workers, into) {
            return false;
        }
        let now = call.now().as_nanos();
        for (end, queued) in into.iter_mut().zip(queued) {
            *end = (*end).max(now).saturating_add(queued.nanos());
        }
        if !self.ledger.backlogs.is_single() {
            for (end, worker) in into.iter_mut().zip(workers) {
                *end = end.saturating_add(self.queued_elsewhere(*worker));
            }
        }
        true
    }

    /// Expected end of the workers below any other node whose component notes its queue, as defined by
    /// [`Node::end_below_with_queued`](sched_core::Node::end_below_with_queued).
    #[inline(never)]
    pub(super) fn noted_end(&self, call: &Call<'_>, node: &TreeNode) -> u64 {
        if let Some(worker) = node.place().leaf_worker() {
            let now = call.now();
            return self.latest(worker.0, |member| self.free_at(member, now)).unwrap_or(now).as_nanos();
        }
        let queued = node.queued.nanos();
        let (mut first, mut sum, mut count) = (u64::MAX, 0_u64, 0);
        for child in &node.children {
            let end = self.hop_estimated_end(call, *child);
            first = first.min(end);
            if queued == 0 {
                continue;
            }
            let below = &self.nodes[child.index()];
            if below.count_in_context() <= 1 {
                (sum, count) = (sum.saturating_add(end), count + 1);
                continue;
            }
            // The end of a child with several workers is that of the first; the others may be busy for longer.
            for worker in below.workers_in_context() {
                let free = self.latest(worker.0, |member| self.free_at(member, call.now())).map_or(0, Time::as_nanos);
                (sum, count) = (sum.saturating_add(free.max(end)), count + 1);
            }
        }
        if node.children.is_empty() {
            first = call.now().as_nanos();
        }
        if queued == 0 {
            return first;
        }
        let later = sum.saturating_sub(first.saturating_mul(count));
        first.saturating_add(queued.saturating_add(later) / node.count_in_context())
    }

    /// Nanoseconds queued for a worker in the trees of other contexts.
    #[inline]
    fn queued_elsewhere(&self, worker: WorkerId) -> u64 {
        self.ledger.backlogs.of_others(self.first, worker)
    }

    fn queued_at(&self, node: NodeId) -> u64 {
        let node = &self.nodes[node.index()];
        // Tasks of a failed node are elsewhere.
        if node.is_quarantined() { 0 } else { node.queued.nanos() }
    }
}

/// Computes [`TreeNode::straight`] of `node`; that of its children is known.
pub(super) fn straight(
    node: &TreeNode,
    nodes: &[TreeNode],
    leaves_for: &[Vec<NodeId>],
) -> Option<(WorkerId, SmallVec<[NodeId; 4]>)> {
    if !node.end_is_noted {
        return None;
    }
    match (node.place().leaf_worker(), &*node.children) {
        (Some(worker), _) => Some((worker, leaves_for.get(worker.index())?.as_slice().into())),
        (None, [child]) => {
            let (worker, below) = nodes[child.index()].straight.as_ref()?;
            Some((*worker, below.iter().copied().chain([node.id]).collect()))
        }
        _ => None,
    }
}

/// What the ends of several children follow from, each of which is straight.
pub(super) struct StraightBelow {
    /// The worker of each child.
    workers: Box<[WorkerId]>,
    /// What is queued for each.
    queued: Box<[QueuedSum]>,
}

impl StraightBelow {
    /// That of `node`; `nodes` has the [`straight`] ways of its children.
    pub(super) fn of(node: &TreeNode, nodes: &[TreeNode]) -> Option<StraightBelow> {
        if node.children.len() < 2 {
            return None;
        }
        let ways = node.children.iter().map(|child| nodes[child.index()].straight.as_ref());
        let ways: Vec<&(WorkerId, SmallVec<[NodeId; 4]>)> = ways.collect::<Option<_>>()?;
        let queued = |nodes_of: &[NodeId]| QueuedSum::of(nodes_of.iter().map(|node| &nodes[node.index()].queued));
        Some(StraightBelow {
            workers: ways.iter().map(|(worker, _)| *worker).collect(),
            queued: ways.iter().map(|(_, nodes_of)| queued(nodes_of)).collect(),
        })
    }
}

fn to_wire(time: Option<Time>) -> u64 {
    time.map_or(NO_TIME, Time::as_nanos)
}

extern "C" fn busy_until(call: CallRef<'_>, worker: u32) -> u64 {
    let tree = record(call).tree;
    to_wire(tree.latest(worker, |member| tree.services.busy_until(member)))
}

extern "C" fn free_at(call: CallRef<'_>, worker: u32) -> u64 {
    let call = record(call);
    let (tree, now) = (call.tree, call.now());
    to_wire(tree.latest(worker, |member| tree.free_at(member, now)))
}

extern "C" fn note_queued(call: CallRef<'_>, node: u32, nanos: u64) {
    if let Some(node) = record(call).tree.nodes.get(node as usize) {
        node.queued.set(nanos);
    }
}

extern "C" fn ends_below(call: CallRef<'_>, node: u32, first: u32, mut into: RSliceMut<'_, u64>) {
    let call = record(call);
    let Some(node) = call.tree.nodes.get(node as usize) else { return };
    let children = node.children.get(first as usize..).unwrap_or(&[]);
    let into = into.as_mut_slice();
    if let Some(below) = &node.straight_below
        && !call.tree.has_failures.load(Relaxed)
        && call.tree.straight_ends(call, below, first as usize, into)
    {
        return;
    }
    for (child, end) in children.iter().zip(into) {
        *end = call.tree.hop_estimated_end(call, *child);
    }
}

extern "C" fn size(call: CallRef<'_>, worker: u32) -> u32 {
    let tree = record(call).tree;
    match tree.teams.of(WorkerId(worker)) {
        None => 1,
        Some(team) => team.len() as u32,
    }
}

extern "C" fn member(call: CallRef<'_>, worker: u32, rank: u32) -> u32 {
    let tree = record(call).tree;
    let member = match tree.teams.of(WorkerId(worker)) {
        None => (rank == 0).then_some(worker),
        Some(team) => team.get(rank as usize).map(|member| member.0),
    };
    member.unwrap_or(NO_ID)
}

extern "C" fn load(call: CallRef<'_>, worker: u32) -> f64 {
    let call = record(call);
    let team = call.tree.teams.of(WorkerId(worker)).unwrap_or(&[]);
    let leaves = team.iter().filter_map(|member| call.tree.leaves.get(member.index()).copied().flatten());
    leaves.map(|leaf| call.tree.hop_estimated_load(call, leaf)).sum()
}
