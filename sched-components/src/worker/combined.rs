//! `combined-worker`: a leaf that stands for several workers which execute parallel tasks together.

use super::list::WaitingList;
use sched_core::*;

/// The list of one combined worker, ordered by priority, then by arrival.
///
/// It stores tasks like `worker`, and hands them to any member that pulls. The rest is the host's work: it makes all
/// members execute the task together, and ensures that every worker in two teams sees parallel tasks of both in the
/// same order. Waking a combined worker wakes all its members, so that they assemble quickly.
///
/// Its estimated end is that of its last member, including all tasks queued for that member. Its load is the sum of its
/// members' loads, where each task queued here counts once for every member.
#[derive(Debug)]
pub struct Combined {
    waiting: WaitingList,
}

impl Build for Combined {
    const INFO: Info = Info::new(
        "combined-worker",
        Family::Worker,
        "Hands parallel tasks to several workers, which execute them together.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .storage(Storage::Unbounded)
    .combined()
    .end_is_noted();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Combined { waiting: WaitingList::new() })
    }
}

impl Component for Combined {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.waiting.push(node, task);
        node.wake_all();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        self.waiting.pull(node)
    }

    fn can_pull(&self, node: Node<'_>) -> bool {
        node.wake_all()
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        self.waiting.estimated_end(node)
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        let Some(worker) = node.worker() else { return self.waiting.len() as f64 };
        let speed = |member| node.arch(member).map_or(1.0, Arch::relative_speedup);
        let each: f64 = node.members(worker).map(|member| 1.0 / speed(member)).sum();
        node.members_load(worker) + each * self.waiting.len() as f64
    }

    fn drain(&self) -> Vec<Task> {
        self.waiting.drain()
    }

    fn describe(&self, report: &mut Report) {
        self.waiting.describe(report);
    }
}

#[cfg(test)]
mod tests;
