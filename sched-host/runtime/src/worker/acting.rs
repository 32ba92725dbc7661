//! Threads that act for a task without being the worker that executes it: they call its callback, drop its arguments,
//! or are members of its team. What tasks may do, and what they must not, holds for them too.

use super::{THIS, executed_here, main_worker};
use crate::context::RestoreCurrent;
use crate::core::Core;
use sched_graph::ContextId;
use std::cell::Cell;

thread_local! {
    /// The runtime and the context of the task that this thread acts for.
    static TASK: Cell<Option<(u64, ContextId)>> = const { Cell::new(None) };
}

/// Has this thread act for a task until it is dropped.
pub(crate) struct Acting {
    before: Option<(u64, ContextId)>,
    _current: Option<RestoreCurrent>,
}

impl Acting {
    /// For a task of this context, which is the current one meanwhile.
    pub(crate) fn for_task(core: &Core, context: ContextId) -> Acting {
        let current = RestoreCurrent::after_tasks_in(core.id, context);
        Acting { before: TASK.replace(Some((core.id, context))), _current: Some(current) }
    }

    /// For an access of the program, which leaves the current context to the thread.
    pub(crate) fn for_access(core: &Core) -> Acting {
        Acting { before: TASK.replace(Some((core.id, ContextId::DEFAULT))), _current: None }
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        TASK.set(self.before);
    }
}

/// The context of the task of `core` that this thread acts for.
pub(super) fn context_here(core: &Core) -> Option<ContextId> {
    TASK.get().filter(|(runtime, _)| *runtime == core.id).map(|(_, context)| context)
}

/// Whether this thread must return for `core` to go on: it is one of its workers, acts for one of its tasks, or is
/// called back since its turn at data has come.
pub(crate) fn is_needed_by(core: &Core) -> bool {
    let is_worker = || THIS.get().is_some_and(|(runtime, _)| runtime == core.id);
    is_worker() || main_worker::outer_worker(core).is_some() || executed_here(core).is_some() || core.is_in_access()
}
