//! Regressions: time as a function of the size, or of several parameters.
//!
//! All are made from what is kept by footprint anyway: for each size its [midmean](super::Distribution::midmean) and the
//! number of its samples. So one bad sample of a size that was often run counts nothing; and since a size may have been run
//! once only, the fits weigh down what lies far off themselves.

mod multiple;
mod power;
mod weights;

pub use multiple::{Linear, Monomial};
pub use power::Power;

/// What a regression is made from: what was measured of tasks of one footprint.
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
