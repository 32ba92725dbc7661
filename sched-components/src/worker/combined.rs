//! `combined-worker`: a leaf, which stands for several workers that execute parallel tasks together.

use super::list::WaitingList;
use sched_core::*;

/// The list of one combined worker, in order of priority, then of arrival.
///
/// It keeps tasks as `worker` does, and hands them to whichever member comes for one. The rest is the host's work: it
/// makes all members execute the task together, and sees to it that two parallel tasks come in the same order for every
/// worker that is in both teams. A combined worker is woken by waking its members, so that they are soon all there.
///
/// It expects to be done when the last of its members is done with all that waits for that one. Its load is the sum of its
/// members', for each of which a task that waits here counts as a task.
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
