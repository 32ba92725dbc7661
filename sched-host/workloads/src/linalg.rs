//! Dense linear algebra for tiled factorisations: the computations of the tasks, without any scheduling.
//!
//! A matrix A of order n is cut into square tiles by a [`Tiling`]. A factorisation is a list of steps, each a
//! single-threaded kernel on whole tiles, in an order that is correct sequentially; a task runtime submits the same
//! list as tasks.
//!
//! | | matrix | tiles | steps | kernels | sequential reference |
//! |---|---|---|---|---|---|
//! | A = L·Lᵀ | symmetric positive definite | lower triangle: [`LowerTiles`] | [`cholesky_steps`] | [`potrf`], [`trsm`], [`syrk`], [`gemm`] | [`cholesky_in_place`] |
//! | A = L·U | diagonally dominant, since there is no pivoting | all: [`SquareTiles`] | [`lu_steps`] | [`getrf`], [`trsm_row`], [`trsm_column`], [`gemm_nn`] | [`lu_in_place`] |
//! | A = Q·R | any | all, and the reflectors: [`QrTiles`] | [`qr_steps`] | [`geqrt`], [`unmqr`], [`tsqrt`], [`tsmqr`] | [`qr_in_place`] |
//!
//! Matrices come from a seed ([`RandomSpd`], [`RandomMatrix`]) or from a Matrix Market file ([`read_symmetric`],
//! [`read_general`]). A relative residual ([`residual`], [`lu_norms`], [`qr_norms`]) measures the accuracy of the
//! factors, and [`tolerance`] bounds it.
//!
//! ```
//! use sched_workloads::linalg::{LowerTiles, RandomSpd, cholesky_in_place, residual, tolerance};
//!
//! let a = RandomSpd::new(100, 42);
//! let mut l = LowerTiles::cut(&a, 32);
//! cholesky_in_place(&mut l)?;
//! assert!(residual(&a, &l) <= tolerance(100));
//! # Ok::<(), sched_workloads::linalg::NotPositiveDefiniteMatrix>(())
//! ```

mod cholesky;
mod entries;
mod kernels;
mod lower_tiles;
mod lu;
pub(crate) mod lu_kernels;
mod matrix;
mod matrix_market;
mod number;
mod qr;
pub(crate) mod qr_kernels;
mod random_matrix;
mod random_spd;
mod residual;
mod square_tiles;
mod symmetric;
mod tile;
mod transposed;

pub use cholesky::{NotPositiveDefiniteMatrix, cholesky_in_place};
pub use entries::Entries;
pub use kernels::{NotPositiveDefinite, gemm, on_views, potrf, syrk, trsm};
pub use lower_tiles::LowerTiles;
pub use lu::{NoLuFactors, NotDominant, check_dominance, lu_in_place, lu_norms};
pub use lu_kernels::{ZeroPivot, gemm_nn, getrf, trsm_column, trsm_row};
pub use matrix::Matrix;
pub use matrix_market::{
    MatrixMarketError, Problem, ProblemKind, ReadLimits, parse_general, parse_symmetric, read_general, read_symmetric,
};
pub use number::{Number, Precision};
pub use qr::{QrTiles, orthogonality, qr_in_place, qr_norms};
pub use qr_kernels::{Apply, INNER, factor_shape, geqrt, tsmqr, tsqrt, unmqr};
pub use random_matrix::RandomMatrix;
pub use random_spd::RandomSpd;
pub use residual::{Norms, residual, tile_norms, tolerance};
pub use sched_graph::factorisation::{
    CholeskyStep, CholeskySteps, LuStep, QrStep, Tiling, cholesky_steps, flops, lu_steps, qr_steps,
};
pub use square_tiles::SquareTiles;
pub use symmetric::{OrderTooLarge, SymmetricMatrix};
pub use tile::{Tile, TileMut, TileRef};
