//! Regressions: time as a function of the size, or of several parameters.
//!
//! They use the data kept by footprint: the [midmean](super::Distribution::midmean) of each size and the number of its
//! samples. A single outlier among many samples of a size thus has no effect; and since a size may have only one
//! sample, the fits also give outlying points less weight.

mod least_squares;
mod multiple;
mod power;
mod weights;

pub use multiple::{Linear, Monomial};
pub use power::Power;

/// A data point of a regression: the samples of one footprint.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Size in bytes.
    pub size: f64,
    /// The parameters of a multiple regression.
    pub params: Vec<f64>,
    /// Robust mean.
    pub value: f64,
    /// Number of samples.
    pub samples: u64,
}

#[cfg(test)]
mod tests;
