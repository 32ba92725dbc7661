//! `sched bench device`: a device under the runtime, beside its driver alone.

use super::{RoundOption, measured};
use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::machine::WorkerOption;
use crate::policy::PolicyOptions;
use crate::size;
use crate::table::table;
use crate::values::positive;
use miette::IntoDiagnostic;
use sched_machine::topology::Topology;
use sched_runtime::DeviceChoice;
use sched_tree::plugin::Registry;
use sched_workloads::bench::{DeviceBench, DeviceBenchReport, device_bench};
use sched_workloads::linalg::Tiling;
use sched_workloads::workload::Cholesky;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Measure a device under the runtime beside what its driver does alone, in the same run
///
/// KERNELS PER SECOND: short kernels that do nothing, as tasks, beside the same kernels launched one behind the other
/// in a queue of the driver. A low ratio means that tasks on this device should be longer.
///
/// COPIES: tasks that each read an array of their own, with kernels that take as long as its copy. OVERLAP is the part
/// of the copies that is hidden behind kernels. A device without threads of its own, such as PoCL's `basic`, runs a
/// kernel on the thread that launches it: there only copies are hidden that a policy fetches ahead, by other threads.
///
/// CHOLESKY: the runtime with its kernels on the device beside the same kernels in one queue written by hand, with
/// pivots on the host in both; then the cores alone, and cores and device together. GAIN is the speed of both divided
/// by that of the better one: above 1 if the device is worth its transfers. EACH ALONE AT ONCE is the sum of cores and
/// device that work at the same time, each on a matrix of its own: what there is to gain. Where the device is made of
/// cores, its threads compete with the workers, so leave some cores to it by --workers.
///
/// Every round measures each of these once, and the medians of all rounds are compared. One round before the first is
/// not counted: in it kernels are compiled, and the runtime learns how long they take.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct Args {
    #[command(flatten)]
    policies: PolicyOptions,

    /// Device to measure, such as `opencl:1`; the first of several [default: the first one that is found]
    #[arg(long, value_name = "DEVICE", default_value = "all", hide_default_value = true)]
    device: DeviceChoice,

    #[command(flatten)]
    workers: WorkerOption,

    /// Number of short kernels
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = positive)]
    kernels: usize,

    /// Length of a short kernel in microseconds, launch included
    #[arg(long, value_name = "US", default_value_t = 20, value_parser = positive)]
    kernel_us: usize,

    /// Size of an array that is copied, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20, value_parser = positive)]
    bytes: usize,

    /// Tiles in a row of tiles
    #[arg(long, short = 'n', value_name = "N", default_value_t = 8, value_parser = positive)]
    tiles: usize,

    /// Rows of a tile
    #[arg(long, short = 'b', value_name = "B", default_value_t = 256, value_parser = positive)]
    tile_size: usize,

    #[command(flatten)]
    rounds: RoundOption<5>,

    #[command(flatten)]
    format: FormatOptions,
}

pub(super) fn run(args: &Args, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (tiles, tile_size) = (args.tiles, args.tile_size);
    size::check::<Cholesky>(Tiling::new(size::order(tiles, tile_size)?, tile_size), 2)?;
    let policy = args.policies.several_or("tree-heft")?.swap_remove(0);
    let topology = Topology::this_machine().into_diagnostic()?;
    let wanted = DeviceBench {
        device: args.device.clone(),
        policy,
        workers: args.workers.beside(1, &topology).count(&topology),
        kernels: args.kernels,
        length: Duration::from_micros(args.kernel_us as u64),
        bytes: args.bytes,
        tiles,
        tile_size,
        rounds: args.rounds.rounds,
    };
    let report = measured(|progress| device_bench(&wanted, registry, progress))?;
    if args.format.is_json() {
        json::write(out, &report)?;
    } else {
        out.write_all(text(&report).as_bytes()).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(report: &DeviceBenchReport) -> String {
    let DeviceBenchReport { device, model, policy, workers, rounds, kernels, copies, cholesky } = report;
    let row = |name: &str, value: f64, digits: usize| [name.to_owned(), format!("{value:.digits$}")];
    let kernel_rows = [
        row("runtime", kernels.runtime_per_s, 0),
        row("driver", kernels.driver_per_s, 0),
        row("ratio", kernels.ratio, 3),
    ];
    let copy_rows = [
        row("tasks", copies.tasks_gb_per_s, 2),
        row("copies alone", copies.copies_gb_per_s, 2),
        row("overlap", copies.overlap, 3),
    ];
    let mut text = format!(
        "device {device} ({model}), policy {policy}, workers: {workers}, rounds: {rounds}\n\n\
         kernels of {:.1} µs\n{}\n\ncopies beside kernels\n{}\n",
        kernels.kernel_us,
        table(["KERNELS/S", "MEDIAN"], kernel_rows, 1..2),
        table(["GB/S", "MEDIAN"], copy_rows, 1..2),
    );
    if let Some(of) = cholesky {
        let rows = [
            row("device", of.device_gflops, 1),
            row("queue by hand", of.queue_gflops, 1),
            row("ratio", of.ratio, 3),
            row("cores", of.cores_gflops, 1),
            row("cores and device", of.both_gflops, 1),
            row("gain", of.gain, 3),
            row("each alone at once", of.apart_gflops, 1),
            row("gain of that", of.gain_apart, 3),
        ];
        text += &format!("\ncholesky of order {}, tiles of {}\n", of.order, of.tile_size);
        text += &table(["GFLOP/S", "MEDIAN"], rows, 1..2);
        text.push('\n');
    } else {
        text += "\nno cholesky: the device has no double precision\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_workloads::bench::{CopyOverlap, DeviceCholesky, KernelRate};

    #[test]
    fn the_figures_stand_side_by_side() {
        let report = DeviceBenchReport {
            device: "opencl:0".to_owned(),
            model: "a device".to_owned(),
            policy: "tree-heft".to_owned(),
            workers: 1,
            rounds: 5,
            kernels: KernelRate { kernel_us: 20.0, driver_per_s: 50_000.0, runtime_per_s: 40_000.0, ratio: 0.8 },
            copies: CopyOverlap {
                copies_s: 1.0,
                kernels_s: 1.0,
                tasks_s: 1.25,
                copies_gb_per_s: 10.0,
                tasks_gb_per_s: 8.0,
                overlap: 0.75,
            },
            cholesky: Some(DeviceCholesky {
                order: 2048,
                tile_size: 256,
                queue_gflops: 50.0,
                device_gflops: 47.5,
                ratio: 0.95,
                cores_gflops: 60.0,
                apart_gflops: 96.0,
                both_gflops: 90.0,
                gain: 1.5,
                gain_apart: 1.6,
            }),
        };
        insta::assert_snapshot!(text(&report), @r"
        device opencl:0 (a device), policy tree-heft, workers: 1, rounds: 5

        kernels of 20.0 µs
        KERNELS/S  MEDIAN
        runtime     40000
        driver      50000
        ratio       0.800

        copies beside kernels
        GB/S          MEDIAN
        tasks           8.00
        copies alone   10.00
        overlap        0.750

        cholesky of order 2048, tiles of 256
        GFLOP/S             MEDIAN
        device                47.5
        queue by hand         50.0
        ratio                0.950
        cores                 60.0
        cores and device      90.0
        gain                 1.500
        each alone at once    96.0
        gain of that         1.600
        ");
    }
}
