//! `sched platform`: this machine as a platform for simulations.

mod ranks;

use crate::devices;
use crate::machine::WorkerOption;
use crate::model::bus;
use crate::progress::Progress;
use crate::values::positive;
use clap::Subcommand;
use miette::{IntoDiagnostic, WrapErr, miette};
use sched_machine::topology::Topology;
use sched_runtime::{DeviceChoice, DeviceReport};
use sched_sim::Platform;
use sched_sim::platform::{DeviceFigures, Kernels, MachineFigures, Overheads, Sized};
use sched_tree::plugin::Registry;
use sched_workloads::bench::{Calibrated, CalibratedDevice, Calibration, KernelTimes, calibrate};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Describe machines and clusters for simulations
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    This(ThisArgs),
    Ranks(ranks::RanksArgs),
}

/// Measure this machine, and write the platform by which `simulate` and `compare` know it
///
/// Workers and memory nodes are those that `sched topology` shows. The costs of submission, of scheduling and of wakes
/// are measured with empty tasks, the times of kernels by small factorisations with every worker at work, and, with
/// several memory nodes, the transfers between them. Of devices, the kernels that they have are measured, and the
/// copies from and to them; cores and devices are all at work meanwhile. It takes some seconds, on a machine without
/// other load.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  sched platform this > here.kdl
  sched platform this --devices all --workers 1 > here.kdl
  sched simulate cholesky --tiles 16 --tile-size 256 --platform here.kdl
  sched run qr --record g.json && sched compare g.json --platform here.kdl")]
struct ThisArgs {
    #[command(flatten)]
    workers: WorkerOption,

    /// Rows of the tiles that kernels are measured with, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "64,128,256,512", value_parser = positive)]
    tile_sizes: Vec<usize>,

    /// Devices to measure beside the cores: `all`, or drivers and numbered devices joined by commas, such as
    /// `opencl,cuda:0`
    #[arg(long, value_name = "DEVICES", default_value = "none")]
    devices: DeviceChoice,
}

/// Writes the platform that `args` name to `out`.
///
/// # Errors
/// If the machine cannot be measured, or `out` cannot be written.
pub fn run(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match &args.what {
        What::This(args) => this(args, registry, out),
        What::Ranks(args) => ranks::run(args, &registry, out),
    }
}

fn this(args: &ThisArgs, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let topology = Topology::this_machine()?;
    let found = match args.devices.is_none() {
        true => Vec::new(),
        false => devices::explore(&registry, &args.devices)?,
    };
    let plan = args.workers.beside(found.len(), &topology).plan(&topology)?;
    let wanted = Calibration {
        policy: "tree-eager".to_owned(),
        workers: plan.workers().len(),
        bind: true,
        tile_sizes: args.tile_sizes.clone(),
        devices: found.iter().map(|device| (device.name.clone(), device.arch)).collect(),
    };
    let mut measured = Progress::new(false, false)
        .share("measuring", |progress| calibrate(&wanted, &registry, &topology, progress))?;
    // A platform has only memory nodes with workers.
    let nodes: Vec<_> = bus::by_node(&plan).into_iter().filter(|workers| !workers.is_empty()).collect();
    let bus = if nodes.len() > 1 { Some(bus::measured(&nodes, &plan)?) } else { None };
    let measured_there = std::mem::take(&mut measured.on_devices);
    let devices = found.into_iter().zip(measured_there).map(|(device, there)| device_figures(device, there));
    let devices = devices.collect::<miette::Result<Vec<DeviceFigures>>>()?;
    let figures = MachineFigures { bus, devices, ..figures_of(measured) };
    let text = Platform::describe("this-machine", &topology, &plan, &figures);
    // What is written can be read.
    Platform::parse("this-machine", &text)?;
    write!(out, "{}{text}", first_line("this", &topology)).into_diagnostic().wrap_err("cannot write the platform")?;
    Ok(ExitCode::SUCCESS)
}

/// The comment above what a command has measured.
fn first_line(command: &str, topology: &Topology) -> String {
    format!("// Measured on this machine by `sched platform {command}`: {}.\n", topology.source())
}

fn figures_of(measured: Calibrated) -> MachineFigures {
    let Calibrated { submission, push, fetch, wake_up, kernels, on_devices: _, gflops } = measured;
    MachineFigures {
        overheads: Overheads { submission, push, fetch, wake_up, ..Overheads::default() },
        bus: None,
        measured: by_size(kernels),
        devices: Vec::new(),
        gflops: [(Kernels::ANY.to_owned(), gflops)].into(),
    }
}

/// The figures of a device, with what was measured there.
fn device_figures(device: DeviceReport, there: CalibratedDevice) -> miette::Result<DeviceFigures> {
    let DeviceReport { name, arch, info, links, .. } = device;
    let links = links.map_err(|why| miette!("the links of {name} cannot be measured: {why}"))?;
    let (to_device, to_host) = (links.to_device, links.to_host);
    let CalibratedDevice { overlaps, kernels } = there;
    Ok(DeviceFigures { name, arch, memory: info.memory, to_device, to_host, overlaps, measured: by_size(kernels) })
}

fn by_size(times: KernelTimes) -> BTreeMap<String, Vec<Sized>> {
    let sized = |(kind, times): (String, BTreeMap<u64, _>)| {
        (kind, times.into_iter().map(|(bytes, time)| Sized { bytes, time }).collect())
    };
    times.into_iter().map(sized).collect()
}
