//! What preferences are made of.

use super::{Habits, Start};
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};
use crate::resource_mapping::plan::schedule::Taste;

/// Number of the orders that are upward ranks, which come first.
pub(super) const RANKS: usize = 3;

/// See the [module](self).
pub(super) struct Basis<'a> {
    outlook: &'a Outlook,
    /// The keys of tasks in each order in which they may choose at first: [upward ranks](RANKS) by the mean length, the
    /// least, and the harmonic mean; [depth first](depth_first); and as they were submitted.
    pub(super) orders: [Vec<f64>; 5],
    /// Whether all lanes are equal, so that only the order of the tasks makes a difference.
    pub(super) is_uniform: bool,
}

impl<'a> Basis<'a> {
    pub(super) fn new(outlook: &'a Outlook) -> Basis<'a> {
        let count = outlook.lanes.len().max(1) as f64;
        let known = |lengths: &[u64]| -> Vec<f64> {
            let known = lengths.iter().filter(|length| **length != NEVER);
            known.map(|length| (*length).max(1) as f64).collect()
        };
        let average = |lengths: &[f64]| lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        let mean = outlook.ranks(|lengths| average(&known(lengths)));
        let least = outlook.ranks(|lengths| known(lengths).into_iter().fold(f64::INFINITY, f64::min));
        let harmonic = outlook.ranks(|lengths| count / known(lengths).iter().map(|length| 1.0 / length).sum::<f64>());
        let deep = depth_first(outlook, &mean);
        let submitted = (0..outlook.len()).map(|task| -(task as f64)).collect();
        let orders = [mean, least, harmonic, deep, submitted];
        Basis { outlook, orders, is_uniform: outlook.is_uniform() }
    }

    /// Preferences by habits, in one of the orders.
    pub(super) fn taste(&self, habits: &Habits, order: usize) -> Taste {
        let outlook = self.outlook;
        let mut by_kind = vec![0.0; outlook.count_groups * outlook.classes];
        by_kind.iter_mut().zip(&habits.by_kind).for_each(|(liking, before)| *liking = *before);
        let Start { at_once, shares, evicts, late, hasty, haul, owned } = habits.start;
        // Lanes that were equal may not be so any more.
        let late = late && self.is_uniform;
        let by_task = vec![0.0; outlook.len() * outlook.classes];
        Taste { keys: self.orders[order].clone(), by_kind, by_task, owned, haul, at_once, shares, evicts, late, hasty }
    }
}

/// Keys by which what has become ready last comes first, by `ranks` what became ready at once: the order of one worker
/// that goes on with what it made ready. Upward ranks let all lines of tasks go on side by side, so that all that they
/// need is allocated and fetched at once; here one is done before the next begins (Blelloch, Gibbons and Matias, *Provably
/// efficient scheduling for languages with fine-grained parallelism*, 1999).
fn depth_first(outlook: &Outlook, ranks: &[f64]) -> Vec<f64> {
    let by_rank = |a: &usize, b: &usize| ranks[*a].total_cmp(&ranks[*b]).then(b.cmp(a));
    let mut waits = outlook.waits.clone();
    let mut ready: Vec<usize> = (0..outlook.len()).filter(|task| waits[*task] == 0).collect();
    ready.sort_unstable_by(by_rank);
    let (mut keys, mut left) = (vec![0.0; outlook.len()], outlook.len() as f64);
    while let Some(task) = ready.pop() {
        keys[task] = left;
        left -= 1.0;
        let earlier = ready.len();
        for next in outlook.successors(task) {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push(*next);
            }
        }
        ready[earlier..].sort_unstable_by(by_rank);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource_mapping::plan::outlook::tests::graph;

    #[test]
    fn a_line_of_tasks_is_done_before_the_next_begins() {
        // The second line takes longer, and so does the second of the tasks behind its first one.
        let lengths = [1, 1, 2, 2, 3, 1].map(|length| vec![length]);
        let before = [vec![], vec![0], vec![], vec![2], vec![2], vec![3, 4]];
        let keys = depth_first(&graph(&lengths, &before, &[0]), &[2.0, 1.0, 6.0, 3.0, 4.0, 1.0]);
        let mut order: Vec<usize> = (0..6).collect();
        order.sort_by(|a, b| keys[*b].total_cmp(&keys[*a]));
        assert_eq!(order, [2, 4, 3, 5, 0, 1]);
    }
}
