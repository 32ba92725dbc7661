//! What becomes of a plan where kernels deviate: it is followed with lengths that are drawn at random.
//!
//! Of many plans that are compared by the lengths that are most likely, the best is one in which these happen to fit
//! together. Where lengths deviate, they do not, and lanes wait for each other. A plan that is best in the mean of
//! several draws has time to spare where it is needed.

use super::dice::Dice;
use super::outlook::{NEVER, Outlook};
use super::schedule::{Schedule, Scratch};

/// Number of draws, which is even. Four tell hardly more than none.
const DRAWS: usize = 16;

/// See the [module](self). All plans of a search meet the same draws.
#[derive(Default, Debug)]
pub(super) struct Samples {
    draws: Vec<Draw>,
}

/// What lengths turn out to be. (Small, so that all draws stay in the processor's cache beside one outlook.)
#[derive(Debug)]
struct Draw {
    /// By task and class of lanes: how many times as long as likely the task takes.
    factors: Vec<f64>,
    /// [`Outlook::sent`], with the ends of this draw.
    sent: Vec<(usize, usize, u64)>,
}

impl Samples {
    /// Draws lengths whose logarithms deviate by `spread` from those of the outlook: equally on all lanes of a class.
    /// Each draw has an opposite one, in which what is longer is shorter by the same ratio, so that no task seems long
    /// or short by chance in the mean (Hammersley and Morton, *A new Monte Carlo technique: antithetic variates*,
    /// 1956).
    pub(super) fn draw(outlook: &Outlook, spread: f64, dice: &mut Dice) -> Samples {
        let pair = |_| {
            let mut again = *dice;
            [Draw::new(outlook, spread, dice), Draw::new(outlook, -spread, &mut again)]
        };
        Samples { draws: (0..DRAWS / 2).flat_map(pair).collect() }
    }

    /// Whether plans are compared by the most likely lengths alone.
    pub(super) fn is_empty(&self) -> bool {
        self.draws.is_empty()
    }

    /// What a plan is worth: nanoseconds until it ends, by the most likely lengths and all draws together.
    pub(super) fn score(&self, outlook: &Outlook, plan: &Schedule, scratch: &mut Scratch) -> u64 {
        let mut sum = plan.end.saturating_sub(outlook.now);
        if !self.is_empty() {
            scratch.line_up(outlook, plan);
        }
        let mut followed = std::mem::take(&mut scratch.followed);
        for draw in &self.draws {
            draw.lengths(outlook, plan, &mut scratch.execution.lengths);
            followed.follow_in_line(outlook, plan, &draw.sent, NEVER, scratch);
            sum = sum.saturating_add(followed.end.saturating_sub(outlook.now));
        }
        scratch.followed = followed;
        sum
    }
}

impl Draw {
    fn new(outlook: &Outlook, spread: f64, dice: &mut Dice) -> Draw {
        let mut factor = || (spread * dice.normal()).exp();
        let factors = (0..outlook.len() * outlook.classes).map(|_| factor()).collect();
        let mut sent = outlook.sent.clone();
        for (_, _, end) in &mut sent {
            let left = end.saturating_sub(outlook.now) as f64;
            *end = outlook.now + (left * factor()) as u64;
        }
        Draw { factors, sent }
    }

    /// What each task takes on its lane in a plan.
    fn lengths(&self, outlook: &Outlook, plan: &Schedule, lengths: &mut [u64]) {
        let factors = self.factors.chunks_exact(outlook.classes.max(1));
        for (task, (length, factors)) in lengths.iter_mut().zip(factors).enumerate() {
            if outlook.works[task] {
                let lane = plan.lanes[task];
                let likely = outlook.length(task, lane);
                *length =
                    if likely == NEVER { NEVER } else { (likely as f64 * factors[outlook.lanes[lane].class]) as u64 };
            }
        }
    }
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
        let (lanes, classes) = (vec![lane(0, 0), lane(1, 0), lane(2, 1)], 2);
        let tasks = 2000;
        let mut outlook = Outlook::default();
        (outlook.lanes, outlook.classes) = (lanes, classes);
        (outlook.sequences, outlook.works) = ((0..tasks as u64).collect(), vec![true; tasks]);
        (outlook.rows, outlook.lengths) = (vec![0; tasks], vec![1_000_000, 1_000_000, NEVER]);
        outlook.sent = vec![(0, 0, 500)];
        let draw = Draw::new(&outlook, 0.2, &mut Dice(1));
        let [first, second, third] = [0, 1, 2].map(|lane| {
            let plan = Schedule { lanes: vec![lane; tasks], ..Schedule::default() };
            let mut lengths = vec![0; tasks];
            draw.lengths(&outlook, &plan, &mut lengths);
            lengths
        });
        let logs: Vec<f64> = first.iter().map(|length| (*length as f64 / 1e6).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let spread = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt();
        assert!(mean.abs() < 0.02 && (0.18..0.22).contains(&spread), "{mean} {spread}");
        assert!(first == second && third.iter().all(|length| *length == NEVER));
        assert_eq!(Draw::new(&outlook, 0.0, &mut Dice(1)).sent, outlook.sent);
    }

    #[test]
    fn each_draw_has_an_opposite_one_and_no_other_is_like_it() {
        let mut outlook = Outlook::default();
        (outlook.sequences, outlook.classes) = ((0..50).collect(), 2);
        let samples = Samples::draw(&outlook, 0.2, &mut Dice(1));
        assert_eq!(samples.draws.len(), DRAWS);
        let are_opposite =
            |a: &Draw, b: &Draw| a.factors.iter().zip(&b.factors).all(|(a, b)| (a * b - 1.0).abs() < 1e-9);
        for (number, draw) in samples.draws.iter().enumerate() {
            let opposite: Vec<usize> = (0..DRAWS).filter(|other| are_opposite(draw, &samples.draws[*other])).collect();
            assert_eq!(opposite, [number ^ 1]);
        }
    }
}
