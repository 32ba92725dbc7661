//! Types of elements.

use crate::symbols::{Blas, BlasFunctions, Solver, SolverFunctions};
use std::fmt;

mod sealed {
    use super::{Blas, BlasFunctions, Solver, SolverFunctions};

    /// What the libraries have for a type; implemented in this crate only.
    pub trait Functions: Copy + 'static {
        const ONE: Self;

        fn blas(of: &BlasFunctions) -> &Blas<Self>;

        fn solver(of: &SolverFunctions) -> &Solver<Self>;
    }
}

pub(crate) use sealed::Functions;

/// Type of the elements of matrices on a device: `f32` or `f64`.
pub trait Element: fmt::Debug + sealed::Functions {}

impl Element for f32 {}
impl Element for f64 {}

impl Functions for f32 {
    const ONE: f32 = 1.0;

    fn blas(of: &BlasFunctions) -> &Blas<f32> {
        &of.single
    }

    fn solver(of: &SolverFunctions) -> &Solver<f32> {
        &of.single
    }
}

impl Functions for f64 {
    const ONE: f64 = 1.0;

    fn blas(of: &BlasFunctions) -> &Blas<f64> {
        &of.double
    }

    fn solver(of: &SolverFunctions) -> &Solver<f64> {
        &of.double
    }
}
