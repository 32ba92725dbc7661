//! Parts of data as index ranges, and what accesses to overlapping parts wait for.

use super::{AccessMode, AccessOrder};
use std::fmt;
use std::ops::Range;

/// A rectangle of a matrix, by the indices of its rows and columns. A range of an array is one of a matrix with a
/// single column.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// Rows, or elements of an array.
    pub rows: Range<usize>,
    /// Columns.
    pub columns: Range<usize>,
}

impl Region {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// The elements that both have.
    #[must_use]
    pub fn intersection(&self, other: &Region) -> Region {
        let common = |a: &Range<usize>, b: &Range<usize>| a.start.max(b.start)..a.end.min(b.end);
        Region { rows: common(&self.rows, &other.rows), columns: common(&self.columns, &other.columns) }
    }

    /// Whether both have an element in common.
    #[must_use]
    pub fn overlaps(&self, other: &Region) -> bool {
        !self.intersection(other).is_empty()
    }

    /// Whether each element of the other is one of this.
    #[must_use]
    pub fn contains(&self, other: &Region) -> bool {
        other.is_empty() || self.intersection(other) == *other
    }

    /// The elements that the other has not, as disjoint regions.
    pub fn minus(&self, other: &Region) -> impl Iterator<Item = Region> {
        let cut = self.intersection(other);
        let whole = self.clone();
        let pieces = if cut.is_empty() {
            vec![whole]
        } else {
            let beside = |columns| Region { rows: cut.rows.clone(), columns };
            vec![
                Region { rows: whole.rows.start..cut.rows.start, columns: whole.columns.clone() },
                beside(whole.columns.start..cut.columns.start),
                beside(cut.columns.end..whole.columns.end),
                Region { rows: cut.rows.end..whole.rows.end, columns: whole.columns },
            ]
        };
        pieces.into_iter().filter(|piece| !piece.is_empty())
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Region { rows, columns } = self;
        write!(f, "rows {}..{}, columns {}..{}", rows.start, rows.end, columns.start, columns.end)
    }
}

/// Number of a part of data in a [`RegionOrder`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PartId(u32);

