//! What kernels take, beside what was expected of them.

use super::outlook::Lane;
use std::collections::BTreeMap;

/// Number of kernels after which older ones count less.
const RECENT: f64 = 64.0;

/// How much longer than expected kernels took, by kind of task and worker.
///
/// A model has an error of its own, and each execution has another one. With as much of one as of the other, the best
/// estimate of the model's after `n` executions is `n / (n + 1)` of the mean deviation (of logarithms, so that twice
/// and half cancel out): that of a normal distribution whose prior has the variance of one execution. Workers of one
/// architecture are expected to deviate alike, until each has shown otherwise.
#[derive(Default, Debug)]
pub(super) struct Experience {
    of_class: BTreeMap<(usize, usize), Deviation>,
    of_lane: BTreeMap<(usize, usize), Deviation>,
    /// What the last plan went by.
    planned: BTreeMap<(usize, usize), f64>,
    /// Of all kernels, without signs: from what was expected at first, and from what had been learnt by then.
    scatter: Deviation,
    surprise: Deviation,
}

/// Number of kernels on its class that weigh as much as one on a worker itself, at most.
const ALIKE: f64 = 4.0;

/// Largest logarithm of a ratio that is believed: a kernel that was interrupted says little of the others.
const MOST: f64 = 1.0;

/// Mean deviation from which on a plan's times are not to be trusted.
const NOTABLE: f64 = 0.02;

#[derive(Clone, Copy, Default, Debug)]
struct Deviation {
    /// Mean of the logarithms of the ratios.
    mean: f64,
    count: f64,
}

impl Deviation {
    fn note(&mut self, deviation: f64) {
        self.count = (self.count + 1.0).min(RECENT);
        self.mean += (deviation - self.mean) / self.count;
    }

    /// The estimate of somebody who expected `prior` before, and believes it like `weight` executions.
    fn estimate(self, prior: f64, weight: f64) -> f64 {
        (self.mean * self.count + prior * weight) / (self.count + weight)
    }
}

impl Experience {
    /// Takes note of a kernel: of what kind, on which lane and class of workers, and how many times as long as
    /// expected.
    pub(super) fn note(&mut self, kind: usize, lane: usize, class: usize, ratio: f64) {
        if ratio > 0.0 && ratio.is_finite() {
            let deviation = ratio.ln().clamp(-MOST, MOST);
            self.scatter.note(deviation.abs());
            self.surprise.note((deviation - self.estimate(kind, lane, class)).abs());
            self.of_class.entry((kind, class)).or_default().note(deviation);
            self.of_lane.entry((kind, lane)).or_default().note(deviation);
        }
    }

    fn estimate(&self, kind: usize, lane: usize, class: usize) -> f64 {
        let alike = self.of_class.get(&(kind, class)).map_or(0.0, |known| known.estimate(0.0, 1.0));
        self.of_lane.get(&(kind, lane)).map_or(alike, |known| known.estimate(alike, ALIKE))
    }

    /// How many times as long as expected kernels of this kind should take on a lane.
    pub(super) fn factor(&self, kind: usize, lane: usize, lanes: &[Lane]) -> f64 {
        if self.of_class.is_empty() { 1.0 } else { self.estimate(kind, lane, lanes[lane].class).exp() }
    }

    /// The estimates for all lanes that have had such kernels.
    fn estimates(&self, lanes: &[Lane]) -> impl Iterator<Item = ((usize, usize), f64)> {
        self.of_lane.keys().map(|(kind, lane)| ((*kind, *lane), self.estimate(*kind, *lane, lanes[*lane].class)))
    }

    /// The largest change of a factor since the last plan, as a share.
    pub(super) fn news(&self, lanes: &[Lane]) -> f64 {
        if self.scatter.mean == 0.0 {
            return 0.0;
        }
        let change = |(known, now): (_, f64)| (now - self.planned.get(&known).copied().unwrap_or(0.0)).abs();
        self.estimates(lanes).map(change).fold(0.0, f64::max)
    }

    /// A plan is made by what is known now.
    pub(super) fn plan_made(&mut self, lanes: &[Lane]) {
        self.planned = self.estimates(lanes).collect();
    }

    /// Standard deviation of the logarithms of lengths from those that are expected by what was learnt: that of a
    /// normal distribution with this mean deviation.
    pub(super) fn spread(&self) -> f64 {
        self.surprise.mean * std::f64::consts::FRAC_PI_2.sqrt()
    }

    /// Whether kernels take other times than expected.
    pub(super) fn is_scattered(&self) -> bool {
        self.scatter.mean > NOTABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::{Child, WorkerId};

    /// Lanes of these classes.
    fn lanes(classes: &[usize]) -> Vec<Lane> {
        let numbered = (0..).zip(classes);
        let lane = |(number, class): (u32, &usize)| Lane {
            worker: WorkerId(number),
            child: Child(number),
            memory: 0,
            class: *class,
            free: 0,
        };
        numbered.map(lane).collect()
    }

    #[test]
    fn workers_of_one_architecture_deviate_alike_until_they_show_otherwise() {
        let lanes = lanes(&[0, 0, 1]);
        let mut experience = Experience::default();
        assert_eq!((experience.factor(0, 1, &lanes), experience.is_scattered()), (1.0, false));
        for _ in 0..RECENT as usize {
            experience.note(0, 0, 0, 2.0);
        }
        let of = |experience: &Experience, kind, lane| (experience.factor(kind, lane, &lanes) * 100.0).round() / 100.0;
        assert_eq!([0, 1, 2].map(|lane| of(&experience, 0, lane)), [2.0, 1.98, 1.0]);
        assert_eq!([0, 1, 2].map(|lane| of(&experience, 1, lane)), [1.0; 3], "another kind has a model of its own");
        for _ in 0..RECENT as usize {
            experience.note(0, 1, 0, 1.0);
        }
        assert_eq!([0, 1].map(|lane| of(&experience, 0, lane)), [1.95, 1.01]);
        assert!(experience.is_scattered());
    }

    #[test]
    fn one_kernel_is_half_believed_and_an_interrupted_one_hardly() {
        let lanes = lanes(&[0]);
        let mut experience = Experience::default();
        experience.note(0, 0, 0, 1.44);
        assert!((experience.factor(0, 0, &lanes) - 1.2_f64.powf(1.2)).abs() < 1e-9, "its class says as much");
        experience.note(1, 0, 0, 1e9);
        assert!(experience.factor(1, 0, &lanes) < 2.0);
        experience.note(2, 0, 0, f64::NAN);
        assert_eq!(experience.factor(2, 0, &lanes), 1.0);
    }

    #[test]
    fn what_was_learnt_does_not_surprise() {
        let lanes = lanes(&[0]);
        let mut experience = Experience::default();
        assert_eq!(experience.spread(), 0.0);
        for number in 0..1000 {
            experience.note(0, 0, 0, if number % 2 == 0 { 2.2 } else { 2.2 / 1.21 });
        }
        assert!((0.1..0.13).contains(&experience.spread()), "{}", experience.spread());
        assert!((experience.factor(0, 0, &lanes) - 2.0).abs() < 0.1);
    }

    #[test]
    fn news_is_what_the_last_plan_did_not_go_by() {
        let lanes = lanes(&[0]);
        let mut experience = Experience::default();
        experience.note(0, 0, 0, 1.5);
        assert!(experience.news(&lanes) > 0.2);
        experience.plan_made(&lanes);
        assert_eq!(experience.news(&lanes), 0.0);
        experience.note(0, 0, 0, 1.5);
        assert!((0.01..0.1).contains(&experience.news(&lanes)));
    }
}
