//! Data that is written together.

use std::collections::HashMap;

/// A group of data.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The group that it has become a part of, or itself.
    part_of: usize,
    /// Number of groups that have become one with it.
    size: usize,
    /// Its number among the groups, by when the first of its data was written.
    number: usize,
}

/// Groups of data, each of which shares a task that writes both with some other data of its group: the columns of a
/// matrix where tasks write two tiles of one.
#[derive(Default, Debug)]
pub(super) struct Groups {
    /// The group that each piece of data was first in.
    of_data: HashMap<u64, usize>,
    groups: Vec<Group>,
    /// Number of groups that are not part of another.
    count: usize,
    /// The number of the next group.
    next: usize,
}

impl Groups {
    /// Takes note that one task writes this data. Returns how many pieces these are.
    pub(super) fn note(&mut self, written: impl Iterator<Item = u64>) -> usize {
        let (mut group, mut fresh, mut count) = (None, Vec::new(), 0);
        for data in written {
            count += 1;
            match self.group(data) {
                Some(known) => group = Some(group.map_or(known, |group| self.unite(group, known))),
                None => fresh.push(data),
            }
        }
        if !fresh.is_empty() {
            let group = group.unwrap_or_else(|| self.begin());
            self.of_data.extend(fresh.into_iter().map(|data| (data, group)));
        }
        count
    }

    fn begin(&mut self) -> usize {
        let group = self.groups.len();
        self.groups.push(Group { part_of: group, size: 1, number: self.next });
        (self.count, self.next) = (self.count + 1, self.next + 1);
        group
    }

    /// The smaller group becomes a part of the larger one, so that the ways to it stay short.
    fn unite(&mut self, one: usize, other: usize) -> usize {
        if one == other {
            return one;
        }
        let (small, large) = if self.groups[one].size < self.groups[other].size { (one, other) } else { (other, one) };
        let Group { size, number, .. } = self.groups[small];
        self.groups[small].part_of = large;
        let group = &mut self.groups[large];
        (group.size, group.number) = (group.size + size, group.number.min(number));
        self.count -= 1;
        large
    }

    fn group(&self, data: u64) -> Option<usize> {
        let mut group = *self.of_data.get(&data)?;
        while self.groups[group].part_of != group {
            group = self.groups[group].part_of;
        }
        Some(group)
    }

    /// Number of groups.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Numbers the groups without gaps.
    pub(super) fn renumber(&mut self) {
        let groups = self.groups.iter_mut().enumerate().filter(|(at, group)| group.part_of == *at);
        let mut groups: Vec<&mut Group> = groups.map(|(_, group)| group).collect();
        groups.sort_unstable_by_key(|group| group.number);
        self.next = groups.len();
        groups.into_iter().enumerate().for_each(|(number, group)| group.number = number);
    }

    /// The number of the group of a piece of data.
    pub(super) fn number(&self, data: u64) -> Option<usize> {
        Some(self.groups[self.group(data)?].number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn groups_that_are_written_together_become_one() {
        let mut groups = Groups::default();
        let counts = [&[1][..], &[2, 3], &[4], &[2, 1], &[]].map(|written| groups.note(written.iter().copied()));
        assert_eq!((counts, groups.count()), ([1, 2, 1, 2, 0], 2));
        let numbers = |groups: &Groups| [1, 2, 3, 4, 5].map(|data| groups.number(data));
        assert_eq!(numbers(&groups), [Some(0), Some(0), Some(0), Some(2), None]);
        groups.renumber();
        assert_eq!(numbers(&groups), [Some(0), Some(0), Some(0), Some(1), None]);
        groups.note([5].into_iter());
        assert_eq!(groups.number(5), Some(2));
    }

    proptest! {
        #[test]
        fn groups_are_those_that_a_search_finds(
            tasks in prop::collection::vec(prop::collection::vec(0..20_u64, 0..4), 0..12),
        ) {
            let mut groups = Groups::default();
            for task in &tasks {
                groups.note(task.iter().copied());
            }
            groups.renumber();
            // By data, the least that it is reached from.
            let mut least: Vec<u64> = (0..20).collect();
            for _ in 0..20 {
                for task in &tasks {
                    let first = task.iter().map(|data| least[*data as usize]).min();
                    task.iter().for_each(|data| least[*data as usize] = first.unwrap_or_default());
                }
            }
            let is_written = |data: &u64| tasks.iter().flatten().any(|other| other == data);
            for (one, other) in (0..20).flat_map(|one| (0..20).map(move |other| (one, other))) {
                if is_written(&one) && is_written(&other) {
                    let are_together = least[one as usize] == least[other as usize];
                    prop_assert_eq!(groups.number(one) == groups.number(other), are_together);
                }
            }
            let mut numbers: Vec<usize> = (0..20).filter_map(|data| groups.number(data)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers, (0..groups.count()).collect::<Vec<_>>());
        }
    }
}
