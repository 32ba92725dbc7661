//! Time as a power of the size.

use super::Point;
use super::weights::biweights;
use sched_text::median;
use serde::{Deserialize, Serialize};

/// The curve `a · sizeᵇ + c`, for sizes similar to the measured ones.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Factor.
    pub a: f64,
    /// Exponent.
    pub b: f64,
    /// Constant part; 0 for a linear regression of logarithms.
    pub c: f64,
    /// Smallest size measured, in bytes.
    pub min: f64,
    /// Largest size measured, in bytes.
    pub max: f64,
    /// Number of samples.
    pub samples: u64,
}

/// Maximum number of points whose pairwise slopes are used: the number of pairs grows with the square.
const SLOPES: usize = 96;
const ROUNDS: usize = 8;

impl Power {
    /// Predicted value for a task of this size, if similar sizes were measured.
    #[must_use]
    pub fn predict(&self, size: f64) -> Option<f64> {
        let near = 0.9 * self.min <= size && size <= 1.1 * self.max;
        near.then(|| self.at(size)).filter(|value| value.is_finite() && *value > 0.0)
    }

    /// The curve at any size.
    #[must_use]
    pub fn at(&self, size: f64) -> f64 {
        self.a * size.powf(self.b) + self.c
    }

    /// Whether there are enough samples, of sufficiently different sizes.
    #[must_use]
    pub fn is_calibrated(&self, minimum: u64) -> bool {
        [self.a, self.b, self.c].iter().all(|number| number.is_finite())
            && self.min < 0.9 * self.max
            && self.samples >= minimum
    }

    /// Fits `a · sizeᵇ`: a line through the logarithms. `None` without two different sizes.
    #[must_use]
    pub fn linear(points: &[Point]) -> Option<Power> {
        let logs = Logs::new(points)?;
        let (a, b) = logs.line(0.0)?;
        Some(logs.power(a, b, 0.0))
    }

    /// Fits `a · sizeᵇ + c` with a `c` of at least 0. `None` without three different sizes.
    #[must_use]
    pub fn nonlinear(points: &[Point]) -> Option<Power> {
        let logs = Logs::new(points)?;
        if logs.distinct() < 3 {
            return None;
        }
        let highest = logs.values.iter().copied().fold(f64::INFINITY, f64::min);
        let cost = |part: f64| {
            let c = part * highest;
            logs.line(c).map_or((f64::INFINITY, None), |(a, b)| {
                let power = logs.power(a, b, c);
                (logs.cost(&power), Some(power))
            })
        };
        // The cost may have its minimum anywhere: a coarse search first, then finer ones around the best.
        let (mut low, mut high) = (0.0, 0.999);
        let mut best = cost(0.0);
        for _ in 0..6 {
            let step = (high - low) / 16.0;
            let mut at: f64 = low;
            for index in 0..=16 {
                let part = low + step * f64::from(index);
                let found = cost(part);
                if found.0 < best.0 {
                    (best, at) = (found, part);
                }
            }
            let centre = best.1.map_or(at, |power| power.c / highest);
            (low, high) = ((centre - step).max(0.0), (centre + step).min(0.999));
        }
        best.1
    }
}

/// Points with their logarithms.
struct Logs {
    sizes: Vec<f64>,
    values: Vec<f64>,
    weights: Vec<f64>,
    samples: u64,
}

impl Logs {
    fn new(points: &[Point]) -> Option<Logs> {
        let mut used: Vec<&Point> = points
            .iter()
            .filter(|point| point.size > 0.0 && point.size.is_finite() && point.value > 0.0 && point.value.is_finite())
            .collect();
        used.sort_by(|a, b| a.size.total_cmp(&b.size));
        let (first, last) = (used.first()?, used.last()?);
        (first.size < last.size).then(|| Logs {
            sizes: used.iter().map(|point| point.size.ln()).collect(),
            values: used.iter().map(|point| point.value).collect(),
            // Many samples do not make a point arbitrarily certain: it also has systematic errors.
            weights: used.iter().map(|point| point.samples.min(100) as f64).collect(),
            samples: used.iter().fold(0, |sum, point| sum.saturating_add(point.samples)),
        })
    }

