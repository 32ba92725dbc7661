//! The patterns of Task Bench (Slaughter et al., *Task Bench: A Parameterized Benchmark for Evaluating Parallel Runtime
//! Performance*, SC 2020), as workloads: in each step, each column computes a value from some of the step before. Two
//! rows of data are used in turn.

use super::workloads::Workload;
use sched_core::Arch;
use sched_host::graph::{AccessMode, DataId, Datum, Lengths, Task, TaskGraph};
use std::time::Duration;

/// Names of the patterns.
const NAMES: [&str; 11] = [
    "trivial",
    "no_comm",
    "stencil_1d",
    "stencil_1d_periodic",
    "dom",
    "tree",
    "fft",
    "all_to_all",
    "nearest",
    "spread",
    "random_nearest",
];

/// Number of columns that `nearest` and `spread` read.
const RADIX: usize = 5;

/// What the tasks of a workload are like.
struct Shape {
    name: &'static str,
    columns: usize,
    steps: usize,
    bytes: u64,
    /// The longest task on a core, and how many times as fast it is on a GPU.
    length: Duration,
    speedup: f64,
    /// How much shorter than the longest task one may be, as a share.
    imbalance: f64,
}

const SHAPES: [Shape; 3] = [
    Shape {
        name: "fine",
        columns: 32,
        steps: 20,
        bytes: 1 << 20,
        length: Duration::from_millis(2),
        speedup: 10.0,
        imbalance: 0.0,
    },
    Shape {
        name: "uneven",
        columns: 64,
        steps: 12,
        bytes: 4 << 20,
        length: Duration::from_millis(4),
        speedup: 5.0,
        imbalance: 0.5,
    },
    Shape {
        name: "coarse",
        columns: 24,
        steps: 30,
        bytes: 8 << 20,
        length: Duration::from_millis(30),
        speedup: 20.0,
        imbalance: 0.2,
    },
];

/// A number from 0 to 1 that looks random, and is the same for the same step and columns (SplitMix64's finaliser).
fn chance(step: usize, column: usize, other: usize) -> f64 {
    let mut bits = (((step as u64) << 40) ^ ((column as u64) << 20) ^ other as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The columns of the step before that a column reads, in ascending order.
fn read(pattern: &str, step: usize, column: usize, columns: usize) -> Vec<usize> {
    let around = |by: usize| (column.saturating_sub(by)..columns.min(column + by + 1)).collect::<Vec<_>>();
    let mut read = match pattern {
        _ if step == 0 => Vec::new(),
        "trivial" => Vec::new(),
        "no_comm" => vec![column],
        "stencil_1d" => around(1),
        "stencil_1d_periodic" => vec![(column + columns - 1) % columns, column, (column + 1) % columns],
        "dom" => (column.saturating_sub(1)..=column).collect(),
        // The tree grows until it is as wide as the rest.
        "tree" if columns >> (step - 1).min(63) > 1 => vec![column / 2],
        "tree" => vec![column],
        "fft" => {
            let away = 1 << ((step - 1) % columns.next_power_of_two().trailing_zeros() as usize);
            let other = [column.checked_sub(away), Some(column), Some(column + away)];
            other.into_iter().flatten().filter(|column| *column < columns).collect()
        }
        "all_to_all" => (0..columns).collect(),
        "nearest" => around(RADIX / 2),
        "spread" => (0..RADIX).map(|part| (column + part * columns / RADIX + step - 1) % columns).collect(),
        _ => {
            let mut near = around(RADIX / 2);
            near.retain(|other| *other == column || chance(step, column, *other) < 0.65);
            near
        }
    };
    read.sort_unstable();
    read.dedup();
    read
}

fn graph(pattern: &str, shape: &Shape) -> TaskGraph {
    let mut graph = TaskGraph::new(format!("{pattern}, {}", shape.name));
    let kind = graph.add_kind("work");
    let rows: Vec<Vec<DataId>> =
        (0..2).map(|_| (0..shape.columns).map(|_| graph.add_data(Datum::new(shape.bytes))).collect()).collect();
    for step in 0..shape.steps {
        let columns = if pattern == "tree" { shape.columns.min(1 << step.min(31)) } else { shape.columns };
        for column in 0..columns {
            let length = shape.length.mul_f64(1.0 - shape.imbalance * chance(step, column, usize::MAX));
            let mut task = Task::new(kind);
            task.lengths = Lengths::default().with(Arch::CPU, length).with(Arch::CUDA, length.div_f64(shape.speedup));
            for other in read(pattern, step, column, shape.columns) {
                task = task.access(rows[(step + 1) % 2][other], AccessMode::Read);
            }
            graph.add_task(task.access(rows[step % 2][column], AccessMode::Write));
        }
    }
    graph
}

/// All patterns in all shapes.
pub(crate) fn all() -> Vec<Workload> {
    let each = NAMES.iter().flat_map(|pattern| SHAPES.iter().map(move |shape| (pattern, shape)));
    let workload = |(pattern, shape): (&&str, &Shape)| Workload {
        name: format!("{pattern} {}", shape.name),
        graph: graph(pattern, shape),
        starpu_tiles: None,
    };
    each.map(workload).collect()
}
