//! Reflectors are applied to a tile: the product of those in a block is I − V·T⁻¹·Vᵀ, with T upper triangular.

use super::INNER;

/// Applies the transpose of a block of reflectors to a column: `v(r, p)` is row r of reflector p, and `t(q, p)` an
/// element of T.
fn apply(
    (rows, width): (usize, usize),
    v: impl Fn(usize, usize) -> f64,
    t: impl Fn(usize, usize) -> f64,
    x: &mut [f64],
) {
    debug_assert_eq!(x.len(), rows);
    let mut products: Vec<f64> = (0..width).map(|p| (0..rows).map(|r| v(r, p) * x[r]).sum()).collect();
    for p in 0..width {
        let known: f64 = (0..p).map(|q| t(q, p) * products[q]).sum();
        products[p] = (products[p] - known) / t(p, p);
    }
    for (r, x) in x.iter_mut().enumerate() {
        *x -= (0..width).map(|p| v(r, p) * products[p]).sum::<f64>();
    }
}

/// Element (r, p) of reflectors with ones on the diagonal and zeros above.
fn unit(r: usize, p: usize, below: impl FnOnce() -> f64) -> f64 {
    match r.cmp(&p) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 1.0,
        std::cmp::Ordering::Greater => below(),
    }
}

/// V and T, C; n and the columns of C.
pub(super) fn unmqr(s: &[usize], read: &[Vec<f64>], c: &mut [f64]) {
    let (n, columns) = (s[6], s[7]);
    for first in (0..n).step_by(INNER) {
        let (rows, width) = (n - first, INNER.min(n - first));
        let v = |r: usize, p: usize| unit(r, p, || read[0][s[0] + first + r + (first + p) * s[1]]);
        let t = |q: usize, p: usize| read[1][s[2] + q + (first + p) * s[3]];
        for column in 0..columns {
            apply((rows, width), v, t, &mut c[s[4] + first + column * s[5]..][..rows]);
        }
    }
}

/// V and T, C₁ and C₂; m, n and the columns of both.
pub(super) fn tsmqr(s: &[usize], read: &mut [Vec<f64>], c2: &mut [f64]) {
    let (m, n, columns) = (s[8], s[9], s[10]);
    let [factors @ .., c1] = read else { return };
    for first in (0..n).step_by(INNER) {
        let width = INNER.min(n - first);
        let v = |r: usize, p: usize| match r.checked_sub(width) {
            Some(r) => factors[0][s[0] + r + (first + p) * s[1]],
            None => unit(r, p, || 0.0),
        };
        let t = |q: usize, p: usize| factors[1][s[2] + q + (first + p) * s[3]];
        for column in 0..columns {
            let top = &mut c1[s[4] + first + column * s[5]..][..width];
            let bottom = &mut c2[s[6] + column * s[7]..][..m];
            let mut x = [&*top, &*bottom].concat();
            apply((width + m, width), v, t, &mut x);
            top.copy_from_slice(&x[..width]);
            bottom.copy_from_slice(&x[width..]);
        }
    }
}
