//! Kinds of tasks: those of equal lengths everywhere.

use super::outlook::NEVER;
use std::collections::BTreeMap;

/// Maximum number of known kinds; beyond it they are discarded. Measured lengths change all the time.
const MOST: usize = 4096;

/// With more kinds than this, the search changes the preferences of tasks that are as much faster on some lanes than on
/// others, rather than of a kind, which is few tasks then.
const FEW: usize = 32;

/// Steps of the ratio of two lengths that count as different, for a factor of two.
const STEPS: f64 = 4.0;

/// The kinds that are known, by numbers.
#[derive(Default, Debug)]
pub(super) struct Kinds {
    /// By the lengths on each lane.
    kinds: BTreeMap<Vec<u64>, usize>,
    /// By the ratios of these.
    groups: BTreeMap<Vec<i16>, usize>,
    /// By kind.
    group_of: Vec<usize>,
}

impl Kinds {
    /// The number of the kind of tasks with these lengths.
    pub(super) fn number(&mut self, lengths: &[u64]) -> usize {
        if let Some(kind) = self.kinds.get(lengths) {
            return *kind;
        }
        let least = lengths.iter().copied().min().unwrap_or(NEVER).max(1) as f64;
        let steps = |length: &u64| match *length {
            NEVER => i16::MAX,
            length => ((length.max(1) as f64 / least).log2() * STEPS).round() as i16,
        };
        let (kind, next) = (self.kinds.len(), self.groups.len());
        self.group_of.push(*self.groups.entry(lengths.iter().map(steps).collect()).or_insert(next));
        self.kinds.insert(lengths.to_vec(), kind);
        kind
    }

    /// Whether there are too many.
    pub(super) fn are_too_many(&self) -> bool {
        self.kinds.len() > MOST
    }

    /// Whether tasks share preferences with those that are faster on the same lanes, rather than with their kind.
    pub(super) fn are_grouped(&self) -> bool {
        self.kinds.len() > FEW
    }

    /// The number of the tasks that share the preferences of a kind.
    pub(super) fn group(&self, kind: usize) -> usize {
        if self.are_grouped() { self.group_of[kind] } else { kind }
    }

    /// Number of groups of tasks that share preferences.
    pub(super) fn count_groups(&self) -> usize {
        if self.are_grouped() { self.groups.len() } else { self.kinds.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_kinds_share_preferences_by_the_ratios_of_their_lengths() {
        let mut kinds = Kinds::default();
        let of = |length: u64| [vec![length, 10 * length], vec![length, 20 * length], vec![length, NEVER]];
        let numbers = |kinds: &mut Kinds, length| of(length).map(|lengths| kinds.number(&lengths));
        assert_eq!(numbers(&mut kinds, 100), [0, 1, 2]);
        assert_eq!(numbers(&mut kinds, 101), [3, 4, 5]);
        assert_eq!(numbers(&mut kinds, 100), [0, 1, 2]);
        assert_eq!(([3, 4, 5].map(|kind| kinds.group(kind)), kinds.count_groups()), ([3, 4, 5], 6));
        (102..120).for_each(|length| _ = numbers(&mut kinds, length));
        assert_eq!(([3, 4, 5].map(|kind| kinds.group(kind)), kinds.count_groups()), ([0, 1, 2], 3));
        assert!(!kinds.are_too_many());
    }
}
