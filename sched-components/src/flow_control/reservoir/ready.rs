//! Ready pop: among the tasks that may leave next, chooses the one with the shortest transfers to where it will run.

use super::Reservoir;
use crate::queue::{Change, Held, Place, Reach, nanos};
use sched_core::*;

/// Whether a reservoir considers the location of data when it chooses the task that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ready {
    /// Ignores the location of data.
    Off,
    /// Compares tasks of the highest priority.
    Level,
    /// Compares all tasks; priority breaks ties.
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

    /// The memory node that a pull brings data to, if transfers differ between tasks.
    pub(super) fn pulled_to(self, node: Node<'_>) -> Option<MemoryNode> {
        if self == Ready::Off || !node.has_transfers() {
            return None;
        }
        node.requester().and_then(|worker| node.memory_node(worker)).or_else(|| node.single_memory_node())
    }

    /// The memory node that a push brings data to, for a task that any worker below may get, if transfers differ
    /// between tasks.
    pub(super) fn pushed_to(self, node: Node<'_>) -> Option<MemoryNode> {
        if self == Ready::Off || !node.has_transfers() { None } else { node.single_memory_node() }
    }
}

impl Reservoir {
    /// Takes the `eligible` task with the shortest transfers to `memory_node`; the first on ties. It stops at the first
    /// task whose data is complete there. `changed` receives a change of the expected length.
    pub(super) fn pop_ready(
        &self,
        node: Node<'_>,
        memory_node: MemoryNode,
        eligible: impl Fn(&Held) -> bool,
        changed: &dyn Fn(Change),
    ) -> Option<(Task, Place)> {
        let reach = if self.ready == Ready::All { Reach::AllLevels } else { Reach::HighestLevel };
        let transfer = |held: &Held| eligible(held).then(|| nanos(node.expected_transfer(memory_node, &held.task)));
        let (held, place) = self.queue.change(|queue| queue.pop_least(reach, transfer), changed)?;
        Some((held.task, place))
    }
}

#[cfg(test)]
mod tests;
