//! `worker`: a leaf that stands for one worker. It stores every task in the worker's list and wakes the worker; the
//! worker pulls from that list first, then from above.

use super::list::WaitingList;
use crate::queue::load_here;
use sched_core::*;

/// The list of one worker, ordered by priority, then by arrival.
///
/// Its estimated end is when the worker has finished its current task and all tasks queued for it: here, and in the
/// leaves of the combined workers that it is a member of.
#[derive(Debug)]
pub struct Simple {
    waiting: WaitingList,
}

impl Build for Simple {
    const INFO: Info = Info::new("worker", Family::Worker, "Hands tasks to one worker.")
        .package(env!("CARGO_PKG_NAME"))
        .storage(Storage::Unbounded)
        .empty_until_pushed()
        .end_is_noted();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Simple { waiting: WaitingList::new() })
    }
}

impl Component for Simple {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.waiting.push(node, task);
        node.wake_one();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        self.waiting.pull(node)
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        self.waiting.estimated_end(node)
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        load_here(node, self.waiting.len())
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
