//! Ready pop: of the tasks that may leave next, the one whose data is already where it will run, or the least way from
//! there.

use super::{Reservoir, noted};
use crate::queue::{Held, Place, Reach, nanos};
use sched_core::*;

/// Whether a reservoir looks at where data is when it chooses the task that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ready {
    /// It does not.
    Off,
    /// Among tasks of the highest priority.
    Level,
    /// Among all tasks; priority decides between equals.
    All,
}

const READY: &str = "ready";
const READY_FIRST: &str = "ready-first";

impl Ready {
    pub(super) const PARAM: Param = Param::bool(
        READY,
        false,
        "among tasks of the highest priority, the one with the least data to transfer leaves first",
    );
    pub(super) const FIRST_PARAM: Param = Param::bool(
        READY_FIRST,
        false,
        "the task with the least data to transfer leaves first, whatever its priority; implies `ready`",
    );

    /// `ready-first` is off where a component does not declare it.
    pub(super) fn read(params: &Params) -> Result<Ready, BuildError> {
        let first = params.get(READY_FIRST) == Some(&Value::Bool(true));
        Ok(match (params.bool(READY)?, first) {
            (_, true) => Ready::All,
            (true, false) => Ready::Level,
            (false, false) => Ready::Off,
        })
    }

    /// The memory node that a pull brings data to, where that makes a difference between tasks.
    pub(super) fn pulled_to(self, node: Node<'_>) -> Option<MemoryNode> {
        if self == Ready::Off || !node.has_transfers() {
            return None;
        }
        node.requester().and_then(|worker| node.memory_node(worker)).or_else(|| node.single_memory_node())
    }

    /// The same for a push, whose task any worker below may get.
    pub(super) fn pushed_to(self, node: Node<'_>) -> Option<MemoryNode> {
        if self == Ready::Off || !node.has_transfers() { None } else { node.single_memory_node() }
    }
}

impl Reservoir {
    /// Takes the `eligible` task whose data takes the shortest to `memory_node`; the first of several. It looks no further
    /// than the first that is complete there.
    pub(super) fn pop_ready(
        &self,
        node: Node<'_>,
        memory_node: MemoryNode,
        eligible: impl Fn(&Held) -> bool,
    ) -> Option<(Task, Place)> {
        let reach = if self.ready == Ready::All { Reach::AllLevels } else { Reach::HighestLevel };
        let transfer = |held: &Held| eligible(held).then(|| nanos(node.expected_transfer(memory_node, &held.task)));
        let (held, place) = self.queue.change(|queue| queue.pop_least(reach, transfer), noted(node))?;
        Some((held.task, place))
    }
}

#[cfg(test)]
mod tests;
