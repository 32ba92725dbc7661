//! Options for the machine, equal for every command.

use super::hints::PLATFORM;
use super::reports;
use super::values::{machine_name, up_to};
use clap::ValueHint;
use miette::miette;
use sched_machine::topology::{BindingPlan, Topology};
use sched_policy::{self as policy, BoundMachine};
use sched_sim::cluster::Cluster;
use sched_sim::platform::{self, MAX_WORKERS, Platform};
use std::path::PathBuf;

/// Heading of these options in a help.
const HEADING: &str = "Machine";

/// Number of workers.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct WorkerOption {
    /// Number of CPU workers [default: one for each hardware thread that may be used, less one for each device, or as
    /// the platform says]
    #[arg(long, short, value_name = "N", value_parser = up_to(MAX_WORKERS), help_heading = HEADING)]
    workers: Option<usize>,
}

impl WorkerOption {
    /// The binding of each worker; one worker for each usable hardware thread, unless a number is given.
    ///
    /// # Errors
    /// If the process may use none.
    pub(super) fn plan(self, topology: &Topology) -> miette::Result<BindingPlan> {
        // A process that may use nothing asks for at least one worker, so that the error names the true cause.
        Ok(BindingPlan::new(topology, self.count(topology).max(1))?)
    }

    /// Number of workers.
    pub(super) fn count(self, topology: &Topology) -> usize {
        self.workers.unwrap_or_else(|| BindingPlan::default_workers(topology))
    }

    /// The option beside this number of devices: the number that is given, or what their threads leave.
    pub(super) fn beside(self, devices: usize, topology: &Topology) -> WorkerOption {
        let left = || BindingPlan::default_workers_beside(topology, devices);
        WorkerOption { workers: Some(self.workers.unwrap_or_else(left)) }
    }

    /// The option for each of several programs on one machine: the number that is given, or an equal share.
    pub(super) fn shared_by(self, programs: usize, topology: &Topology) -> WorkerOption {
        let share = || (BindingPlan::default_workers(topology) / programs).max(1);
        WorkerOption { workers: Some(self.workers.unwrap_or_else(share)) }
    }
}

/// Whether the program's thread is a worker.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct MainWorkerOption {
    /// Start no thread for the last worker: the thread that submits the tasks is that worker while it waits for them
    #[arg(long)]
    pub(super) main_worker: bool,
}

/// The machine and its workers.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct MachineOptions {
    /// Described machine: the name of a shipped platform (numa-2x12, cpu9-gpu3, fat-1024), or the path of a KDL file;
    /// for `simulate` also a cluster, such as cluster:4xcpu9-gpu3 or cluster:1024x12
    #[arg(long, value_name = "NAME|FILE", help_heading = HEADING, value_parser = PLATFORM, hide_possible_values = true)]
    #[arg(conflicts_with_all = ["synthetic", "xml", "starpu_sampling"])]
    platform: Option<String>,

    /// Machine described in hwloc's synthetic language
    ///
    /// Levels from the outermost to the PUs, each with its count inside one object of the level before:
    /// "node:2 package:1 l3:1 core:8 pu:2" is 2 memory nodes of one 8-core package each, 32 PUs in all.
    /// Level names: node, package, die, group, l1 to l5, core, pu. Sizes go in parentheses:
    /// "node:2(memory=64GiB) l3:1(size=32MiB) core:8 pu:1".
    #[arg(long, value_name = "DESC", help_heading = HEADING, conflicts_with_all = ["xml", "starpu_sampling"])]
    synthetic: Option<String>,

    /// Machine in an XML file, which `lstopo FILE.xml` writes on any machine
    #[arg(long, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "starpu_sampling")]
    xml: Option<PathBuf>,

    /// Machine in this performance directory of StarPU, with the lengths of its tasks
    #[arg(long, value_name = "DIR", help_heading = HEADING, requires = "host", value_hint = ValueHint::DirPath)]
    starpu_sampling: Option<PathBuf>,

    /// Name of the machine in the performance directory
    #[arg(long, value_name = "NAME", help_heading = HEADING, requires = "starpu_sampling", value_parser = machine_name)]
    host: Option<String>,

    #[command(flatten)]
    workers: WorkerOption,
}

