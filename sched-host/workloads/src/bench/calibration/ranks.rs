//! The times of kernels where several ranks factorise one matrix together.
//!
//! There a kernel also takes what the policy makes of caches, what copies for messages take of them, and what the
//! memory gives while all ranks use it: on two cores, `gemm` takes 4 to 24 % longer than in small factorisations of
//! each rank's own.

use super::{Calibrated, Calibration, CalibrationError, Chosen, Costs, Kernels, RUNS, WorkloadStep, tiles};
use crate::workload::{Cholesky, Lu, OnRanks, Qr};
use sched_cluster::Cluster;
use sched_core::Arch;
use sched_graph::TaskGraph;
use sched_tree::plugin::Registry;
use std::sync::Arc;

/// Rows of the matrices, if the tiles allow that: those of one rank are more than caches hold.
const ROWS: usize = 4096;

/// Measures this machine as [`calibrate`](super::calibrate) does, and kernels where all ranks factorise matrices
/// together. The runtimes of the cluster capture their graphs
/// ([`capture_graph`](sched_runtime::Builder::capture_graph)), and have the policy and the number of workers that are
/// wanted. All ranks call it; rank 0 gets the figures of all of them.
///
/// # Errors
/// If a runtime does not start, or a run fails.
pub fn calibrate_on_ranks(
    cluster: &Cluster,
    wanted: &Calibration,
    registry: &Arc<Registry>,
    mut progress: impl FnMut(f64),
) -> Result<Calibrated, CalibrationError> {
    let steps = (3 * wanted.tile_sizes.len() + 1) as f64;
    let costs = Costs::measure(wanted, registry)?;
    let mut kernels = Kernels::default();
    drop(cluster.runtime().take_graph());
    let measures: [WorkloadStep; 3] = [measure::<Cholesky>, measure::<Lu>, measure::<Qr>];
    let all = wanted.tile_sizes.iter().flat_map(|tile_size| measures.map(|measure| (*tile_size, measure)));
    for (step, (tile_size, measure)) in (1_u32..).zip(all) {
        progress(f64::from(step) / steps);
        measure(&mut kernels, cluster, tile_size)?;
    }
    progress(1.0);
    Ok(kernels.with(costs, Chosen::Middle, Vec::new()))
}

/// Runs a workload on all ranks, and adds the times of its tasks on all of them.
fn measure<W: OnRanks>(kernels: &mut Kernels, cluster: &Cluster, tile_size: usize) -> Result<(), CalibrationError> {
    let matrix = W::random(tiles(ROWS, tile_size) * tile_size, 42);
    // The first run makes the memory that kernels keep.
    W::run_on(cluster, &*matrix, tile_size)?;
    drop(cluster.runtime().take_graph());
    for run in 0..RUNS {
        let flops = W::run_on(cluster, &*matrix, tile_size)?.figures.flops;
        let graph = cluster.runtime().take_graph().unwrap_or_default();
        let Some(all) = cluster.collect(lengths(&graph).as_bytes())? else { continue };
        kernels.flops += flops;
        for line in all.iter().flat_map(|of_rank| of_rank.split(|byte| *byte == b'\n')) {
            if let Some((kind, bytes, seconds)) = parsed(line) {
                kernels.add(kind, bytes, (W::NAME, run), seconds);
            }
        }
    }
    Ok(())
}

/// A line for each task that ran on a core: kind, bytes, nanoseconds.
fn lengths(graph: &TaskGraph) -> String {
    let line = |task: &sched_graph::Task| {
        let nanos = task.lengths.get(Arch::CPU)?.as_nanos();
        Some(format!("{} {} {nanos}", graph.kind_of(task).name, graph.bytes_of(task)))
    };
    graph.tasks.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

fn parsed(line: &[u8]) -> Option<(&str, u64, f64)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (kind, bytes, nanos) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse::<u64>().ok()?);
    Some((kind, bytes, nanos as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing::builder;

    #[test]
    fn kernels_of_all_ranks_are_measured() {
        let wanted = Calibration {
            policy: "tree-eager".to_owned(),
            workers: 1,
            tile_sizes: vec![8],
            bind: false,
            devices: Vec::new(),
        };
        let registry = Arc::new(Registry::compiled_in());
        let found = Cluster::local(
            2,
            |_| builder("tree-eager", 1).capture_graph().build(),
            |cluster| calibrate_on_ranks(cluster, &wanted, &registry, |_| {}),
        );
        let found = found.expect("the ranks start").into_iter().next().expect("there is rank 0");
        let kernels = found.expect("all is well").kernels;
        let known: Vec<&str> = kernels.keys().map(String::as_str).collect();
        let all = "gemm geqrt getrf potrf syrk trsm trsm_column trsm_row tsmqr tsqrt unmqr";
        assert_eq!(known.join(" "), all);
        assert!(kernels["gemm"][&(3 * 8 * 8 * 8)] > std::time::Duration::ZERO, "{kernels:?}");
    }
}
