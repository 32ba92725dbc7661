//! `heteroprio`: gives accelerators the tasks that they accelerate most, and CPU cores those that gain least.

mod buckets;

use super::completion::{Basis, Candidate, Weights, ask_ends, expected_here, least_loaded, with_candidates};
use super::turn::Turn;
use crate::queue::{Able, Counted, Executable, Stuck, archs_of_requester, load_here};
use buckets::{Buckets, End, Origin};
use sched_core::*;
use std::time::Duration;

/// The architectures that count as accelerators, in the order in which they take tasks. Architectures not named here
/// count as accelerators too, and follow the named ones.
const ACCELERATORS: [Arch; 5] = [Arch::CUDA, Arch::HIP, Arch::OPENCL, Arch::SYCL, Arch::FPGA];
const OTHERS: [Arch; 2] = [Arch::MPI, Arch::CPU];

/// Stores tasks by acceleration: the ratio of their longest to their shortest expected length on the workers.
///
/// It stores tasks and never refuses one. Tasks whose accelerations differ by at most 10 % share a bucket, and are
/// ordered by priority there. Accelerators are offered the first task of the bucket with the highest acceleration, then
/// MPI workers and CPU cores that of the bucket with the lowest. The child is chosen as in [`Mct`](super::Mct), among
/// all children; if it has no worker of the architecture whose turn it is, or refuses, the task stays, unless nobody
/// has anything to do. A task that some worker cannot execute, or whose length some worker does not know, has no
/// acceleration: such tasks go first, one at a time, wherever they are completed first. A task that stays does not hold
/// up those that other workers can execute; some cannot where tasks are restricted to workers.
///
/// With `batch`, the default, tasks lose their priorities on their way down: the queues below keep the order in which
/// they were sent.
///
/// One thread decides at a time, and each task is delivered before the next decision. Other threads that arrive
/// meanwhile do not wait: the deciding thread checks again before it ends.
#[derive(Debug)]
pub struct Heteroprio {
    weights: Weights,
    batch: bool,
    buckets: Counted<Buckets>,
    /// The right to decide.
    turn: Turn,
}

impl Build for Heteroprio {
    const INFO: Info = Info::new(
        "heteroprio",
        Family::ResourceMapping,
        "Gives accelerators the tasks that they accelerate most, and CPU cores the others.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .storage(Storage::Unbounded)
    .params(
        const {
            &[
                Weights::ALPHA,
                Weights::BETA,
                Weights::GAMMA,
                Weights::IDLE_POWER,
                Param::bool("batch", true, "whether the queues below keep the order in which tasks are sent"),
            ]
        },
    )
    .lookahead(30)
    .may_refuse(false)
    .needs_models();

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Heteroprio {
            weights: Weights::read(params)?,
            batch: params.bool("batch")?,
            buckets: Counted::new(Buckets::default()),
            turn: Turn::default(),
        })
    }
}

/// Ratio of the longest to the shortest expected length of `task` on the workers; `None` if one of them cannot execute
/// it, or its length there is unknown. Combined workers say nothing about an architecture.
fn acceleration(node: Node<'_>, task: &Task) -> Option<f64> {
    let (mut fastest, mut slowest) = (f64::INFINITY, 0.0_f64);
    for worker in node.each_worker_in_context() {
        if node.members(worker).nth(1).is_some() {
            continue;
        }
        if !node.worker_can_execute(worker, task) {
            return None;
        }
        let length = node.expected_length(worker, task).known()?.as_secs_f64();
        fastest = fastest.min(length);
        slowest = slowest.max(length);
    }
    // A task of zero length everywhere is not accelerated.
    (slowest >= fastest).then_some(if fastest > 0.0 { slowest / fastest } else { 1.0 })
}

/// The end of the buckets that an architecture takes tasks from.
fn end_of(arch: Arch) -> End {
    if OTHERS.contains(&arch) { End::Least } else { End::Most }
}

impl Heteroprio {
    fn pop(
        &self,
        end: Option<End>,
        wanted: impl Fn(Able) -> bool,
        eligible: impl Fn(&Task) -> bool,
    ) -> Option<(Task, Origin)> {
        if self.buckets.is_empty() {
            return None;
        }
        self.buckets.change(|buckets| buckets.pop(end, wanted, eligible))
    }

    fn give_back(&self, task: Task, origin: Origin) {
        self.buckets.change(|buckets| buckets.unpop(task, origin));
    }

    fn decide(&self, node: Node<'_>, task: &Task) -> Option<Candidate> {
        with_candidates(|candidates| {
            if self.weights.estimate(node, task, candidates) != Basis::Known {
                return None;
            }
            let now = node.now();
            ask_ends(node, candidates);
            Some(self.weights.choose(now, candidates).0)
        })
    }

