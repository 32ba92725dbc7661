//! Neighbouring lanes that no task tells apart at the beginning of a plan. Of those that the plan has not used yet, the
//! first stands for all: any task would end there as early as on the others, and the first of equal lanes is chosen. So
//! a plan for thousands of cores looks at those that it uses.
//!
//! Squads that differ in nothing but when their lanes are free at the beginning are a troop: a task takes equally long on
//! all its lanes, in one memory.

use super::super::schedule::refill;
use super::{NEVER, Outlook};
use std::collections::HashSet;
use std::ops::Range;

/// See the [module](self).
#[derive(Clone, Default, Debug)]
pub(in crate::resource_mapping::plan) struct Squads {
    /// The lanes of each.
    lanes: Vec<Range<usize>>,
    /// The squad of each lane.
    of: Vec<usize>,
    /// The squads of each troop.
    troops: Vec<Range<usize>>,
}

/// See the [module](self).
pub(in crate::resource_mapping::plan) struct Troop<'a> {
    squads: &'a Squads,
    of: Range<usize>,
}

impl Squads {
    /// Those of the lanes of `outlook`, whose tasks are known.
    pub(super) fn new(outlook: &Outlook) -> Squads {
        let lanes = &outlook.lanes;
        let free = |lane: usize| lanes[lane].free.max(outlook.now);
        let mut differs: Vec<bool> = (0..lanes.len())
            .map(|lane| {
                let before = lane.wrapping_sub(1);
                lane == 0 || lanes[lane].memory != lanes[before].memory || lanes[lane].class != lanes[before].class
            })
            .collect();
        let mut seen = HashSet::new();
        for task in (0..outlook.len()).filter(|task| seen.insert(outlook.kinds[*task])) {
            for (lane, differs) in differs.iter_mut().enumerate().skip(1) {
                *differs |= outlook.length(task, lane) != outlook.length(task, lane - 1);
            }
        }
        let mut squads = Squads::default();
        for (lane, differs) in differs.into_iter().enumerate() {
            if differs || free(lane) != free(lane - 1) {
                squads.lanes.push(lane..lane);
            }
            let squad = squads.lanes.len() - 1;
            squads.lanes[squad].end = lane + 1;
            squads.of.push(squad);
            if differs {
                squads.troops.push(squad..squad);
            }
            if let Some(troop) = squads.troops.last_mut() {
                troop.end = squad + 1;
            }
        }
        squads
    }

    /// All troops, in the order of their lanes.
    pub(in crate::resource_mapping::plan) fn troops(&self) -> impl Iterator<Item = Troop<'_>> {
        self.troops.iter().map(|of| Troop { squads: self, of: of.clone() })
    }

    /// Begins a plan: `used` has the number of used lanes of each squad.
    pub(in crate::resource_mapping::plan) fn begin(&self, used: &mut Vec<usize>) {
        refill(used, self.lanes.len(), 0);
    }

    /// Takes note that the plan uses a lane, one of the candidates.
    pub(in crate::resource_mapping::plan) fn note_use(&self, lane: usize, used: &mut [usize]) {
        let squad = self.of[lane];
        used[squad] = used[squad].max(lane - self.lanes[squad].start + 1);
    }
}

