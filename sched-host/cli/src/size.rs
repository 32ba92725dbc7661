//! Limits on the sizes of tiled matrices.

use crate::memory::{Left, limits};
use miette::miette;
use sched_workloads::linalg::{Precision, Tiling};
use sched_workloads::workload::Workload;

/// Rows of a matrix with `tiles` tiles of `tile_size` rows.
pub(super) fn order(tiles: usize, tile_size: usize) -> miette::Result<usize> {
    let order = tiles.checked_mul(tile_size);
    order.ok_or_else(|| miette!("{tiles} tiles of {tile_size} rows are more rows than can be counted"))
}

/// Approximate memory of the runtime for one task, in bytes.
const TASK_BYTES: f64 = 400.0;

/// Refuses matrices whose tiles, for `copies` concurrent runs of `W`, or whose tasks do not fit into memory, before
/// anything is allocated.
pub(super) fn check<W: Workload>(tiling: Tiling, copies: usize) -> miette::Result<()> {
    check_within::<W>(least(&limits()), tiling, copies)
}

/// The narrowest of several limits.
fn least(limits: &[Left]) -> Option<Left> {
    limits.iter().copied().min_by_key(|left| left.bytes)
}

fn gib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 30)
}

fn check_within<W: Workload>(left: Option<Left>, tiling: Tiling, copies: usize) -> miette::Result<()> {
    let Some(left) = left else { return Ok(()) };
    let (there, said) = (left.bytes as f64, left.of.said());
    let (order, size) = (tiling.order() as f64, tiling.tile_size() as f64);
    let tiles = (order / size).ceil();
    let matrix = 8.0 * W::numbers(tiles, size.min(order)) * copies as f64;
    let tasks = W::tasks(tiles);
    if matrix > there {
        return Err(miette!(
            help = "take fewer tiles, or smaller ones",
            "{} of {tiles:.0} × {tiles:.0} tiles of {size:.0} × {size:.0} numbers takes {:.1} GiB, and {:.1} GiB {said}",
            W::NAME,
            gib(matrix),
            gib(there)
        ));
    }
    if matrix + tasks * TASK_BYTES > there {
        return Err(miette!(
            help = "take larger tiles: --tile-size",
            "{tiles:.0} × {tiles:.0} tiles make {tasks:.0} tasks, for which the runtime would need some {:.1} GiB, and {:.1} GiB {said}",
            gib(tasks * TASK_BYTES),
            gib(there)
        ));
    }
    Ok(())
}

/// One of several ranks, and those that share memory with it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// Number of ranks on this machine.
    pub(super) here: usize,
    /// Number of ranks in this process.
    pub(super) in_process: usize,
}

/// Matrices that several ranks factorise at once.
#[derive(Clone, Copy)]
pub(super) struct Matrices {
    pub(super) tiling: Tiling,
    pub(super) precision: Precision,
    pub(super) count: usize,
}

/// What this rank lacks for its part of these matrices; all ranks go on, or none.
pub(super) fn lack_of_rank<W: Workload>(matrices: Matrices, place: Place) -> Option<String> {
    lack_within::<W>(&limits(), matrices, place)
}

