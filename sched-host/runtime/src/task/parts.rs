//! Submission of tasks that name parts of data, or data that a scope lent.

use super::entry::Entry;
use super::failure::SubmitError;
use super::record::{Dependent, TaskKey};
use crate::core::Core;
use crate::data::DataHeader;
use crate::data::whole::Part;
use sched_graph::AccessMode;
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

    /// [Enters](Core::enter) a task that names parts of data. The orders of all data with parts are locked before those
    /// of other data, in the order of their ids, so that two concurrent submissions have the same order everywhere.
    #[cold]
    pub(crate) fn enter_with_parts(&self, entry: Entry<'_>, right: &mut Right<'_>) -> (TaskKey, u32) {
        let (place, accesses) = (entry.place, entry.accesses);
        let mut parts: SmallVec<[(&Part, AccessMode); 8]> = parts_of(accesses).collect();
        parts.sort_by_key(|(part, _)| part.whole.id);
        let groups: SmallVec<[_; 4]> = parts.chunk_by(|(a, _), (b, _)| a.whole.id == b.whole.id).collect();
        let mut orders: SmallVec<[_; 4]> = groups.iter().map(|group| group[0].0.whole.order.lock()).collect();
        let others = accesses.iter().filter(|(header, _)| header.part().is_none()).copied();
        let others: SmallVec<[(&Arc<DataHeader>, AccessMode); 4]> = others.collect();
        let (key, mut links) = self.enter(Entry { accesses: &others, ..entry }, right);
        place.slot.set_phase(Phase::Waiting);
        for (group, order) in groups.iter().zip(&mut orders) {
            for (part, mode) in *group {
                let wait_for = |before: TaskKey| {
                    // A part without elements is behind the whole, which the task may name too.
                    if before == key {
                        return true;
                    }
                    let waits =
                        !self.has_long_ended(before.sequence) && self.link(before, Dependent::new(key.slot, false));
                    links += u32::from(waits);
                    waits
                };
                order.access(key, part.id, *mode, wait_for, |old| self.is_ended(old));
            }
        }
        (key, links)
    }
}

/// The parts among the data of a task.
fn parts_of<'h>(accesses: &[(&'h Arc<DataHeader>, AccessMode)]) -> impl Iterator<Item = (&'h Part, AccessMode)> {
    accesses.iter().filter_map(|(header, mode)| header.part().map(|part| (part, *mode)))
}
