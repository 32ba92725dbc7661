//! What becomes of a plan where kernels deviate: it is rehearsed with lengths that are drawn at random.
//!
//! Of many plans that are compared by the lengths that are most likely, the best is one in which these happen to fit
//! together. Where lengths deviate, they do not, and lanes wait for each other. A plan that is best in the mean of
//! several draws has time to spare where it is needed.
//!
//! In a rehearsal each lane executes its tasks in the order of the plan, each when those before it have ended and its
//! data is there, which takes as long as in the plan: what delays transfers is the same in all draws. So a plan is a
//! graph of tasks behind others and behind those of the same lane, and a draw the longest path in it (Roy and Sussmann,
//! *Les problèmes d'ordonnancement avec contraintes disjonctives*, 1964). All draws go through it side by side, and
//! together take less time than one execution [event by event](super::execution).

mod course;
mod moves;
mod preview;
mod rehearsal;

pub(super) use moves::Move;
pub(super) use preview::Preview;
pub(super) use rehearsal::Rehearsal;

use super::dice::Dice;
use super::outlook::Outlook;
use std::ops::Range;

/// Number of draws, which is even. Four tell hardly more than none, and 64 no more than these.
const DRAWS: usize = 16;

/// A time in each draw, in nanoseconds. What is rounded off is a ten-millionth, and the draws fit into few registers.
type Times = [f32; DRAWS];

/// See the [module](self). All plans of a search meet the same draws.
#[derive(Default, Debug)]
pub(super) struct Samples {
    /// By task and class of lanes: how many times as long as likely the task takes.
    factors: Vec<Times>,
    /// How long after the outlook's now the tasks end that were sent, in its order.
    sent: Vec<Times>,
    /// The tasks that each waits for.
    before: Vec<u32>,
    before_of: Vec<Range<usize>>,
}

impl Samples {
    /// Draws lengths whose logarithms deviate by `spread` from those of the outlook: equally on all lanes of a class.
    /// Each draw has an opposite one, in which what is longer is shorter by the same ratio, so that no task seems long
    /// or short by chance in the mean (Hammersley and Morton, *A new Monte Carlo technique: antithetic variates*,
    /// 1956).
    pub(super) fn draw(outlook: &Outlook, spread: f64, dice: &mut Dice) -> Samples {
        let mut factors = || -> Times {
            let mut times = [1.0; DRAWS];
            for pair in times.chunks_exact_mut(2) {
                let factor = (spread * dice.normal()).exp();
                pair.copy_from_slice(&[factor as f32, factor.recip() as f32]);
            }
            times
        };
        let mut samples = Samples {
            factors: (0..outlook.len() * outlook.classes).map(|_| factors()).collect(),
            ..Samples::default()
        };
        for (_, _, end) in &outlook.sent {
            let left = end.saturating_sub(outlook.now) as f32;
            samples.sent.push(factors().map(|factor| left * factor));
        }
        samples.list_before(outlook);
        samples
    }

    fn list_before(&mut self, outlook: &Outlook) {
        let mut counts = vec![0; outlook.len()];
        let each =
            || (0..outlook.len()).flat_map(|task| outlook.successors(task).iter().map(move |next| (task, *next)));
        each().for_each(|(_, next)| counts[next] += 1);
        let mut end = 0;
        for count in counts {
            self.before_of.push(end..end);
            end += count;
        }
        self.before.resize(end, 0);
        for (task, next) in each() {
            let of = &mut self.before_of[next];
            self.before[of.end] = task as u32;
            of.end += 1;
        }
    }

    /// Whether plans are compared by the most likely lengths alone.
    pub(super) fn is_empty(&self) -> bool {
        self.before_of.is_empty()
    }

    /// What a task takes on a lane.
    fn lengths(&self, outlook: &Outlook, task: usize, lane: usize) -> Times {
        let length = outlook.length(task, lane) as f32;
        self.factors[task * outlook.classes + outlook.lanes[lane].class].map(|factor| length * factor)
    }

    fn before(&self, task: usize) -> impl Iterator<Item = usize> {
        self.before[self.before_of[task].clone()].iter().map(|before| *before as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::outlook::tests::{NOW, graph};
    use super::*;

    /// Tasks that wait for nothing, for two classes of lanes.
    fn apart(tasks: usize) -> Outlook {
        let mut outlook = graph(&vec![vec![1, 1]; tasks], &vec![vec![]; tasks], &[0; 2]);
        outlook.classes = 2;
        outlook
    }

    /// The factors of one task after the other, in each draw.
    fn factors(samples: &Samples, draw: usize) -> Vec<f64> {
        samples.factors.iter().map(|factors| f64::from(factors[draw])).collect()
    }

    #[test]
    fn lengths_deviate_by_task_and_class() {
        let tasks = 2000;
        let mut outlook = apart(tasks);
        outlook.send(0, 0, NOW + 500);
        let samples = Samples::draw(&outlook, 0.2, &mut Dice(1));
        let logs: Vec<f64> = factors(&samples, 0).iter().map(|factor| factor.ln()).collect();
        let deviation = |logs: &[f64]| {
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            (mean, (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt())
        };
        let apart: Vec<f64> = logs.chunks_exact(2).map(|classes| classes[0] - classes[1]).collect();
        assert_eq!((logs.len(), apart.len()), (2 * tasks, tasks));
        for (logs, expected) in [(&logs, 0.2), (&apart, 0.2 * 2_f64.sqrt())] {
            let (mean, spread) = deviation(logs);
            assert!(mean.abs() < 0.02 && (0.9..1.1).contains(&(spread / expected)), "{mean} {spread}");
        }
        let sent = |spread| Samples::draw(&outlook, spread, &mut Dice(1)).sent;
        assert_eq!(sent(0.0), [[500.0; DRAWS]]);
        assert!(sent(0.2)[0].iter().all(|end| (200.0..1200.0).contains(end) && *end != 500.0));
    }

    #[test]
    fn each_draw_has_an_opposite_one_and_no_other_is_like_it() {
        let samples = Samples::draw(&apart(50), 0.2, &mut Dice(1));
        let draws: Vec<Vec<f64>> = (0..DRAWS).map(|draw| factors(&samples, draw)).collect();
        let are_opposite = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a * b - 1.0).abs() < 1e-6);
        for (number, draw) in draws.iter().enumerate() {
            let opposite: Vec<usize> = (0..DRAWS).filter(|other| are_opposite(draw, &draws[*other])).collect();
            assert_eq!(opposite, [number ^ 1]);
        }
    }
}