    /// Offers the first task of an end, or with `None` of those without an acceleration. While the offered one stays,
    /// it offers the first that other than the `stuck` workers can execute. Each goes to the child that completes it
    /// first, if that child has a worker of `arch`. Returns whether any was accepted.
    fn offer_first(&self, node: Node<'_>, end: Option<End>, mut stuck: Stuck, arch: Option<Arch>) -> bool {
        while let Some(popped) = self.pop(end, |able| stuck.lets_pass(able), |task| node.can_execute(task)) {
            stuck.note(popped.0.able());
            if self.offer(node, popped, arch) {
                return true;
            }
        }
        false
    }

    /// Offers a task to the child that completes it first, if that child has a worker of `arch`. Returns whether it was
    /// accepted; otherwise the task is back at its position.
    fn offer(&self, node: Node<'_>, (mut task, origin): (Task, Origin), arch: Option<Arch>) -> bool {
        let child = match self.decide(node, &task) {
            Some(candidate) => {
                candidate.predict(&mut task);
                Some(candidate.child)
            }
            None => {
                task.set_predicted(None);
                least_loaded(node, &task)
            }
        };
        let has = |child: Child, arch: Arch| {
            node.each_child_worker_in_context(child).any(|worker| node.arch(worker) == Some(arch))
        };
        let Some(child) = child.filter(|child| arch.is_none_or(|arch| has(*child, arch))) else {
            self.give_back(task, origin);
            return false;
        };
        if node.child_worker(child).is_some() {
            // Put it back first: the worker that is woken looks for it here.
            self.give_back(task, origin);
            node.child_can_pull(child);
            return false;
        }
        let priority = task.priority();
        if self.batch {
            task.set_priority(i32::MAX);
        }
        match node.push_to(child, task) {
            Ok(()) => true,
            Err(mut refused) => {
                refused.task.set_priority(priority);
                self.give_back(refused.task, origin);
                false
            }
        }
    }

    /// Offers one task to each architecture below. Returns whether any was accepted.
    fn step(&self, node: Node<'_>) -> bool {
        let mut moved = self.offer_first(node, None, Stuck::default(), None);
        let present: ArchSet = node.each_worker_in_context().filter_map(|worker| node.arch(worker)).collect();
        let unnamed = present.iter().filter(|arch| !ACCELERATORS.contains(arch) && !OTHERS.contains(arch));
        for arch in ACCELERATORS.into_iter().chain(unnamed).chain(OTHERS) {
            if present.contains(arch) {
                moved |= self.offer_first(node, Some(end_of(arch)), Stuck::all_but_those_of(arch), Some(arch));
            }
        }
        moved
    }

    /// Offers the first task of either end to the child that completes it first, of whatever architecture, if nobody
    /// below has anything to do: where each end has a task for the architectures of the other, all would wait for each
    /// other. Returns whether any was accepted.
    fn offer_to_the_idle(&self, node: Node<'_>) -> bool {
        let (now, mut are_idle) = (node.now(), true);
        node.ends_below(|_, end| are_idle &= end <= now);
        are_idle
            && [End::Most, End::Least].into_iter().any(|end| self.offer_first(node, Some(end), Stuck::default(), None))
    }

    /// Sends tasks until none is accepted. Returns whether any was.
    fn send(&self, node: Node<'_>) -> bool {
        let mut moved = false;
        while !self.buckets.is_empty() && (self.step(node) || self.offer_to_the_idle(node)) {
            moved = true;
        }
        moved
    }

    fn progress(&self, node: Node<'_>) -> bool {
        self.turn.take(|| self.send(node))
    }

    fn take(&self, node: Node<'_>) -> Option<Task> {
        let end = node.requester().and_then(|worker| node.arch(worker)).map_or(End::Most, end_of);
        let archs = archs_of_requester(node);
        let eligible = |task: &Task| node.requester_can_execute(task);
        let able = |able: Able| able.are_of(archs);
        let first = || self.pop(None, able, eligible).or_else(|| self.pop(Some(end), able, eligible));
        self.turn.pull(|| first().map(|(task, _)| task), || self.send(node))
    }
}

impl Component for Heteroprio {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let (acceleration, expected) = (acceleration(node, &task), expected_here(node, &task));
        self.buckets.change(|buckets| buckets.push(task, acceleration, expected));
        self.progress(node);
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        self.take(node).or_else(|| if node.parents_can_push() { self.take(node) } else { None })
    }

    fn can_push(&self, node: Node<'_>, _to: Child) -> bool {
        let moved = self.progress(node);
        // The tasks here do not fit now. The parents may have others that do.
        node.parents_can_push() || moved
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        let queued = self.buckets.look(Buckets::expected);
        node.end_below_with_queued(Duration::from_nanos(queued))
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        node.load_below() + load_here(node, self.buckets.len())
    }

    fn drain(&self) -> Vec<Task> {
        self.buckets.change(Buckets::drain)
    }

    fn describe(&self, report: &mut Report) {
        self.buckets.look(|buckets| buckets.describe(report));
    }
}

#[cfg(test)]
mod tests;
