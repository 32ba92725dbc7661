//! `sched model bus`.

use crate::devices;
use crate::format::{FormatOptions, text_or_json};
use crate::json;
use crate::table::table;
use crate::values::positive;
use miette::{IntoDiagnostic, WrapErr};
use sched_machine::topology::{BindingPlan, Topology};
use sched_memory::{known, measure};
use sched_model::Bus;
use sched_model::{Fingerprint, Store};
use sched_runtime::{DeviceChoice, bus_with_devices};
use sched_text::amount::decimal_bytes as bytes;
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show transfer times between the memory nodes of the machine
///
/// A runtime with workers on several memory nodes transfers data to where tasks run, and schedulers weigh the transfer
/// time. It is measured once for each kind of machine, by copying between threads bound to each pair of nodes, and
/// stored with the models by the first run with --calibrate or by this command. Times are in µs, bandwidths in GB/s.
#[derive(Debug, clap::Args)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct Args {
    /// Measure now, and replace the stored figures
    #[arg(long)]
    measure: bool,

    /// Emulate N memory nodes, among which hardware threads are distributed; nothing is stored
    #[arg(long, value_name = "N", value_parser = positive, conflicts_with = "measure")]
    memory_nodes: Option<usize>,

    /// Add the links of devices, which are measured now and not stored: `all`, or drivers and numbered devices joined
    /// by commas, such as `opencl,cuda:0`
    #[arg(long, value_name = "DEVICES", default_value = "none")]
    devices: DeviceChoice,

    #[command(flatten)]
    format: FormatOptions,
}

/// Fields are JSON keys.
#[derive(Serialize)]
struct Shown {
    machine: String,
    /// File, if stored.
    file: Option<PathBuf>,
    memory_nodes: usize,
    /// None for memory nodes without workers, or if there is only one.
    links: Vec<Link>,
    /// Stored data that could not be used, or failures to store.
    problems: Vec<String>,
}

#[derive(Serialize)]
struct Link {
    from: usize,
    to: usize,
    latency_us: f64,
    bandwidth_mb_s: f64,
}

pub(super) fn run(
    args: &Args,
    store: &Store,
    registry: impl FnOnce() -> miette::Result<Registry>,
    out: &mut dyn Write,
) -> miette::Result<ExitCode> {
    let topology = Topology::this_machine()?;
    let is_here = *store.machine() == Fingerprint::of_this_machine(&topology);
    let (mut file, mut problems) = (Some(store.bus_path()), Vec::new());
    let bus = if let Some(nodes) = args.memory_nodes {
        let plan = BindingPlan::new(&topology, BindingPlan::default_workers(&topology))?.with_memory_nodes(nodes)?;
        file = None;
        measured(&by_node(&plan), &plan)?
    } else if is_here {
        let plan = BindingPlan::new(&topology, BindingPlan::default_workers(&topology))?;
        let nodes = by_node(&plan);
        if nodes.len() == 1 {
            file = None;
            Bus::default()
        } else if args.measure {
            let bus = measured(&by_node(&plan), &plan)?;
            problems.extend(store.keep_bus(&bus)?.map(|moved| moved.to_string()));
            bus
        } else {
            let known = known(store, true, &nodes, &plan).into_diagnostic()?;
            problems = known.problems;
            known.bus
        }
    } else {
        let help = "leave --machine out to show or measure this machine";
        if args.measure {
            return Err(miette::miette!(help = help, "only this machine can be measured, not `{}`", store.machine()));
        }
        let stored = store.bus()?;
        stored.ok_or_else(|| miette::miette!(help = help, "nothing is stored in {}", store.bus_path().display()))?
    };
    let bus = match args.devices.is_none() {
        true => bus,
        false => {
            let plan = BindingPlan::new(&topology, BindingPlan::default_workers(&topology))?;
            let devices = devices::explore(&registry()?, &args.devices)?;
            bus_with_devices(&bus, args.memory_nodes.unwrap_or_else(|| host_nodes(&plan)), &devices)
        }
    };
    let shown = Shown { problems, ..Shown::new(store.machine(), file, &bus) };
    if args.format.is_json() {
        json::write(out, &shown)?;
    } else {
        out.write_all(shown.text().as_bytes()).into_diagnostic()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Number of memory nodes of the cores, before those of devices.
pub(crate) fn host_nodes(plan: &BindingPlan) -> usize {
    plan.workers().iter().filter_map(|place| place.numa).max().unwrap_or(0) as usize + 1
}

/// The workers of each memory node.
pub(crate) fn by_node(plan: &BindingPlan) -> Vec<Vec<usize>> {
    let mut nodes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for place in plan.workers() {
        nodes.entry(place.numa.unwrap_or(0) as usize).or_default().push(place.worker);
    }
    match nodes.len() {
        1 => nodes.into_values().collect(),
        _ => (0..=nodes.keys().last().copied().unwrap_or(0))
            .map(|node| nodes.remove(&node).unwrap_or_default())
            .collect(),
    }
}

/// Measures transfers between memory nodes with these workers.
pub(crate) fn measured(nodes: &[Vec<usize>], plan: &BindingPlan) -> miette::Result<Bus> {
    let measured = measure(nodes, Some(plan)).into_diagnostic();
    measured.wrap_err("no threads could be started to measure with")
}

impl Shown {
    fn new(machine: &Fingerprint, file: Option<PathBuf>, bus: &Bus) -> Shown {
        let nodes = bus.nodes().max(1);
        let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let link = |(from, to)| {
            let (latency_us, bandwidth_mb_s) = (bus.latency.get(from, to)?, bus.bandwidth.get(from, to)?);
            Some(Link { from, to, latency_us, bandwidth_mb_s })
        };
        let links = pairs.filter(|(from, to)| from != to).filter_map(link).collect();
        Shown { machine: machine.to_string(), file, memory_nodes: nodes, links, problems: Vec::new() }
    }

    fn text(&self) -> String {
        let Shown { machine, file, memory_nodes, links, problems } = self;
        if *memory_nodes == 1 {
            return format!("machine {machine} has one memory node: nothing is transferred\n");
        }
        let kept = file.as_ref().map_or("not stored".to_owned(), |file| format!("stored in {}", file.display()));
        let rows = links.iter().map(|Link { from, to, latency_us, bandwidth_mb_s }| {
            let megabyte = latency_us + 1e6 / bandwidth_mb_s;
            [
                from.to_string(),
                to.to_string(),
                format!("{latency_us:.2} µs"),
                format!("{}/s", bytes(bandwidth_mb_s * 1e6)),
                format!("{megabyte:.1} µs"),
            ]
        });
        let table = table(["FROM", "TO", "LATENCY", "BANDWIDTH", "A MEGABYTE"], rows, 0..5);
        let problems: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
        format!("machine {machine}, {memory_nodes} memory nodes, {kept}\n{table}\n{problems}")
    }
}
