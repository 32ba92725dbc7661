//! Submission of tasks that name parts of data, or data that a scope lent.

use super::entry::Entry;
use super::failure::SubmitError;
use super::record::{Dependent, TaskKey};
use crate::core::Core;
use crate::data::DataHeader;
use crate::data::whole::Part;
use parking_lot::MutexGuard;
use sched_graph::{AccessMode, RegionOrder};
use sched_sync::sole::Right;
use sched_tree::Phase;
use smallvec::SmallVec;
use std::sync::Arc;

impl Core {
    /// Checks the data of a task. Returns whether some is special.
    #[cold]
    pub(crate) fn check_special(
        &self,
        codelet: &str,
        accesses: &[(&Arc<DataHeader>, AccessMode)],
    ) -> Result<bool, SubmitError> {
        if accesses.iter().any(|(header, _)| header.runtime() != self.id) {
            return Err(SubmitError::Foreign { codelet: codelet.to_owned(), what: "a handle" });
        }
        for (header, mode) in accesses {
            if let Some(Err(why)) = header.loan().map(|loan| loan.check(mode.writes())) {
                return Err(SubmitError::Loan { codelet: codelet.to_owned(), why });
            }
        }
        // Those of one whole together, from top to bottom.
        let mut parts: SmallVec<[(&Part, AccessMode); 8]> = parts_of(accesses).collect();
        parts.sort_by_key(|(part, _)| (part.whole.id, part.region.rows.start));
        for (at, (part, mode)) in parts.iter().enumerate() {
            let is_near = |(other, _): &&(&Part, AccessMode)| {
                other.whole.id == part.whole.id && other.region.rows.start < part.region.rows.end
            };
            let conflicts = |(other, how): &&(&Part, AccessMode)| {
                // One handle that is named twice is another error.
                other.id != part.id && (how.writes() || mode.writes()) && other.region.overlaps(&part.region)
            };
            if let Some((other, _)) = parts[at + 1..].iter().take_while(is_near).find(conflicts) {
                let (first, second) = (part.region.clone(), other.region.clone());
                return Err(SubmitError::Overlap { codelet: codelet.to_owned(), first, second });
            }
        }
        Ok(accesses.iter().any(|(header, _)| header.is_special()))
    }

    /// [Enters](Core::enter) a task that names parts of data.
    #[cold]
    pub(crate) fn enter_with_parts(&self, entry: Entry<'_>, right: &mut Right<'_>) -> (TaskKey, u32) {
        let (place, accesses) = (entry.place, entry.accesses);
        let mut parts = PartOrders::lock(accesses);
        let others = accesses.iter().filter(|(header, _)| header.part().is_none()).copied();
        let others: SmallVec<[(&Arc<DataHeader>, AccessMode); 4]> = others.collect();
        let (key, links) = self.enter(Entry { accesses: &others, ..entry }, right);
        place.slot.set_phase(Phase::Waiting);
        (key, links + parts.enter(self, key))
    }

    /// Makes a task of this key wait for another one, unless that has ended. Returns whether it waits.
    pub(super) fn wait_for(&self, key: TaskKey, before: TaskKey) -> bool {
        !self.has_long_ended(before.sequence) && self.link(before, Dependent::new(key.slot, false))
    }
}

/// An access to a part.
type Parted<'h> = (&'h Part, AccessMode);

/// The orders of all data of which a task names parts. They are locked before those of other data, in the order of their
/// ids, so that two concurrent submissions have the same order everywhere.
pub(super) struct PartOrders<'h> {
    /// The accesses, by data.
    parts: SmallVec<[Parted<'h>; 8]>,
    /// A lock for each data.
    orders: SmallVec<[MutexGuard<'h, RegionOrder<TaskKey>>; 4]>,
}

impl<'h> PartOrders<'h> {
    /// Locks the orders of the parts among these data.
    pub(super) fn lock(accesses: &[(&'h Arc<DataHeader>, AccessMode)]) -> PartOrders<'h> {
        let mut parts: SmallVec<[Parted<'h>; 8]> = parts_of(accesses).collect();
        parts.sort_by_key(|(part, _)| part.whole.id);
        let orders = by_data(&parts).map(|group| group[0].0.whole.order.lock()).collect();
        PartOrders { parts, orders }
    }

    /// Whether all accesses would wait for nothing but tasks for which `is_over` holds.
    pub(super) fn are_free(&self, is_over: impl Fn(TaskKey) -> bool + Copy) -> bool {
        let mut groups = by_data(&self.parts).zip(&self.orders);
        groups.all(|(group, order)| group.iter().all(|(part, mode)| order.is_free(part.id, *mode, is_over)))
    }

    /// Takes the place of a task in all of them. Returns the number of links to those that it must wait for.
    pub(super) fn enter(&mut self, core: &Core, key: TaskKey) -> u32 {
        let mut links = 0;
        for (group, order) in by_data(&self.parts).zip(&mut self.orders) {
            for (part, mode) in group {
                let wait_for = |before: TaskKey| {
                    // A part without elements is behind the whole, which the task may name too.
                    if before == key {
                        return true;
                    }
                    let waits = core.wait_for(key, before);
                    links += u32::from(waits);
                    waits
                };
                order.access(key, part.id, *mode, wait_for, |old| core.is_ended(old));
            }
        }
        links
    }
}

/// Accesses that are sorted by data, those of each together.
fn by_data<'p, 'h>(parts: &'p [Parted<'h>]) -> impl Iterator<Item = &'p [Parted<'h>]> {
    parts.chunk_by(|(a, _), (b, _)| a.whole.id == b.whole.id)
}

/// The parts among the data of a task.
fn parts_of<'h>(accesses: &[(&'h Arc<DataHeader>, AccessMode)]) -> impl Iterator<Item = (&'h Part, AccessMode)> {
    accesses.iter().filter_map(|(header, mode)| header.part().map(|part| (part, *mode)))
}
