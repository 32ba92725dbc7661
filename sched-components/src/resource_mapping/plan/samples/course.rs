//! What a rehearsal goes by.

use super::Samples;
use crate::resource_mapping::plan::outlook::Outlook;
use crate::resource_mapping::plan::schedule::{Schedule, refill};

/// See the [module](self).
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Course {
    /// The tasks, each behind those that it waits for; each lane executes its own in this order.
    pub(super) order: Vec<usize>,
    /// The lane of each task; meaningless for tasks that take no lane's time.
    pub(super) lanes: Vec<usize>,
    /// By task, in nanoseconds: since the outlook's now, from when on its data is fetched at the earliest; and what it
    /// takes then to arrive.
    pub(super) fetched: Vec<f32>,
    pub(super) comes: Vec<f32>,
}

impl Course {
    /// That of a plan that was `executed`.
    pub(super) fn lay(&mut self, samples: &Samples, outlook: &Outlook, executed: &Schedule) {
        let Course { order, lanes, fetched, comes } = self;
        lanes.clone_from(&executed.lanes);
        order.clear();
        order.extend((0..outlook.len()).filter(|task| outlook.is_open(*task)));
        // After those that it waits for: tasks are numbered in the order of submission.
        order.sort_unstable_by_key(|task| (executed.starts[*task], executed.ends[*task], *task));
        refill(fetched, outlook.len(), 0.0);
        refill(comes, outlook.len(), 0.0);
        for task in order.iter().copied().filter(|task| outlook.works[*task]) {
            let ready = samples.before(task).map(|before| executed.ends[before]).fold(outlook.now, u64::max);
            let from = executed.starts[task].saturating_sub(outlook.lead);
            comes[task] = executed.arrivals[task].saturating_sub(ready.max(from)) as f32;
            fetched[task] = from.saturating_sub(outlook.now) as f32;
        }
    }
}
