//! The options that say which machine.

use super::values::positive;
use sched_machine::topology::{BindingPlan, Topology};
use std::path::PathBuf;

/// Where the machine's description comes from.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SourceOptions {
    /// Describe the machine in hwloc's synthetic language instead of looking at this one
    ///
    /// Levels from the outermost to the PUs, each with its count inside one object of the level before:
    /// "node:2 package:1 l3:1 core:8 pu:2" is 2 memory nodes of one 8-core package each, 32 PUs in all.
    /// Level names: node, package, die, group, l1 to l5, core, pu. Sizes go in parentheses:
    /// "node:2(memory=64GiB) l3:1(size=32MiB) core:8 pu:1".
    #[arg(long, value_name = "DESC", conflicts_with = "xml")]
    synthetic: Option<String>,

    /// Read the machine from an XML file, which `lstopo FILE.xml` writes on any machine
    #[arg(long, value_name = "FILE")]
    xml: Option<PathBuf>,
}

impl SourceOptions {
    /// The machine that they name: this one, if they name none.
    pub(super) fn explore(&self) -> miette::Result<Topology> {
        Ok(match (&self.synthetic, &self.xml) {
            (Some(description), _) => Topology::from_synthetic(description)?,
            (None, Some(path)) => Topology::from_xml_file(path)?,
            (None, None) => Topology::this_machine()?,
        })
    }
}

/// The machine, and how many workers it gets.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct MachineOptions {
    #[command(flatten)]
    source: SourceOptions,

    /// Number of CPU workers [default: one for each hardware thread of the machine that may be used]
    #[arg(long, short, value_name = "N", value_parser = positive)]
    workers: Option<usize>,
}

impl MachineOptions {
    /// The machine with a place for each worker.
    pub(super) fn plan(&self) -> miette::Result<(Topology, BindingPlan)> {
        let topology = self.source.explore()?;
        let plan = plan(&topology, self.workers)?;
        Ok((topology, plan))
    }
}

/// A place on the machine for each worker: for each PU that may be used, unless a number is given.
pub(super) fn plan(topology: &Topology, workers: Option<usize>) -> miette::Result<BindingPlan> {
    // A process that may use nothing asks for at least one worker, so that the error names the true cause.
    let workers = workers.unwrap_or_else(|| BindingPlan::default_workers(topology).max(1));
    Ok(BindingPlan::new(topology, workers)?)
}
