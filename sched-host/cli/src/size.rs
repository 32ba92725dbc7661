//! Limits on the sizes of tiled matrices.

use miette::miette;
use sched_workloads::linalg::Tiling;
use sched_workloads::workload::Workload;

/// Rows of a matrix with `tiles` tiles of `tile_size` rows.
pub(super) fn order(tiles: usize, tile_size: usize) -> miette::Result<usize> {
    let order = tiles.checked_mul(tile_size);
    order.ok_or_else(|| miette!("{tiles} tiles of {tile_size} rows are more rows than can be counted"))
}

/// Approximate memory of the runtime for one task, in bytes.
const TASK_BYTES: f64 = 400.0;

/// Available memory in bytes, where the system reports it. (hwloc reports the installed memory, and in some virtual
/// machines half of it.)
fn available_memory() -> Option<u64> {
    let shown = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = shown.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Refuses matrices whose tiles, for `copies` concurrent runs of `W`, or whose tasks do not fit into memory, before
/// anything is allocated.
pub(super) fn check<W: Workload>(tiling: Tiling, copies: usize) -> miette::Result<()> {
    check_within::<W>(available_memory(), tiling, copies)
}

fn check_within<W: Workload>(available: Option<u64>, tiling: Tiling, copies: usize) -> miette::Result<()> {
    let Some(there) = available.map(|bytes| bytes as f64) else { return Ok(()) };
    let (order, size) = (tiling.order() as f64, tiling.tile_size() as f64);
    let tiles = (order / size).ceil();
    let matrix = 8.0 * W::numbers(tiles, size.min(order)) * copies as f64;
    let tasks = W::tasks(tiles);
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    if matrix > there {
        return Err(miette!(
            help = "take fewer tiles, or smaller ones",
            "{} of {tiles:.0} × {tiles:.0} tiles of {size:.0} × {size:.0} numbers takes {:.1} GiB, and {:.1} GiB of memory are available",
            W::NAME,
            gib(matrix),
            gib(there)
        ));
    }
    if matrix + tasks * TASK_BYTES > there {
        return Err(miette!(
            help = "take larger tiles: --tile-size",
            "{tiles:.0} × {tiles:.0} tiles make {tasks:.0} tasks, for which the runtime would need some {:.1} GiB, and {:.1} GiB of memory are available",
            gib(tasks * TASK_BYTES),
            gib(there)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_workloads::workload::{Cholesky, Lu};

    #[test]
    fn what_cannot_fit_is_refused_with_the_reason() {
        let machine = Some(16 << 30);
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
}
