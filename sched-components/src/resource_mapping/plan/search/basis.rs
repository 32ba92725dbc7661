//! What preferences are made of.

use super::{Habits, Start};
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::schedule::Taste;

/// See the [module](self).
pub(super) struct Basis<'a> {
    outlook: &'a Outlook,
    /// Upward ranks, by the mean length, the least, and the harmonic mean.
    pub(super) ranks: [Vec<f64>; 3],
    /// Whether all lanes are equal, so that only the order of the tasks makes a difference.
    pub(super) is_uniform: bool,
    /// The tasks that have a lane in a plan, and may have another one.
    pub(super) open: Vec<usize>,
}

impl<'a> Basis<'a> {
    pub(super) fn new(outlook: &'a Outlook) -> Basis<'a> {
        let count = outlook.lanes.len().max(1) as f64;
        let known = |lengths: &[u64]| -> Vec<f64> {
            let known = lengths.iter().filter(|length| **length != NEVER);
            known.map(|length| (*length).max(1) as f64).collect()
        };
        let average = |lengths: &[f64]| lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        let ranks = [
            outlook.ranks(|lengths| average(&known(lengths))),
            outlook.ranks(|lengths| known(lengths).into_iter().fold(f64::INFINITY, f64::min)),
            outlook.ranks(|lengths| count / known(lengths).iter().map(|length| 1.0 / length).sum::<f64>()),
        ];
        let open = (0..outlook.len()).filter(|task| outlook.is_open(*task) && outlook.works[*task]).collect();
        Basis { outlook, ranks, is_uniform: outlook.is_uniform(), open }
    }

    /// Preferences by habits, in the order of an upward rank.
    pub(super) fn taste(&self, habits: &Habits, rank: usize) -> Taste {
        let outlook = self.outlook;
        let mut by_kind = vec![0.0; outlook.count_groups * outlook.classes];
        by_kind.iter_mut().zip(&habits.by_kind).for_each(|(liking, before)| *liking = *before);
        let Start { at_once, shares, evicts, late, hasty, haul, owned } = habits.start;
        // Lanes that were equal may not be so any more.
        let late = late && self.is_uniform;
        let by_task = vec![0.0; outlook.len() * outlook.classes];
        Taste { keys: self.ranks[rank].clone(), by_kind, by_task, owned, haul, at_once, shares, evicts, late, hasty }
    }
}
