//! How many workers of each class may execute a task, where tasks are restricted to some places.

use super::platform::Platform;
use sched_core::WorkerId;
use sched_graph::{Task, Where};
use std::cell::RefCell;
use std::rc::Rc;

/// See the [module](self).
pub(super) struct Allowed<'a> {
    platform: &'a Platform,
    /// Numbers of all workers.
    all: Rc<[u32]>,
    /// The places of the last restricted task, which mostly are those of the next one.
    last: RefCell<Option<Counted<'a>>>,
}

/// Numbers of workers in some places.
struct Counted<'a> {
    places: &'a Where,
    numbers: Rc<[u32]>,
}

impl<'a> Allowed<'a> {
    pub(super) fn new(platform: &'a Platform) -> Allowed<'a> {
        Allowed { platform, all: platform.workers_by_class().into(), last: RefCell::default() }
    }

    /// For each class, the number of its workers that the places of `task` allow.
    pub(super) fn by_class(&self, task: &'a Task) -> Rc<[u32]> {
        let Some(only) = task.only.as_deref() else { return Rc::clone(&self.all) };
        let mut last = self.last.borrow_mut();
        match &*last {
            Some(Counted { places, numbers }) if *places == only => Rc::clone(numbers),
            _ => {
                let numbers = self.count(only);
                *last = Some(Counted { places: only, numbers: Rc::clone(&numbers) });
                numbers
            }
        }
    }

    fn count(&self, only: &Where) -> Rc<[u32]> {
        let platform = self.platform;
        let mut numbers = vec![0; platform.classes.len()];
        for (id, worker) in (0..).map(WorkerId).zip(&platform.workers) {
            numbers[worker.class] += u32::from(platform.allows(only, id));
        }
        numbers.into()
    }
}
