//! Input of a simulation: graph, machine and costs.

use crate::graph_source::GraphOptions;
use crate::machine::MachineOptions;
use crate::values::{SeedOption, share};
use sched_graph::TaskGraph;
use sched_graph::priorities::Priorities;
use sched_sim::platform::{Costs, Platform};
use sched_sim::prioritise;
use std::sync::Arc;

/// The graph and the machine.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Setup {
    #[command(flatten)]
    graph: GraphOptions,

    #[command(flatten)]
    machine: MachineOptions,

    /// Costs that are simulated besides kernels
    #[arg(long, value_enum, default_value_t = CostsOption::Default)]
    pub(crate) costs: CostsOption,

    /// Parallel fraction of every task, from 0 to 1, that teams of CPU workers divide among them (Amdahl's law), where
    /// the platform defines none. For policies with combined workers, such as tree-pheft
    #[arg(long, value_name = "SHARE", value_parser = share)]
    parallel: Option<f64>,

    /// Source of task priorities
    #[arg(long, value_enum, default_value_t = PrioritiesOption::AsGiven)]
    priorities: PrioritiesOption,

    #[command(flatten)]
    pub(crate) seed: SeedOption,
}

/// `--costs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CostsOption {
    /// All costs of the platform
    Default,
    /// Transfers only
    NoOverhead,
    /// None: data moves in no time; schedulers still expect transfer times
    NoTransfer,
}

/// `--priorities`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum PrioritiesOption {
    /// As the graph gives them
    AsGiven,
    /// None: all tasks are equally urgent
    None,
    /// The longest chain that begins with the task, with mean lengths and transfers (HEFT's rank)
    UpwardRank,
    /// The longest chain that begins with the task, each task where it is fastest
    CriticalPath,
}

impl Setup {
    /// Reads the graph with its priorities, and the platform with its costs.
    ///
    /// # Errors
    /// If one of them is missing or invalid.
    pub(super) fn load(&self) -> miette::Result<(TaskGraph, Arc<Platform>)> {
        let mut graph = self.graph.load(self.seed.seed)?;
        let platform = self.machine.platform()?.with_costs(match self.costs {
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
        Ok((graph, Arc::new(platform)))
    }
}
