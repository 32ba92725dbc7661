//! The order of accesses within a group of tasks that is ordered apart from all others: those of a recording, and those
//! nested in one task.

use crate::data::DataHeader;
use sched_graph::{AccessMode, AccessOrder, Region};
use std::collections::HashMap;

/// See the [module](self). `T` names tasks.
pub(crate) struct PrivateOrder<T> {
    plain: HashMap<u64, AccessOrder<T>>,
    /// For each whole: accesses to its parts that a later one may have to wait for.
    parts: HashMap<u64, Vec<PartAccess<T>>>,
}

struct PartAccess<T> {
    /// Id of the part's data, which has the turn of those that commute on it.
    id: u64,
    region: Region,
    mode: AccessMode,
    task: T,
}

impl<T> PartAccess<T> {
    /// Whether the order of both matters. Parts that overlap have a turn each, so only those that commute on one part
    /// are kept apart by it.
    fn conflicts(&self, id: u64, region: &Region, mode: AccessMode) -> bool {
        let together = self.id == id && self.mode == mode && matches!(mode, AccessMode::Commute | AccessMode::Redux);
        // One without elements overlaps not even itself.
        let near = self.id == id || self.region.overlaps(region);
        near && (mode.writes() || self.mode.writes()) && !together
    }
}

impl<T> Default for PrivateOrder<T> {
    fn default() -> PrivateOrder<T> {
        PrivateOrder { plain: HashMap::new(), parts: HashMap::new() }
    }
}

impl<T: Copy> PrivateOrder<T> {
    /// Notes the access of a new task, and passes those that it waits for to `wait_for`, some more than once.
    pub(crate) fn access(&mut self, task: T, header: &DataHeader, mode: AccessMode, mut wait_for: impl FnMut(T)) {
        let Some(part) = header.part() else {
            self.plain.entry(header.id).or_default().access(task, mode, wait_for, |_| false);
            return;
        };
        let accesses = self.parts.entry(part.whole.id).or_default();
        let near = accesses.iter().filter(|access| access.conflicts(header.id, &part.region, mode));
        near.for_each(|access| wait_for(access.task));
        if matches!(mode, AccessMode::Write | AccessMode::ReadWrite) {
            // Whoever overlaps these waits for this task, which waits for them.
            accesses.retain(|access| !part.region.contains(&access.region));
        }
        accesses.push(PartAccess { id: header.id, region: part.region.clone(), mode, task });
    }
}