fn lack_within<W: Workload>(limits: &[Left], matrices: Matrices, place: Place) -> Option<String> {
    let Matrices { tiling, precision, count } = matrices;
    let (order, size) = (tiling.order() as f64, tiling.tile_size() as f64);
    let tiles = (order / size).ceil();
    let count = count as f64;
    // Rank 0 gets the results in double precision.
    let whole = 8.0 * W::numbers(tiles, size.min(order)) * count;
    let narrow = if precision == Precision::Single { 0.5 } else { 1.0 };
    let share = narrow * whole / place.ranks as f64;
    // Copies of a column and of a row of tiles, at most; those of arrays stay to the end.
    let copies = match precision {
        Precision::Double => 2.0 * 8.0 * order * size.min(order) * count,
        Precision::Single => narrow * whole - share,
    };
    // Rank 0 gets the result.
    let of = |rank: usize| share + if rank == 0 { whole } else { copies };
    let lack = |left: &Left| {
        let together = if left.of.is_shared() { place.here } else { place.in_process };
        // Rank 0 shares memory with those next to it.
        let first = if place.rank < together { 0 } else { 1 };
        let (needed, who) = match together {
            1 => (of(place.rank), format!("rank {} needs", place.rank)),
            // All are here: one of them speaks.
            all if all == place.ranks && place.rank > 0 => return None,
            all if all == place.ranks => (of(0) + (all - 1) as f64 * of(1), format!("{all} ranks need")),
            _ => (of(first) + (together - 1) as f64 * of(1), format!("rank {} and those beside it need", place.rank)),
        };
        (needed > left.bytes as f64).then(|| {
            let (needed, there, said) = (gib(needed), gib(left.bytes as f64), left.of.said());
            format!(
                "{who} {needed:.1} GiB for tiles of {} of order {order:.0}, and {there:.1} GiB {said}: take a smaller \
                 matrix or more machines, or allow more",
                W::NAME
            )
        })
    };
    limits.iter().filter_map(lack).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Limit;
    use sched_workloads::workload::{Cholesky, Lu};

    #[test]
    fn what_cannot_fit_is_refused_with_the_reason() {
        let machine = Some(Left { bytes: 16 << 30, of: Limit::Machine });
        let shown = |order, size| {
            check_within::<Cholesky>(machine, Tiling::new(order, size), 1).expect_err("too large").to_string()
        };
        assert!(check_within::<Cholesky>(machine, Tiling::new(4096, 256), 1).is_ok());
        assert!(check_within::<Cholesky>(machine, Tiling::new(0, 256), 1).is_ok());
        assert!(check_within::<Cholesky>(machine, Tiling::new(32768, 256), 4).is_err());
        // A tile larger than the matrix is cut to its size.
        assert!(check_within::<Cholesky>(machine, Tiling::new(100, usize::MAX), 1).is_ok());
        insta::assert_snapshot!(shown(1 << 17, 256), @"cholesky of 512 × 512 tiles of 256 × 256 numbers takes 64.1 GiB, and 16.0 GiB of memory are available");
        insta::assert_snapshot!(shown(8192, 4), @"2048 × 2048 tiles make 1433753600 tasks, for which the runtime would need some 534.1 GiB, and 16.0 GiB of memory are available");
        assert!(check_within::<Cholesky>(None, Tiling::new(1 << 17, 256), 1).is_ok(), "nobody knows");
        let half = Tiling::new(40_000, 256);
        assert!(check_within::<Cholesky>(machine, half, 1).is_ok() && check_within::<Lu>(machine, half, 1).is_ok());
        assert!(check_within::<Cholesky>(machine, half, 2).is_ok() && check_within::<Lu>(machine, half, 2).is_err());
        assert!(order(usize::MAX, 2).is_err());
        assert!(shown(usize::MAX, usize::MAX).contains("GiB"));
    }

    #[test]
    fn a_rank_says_what_it_lacks_by_which_limit() {
        let matrices = |count| Matrices { tiling: Tiling::new(32_768, 256), precision: Precision::Double, count };
        let of =
            |bytes: u64, of: Limit, place: Place| lack_within::<Cholesky>(&[Left { bytes, of }], matrices(1), place);
        let place = |rank, in_process| Place { rank, ranks: 4, here: 2, in_process };
        // 4.0 GiB in all, of which each rank has one, and rank 0 gets all.
        assert_eq!(of(6 << 30, Limit::Process, place(0, 1)), None);
        assert_eq!(of(2 << 30, Limit::Process, place(1, 1)), None);
        insta::assert_snapshot!(of(1 << 30, Limit::Process, place(1, 1)).expect("it is too little"), @"rank 1 needs 1.1 GiB for tiles of cholesky of order 32768, and 1.0 GiB are left to the process (`ulimit -v`, `ulimit -d`): take a smaller matrix or more machines, or allow more");
        insta::assert_snapshot!(of(6 << 30, Limit::Machine, place(1, 1)).expect("it is too little"), @"rank 1 and those beside it need 6.2 GiB for tiles of cholesky of order 32768, and 6.0 GiB of memory are available: take a smaller matrix or more machines, or allow more");
        assert_eq!(of(6 << 30, Limit::Machine, place(2, 1)), None);
        let all = |rank| of(6 << 30, Limit::Group, Place { rank, ranks: 4, here: 4, in_process: 4 });
        insta::assert_snapshot!(all(0).expect("it is too little"), @"4 ranks need 8.4 GiB for tiles of cholesky of order 32768, and 6.0 GiB of memory are left to the control group: take a smaller matrix or more machines, or allow more");
        assert_eq!(all(2), None);
        let (machine, place) =
            ([Left { bytes: 9 << 30, of: Limit::Machine }], Place { rank: 0, ranks: 4, here: 4, in_process: 4 });
        assert_eq!(lack_within::<Cholesky>(&machine, matrices(1), place), None);
        assert!(lack_within::<Cholesky>(&machine, matrices(2), place).is_some(), "two contexts have two matrices");
    }
}
