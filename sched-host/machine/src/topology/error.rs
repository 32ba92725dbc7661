//! Errors of topologies and of binding, each with its fix.

use std::path::PathBuf;

use miette::{Diagnostic, LabeledSpan, SourceCode};
use sched_text::Finding;

use super::MOST_MEMORY_NODES;

use super::source::Source;
use super::synthetic::SyntheticProblem;

/// Why a [`Topology`](super::Topology) could not be created.
#[derive(thiserror::Error)]
pub enum TopologyError {
    /// hwloc could not inspect this machine.
    #[error("cannot discover the topology of this machine: {why}")]
    Discovery {
        /// hwloc's message.
        why: String,
    },
    /// A synthetic description that is invalid or too large.
    #[error("synthetic topology {description:?}: {}", list(description, problems))]
    Synthetic {
        /// The description.
        description: String,
        /// Everything wrong with it, at least one problem.
        problems: Vec<SyntheticProblem>,
    },
    /// The XML file cannot be opened or is not text.
    #[error("cannot read topology file {path}: {why}", path = path.display())]
    UnreadableXml {
        /// The file.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// The file exists, but is not a topology.
    #[error("topology file {path} is not a topology that the installed hwloc understands: {why}", path = path.display())]
    BadXml {
        /// The file.
        path: PathBuf,
        /// Its problems with their places, or hwloc's message.
        why: Box<Finding>,
    },
}

/// Length in bytes of the longest description that is drawn with its problems.
const LONGEST_DRAWN: usize = 4096;

fn list(description: &str, problems: &[SyntheticProblem]) -> String {
    let column = |offset| description.get(..offset).map_or(offset, |before: &str| before.chars().count()) + 1;
    let reported = problems.iter().map(|p| format!("column {}: {}", column(p.offset), p.what));
    reported.collect::<Vec<_>>().join("; ")
}

impl Diagnostic for TopologyError {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        let fix = match self {
            Self::Discovery { .. } => {
                "try `lstopo`; if that works, save its result with `lstopo machine.xml` and read that file instead"
            }
            Self::Synthetic { .. } => {
                "write the levels from the outermost to `pu`, each with its count inside one object of the level \
                 before, such as \"node:2 package:1 l3:1 core:8 pu:2\""
            }
            Self::UnreadableXml { .. } => {
                "check the path; on the machine to describe, `lstopo machine.xml` writes such a file"
            }
            Self::BadXml { .. } => {
                "write it again with `lstopo machine.xml` on the machine to describe (with hwloc 3 or later, \
                 add `--export-xml-flags v2`)"
            }
        };
        Some(Box::new(fix))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        match self {
            Self::Synthetic { description, .. } => Some(description),
            Self::BadXml { why, .. } => why.source_code(),
            _ => None,
        }
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (description, problems) = match self {
            Self::Synthetic { description, problems } => (description, problems),
            Self::BadXml { why, .. } => return why.labels(),
            _ => return None,
        };
        // A drawing of more would fill the screen; the message has the columns.
        if description.len() > LONGEST_DRAWN {
            return None;
        }
        Some(Box::new(problems.iter().map(|p| LabeledSpan::new(Some(p.what.clone()), p.offset, p.length))))
    }
}

fn memory_nodes_help(nodes: usize) -> String {
    match nodes > MOST_MEMORY_NODES {
        true => format!("there are at most {MOST_MEMORY_NODES} memory nodes, each with a worker: ask for fewer"),
        false => "each memory node needs a worker: ask for fewer memory nodes, or for more workers".to_owned(),
    }
}

/// Why a [`BindingPlan`](super::BindingPlan) could not be created, or a thread not be bound.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum BindingError {
    /// A plan for zero workers.
    #[error("0 workers were asked for, but a plan needs at least 1")]
    #[diagnostic(help("leave the number out to get one worker for each PU that may be used"))]
    NoWorkers,
    /// The process may use no PU of the topology.
    #[error("{source_name} has no PU that this process may use")]
    #[diagnostic(help("check the affinity mask (`taskset -p $$`) and the cgroup's `cpuset.cpus.effective`"))]
    NoAllowedPu {
        /// The topology.
        source_name: Source,
    },
    /// The workers cannot be distributed over this many memory nodes.
    #[error("{nodes} memory nodes were asked for, expected 1 to {} for {workers} workers", workers.min(&MOST_MEMORY_NODES))]
    #[diagnostic(help("{}", memory_nodes_help(*nodes)))]
    MemoryNodes {
        /// Number of nodes requested.
        nodes: usize,
        /// Number of workers.
        workers: usize,
    },
    /// The plan has no such worker.
    #[error("worker {worker} does not exist: the plan is for {workers} workers, numbered from 0")]
    #[diagnostic(help("make the plan for as many workers as will be started"))]
    UnknownWorker {
        /// The worker requested.
        worker: usize,
        /// Number of workers.
        workers: usize,
    },
    /// The plan is for another machine than the one this process runs on.
    #[error("worker {worker} cannot be bound: the plan is for {source_name}, not for this machine")]
    #[diagnostic(help("run on the topology of this machine, or only simulate on the other"))]
    NotThisMachine {
        /// The worker to be bound.
        worker: usize,
        /// The topology of the plan.
        source_name: Source,
    },
    /// The operating system refused.
    #[error("worker {worker} cannot be bound to PU {pu}: {why}")]
    #[diagnostic(help("the mask or cgroup of the process may have changed since the plan was made; make it again"))]
    Refused {
        /// The worker to be bound.
        worker: usize,
        /// Its PU.
        pu: u32,
        /// hwloc's message.
        why: String,
    },
}

sched_text::debug_as_text!(TopologyError, BindingError);
