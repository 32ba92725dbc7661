//! Dense linear algebra for the tiled Cholesky factorisation: what the tasks compute, with no scheduling in it.
//!
//! A symmetric positive definite matrix A of order n is cut into square tiles; only the lower triangle of tiles is kept
//! ([`TiledMatrix`], cut as a [`Tiling`] says). Four single-threaded kernels work on whole tiles ([`potrf`], [`trsm`], [`syrk`],
//! [`gemm`]), and [`cholesky_steps`] lists which kernel runs on which tiles, in an order in which they are correct one after the other.
//! A task runtime submits the same list as tasks; [`cholesky_in_place`] runs it in order, as the reference.
//!
//! Matrices come from a seed ([`RandomSpd`]) or from a Matrix Market file ([`read_matrix_market`]), and [`residual`] says how good
//! a factor is, [`tolerance`] how good it has to be.
//!
//! ```
//! use sched_host::linalg::{RandomSpd, TiledMatrix, cholesky_in_place, residual, tolerance};
//!
//! let a = RandomSpd::new(100, 42);
//! let mut l = TiledMatrix::cut(&a, 32);
//! cholesky_in_place(&mut l)?;
//! assert!(residual(&a, &l) <= tolerance(100));
//! # Ok::<(), sched_host::linalg::NotPositiveDefiniteMatrix>(())
//! ```

mod cholesky;
pub mod flops;
mod kernels;
mod matrix_market;
mod random_spd;
mod residual;
mod symmetric;
mod tile;
mod tiled;
mod tiling;
mod transposed;

pub use cholesky::{CholeskySteps, NotPositiveDefiniteMatrix, Step, cholesky_in_place, cholesky_steps};
pub use kernels::{NotPositiveDefinite, gemm, potrf, syrk, trsm};
pub use matrix_market::{MatrixMarketError, Problem, ProblemKind, ReadLimits, parse_matrix_market, read_matrix_market};
pub use random_spd::RandomSpd;
pub use residual::{Norms, residual, tile_norms, tolerance};
pub use symmetric::{OrderTooLarge, SymmetricEntries, SymmetricMatrix};
pub use tile::Tile;
pub use tiled::TiledMatrix;
pub use tiling::Tiling;
