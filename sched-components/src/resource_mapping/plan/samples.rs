//! What becomes of a plan where kernels deviate: it is followed with lengths that are drawn at random.
//!
//! Of many plans that are compared by the lengths that are most likely, the best is one in which these happen to fit
//! together. Where lengths deviate, they do not, and lanes wait for each other. A plan that is best in the mean of
//! several draws has time to spare where it is needed.

use super::outlook::{NEVER, Outlook};
use super::schedule::{Schedule, Scratch};
use super::search::Dice;

/// Number of draws. Four tell hardly more than none.
const DRAWS: usize = 16;

/// See the [module](self). All plans of a search meet the same draws.
#[derive(Default, Debug)]
pub(super) struct Samples {
    outlooks: Vec<Outlook>,
    followed: Schedule,
}

impl Samples {
    /// Draws lengths whose logarithms deviate by `spread` from those of the outlook: equally on all lanes of a class.
    pub(super) fn draw(outlook: &Outlook, spread: f64, dice: &mut Dice) -> Samples {
        let outlooks = (0..DRAWS).map(|_| disturbed(outlook, spread, dice)).collect();
        Samples { outlooks, followed: Schedule::default() }
    }

    /// Whether plans are compared by the most likely lengths alone.
    pub(super) fn is_empty(&self) -> bool {
        self.outlooks.is_empty()
    }

    /// What a plan is worth: nanoseconds until it ends, by the most likely lengths and all draws together.
    pub(super) fn score(&mut self, outlook: &Outlook, plan: &Schedule, scratch: &mut Scratch) -> u64 {
        let mut sum = plan.end.saturating_sub(outlook.now);
        for disturbed in &self.outlooks {
            self.followed.follow(disturbed, plan, scratch);
            sum = sum.saturating_add(self.followed.end.saturating_sub(outlook.now));
        }
        sum
    }
}

fn disturbed(outlook: &Outlook, spread: f64, dice: &mut Dice) -> Outlook {
    let mut disturbed = outlook.clone();
    let mut factor = || (spread * dice.normal()).exp();
    // Each task has a row of its own here.
    disturbed.rows = (0..outlook.rows.len() as u32).collect();
    disturbed.lengths = (0..outlook.rows.len()).flat_map(|task| outlook.lengths(task)).copied().collect();
    for lengths in disturbed.lengths.chunks_mut(outlook.lanes.len().max(1)) {
        let factors: Vec<f64> = (0..outlook.classes).map(|_| factor()).collect();
        for (length, lane) in lengths.iter_mut().zip(&outlook.lanes).filter(|(length, _)| **length != NEVER) {
            *length = (*length as f64 * factors[lane.class]) as u64;
        }
    }
    for (_, _, end) in &mut disturbed.sent {
        let left = end.saturating_sub(outlook.now) as f64;
        *end = outlook.now + (left * factor()) as u64;
    }
    disturbed
}

#[cfg(test)]
mod tests {
    use super::super::outlook::Lane;
    use super::*;
    use sched_core::{Child, WorkerId};

    #[test]
    fn lengths_deviate_by_task_and_class_and_what_cannot_run_still_cannot() {
        let lane =
            |number: u32, class| Lane { worker: WorkerId(number), child: Child(number), memory: 0, class, free: 0 };
        let mut outlook = Outlook::default();
        (outlook.lanes, outlook.classes) = (vec![lane(0, 0), lane(1, 0), lane(2, 1)], 2);
        (outlook.rows, outlook.lengths) = (vec![0; 2000], vec![1_000_000, 1_000_000, NEVER]);
        outlook.sent = vec![(0, 0, 500)];
        let drawn = disturbed(&outlook, 0.2, &mut Dice(1));
        let logs: Vec<f64> = drawn.lengths.chunks(3).map(|task| (task[0] as f64 / 1e6).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let spread = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt();
        assert!(mean.abs() < 0.02 && (0.18..0.22).contains(&spread), "{mean} {spread}");
        assert!(drawn.lengths.chunks(3).all(|task| task[0] == task[1] && task[2] == NEVER));
        assert_eq!(disturbed(&outlook, 0.0, &mut Dice(1)).sent, outlook.sent);
    }
}