    fn distinct(&self) -> usize {
        1 + self.sizes.windows(2).filter(|pair| pair[0] < pair[1]).count()
    }

    fn power(&self, a: f64, b: f64, c: f64) -> Power {
        let (min, max) = (self.sizes[0].exp(), self.sizes[self.sizes.len() - 1].exp());
        Power { a, b, c, min, max, samples: self.samples }
    }

    /// The line `ln a + b · ln size` through the logarithms of the values minus `c`, all of which exceed it.
    fn line(&self, c: f64) -> Option<(f64, f64)> {
        let logs: Vec<f64> = self.values.iter().map(|value| (value - c).ln()).collect();
        // A relative error of the value is a larger relative error of the rest after subtracting `c`.
        let left: Vec<f64> = self.values.iter().map(|value| (value - c) / value).collect();
        let (mut b, mut ln_a) = self.start(&logs)?;
        for _ in 0..ROUNDS {
            let residuals: Vec<f64> =
                (0..logs.len()).map(|index| (logs[index] - ln_a - b * self.sizes[index]) * left[index]).collect();
            let mut weights = biweights(&residuals);
            weights.iter_mut().enumerate().for_each(|(index, weight)| {
                *weight *= self.weights[index] * left[index] * left[index];
            });
            let Some(next) = weighted_line(&self.sizes, &logs, &weights) else { break };
            (b, ln_a) = next;
        }
        let a = ln_a.exp();
        (a.is_finite() && b.is_finite()).then_some((a, b))
    }

    /// A robust first line: the median of the slopes between pairs of points, then the median of the offsets.
    fn start(&self, logs: &[f64]) -> Option<(f64, f64)> {
        let every = self.sizes.len().div_ceil(SLOPES);
        let used: Vec<usize> = (0..self.sizes.len()).step_by(every).collect();
        let mut slopes = Vec::new();
        for (index, &i) in used.iter().enumerate() {
            for &j in &used[index + 1..] {
                if self.sizes[j] > self.sizes[i] {
                    slopes.push((logs[j] - logs[i]) / (self.sizes[j] - self.sizes[i]));
                }
            }
        }
        if slopes.is_empty() {
            return weighted_line(&self.sizes, logs, &self.weights);
        }
        let b = median(&mut slopes);
        let mut offsets: Vec<f64> = logs.iter().zip(&self.sizes).map(|(log, size)| log - b * size).collect();
        Some((b, median(&mut offsets)))
    }

    /// The error of a curve: relative errors, with a bounded contribution from outliers.
    fn cost(&self, power: &Power) -> f64 {
        let errors = self.values.iter().zip(&self.sizes).zip(&self.weights);
        let cost = errors.map(|((value, size), weight)| {
            let error = (power.at(size.exp()) / value).ln().abs();
            weight * (error * error).min(0.1 * error)
        });
        cost.sum()
    }
}

/// Slope and offset of the least-squares line.
fn weighted_line(x: &[f64], y: &[f64], weights: &[f64]) -> Option<(f64, f64)> {
    let sum = |of: &dyn Fn(usize) -> f64| (0..x.len()).map(|index| weights[index] * of(index)).sum::<f64>();
    let all = sum(&|_| 1.0);
    let (mean_x, mean_y) = (sum(&|i| x[i]) / all, sum(&|i| y[i]) / all);
    let spread = sum(&|i| (x[i] - mean_x).powi(2));
    let slope = sum(&|i| (x[i] - mean_x) * (y[i] - mean_y)) / spread;
    (all > 0.0 && spread > 1e-12 * all && slope.is_finite()).then_some((slope, mean_y - slope * mean_x))
}
