//! Multiple linear regression: time as a sum of products of powers of parameters.

use super::Point;
use super::least_squares::least_squares;
use super::weights::biweights;
use serde::{Deserialize, Serialize};

/// A product of powers of a task's parameters, given by their exponents, the first parameter's first; missing ones are
/// 0.
///
/// ```
/// use sched_model::Monomial;
/// assert_eq!(Monomial::from([1, 2]).of(&[10.0, 3.0]), 90.0);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Monomial(Vec<u32>);

impl<const N: usize> From<[u32; N]> for Monomial {
    fn from(exponents: [u32; N]) -> Monomial {
        Monomial(exponents.to_vec())
    }
}

impl Monomial {
    /// Its value; missing parameters count as 1.
    #[must_use]
    pub fn of(&self, params: &[f64]) -> f64 {
        let powers = self.0.iter().zip(params).map(|(exponent, param)| param.powf(f64::from(*exponent)));
        powers.product()
    }

    /// Its exponents.
    #[must_use]
    pub fn exponents(&self) -> &[u32] {
        &self.0
    }
}

/// `c₀ + c₁·m₁ + c₂·m₂ + …`, where the m are [`Monomial`]s.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// The intercept, then a coefficient for each monomial.
    pub coefficients: Vec<f64>,
    /// Number of samples.
    pub samples: u64,
}

const ROUNDS: usize = 12;

impl Linear {
    /// Predicted value for a task with these parameters; `None` if the regression gives no positive one.
    #[must_use]
    pub fn predict(&self, monomials: &[Monomial], params: &[f64]) -> Option<f64> {
        if self.coefficients.len() != monomials.len() + 1 {
            return None;
        }
        let (intercept, factors) = self.coefficients.split_first()?;
        let terms = factors.iter().zip(monomials).map(|(factor, monomial)| factor * monomial.of(params));
        Some(intercept + terms.sum::<f64>()).filter(|value| value.is_finite() && *value > 0.0)
    }

    /// Fits the coefficients by least squares of relative errors. `None` if the points do not determine them.
    #[must_use]
    pub fn fit(monomials: &[Monomial], points: &[Point]) -> Option<Linear> {
        let row = |point: &Point| -> Vec<f64> {
            std::iter::once(1.0).chain(monomials.iter().map(|monomial| monomial.of(&point.params))).collect()
        };
        let rows: Vec<(Vec<f64>, &Point)> = points
            .iter()
            .filter(|point| point.value > 0.0 && point.value.is_finite())
            .map(|point| (row(point), point))
            .filter(|(row, _)| row.iter().all(|term| term.is_finite()))
            .collect();
        let columns = monomials.len() + 1;
        if rows.len() < columns {
            return None;
        }
        // Monomials differ by orders of magnitude, so every column is scaled to the same norm. (A row stands for
        // relative errors: it is divided by its value.)
        let scale: Vec<f64> = (0..columns)
            .map(|column| rows.iter().map(|(row, point)| (row[column] / point.value).powi(2)).sum::<f64>().sqrt())
            .collect();
        if scale.iter().any(|scale| !scale.is_finite() || *scale <= 0.0) {
            return None;
        }
        let mut weights = vec![1.0; rows.len()];
        let mut coefficients = Vec::new();
        for _ in 0..ROUNDS {
            let factor = |index: usize| (weights[index] * rows[index].1.samples.min(100) as f64).sqrt();
            let design = |column: usize| -> Vec<f64> {
                let entry = |index: usize| factor(index) * rows[index].0[column] / rows[index].1.value / scale[column];
                (0..rows.len()).map(entry).collect()
            };
            let wanted = (0..rows.len()).map(factor).collect();
            let Some(solved) = least_squares((0..columns).map(design).collect(), wanted) else { break };
            coefficients = solved.iter().zip(&scale).map(|(solved, scale)| solved / scale).collect::<Vec<f64>>();
            let residuals: Vec<f64> = rows
                .iter()
                .map(|(row, point)| {
                    let fitted: f64 = row.iter().zip(&coefficients).map(|(term, factor)| term * factor).sum();
                    1.0 - fitted / point.value
                })
                .collect();
            weights = biweights(&residuals);
        }
        let samples = rows.iter().fold(0u64, |sum, (_, point)| sum.saturating_add(point.samples));
        let sound = !coefficients.is_empty() && coefficients.iter().all(|coefficient| coefficient.is_finite());
        sound.then_some(Linear { coefficients, samples })
    }
}
