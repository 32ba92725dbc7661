//! Dense linear algebra for the tiled Cholesky factorisation: what the tasks compute, with no scheduling in it.
//!
//! A symmetric positive definite matrix A of order n is cut into square tiles; only the lower triangle of tiles is kept
//! ([`TiledMatrix`], cut as a [`Tiling`] says). Four single-threaded kernels work on whole tiles ([`potrf`], [`trsm`], [`syrk`],
//! [`gemm`]), and [`cholesky_steps`] lists which kernel runs on which tiles, in an order in which they are correct one after the other.
//! A task runtime submits the same list as tasks; [`cholesky_in_place`] runs it in order, as the reference.
//!
//! Matrices come from a seed ([`RandomSpd`]) or from a Matrix Market file ([`read_matrix_market`]), and [`residual`] says how good
//! a factor is, [`tolerance`] how good it has to be.

pub mod flops;
mod kernels;
mod random_spd;
mod symmetric;
mod tile;
mod tiling;
mod transposed;

pub use kernels::{NotPositiveDefinite, gemm, potrf, syrk, trsm};
pub use random_spd::RandomSpd;
pub use symmetric::{OrderTooLarge, SymmetricEntries, SymmetricMatrix};
pub use tile::Tile;
pub use tiling::Tiling;
