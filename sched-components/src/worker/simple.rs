//! `worker`: a leaf, which stands for one worker. It takes every task into the worker's own list and wakes the worker;
//! the worker pulls from that list first, then from above.

use super::list::WaitingList;
use crate::queue::load_here;
use sched_core::*;

/// The list of one worker, in order of priority, then of arrival.
///
/// It expects to be done when its worker has executed what it executes now, and all that waits for it: here, and in the
/// leaves of the combined workers that the worker is a member of.
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
