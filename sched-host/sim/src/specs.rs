//! What the simulation reads of each task again and again.
//!
//! A task of a graph takes several cache lines, and tasks are not executed in the order in which they lie there: most
//! of the time of a step was waiting for them. So each task has one line here.

use sched_graph::{Access, AccessMode, ContextId, DataId, KindId, Task, TaskGraph, TaskId};

/// See the [module](self).
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Spec {
    pub(super) kind: KindId,
    /// Whether it is executed by a worker.
    pub(super) runs: bool,
    /// Whether it is restricted to some workers, or has data for the scheduler.
    pub(super) is_special: bool,
    pub(super) context: ContextId,
    pub(super) priority: i32,
    /// 0 for none.
    pub(super) footprint: u32,
    /// Number of accesses.
    count: u32,
    /// The accesses, if there are no more than these.
    accesses: [Access; MOST],
}

/// Maximum number of accesses of a task that are in its spec.
const MOST: usize = 4;

const _: () = assert!(size_of::<Spec>() == 64);

impl Spec {
    fn of(graph: &TaskGraph, task: &Task) -> Spec {
        let mut accesses = [Access { data: DataId(0), mode: AccessMode::Read }; MOST];
        accesses.iter_mut().zip(&task.accesses).for_each(|(here, access)| *here = *access);
        Spec {
            kind: task.kind,
            runs: graph.kind_of(task).runs,
            is_special: task.only.is_some() || task.sched_data != 0,
            context: task.context,
            priority: task.priority,
            footprint: task.footprint.unwrap_or(0),
            count: task.accesses.len() as u32,
            accesses,
        }
    }
}

/// The specs of all tasks.
#[derive(Debug)]
pub(super) struct Specs(Box<[Spec]>);

impl Specs {
    pub(super) fn of(graph: &TaskGraph) -> Specs {
        Specs(graph.tasks.iter().map(|task| Spec::of(graph, task)).collect())
    }

    #[inline]
    pub(super) fn get(&self, task: TaskId) -> &Spec {
        &self.0[task.index()]
    }

    /// Data accesses of a task of `graph`, whose specs these are.
    #[inline]
    pub(super) fn accesses<'a>(&'a self, graph: &'a TaskGraph, task: TaskId) -> &'a [Access] {
        let Spec { count, accesses, .. } = self.get(task);
        accesses.get(..*count as usize).unwrap_or_else(|| &graph.task(task).accesses)
    }
}
