//! `sched platform ranks`: several ranks, and the network between them, as a cluster.

use super::{figures_of, first_line};
use crate::machine::WorkerOption;
use crate::policy::PolicyOptions;
use crate::progress::Progress;
use crate::ranks::{Ranks, shared_cores};
use crate::values::positive;
use crate::variables::variable;
use miette::{IntoDiagnostic, WrapErr, miette};
use sched_cluster::{Cluster, ClusterError};
use sched_machine::topology::{BindingPlan, Topology};
use sched_runtime::Runtime;
use sched_sim::Platform;
use sched_tree::plugin::Registry;
use sched_workloads::bench::{Calibrated, Calibration, NetworkFigures, calibrate_on_ranks, network};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Measure several ranks and the messages between them, and write the cluster by which `simulate` knows them
///
/// Start it with `mpirun`, as the program that is to be simulated, and with its policy: the order of tasks decides what
/// they find in caches. All ranks factorise matrices together, by which kernels are measured; a chain of tasks between
/// two ranks shows what messages cost. Ranks that share a machine exchange messages by copies that their cores make,
/// and so does the simulation. Where they have more workers than there are hardware threads, kernels are measured by
/// the time of the processor, and the nodes of the cluster share its cores.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  mpirun -n 2 sched platform ranks -w 1 --policy tree-prio > two.kdl
  mpirun -n 2 sched run cholesky -w 1 --policy tree-prio
  sched simulate cholesky --platform two.kdl --policy tree-prio")]
pub(super) struct RanksArgs {
    /// Number of ranks, in a program that is not started by `mpirun`
    #[arg(long, value_name = "N", value_parser = positive)]
    ranks: Option<usize>,

    #[command(flatten)]
    policies: PolicyOptions,

    #[command(flatten)]
    workers: WorkerOption,

    /// Rows of the tiles that kernels are measured with, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "64,128,256,512", value_parser = positive)]
    tile_sizes: Vec<usize>,
}

/// What all ranks have measured, on rank 0.
struct Measured {
    ranks: usize,
    /// Number of cores that ranks of this machine share.
    cores: Option<usize>,
    figures: Calibrated,
    network: NetworkFigures,
}

/// Measures, and writes the cluster to `out` on rank 0.
///
/// # Errors
/// If a rank cannot measure, or `out` cannot be written.
pub(super) fn run(args: &RanksArgs, registry: &Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let ranks = Ranks::of(args.ranks, variable)?;
    let ranks = ranks.ok_or_else(|| {
        miette!(
            help = "start it with `mpirun -n 2 sched platform ranks`, or say --ranks 2",
            "this is one process, and no number of ranks is given"
        )
    })?;
    let topology = Topology::this_machine()?;
    let workers = args.workers.shared_by(ranks.here(), &topology).count(&topology);
    let policies = args.policies.several()?;
    let [policy] = &*policies else {
        return Err(miette!("kernels are measured with one policy, and {} are given", policies.len()));
    };
    let wanted = Calibration {
        policy: policy.clone(),
        workers,
        bind: false,
        tile_sizes: args.tile_sizes.clone(),
        devices: Vec::new(),
    };
    let start = || {
        let builder = Runtime::builder().registry(Arc::clone(registry)).policy(&wanted.policy);
        builder.workers(workers).topology(topology.clone()).bind(false).capture_graph().build()
    };
    let body = |cluster: &Cluster| measure(cluster, &wanted, registry, &topology);
    let Measured { ranks: count, cores, figures, network } = match ranks.launch(start, body)? {
        Ok(measured) => measured,
        Err(code) => return Ok(code),
    };
    let plan = BindingPlan::new(&topology, workers)?;
    let platform = Platform::describe("rank", &topology, &plan, &figures_of(figures));
    let text = format!("{}\n{platform}", cluster_text(count, &network, ranks.here(), cores));
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
    let cores = shared_cores(cluster, wanted.workers, topology)?;
    if cores.is_some() {
        // How long kernels take where each has a core: simulations share cores themselves.
        cluster.runtime().capture_processor_time();
    }
    let figures = match cluster.rank() {
        0 => Progress::new(false, false)
            .share("measuring", |progress| calibrate_on_ranks(cluster, wanted, registry, progress)),
        _ => calibrate_on_ranks(cluster, wanted, registry, |_| {}),
    };
    let figures = figures.map_err(|error| ClusterError::Failed(vec![error.to_string()]))?;
    Ok(Measured { ranks: cluster.ranks(), cores, figures, network })
}

/// The cluster of `ranks` ranks, of which some are on this machine, and perhaps share its cores. Where all of them are,
/// cores copy messages.
fn cluster_text(ranks: usize, network: &NetworkFigures, here: usize, cores: Option<usize>) -> String {
    let NetworkFigures { latency, message, bandwidth, foreign_task } = network;
    let copies = match here >= ranks {
        // The copy is all there is of a message: its way takes no time of its own.
        true => {
            let (wire, receive) = (1000.0 * bandwidth, message.as_nanos());
            format!(" bandwidth=\"{wire:.3} GB/s\" receive=\"{receive} ns\" copy=\"{bandwidth:.3} GB/s\"")
        }
        false => format!(" bandwidth=\"{bandwidth:.3} GB/s\""),
    };
    let shared = cores.map_or_else(String::new, |cores| format!(" cores={cores}"));
    // As many on each machine; those of one share its cores.
    let together = if cores.is_some() { here.clamp(1, ranks) } else { ranks };
    let machines = (0..ranks).step_by(together).map(|first| together.min(ranks - first));
    let nodes: String = machines.map(|count| format!("    nodes \"rank\" count={count}{shared}\n")).collect();
    format!(
        "cluster \"these-ranks\" {{\n{nodes}    network latency=\"{} ns\"{copies} \
         foreign-task=\"{} ns\"\n}}\n",
        latency.as_nanos(),
        foreign_task.as_nanos()
    )
}
