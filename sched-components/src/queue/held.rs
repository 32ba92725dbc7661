//! What queues hold of a task.

use sched_core::{Arch, ArchSet, Node, Task};

/// A task in a queue, with the properties that a pull needs. The task itself lies in the cache of the worker that made
/// it ready: reading it under the queue's lock would make every other thread wait for the cache miss.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) task: Task,
    /// Architectures of which every worker can execute it; none if it is restricted to certain workers.
    archs: ArchSet,
}

impl Held {
    #[inline]
    pub(crate) fn new(task: Task) -> Held {
        Held { archs: task.open_archs(), task }
    }

    /// Whether the requesting worker, which has one of `archs`, can execute it.
    #[inline]
    pub(crate) fn is_for(&self, node: Node<'_>, archs: ArchSet) -> bool {
        self.is_open_to(archs) || (self.archs.is_empty() && node.requester_can_execute(&self.task))
    }

    /// Whether every worker of one of `archs` can execute it.
    #[inline]
    pub(crate) fn is_open_to(&self, archs: ArchSet) -> bool {
        self.archs.intersects(archs)
    }

    /// Whether the requesting worker, of this architecture, may be able to execute it; true if the architecture does
    /// not matter.
    pub(crate) fn suits(&self, node: Node<'_>, arch: Option<Arch>) -> bool {
        match self.archs.is_empty() {
            true => node.requester_can_execute(&self.task),
            false => arch.is_none_or(|arch| self.archs.contains(arch)),
        }
    }
}

/// The architecture to look for in a queue on behalf of the requesting worker; none where all workers below have the
/// same one, because then nearly all tasks do too.
#[inline]
pub(crate) fn arch_to_find(node: Node<'_>) -> Option<Arch> {
    if node.is_homogeneous() { None } else { node.requester().and_then(|worker| node.arch(worker)) }
}