impl PartId {
    /// The data as a whole.
    pub const WHOLE: PartId = PartId(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Accesses to one piece of data and to its parts that a new task may have to wait for: [`AccessOrder`] for data whose
/// parts may overlap. Tasks run as if one after the other in the order of their submission.
///
/// Each part has an order of its own. A new access waits for the conflicting ones in the orders of all overlapping
/// parts, and is recorded in the order of its part alone. A write makes the orders of the parts inside its own empty:
/// whoever overlaps them waits for the write instead. So an access to the whole looks at the parts that were used since
/// the last write to the whole. Accesses that commute do so with those to the same part only. A part without elements
/// overlaps the whole alone: whoever uses the whole comes after, or before, all who use any of its parts.
///
/// ```
/// use sched_graph::{AccessMode, PartId, Region, RegionOrder};
///
/// let range = |rows| Region { rows, columns: 0..1 };
/// let mut order = RegionOrder::new(range(0..10));
/// let halves = order.add(PartId::WHOLE, &[range(0..5), range(5..10)]);
/// let mut before = |task, part, mode| {
///     let mut before = Vec::new();
///     let note = |other| {
///         before.push(other);
///         true
///     };
///     order.access(task, part, mode, note, |_| false);
///     before
/// };
/// assert_eq!(before("make", PartId::WHOLE, AccessMode::Write), [""; 0]);
/// assert_eq!(before("left", halves[0], AccessMode::ReadWrite), ["make"]);
/// assert_eq!(before("right", halves[1], AccessMode::ReadWrite), ["make"]);
/// assert_eq!(before("show", PartId::WHOLE, AccessMode::Read), ["left", "right", "make"]);
/// ```
#[derive(Clone, Debug)]
pub struct RegionOrder<T> {
    parts: Vec<Part<T>>,
    /// Whether a part may have accesses to wait for; beside the parts, since most are idle.
    busy: Vec<bool>,
    /// Numbers of parts that were removed and may still be in lists of others.
    removed: Vec<PartId>,
    /// Numbers that are in no list.
    free: Vec<PartId>,
}

#[derive(Clone, Debug)]
struct Part<T> {
    region: Region,
    order: AccessOrder<T>,
    /// Other parts with common elements; of a part without elements the whole, and the other way round.
    overlapping: Vec<PartId>,
}

impl<T: Copy> RegionOrder<T> {
    /// Data without parts so far.
    #[must_use]
    pub fn new(whole: Region) -> RegionOrder<T> {
        let whole = Part { region: whole, order: AccessOrder::default(), overlapping: Vec::new() };
        RegionOrder { parts: vec![whole], busy: vec![false], removed: Vec::new(), free: Vec::new() }
    }

    /// Region of a part.
    #[must_use]
    pub fn region(&self, part: PartId) -> &Region {
        &self.parts[part.index()].region
    }

    /// Adds parts of a part, each inside it, and returns their numbers.
    pub fn add(&mut self, of: PartId, regions: &[Region]) -> Vec<PartId> {
        let before: Vec<PartId> = self.parts[of.index()].overlapping.iter().copied().chain([of]).collect();
        let added: Vec<PartId> = regions.iter().map(|region| self.add_one(region)).collect();
        let has_elements = |part: &PartId| !self.parts[part.index()].region.is_empty();
        let of_old = before.into_iter().filter(has_elements).map(|part| (part, false));
        let mut sorted: Vec<(PartId, bool)> = of_old.collect();
        sorted.extend(added.iter().copied().filter(has_elements).map(|part| (part, true)));
        // From top to bottom, each with those above that reach down to it: not every part with every other.
        sorted.sort_by_key(|(part, _)| self.parts[part.index()].region.rows.start);
        let mut above: Vec<(PartId, bool)> = Vec::new();
        for (part, is_new) in sorted {
            let region = self.parts[part.index()].region.clone();
            above.retain(|(other, _)| self.parts[other.index()].region.rows.end > region.rows.start);
            for (other, _) in above.iter().filter(|(_, is_other_new)| is_new || *is_other_new) {
                if self.parts[other.index()].region.overlaps(&region) {
                    self.link(part, *other);
                }
            }
            above.push((part, is_new));
        }
        let without_elements = added.iter().filter(|part| self.parts[part.index()].region.is_empty()).copied();
        for part in without_elements.collect::<Vec<PartId>>() {
            self.link(part, PartId::WHOLE);
        }
        added
    }

    fn add_one(&mut self, region: &Region) -> PartId {
        let id = self.free.pop().unwrap_or(PartId(self.parts.len() as u32));
        let part = Part { region: region.clone(), order: AccessOrder::default(), overlapping: Vec::new() };
        match self.parts.get_mut(id.index()) {
            Some(place) => *place = part,
            None => {
                self.parts.push(part);
                self.busy.push(false);
            }
        }
        id
    }

    /// Notes that two parts overlap.
    fn link(&mut self, one: PartId, other: PartId) {
        self.parts[one.index()].overlapping.push(other);
        self.parts[other.index()].overlapping.push(one);
    }

    /// Removes a part that no task names any more; those that named it have ended, or never will use it.
    pub fn remove(&mut self, part: PartId) {
        self.busy[part.index()] = false;
        self.parts[part.index()] = Part {
            region: Region { rows: 0..0, columns: 0..0 },
            order: AccessOrder::default(),
            overlapping: Vec::new(),
        };
        self.removed.push(part);
        // Once for many parts: the whole has all of them on its list.
        if self.removed.len() > self.parts.len() / 2 {
            let mut is_removed = vec![false; self.parts.len()];
            self.removed.iter().for_each(|part| is_removed[part.index()] = true);
            self.parts.iter_mut().for_each(|part| part.overlapping.retain(|other| !is_removed[other.index()]));
            self.free.append(&mut self.removed);
        }
    }

    /// Whether an access to a part would wait for nothing but tasks for which `finished` holds.
    #[must_use]
    pub fn is_free(&self, part: PartId, mode: AccessMode, finished: impl Fn(T) -> bool) -> bool {
        let own = &self.parts[part.index()];
        own.overlapping.iter().chain([&part]).all(|other| self.parts[other.index()].order.is_free(mode, &finished))
    }

    /// Records the access of a new task to a part, and passes the tasks that it must wait for to `wait_for`, some of
    /// them more than once. That returns whether the task waits: one that has ended is forgotten. Earlier tasks for
    /// which `ended` holds may be forgotten as well.
    pub fn access(
        &mut self,
        task: T,
        part: PartId,
        mode: AccessMode,
        mut wait_for: impl FnMut(T) -> bool,
        ended: impl Fn(T) -> bool,
    ) {
        if mode == AccessMode::Scratch {
            return;
        }
        // Commuting tasks wait for each access that was there before the first of them: nothing may be forgotten.
        let replaces = matches!(mode, AccessMode::Write | AccessMode::ReadWrite);
        let overlapping = std::mem::take(&mut self.parts[part.index()].overlapping);
        for other in overlapping.iter().filter(|other| self.busy[other.index()]).copied().collect::<Vec<PartId>>() {
            let is_inside = self.parts[part.index()].region.contains(&self.parts[other.index()].region);
            let order = &mut self.parts[other.index()].order;
            order.overlap(mode, &mut wait_for);
            // A part as large as the whole does not stand for it: parts without elements overlap the whole alone.
            if replaces && is_inside && other != PartId::WHOLE {
                order.clear();
            }
            self.busy[other.index()] = !order.is_idle();
        }
        let own = &mut self.parts[part.index()];
        own.overlapping = overlapping;
        let wait = |before| {
            wait_for(before);
        };
        own.order.access(task, mode, wait, ended);
        self.busy[part.index()] = true;
    }
}

#[cfg(test)]
mod tests;
