//! Moves of single tasks of a plan.

use crate::resource_mapping::plan::dice::Dice;
use crate::resource_mapping::plan::outlook::{NEVER, Outlook};

/// Probability that two tasks change places, rather than that one goes to another lane.
const SWAPPED: f64 = 0.75;

/// Probability that tasks that move are shifted in the order too, and by how much, as a share of the plan's length.
const SHIFTED_TOO: f64 = 0.5;
const SHIFT: f64 = 0.05;

/// A task that goes to a lane, and is to start `earlier` than in the plan, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::resource_mapping::plan) struct Move {
    pub(in crate::resource_mapping::plan) task: usize,
    pub(in crate::resource_mapping::plan) lane: usize,
    pub(in crate::resource_mapping::plan) earlier: f64,
}

impl Move {
    /// Lets one or two of the `open` tasks change lanes, or pairs of them places, in a plan of this length. None moves
    /// twice.
    pub(in crate::resource_mapping::plan) fn draw(
        outlook: &Outlook,
        open: &[usize],
        lanes: &[usize],
        length: u64,
        dice: &mut Dice,
    ) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::new();
        let mut moved = Vec::new();
        let can = |task: usize, lane: usize| outlook.length(task, lane) != NEVER;
        let of_any = |dice: &mut Dice| open.get(dice.below(open.len())).copied();
        let lane_of = |moves: &[Move], task: usize| {
            moves.iter().find(|moved| moved.task == task).map_or(lanes[task], |moved| moved.lane)
        };
        let mut go = |moves: &mut Vec<Move>, task: usize, lane: usize| {
            moved.push(task);
            match moves.iter_mut().find(|moved| moved.task == task) {
                Some(moved) => moved.lane = lane,
                None => moves.push(Move { task, lane, earlier: 0.0 }),
            }
        };
        for _ in 0..=dice.below(2) {
            let Some(task) = of_any(dice) else { break };
            if dice.chance(SWAPPED) {
                let Some(other) = of_any(dice) else { break };
                let (here, there) = (lane_of(&moves, task), lane_of(&moves, other));
                if can(task, there) && can(other, here) {
                    go(&mut moves, task, there);
                    go(&mut moves, other, here);
                }
            } else {
                let lane = dice.below(outlook.lanes.len());
                if can(task, lane) {
                    go(&mut moves, task, lane);
                }
            }
        }
        if dice.chance(SHIFTED_TOO) {
            let by = SHIFT * length as f64;
            for task in moved {
                let earlier = by * dice.normal();
                moves.iter_mut().filter(|moved| moved.task == task).for_each(|moved| moved.earlier += earlier);
            }
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource_mapping::plan::outlook::tests::graph;
    use proptest::prelude::*;

    proptest! {
        /// Tasks go only where they can be executed, each once.
        #[test]
        fn no_task_moves_twice_or_to_a_lane_that_cannot_execute_it(
            lengths in prop::collection::vec(
                prop::collection::vec(prop_oneof![1 => Just(NEVER), 2 => 1..20_u64], 4), 1..8,
            ),
            open in prop::collection::vec(any::<bool>(), 8),
            seed in any::<u64>(),
        ) {
            let mut lengths = lengths;
            lengths.iter_mut().for_each(|lengths| lengths[1] = 20);
            let count = lengths.len();
            let outlook = graph(&lengths, &vec![vec![]; count], &[0; 4]);
            let open: Vec<usize> = (0..count).filter(|task| open[*task]).collect();
            let mut dice = Dice(seed);
            for _ in 0..20 {
                let moves = Move::draw(&outlook, &open, &vec![1; count], 100, &mut dice);
                prop_assert!(!open.is_empty() || moves.is_empty());
                for (number, moved) in moves.iter().enumerate() {
                    prop_assert!(open.contains(&moved.task) && outlook.length(moved.task, moved.lane) != NEVER);
                    prop_assert!(moves[..number].iter().all(|other| other.task != moved.task));
                }
            }
        }
    }
}
