//! What a simulation is of: a graph, a machine, and what is paid.

use crate::graph_source::Sizes;
use crate::values::{machine_name, share};
use sched_graph::TaskGraph;
use sched_graph::priorities::Priorities;
use sched_sim::platform::{self, Costs, Platform};
use sched_sim::prioritise;
use std::path::PathBuf;
use std::sync::Arc;

/// Which graph, on which machine.
#[derive(clap::Args, Clone, Debug)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["workload", "graph"]))]
pub(crate) struct Setup {
    /// cholesky, lu, qr, stencil, fork-join, layered or independent; or a graph file (`-` is standard input)
    #[arg(value_name = "WORKLOAD")]
    workload: Option<String>,

    /// The graph in this file, even if it is called like a generated one (`-` is standard input)
    #[arg(long, value_name = "FILE")]
    graph: Option<String>,

    #[command(flatten)]
    sizes: Sizes,

    /// The machine: the name of a shipped platform, or the path of a KDL file
    #[arg(long, value_name = "NAME|FILE", default_value = "cpu9-gpu3")]
    platform: String,

    /// Take machine and lengths of tasks from this performance directory of StarPU
    #[arg(long, value_name = "DIR", requires = "host", conflicts_with = "platform")]
    starpu_sampling: Option<PathBuf>,

    /// The machine in the performance directory
    #[arg(long, value_name = "NAME", requires = "starpu_sampling", value_parser = machine_name)]
    host: Option<String>,

    /// Which costs beside kernels are paid
    #[arg(long, value_enum, default_value_t = CostsOption::Default)]
    pub(crate) costs: CostsOption,

    /// Let teams of CPU workers execute tasks together, where the platform does not say how: so large a share of each, from
    /// 0 to 1, is divided among the members. For policies with combined workers, such as tree-pheft
    #[arg(long, value_name = "SHARE", value_parser = share)]
    parallel: Option<f64>,

    /// Where the priorities of tasks come from
    #[arg(long, value_enum, default_value_t = PrioritiesOption::AsGiven)]
    priorities: PrioritiesOption,

    /// Seed of generated graphs, and of whatever components leave to chance
    #[arg(long, value_name = "SEED", default_value_t = 42)]
    pub(crate) seed: u64,
}

/// `--costs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CostsOption {
    /// All that the platform says
    Default,
    /// Transfers only
    NoOverhead,
    /// None: data moves in no time, although schedulers expect what transfers would take
    NoTransfer,
}

/// `--priorities`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum PrioritiesOption {
    /// As the graph gives them
    AsGiven,
    /// None: all alike
    None,
    /// The longest chain that begins with the task, with mean lengths and transfers (HEFT's rank)
    UpwardRank,
    /// The longest chain that begins with the task, each task where it is fastest
    CriticalPath,
}

impl Setup {
    /// The graph with its priorities, and the platform with its costs.
    ///
    /// # Errors
    /// When one of them is not there or wrong.
    pub(crate) fn load(&self) -> miette::Result<(Arc<TaskGraph>, Arc<Platform>)> {
        let mut graph = match (&self.graph, &self.workload) {
            (Some(file), _) => self.sizes.file(file)?,
            (None, workload) => self.sizes.graph(workload.as_deref().unwrap_or_default(), self.seed)?,
        };
        let platform = match (&self.starpu_sampling, &self.host) {
            (Some(directory), Some(host)) => Platform::from_starpu(directory, host)?,
            _ => platform::find(&self.platform)?,
        };
        let platform = platform.with_costs(match self.costs {
            CostsOption::Default => Costs::Default,
            CostsOption::NoOverhead => Costs::NoOverhead,
            CostsOption::NoTransfer => Costs::NoTransfer,
        });
        let platform = match self.parallel {
            Some(share) => platform.with_parallel(share),
            None => platform,
        };
        match self.priorities {
            PrioritiesOption::AsGiven => {}
            PrioritiesOption::None => graph.tasks.iter_mut().for_each(|task| task.priority = 0),
            PrioritiesOption::UpwardRank => prioritise(&mut graph, &platform, Priorities::UpwardRank)?,
            PrioritiesOption::CriticalPath => prioritise(&mut graph, &platform, Priorities::CriticalPath)?,
        }
        Ok((Arc::new(graph), Arc::new(platform)))
    }
}
