//! Tiled factorisations as lists of steps: which kernel works on which tiles, in an order in which the steps are
//! correct one after the other. Generators of task graphs and the factorisations that run on real workers share them.

mod cholesky;
pub mod flops;
mod lu;
mod qr;
#[cfg(test)]
mod successors;
mod tiling;

pub use cholesky::{CholeskyStep, CholeskySteps, cholesky_steps};
pub use lu::{LuStep, lu_steps};
pub use qr::{QrStep, qr_steps};
pub use tiling::Tiling;
