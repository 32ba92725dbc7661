//! `sched platform ranks`: several ranks, and the network between them, as a cluster.

use super::{figures_of, first_line};
use crate::machine::WorkerOption;
use crate::progress::Progress;
use crate::ranks::Ranks;
use crate::values::positive;
use miette::{IntoDiagnostic, WrapErr, miette};
use parking_lot::Mutex;
use sched_cluster::{Cluster, ClusterError};
use sched_machine::topology::{BindingPlan, Topology};
use sched_runtime::Runtime;
use sched_sim::Platform;
use sched_tree::plugin::Registry;
use sched_workloads::bench::{Calibrated, Calibration, NetworkFigures, calibrate, network};
use std::collections::HashSet;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure several ranks and the messages between them, and write the cluster by which `simulate` knows them
///
/// Start it with `mpirun`, as the program that is to be simulated. All ranks factorise small matrices at once, each its
/// own, by which kernels are measured while all cores are busy; a chain of tasks between two ranks shows what messages
/// cost. Ranks that share a machine exchange messages by copies that their cores make, and so does the simulation.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  mpirun -n 2 sched platform ranks -w 1 > two.kdl
  mpirun -n 2 sched run cholesky -w 1 --policy tree-prio
  sched simulate cholesky --platform two.kdl --policy tree-prio")]
pub(super) struct RanksArgs {
    /// Number of ranks, in a program that is not started by `mpirun`
    #[arg(long, value_name = "N", value_parser = positive)]
    ranks: Option<usize>,

    #[command(flatten)]
    workers: WorkerOption,

    /// Rows of the tiles that kernels are measured with, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "64,128,256,512", value_parser = positive)]
    tile_sizes: Vec<usize>,
}

/// What all ranks have measured, on rank 0.
struct Measured {
    ranks: usize,
    figures: Calibrated,
    network: NetworkFigures,
}

/// Measures, and writes the cluster to `out` on rank 0.
///
/// # Errors
/// If a rank cannot measure, or `out` cannot be written.
pub(super) fn run(args: &RanksArgs, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let ranks = Ranks::of(args.ranks, |name| std::env::var(name).ok())?;
    let ranks = ranks.ok_or_else(|| {
        miette!(
            help = "start it with `mpirun -n 2 sched platform ranks`, or say --ranks 2",
            "this is one process, and no number of ranks is given"
        )
    })?;
    let topology = Topology::this_machine()?;
    let workers = args.workers.shared_by(ranks.here(), &topology).count(&topology);
    let wanted = Calibration {
        policy: "tree-eager".to_owned(),
        workers,
        bind: false,
        crowded: false,
        tile_sizes: args.tile_sizes.clone(),
        devices: Vec::new(),
    };
    let start = || {
        let builder = Runtime::builder().registry(Arc::clone(registry)).policy(&wanted.policy);
        builder.workers(workers).topology(topology.clone()).bind(false).build()
    };
    let body = |cluster: &Cluster| measure(cluster, &wanted, registry, &topology);
    let Measured { ranks: count, figures, network } = match ranks.launch(start, body)? {
        Ok(measured) => measured,
        Err(code) => return Ok(code),
    };
    let share = ranks.here() as f64 / count as f64;
    let plan = BindingPlan::new(&topology, workers)?;
    let platform = Platform::describe("rank", &topology, &plan, &figures_of(figures));
    let text = format!("{}\n{platform}", cluster_text(count, &network, share));
    // What is written can be read.
    sched_sim::cluster::Cluster::parse("these-ranks", &text)?;
    write!(out, "{}{text}", first_line("ranks", &topology)).into_diagnostic().wrap_err("cannot write the cluster")?;
    Ok(ExitCode::SUCCESS)
}

/// Measures on one rank, while all others do.
fn measure(
    cluster: &Cluster,
    wanted: &Calibration,
    registry: &Arc<Registry>,
    topology: &Topology,
) -> Result<Measured, ClusterError> {
    let network = network(cluster)?;
    let wanted = &Calibration { crowded: are_crowded(cluster, wanted.workers, topology)?, ..wanted.clone() };
    let lost = Mutex::new(None);
    // Ranks begin each step together.
    let together = |_| {
        if let Err(error) = cluster.exchange(&[]) {
            lost.lock().get_or_insert(error);
        }
    };
    let figures = match cluster.rank() {
        0 => Progress::new(false, false).share("measuring", |progress| {
            calibrate(wanted, registry, topology, |share| {
                together(share);
                progress(share);
            })
        }),
        _ => calibrate(wanted, registry, topology, together),
    };
    let figures = figures.map_err(|error| ClusterError::Failed(vec![error.to_string()]))?;
    match lost.into_inner() {
        Some(error) => Err(error),
        None => Ok(Measured { ranks: cluster.ranks(), figures, network }),
    }
}

/// Whether ranks have more workers than hardware threads: `mpirun` may have bound each to some.
fn are_crowded(cluster: &Cluster, workers: usize, topology: &Topology) -> Result<bool, ClusterError> {
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let here = here.trim();
    let mine: Vec<String> = topology.allowed_pus().iter().map(|pu| format!("{here} {pu}")).collect();
    let all = cluster.exchange(mine.join("\n").as_bytes())?;
    let all: Vec<String> = all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    // Those of other machines have hardware threads of their own.
    let beside: Vec<&String> = all.iter().filter(|pus| pus.starts_with(&format!("{here} "))).collect();
    let pus: HashSet<&str> = beside.iter().flat_map(|pus| pus.lines()).collect();
    Ok(beside.len() * workers > pus.len())
}

/// The cluster of `ranks` ranks, of which a share is on this machine. Where all of them are, cores copy messages.
fn cluster_text(ranks: usize, network: &NetworkFigures, here: f64) -> String {
    let NetworkFigures { latency, bandwidth, foreign_task } = network;
    let copies = match here >= 1.0 {
        // The copy is all there is of a message: its way takes no time of its own.
        true => format!(" bandwidth=\"{:.3} GB/s\" copy=\"{bandwidth:.3} GB/s\"", 1000.0 * bandwidth),
        false => format!(" bandwidth=\"{bandwidth:.3} GB/s\""),
    };
    format!(
        "cluster \"these-ranks\" {{\n    nodes \"rank\" count={ranks}\n    network latency=\"{} ns\"{copies} \
         foreign-task=\"{} ns\"\n}}\n",
        latency.as_nanos(),
        foreign_task.as_nanos()
    )
}
