//! Types of entries.

use bytemuck::Pod;
use faer::traits::RealField;
use sched_cublas::Element;
use serde::Serialize;
use std::fmt;

/// Type of the entries of a matrix that kernels compute with: `f64` or `f32`.
pub trait Number: RealField + Pod + Default + Element + Send + Sync {
    /// Which of both it is.
    const PRECISION: Precision;

    /// The number nearest to this one.
    fn rounded(number: f64) -> Self;

    /// This number, exactly.
    fn widened(self) -> f64;
}

impl Number for f64 {
    const PRECISION: Precision = Precision::Double;

    #[inline]
    fn rounded(number: f64) -> f64 {
        number
    }

    #[inline]
    fn widened(self) -> f64 {
        self
    }
}

impl Number for f32 {
    const PRECISION: Precision = Precision::Single;

    #[inline]
    fn rounded(number: f64) -> f32 {
        number as f32
    }

    #[inline]
    fn widened(self) -> f64 {
        f64::from(self)
    }
}

/// Type of the numbers that kernels compute with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 64 bits: `f64`.
    #[default]
    Double,
    /// 32 bits: `f32`.
    Single,
}

impl Precision {
    /// Distance from 1 to the next number.
    #[must_use]
    pub const fn epsilon(self) -> f64 {
        match self {
            Precision::Double => f64::EPSILON,
            Precision::Single => f32::EPSILON as f64,
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Precision::Double => "double",
            Precision::Single => "single",
        })
    }
}
