//! Workloads to judge policies by.

use super::machines::Machine;
use sched_core::Arch;
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

/// Workloads of which none is among [`all`], beside tiled factorisations of other sizes.
pub(crate) fn unseen(data: &Path, machine: &Machine, sizes: &[usize]) -> Vec<Workload> {
    let mut found = Vec::new();
    let mut add = |name: String, graph: TaskGraph, starpu_tiles| found.push(Workload { name, graph, starpu_tiles });
    for tiles in sizes.iter().copied() {
        let graph = if machine.is_measured { starpu::cholesky(tiles) } else { generate::cholesky(tiles, 960) };
        add(format!("cholesky {tiles}"), graph, None);
        if !machine.is_measured {
            add(format!("lu {tiles}"), generate::lu(tiles, 960), None);
        }
        add(format!("qr {tiles}"), generate::qr(tiles, 960), None);
    }
    let length = Duration::from_millis(3);
    add("stencil 30×30".to_owned(), generate::stencil(30, 30, length, 2 << 20), None);
    for (layers, width, seed) in [(12, 20, 1), (6, 60, 2), (30, 9, 3)] {
        let from = generate::Layered { layers, width, density: 0.15, length, bytes: 3 << 20, seed };
        let mut graph = generate::layered(from);
        // Between a fifth and thirty times as fast on a GPU.
        for (number, task) in graph.tasks.iter_mut().enumerate() {
            let ratio = [0.2, 2.0, 8.0, 30.0, 4.0][(number * 7 + seed as usize) % 5];
            task.lengths = task.lengths.clone().with(Arch::CUDA, length.div_f64(ratio));
        }
        add(format!("layers {layers}×{width}"), graph, None);
    }
    for number in [4, 16, 28, 36, 44] {
        let file = data.join("graphs/stg").join(format!("rand00{number:02}.stg"));
        if file.exists() && machine.platform.workers.iter().all(|worker| worker.memory.0 < 4) {
            add(format!("stg {number}"), graph::read(&file).expect("it is of the Standard Task Graph Set"), None);
        }
    }
    found
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