impl Troop<'_> {
    /// The first of the lanes.
    pub(in crate::resource_mapping::plan) fn first(&self) -> usize {
        self.squads.lanes[self.of.start].start
    }

    /// Those of the lanes from which a task chooses, in order: the used ones of each squad, and the first that is not.
    pub(in crate::resource_mapping::plan) fn candidates(&self, used: &[usize]) -> impl Iterator<Item = Range<usize>> {
        let squads = self.squads.lanes[self.of.clone()].iter().zip(&used[self.of.clone()]);
        squads.map(|(squad, used)| squad.start..(squad.start + used + 1).min(squad.end))
    }

    /// The least of a figure of each of these lanes.
    #[inline]
    pub(in crate::resource_mapping::plan) fn least(&self, used: &[usize], of: &[u64]) -> u64 {
        let least = |lanes: Range<usize>| of[lanes].iter().copied().fold(NEVER, u64::min);
        self.candidates(used).map(least).fold(NEVER, u64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::schedule::{Schedule, Scratch, Taste};
    use super::super::Lane;
    use super::*;
    use proptest::prelude::*;
    use sched_core::{Child, WorkerId};

    /// Independent tasks of some kinds on lanes of some classes, in that order. A class has a memory, and lengths by
    /// kind; a lane may be busy for a time.
    fn outlook(lanes: &[(usize, u64)], kinds: &[usize], lengths: &[[u64; 3]; 3]) -> Outlook {
        let lane = |(number, (class, free)): (usize, &(usize, u64))| {
            let (worker, child) = (WorkerId(number as u32), Child(number as u32));
            Lane { worker, child, memory: class / 2, class: *class, free: *free }
        };
        let count = kinds.len();
        let of_kind = |kind: &usize| lanes.iter().map(|(class, _)| lengths[*kind][*class]).collect::<Vec<u64>>();
        let mut outlook = Outlook {
            now: 5,
            lanes: lanes.iter().enumerate().map(lane).collect(),
            classes: 3,
            memories: 2,
            sequences: (0..count as u64).collect(),
            rows: kinds.iter().map(|kind| *kind as u32).collect(),
            lengths: [0, 1, 2].iter().flat_map(of_kind).collect(),
            kinds: kinds.to_vec(),
            groups: kinds.to_vec(),
            count_groups: 3,
            works: vec![true; count],
            owners: std::array::from_fn(|_| vec![None; count]),
            of_owner: vec![false; lanes.len()],
            is_sent: vec![false; count],
            waits: vec![0; count],
            successors_of: vec![Range::default(); count],
            tails: vec![0; count],
            uses_of: vec![Range::default(); count],
            ..Outlook::default()
        };
        outlook.squads = Squads::new(&outlook);
        outlook
    }

    proptest! {
        /// A plan is the one that a look at every lane makes.
        #[test]
        fn the_first_unused_lane_of_equal_ones_stands_for_all(
            mut lanes in prop::collection::vec((0..3_usize, prop_oneof![9 => Just(0), 1 => 0..40_u64]), 1..30),
            kinds in prop::collection::vec(0..3_usize, 1..60),
            lengths in any::<[[u8; 3]; 3]>(),
            leanings in any::<[i8; 9]>(),
            at_once in any::<bool>(),
        ) {
            lanes.sort_by_key(|(class, _)| *class);
            // Some kernels are missing, but each task can be executed.
            let length = |of: u8| if of < 60 { NEVER } else { u64::from(of) };
            let mut lengths = lengths.map(|of_kind| of_kind.map(length));
            lengths.iter_mut().for_each(|of_kind| of_kind[lanes[0].0] = of_kind[lanes[0].0].min(900));
            let mut outlook = outlook(&lanes, &kinds, &lengths);
            let taste = Taste {
                keys: kinds.iter().map(|kind| *kind as f64).collect(),
                by_kind: leanings.iter().map(|leaning| f64::from(*leaning) / 50.0).collect(),
                by_task: vec![0.0; kinds.len() * 3],
                owned: None,
                haul: 0.0,
                at_once,
                shares: false,
                evicts: false,
                hasty: false,
                late: false,
            };
            let plan = |outlook: &Outlook| {
                let (mut plan, mut scratch) = (Schedule::default(), Scratch::default());
                match at_once {
                    true => plan.dispatch(outlook, &taste, NEVER - 1, &mut scratch),
                    false => plan.choose(outlook, &taste, None, &mut scratch),
                }
                (plan.lanes, plan.starts, plan.ends)
            };
            let by_squads = plan(&outlook);
            let each = 0..lanes.len();
            let apart = || each.clone().map(|lane| lane..lane + 1).collect();
            outlook.squads = Squads { lanes: apart(), of: each.clone().collect(), troops: apart() };
            prop_assert_eq!(by_squads, plan(&outlook));
        }
    }

    #[test]
    fn lanes_that_differ_in_anything_are_apart() {
        let lengths = [[7, 9, 9], [8, NEVER, 9], [1, 1, 1]];
        let squads = |lanes: &[(usize, u64)], kinds: &[usize]| outlook(lanes, kinds, &lengths).squads.lanes;
        let troops = |lanes: &[(usize, u64)], kinds: &[usize]| outlook(lanes, kinds, &lengths).squads.troops;
        assert_eq!(squads(&[(0, 0); 1000], &[0, 1, 0]), vec![0..1000; 1]);
        // What has been is past.
        assert_eq!(squads(&[(0, 0), (0, 5), (0, 6), (0, 6)], &[0]), [0..2, 2..4]);
        assert_eq!(squads(&[(0, 0), (1, 0), (1, 0), (2, 0)], &[2]), [0..1, 1..3, 3..4]);
        assert!(squads(&[], &[0]).is_empty() && troops(&[], &[0]).is_empty());
        assert_eq!(troops(&[(0, 0), (0, 5), (0, 6), (1, 6), (1, 6), (2, 0)], &[0]), [0..2, 2..3, 3..4]);
    }
}