/// A machine, with its workers.
pub(super) enum Machine {
    /// An hwloc topology with the binding of workers.
    Topology(Box<Topology>, BindingPlan),
    /// A platform for simulations.
    Platform(Box<Platform>),
}

impl Machine {
    /// Calls `work` with it as the machine of a policy.
    pub(super) fn with<R>(&self, work: impl FnOnce(&dyn policy::Machine) -> R) -> R {
        match self {
            Machine::Topology(topology, plan) => work(&BoundMachine::new(topology, plan)),
            Machine::Platform(platform) => work(&**platform),
        }
    }
}

impl MachineOptions {
    /// The named machine, or this one.
    ///
    /// # Errors
    /// If there is no such machine, its description is invalid, or it has too few workers.
    pub(super) fn machine(&self) -> miette::Result<Machine> {
        if let Some(platform) = self.described()? {
            return Ok(Machine::Platform(Box::new(platform)));
        }
        let topology = match self.explored()? {
            Some(topology) => topology,
            None => Topology::this_machine()?,
        };
        let plan = self.workers.plan(&topology)?;
        Ok(Machine::Topology(Box::new(topology), plan))
    }

    /// The binding of each worker beside this number of devices of the machine.
    ///
    /// # Errors
    /// If the process may use none.
    pub(super) fn plan_beside(&self, devices: usize, topology: &Topology) -> miette::Result<BindingPlan> {
        self.workers.beside(devices, topology).plan(topology)
    }

    /// The named machine for a simulation, or `cpu9-gpu3`.
    ///
    /// # Errors
    /// As [`machine`](Self::machine).
    pub(super) fn platform(&self) -> miette::Result<Platform> {
        if let Some(topology) = self.explored()? {
            let plan = self.workers.plan(&topology)?;
            return Ok(Platform::from_topology(&topology, &plan)?);
        }
        match self.described()? {
            Some(platform) => Ok(platform),
            None => self.cut(platform::find("cpu9-gpu3")?),
        }
    }

    /// The named cluster for a simulation, if one is named, each node with the requested number of CPU workers.
    ///
    /// # Errors
    /// If its description is invalid, or a node has too few workers.
    pub(super) fn cluster(&self) -> miette::Result<Option<Cluster>> {
        let Some(name) = self.platform.as_ref().filter(|name| Cluster::is_named(name)) else { return Ok(None) };
        let cluster = Cluster::named(name)?;
        for (node, _) in cluster.kinds() {
            self.cut(Platform::clone(&node))?;
        }
        Ok(Some(match self.workers.workers {
            Some(count) => cluster.map(|node| node.with_cpu_workers(count)),
            None => cluster,
        }))
    }

    fn explored(&self) -> miette::Result<Option<Topology>> {
        Ok(match (&self.synthetic, &self.xml) {
            (Some(description), _) => Some(Topology::from_synthetic(description)?),
            (None, Some(path)) => Some(Topology::from_xml_file(path)?),
            (None, None) => None,
        })
    }

    fn described(&self) -> miette::Result<Option<Platform>> {
        let platform = match (&self.platform, &self.starpu_sampling, &self.host) {
            (Some(name), ..) if Cluster::is_named(name) => {
                return Err(miette!(
                    help = "`sched simulate` takes clusters; name the platform of one node here",
                    "`{name}` is a cluster, and this takes one machine"
                ));
            }
            (Some(name), ..) => platform::find(name)?,
            (None, Some(directory), Some(host)) => {
                let platform = Platform::from_starpu(directory, host)?;
                platform.left_out.iter().for_each(|problem| reports::warn(&format!("left out: {problem}")));
                platform.assumed.iter().for_each(|assumed| reports::warn(&format!("note: {assumed}")));
                platform
            }
            _ => return Ok(None),
        };
        self.cut(platform).map(Some)
    }

    /// The platform with the requested number of CPU workers.
    fn cut(&self, platform: Platform) -> miette::Result<Platform> {
        let Some(wanted) = self.workers.workers else { return Ok(platform) };
        let (name, there) = (platform.name.clone(), platform.cpu_workers());
        if wanted > there {
            return Err(miette!(
                help = format!("take --workers {there} at most, or another platform"),
                "{wanted} CPU workers are asked for, and the platform `{name}` has {there}"
            ));
        }
        Ok(platform.with_cpu_workers(wanted))
    }
}
