//! How many floating-point operations (additions, subtractions, multiplications, divisions and square roots, one each)
//! the kernels do, as real numbers: the counts of large matrices are beyond 2⁵³ only far from any practical order.
//!
//! The formulas are those of LAPACK Working Note 41 (Blackford and Dongarra, appendix C), exact for an algorithm that
//! does no superfluous work.

/// Cholesky factor of an n×n tile: n³/3 + n²/2 + n/6.
///
/// ```
/// use sched_graph::factorisation::flops;
/// assert_eq!(flops::potrf(1), 1.0); // one square root
/// assert_eq!(flops::potrf(2), 5.0); // √a₁₁, a₂₁ / l₁₁, a₂₂ − l₂₁ · l₂₁, √
/// ```
pub fn potrf(n: usize) -> f64 {
    let n = n as f64;
    n * (n + 1.0) * (2.0 * n + 1.0) / 6.0
}

/// Triangular solve of an m×n tile with an n×n factor: m·n², that is n³ for a square tile.
pub fn trsm(m: usize, n: usize) -> f64 {
    m as f64 * (n as f64).powi(2)
}

/// Update of the lower triangle of an n×n tile with an n×k tile: k·n·(n + 1), that is n²·(n + 1) for a square tile.
pub fn syrk(n: usize, k: usize) -> f64 {
    k as f64 * n as f64 * (n as f64 + 1.0)
}

/// Update of an m×n tile with an m×k and an n×k tile: 2·m·n·k, that is 2·n³ for square tiles.
pub fn gemm(m: usize, n: usize, k: usize) -> f64 {
    2.0 * m as f64 * n as f64 * k as f64
}

/// A whole Cholesky factorisation of order n: n³/3 + n²/2 + n/6, however the matrix is cut into tiles.
pub fn cholesky(n: usize) -> f64 {
    potrf(n)
}

/// Triangular solve of an n×m tile with an n×n factor whose diagonal is 1: m·n·(n − 1).
pub fn unit_trsm(n: usize, m: usize) -> f64 {
    m as f64 * n as f64 * (n as f64 - 1.0)
}

/// LU factors of an n×n tile, or of a whole matrix however it is cut into tiles: 2·n³/3 − n²/2 − n/6.
///
/// ```
/// use sched_graph::factorisation::flops;
/// assert_eq!(flops::lu(1), 0.0);
/// assert_eq!(flops::lu(2), 3.0); // a₂₁ / a₁₁, a₂₂ − l₂₁ · u₁₂
/// ```
pub fn lu(n: usize) -> f64 {
    let n = n as f64;
    n * (n - 1.0) * (4.0 * n + 1.0) / 6.0
}

/// QR factorisation of a matrix of order n by Householder reflections, R and the reflectors: 4·n³/3 + 2·n² + 14·n/3.
/// Cut into tiles it takes a little more, which does not count: this is the work that had to be done.
pub fn qr(n: usize) -> f64 {
    let n = n as f64;
    n * (n * (4.0 * n + 6.0) + 14.0) / 3.0
}
