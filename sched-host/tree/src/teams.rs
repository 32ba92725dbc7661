//! Combined workers in a tree: their members, the tasks that they can execute, and the workers to wake for them.
//!
//! A combined worker has a number above those of all simple workers, and its own leaf. It can execute a task whose
//! [width](sched_core::Task::width) is at least its size. It has no thread: its members sleep, wake and pull for it.

use super::LiveTree;
use super::call::Call;
use super::node::TreeNode;
use super::services::Services;
use sched_core::abi::TaskHead;
use sched_core::abi::wire::RawWorker;
use sched_core::{SharedSet, WorkerId, WorkerSet};
use std::sync::atomic::Ordering::*;

/// Members of each combined worker. Combined workers are numbered after the simple ones.
pub(super) struct Teams {
    simple: usize,
    members: Box<[Box<[WorkerId]>]>,
}

impl Teams {
    pub(super) fn new(simple: usize, services: &dyn Services) -> Teams {
        Teams { simple, members: services.combined().into() }
    }

    /// Number of simple workers.
    pub(super) fn count_simple(&self) -> usize {
        self.simple
    }

    /// Number of workers, simple and combined.
    pub(super) fn count(&self) -> usize {
        self.simple + self.members.len()
    }

    /// The members of a combined worker; `None` for a simple one.
    #[inline]
    pub(super) fn of(&self, worker: WorkerId) -> Option<&[WorkerId]> {
        let number = worker.index().checked_sub(self.simple)?;
        Some(self.members.get(number).map_or(&[], |members| members))
    }

    /// The simple workers of a set, and the members of the combined ones.
    pub(super) fn simple(&self, workers: &WorkerSet) -> WorkerSet {
        let each = workers.iter().flat_map(|worker| self.of(worker).map_or_else(|| vec![worker], <[WorkerId]>::to_vec));
        each.collect()
    }

    /// Combined workers as components see them: with the architecture and memory node of their first members, and the
    /// total speed of all.
    pub(super) fn facts(&self, simple: &[RawWorker]) -> Vec<RawWorker> {
        let fact = |members: &[WorkerId]| {
            let each = || members.iter().filter_map(|member| simple.get(member.index()));
            let relative_speedup = each().map(|member| member.relative_speedup).sum();
            let first = each().next().copied();
            first.map_or(RawWorker { arch: 0, memory_node: 0, relative_speedup }, |first| RawWorker {
                relative_speedup,
                ..first
            })
        };
        self.members.iter().map(|members| fact(members)).collect()
    }

    /// Combined workers below a node with these workers; `None` if there are none.
    pub(super) fn below(&self, workers: &WorkerSet, facts: &[RawWorker]) -> Option<TeamsBelow> {
        let mut below = TeamsBelow { simple_archs: 0, team_archs: 0, least: u16::MAX, members: Box::default() };
        let mut members = WorkerSet::new();
        for worker in workers.iter() {
            let Some(arch) = facts.get(worker.index()).map(|worker| 1 << worker.arch) else { continue };
            match self.of(worker) {
                None => below.simple_archs |= arch,
                Some(team) => {
                    below.team_archs |= arch;
                    below.least = below.least.min(size(team));
                    members.union_with(&team.iter().copied().collect());
                }
            }
        }
        below.members = members.words().into();
        (below.team_archs != 0).then_some(below)
    }
}

fn size(team: &[WorkerId]) -> u16 {
    u16::try_from(team.len()).unwrap_or(u16::MAX)
}

/// The combined workers below a node.
pub(super) struct TeamsBelow {
    /// Architectures of the simple workers below.
    simple_archs: u32,
    /// Architectures of the combined workers below.
    team_archs: u32,
    /// Size of the smallest one.
    least: u16,
    /// Members of all of them.
    members: Box<[u64]>,
}

impl TeamsBelow {
    /// Whether a worker below can execute a task of these architectures and this width.
    pub(super) fn can_execute(&self, archs: u32, width: u16) -> bool {
        archs & self.simple_archs != 0 || (archs & self.team_archs != 0 && self.least <= width)
    }

    /// Whether a member sleeps that would be useful to the call.
    pub(super) fn sleeps(&self, call: &Call<'_>, sleeping: &SharedSet) -> bool {
        self.least <= call.width() && sleeping.meets(&self.members, 0..self.members.len())
    }
}

impl LiveTree {
    /// Whether a worker, simple or combined, can execute a task.
    #[inline]
    pub(super) fn fits(&self, worker: u32, head: &TaskHead) -> bool {
        let Some(facts) = self.workers.get(worker as usize) else { return false };
        let worker = WorkerId(worker);
        self.ledger.restrictions.allow(head, facts.arch, worker, self.teams.of(worker))
    }

    /// Whether some worker below a node can execute a task.
    #[inline]
    pub(super) fn some_fits(&self, node: &TreeNode, head: &TaskHead) -> bool {
        let archs = head.archs.load(Relaxed);
        if archs & node.archs == 0 {
            return head.restriction() != 0 && self.some_fits_restricted(node, head);
        }
        node.teams.as_ref().is_none_or(|teams| teams.can_execute(archs, head.width.load(Relaxed)))
    }

    #[cold]
    fn some_fits_restricted(&self, node: &TreeNode, head: &TaskHead) -> bool {
        node.workers_in_context().any(|worker| self.fits(worker.0, head))
    }

    /// Wakes the sleeping members of a combined worker, if the call is about a task for it. Returns whether any slept.
    pub(super) fn wake_team(&self, call: &Call<'_>, team: &[WorkerId]) -> bool {
        if size(team) > call.width() {
            return false;
        }
        team.iter().filter(|member| self.services.wake(**member)).count() > 0
    }
}
