//! Workloads to judge policies by.

use super::machines::Machine;
use sched_host::graph::{self, TaskGraph, generate};
use sched_tests::starpu;
use std::path::Path;
use std::time::Duration;

/// A graph, and the number of its tiles.
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) graph: TaskGraph,
    /// Tiles of a Cholesky factorisation as StarPU's example makes it.
    pub(crate) starpu_tiles: Option<usize>,
}

/// The workloads that `machine` can run, with `sizes` tiles.
pub(crate) fn all(data: &Path, machine: &Machine, sizes: &[usize]) -> Vec<Workload> {
    let mut found = Vec::new();
    let mut add = |name: String, graph: TaskGraph, starpu_tiles| found.push(Workload { name, graph, starpu_tiles });
    for tiles in sizes.iter().copied() {
        let graph = if machine.is_measured { starpu::cholesky(tiles) } else { generate::cholesky(tiles, 960) };
        add(format!("cholesky {tiles}"), graph, Some(tiles));
        if !machine.is_measured {
            add(format!("lu {tiles}"), generate::lu(tiles, 960), None);
        }
        add(format!("qr {tiles}"), generate::qr(tiles, 960), None);
    }
    if machine.is_measured {
        let host = machine.name.split('-').next().unwrap_or_default();
        for tiles in sizes {
            let file = data.join("starpu-rec").join(format!("lunopiv-{host}-n{tiles}.tasks.rec"));
            if file.exists() {
                add(format!("lu {tiles}"), graph::read(&file).expect("the trace is sound"), None);
            }
        }
    }
    let stencil = |width, steps| generate::stencil(width, steps, Duration::from_millis(2), 4 << 20);
    add("stencil 48×20".to_owned(), stencil(48, 20), None);
    let cores = machine.platform.workers.iter().filter(|worker| worker.memory.0 == 0).count();
    if cores >= 8 {
        for name in ["blast-60", "epigenomics-60", "genome-60", "montage-60", "seismology-105"] {
            let file = data.join("graphs/wfcommons").join(format!("{name}-seed1.json"));
            add(name.to_owned(), graph::read(&file).expect("the workflow is sound"), None);
        }
    }
    found
}
