//! What ranks record of a run, together.

use super::super::options::Options;
use super::super::problem::Problem;
use crate::pictures::PictureFiles;
use crate::streams::Sink;
use miette::miette;
use sched_cluster::{Cluster, ClusterError};
use sched_core::Arch;
use sched_graph::ranks::{Role, Shares};
use sched_graph::{Lengths, TaskGraph};
use sched_text::hash::fnv_1a;
use sched_trace::Trace;
use sched_workloads::linalg::Precision;
use std::io::Write;
use std::time::Duration;

/// Files for what is recorded. Only rank 0 has any.
pub(in crate::run) struct Files {
    pub(in crate::run) pictures: PictureFiles,
    pub(in crate::run) record: Option<Sink>,
}

impl Files {
    /// Whether one of them is the standard output.
    pub(super) fn take_the_output(&self) -> bool {
        self.pictures.take_the_output() || self.record.as_ref().is_some_and(Sink::is_standard)
    }
}

/// What was recorded, on rank 0.
#[derive(Default)]
pub(super) struct Recorded {
    trace: Option<Trace>,
    /// For each rank the tasks that it ran, in the order of submission.
    lengths: Option<Vec<Vec<Length>>>,
}

/// Which kernel a task had, and how long it took.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Length {
    kind: u64,
    nanos: u64,
}

impl Recorded {
    /// Collects what all ranks have recorded.
    pub(super) fn collect(cluster: &Cluster, options: &Options) -> Result<Recorded, ClusterError> {
        let trace = if options.pictures.wanted() { cluster.take_trace()? } else { None };
        let lengths = match options.is_recorded() {
            false => None,
            true => cluster.collect(&lengths_of(cluster))?.map(|all| all.iter().map(|bytes| lengths(bytes)).collect()),
        };
        Ok(Recorded { trace, lengths })
    }

    /// Writes it to the files; `out` is the standard output.
    pub(super) fn write(self, problem: &Problem, files: Files, out: &mut dyn Write) -> miette::Result<()> {
        let drawn = self.trace.map_or(Ok(()), |mut trace| {
            if let Some(graph) = problem.graph() {
                trace.name_tasks(&graph);
            }
            problem.draw(&trace, files.pictures, out)
        });
        let (Some(lengths), Some(sink)) = (self.lengths, files.record) else { return drawn };
        let graph = problem.graph().and_then(|graph| measured(graph, &lengths));
        let graph = graph.map(|mut graph| {
            if problem.precision == Precision::Single {
                graph.data.iter_mut().for_each(|datum| datum.bytes /= 2);
            }
            graph
        });
        let graph = graph.ok_or_else(|| miette!("the ranks did not run the tasks that {} has", problem.workload))?;
        drawn.and(problem.record(graph, sink, out))
    }
}

/// The tasks of a rank as bytes.
fn lengths_of(cluster: &Cluster) -> Vec<u8> {
    let graph = cluster.runtime().take_graph().unwrap_or_default();
    let length = |task: &sched_graph::Task| {
        let nanos = task.lengths.get(Arch::CPU).map_or(0, |length| length.as_nanos() as u64);
        [fnv_1a(graph.kind_of(task).name.as_bytes()), nanos].map(u64::to_le_bytes).concat()
    };
    graph.tasks.iter().flat_map(length).collect()
}

fn lengths(bytes: &[u8]) -> Vec<Length> {
    let (words, _) = bytes.as_chunks::<8>();
    let (tasks, _) = words.as_chunks::<2>();
    tasks.iter().map(|task| Length { kind: u64::from_le_bytes(task[0]), nanos: u64::from_le_bytes(task[1]) }).collect()
}

/// The graph of the program, with the length of each task on the rank that ran it. `None` if it is not what the ranks
/// ran.
fn measured(mut graph: TaskGraph, lengths: &[Vec<Length>]) -> Option<TaskGraph> {
    let Shares { ranks, .. } = Shares::block_cyclic(&graph, lengths.len());
    for (share, lengths) in ranks.iter().zip(lengths) {
        let tasks = share.roles.iter().filter_map(|role| if let Role::Task(task) = role { Some(*task) } else { None });
        let tasks: Vec<_> = tasks.collect();
        if tasks.len() != lengths.len() {
            return None;
        }
        for (task, length) in tasks.into_iter().zip(lengths) {
            if fnv_1a(graph.kind_of(graph.task(task)).name.as_bytes()) != length.kind {
                return None;
            }
            graph.tasks[task.index()].lengths = Lengths::default().with(Arch::CPU, Duration::from_nanos(length.nanos));
        }
    }
    Some(graph)
}

#[cfg(test)]
mod tests {
    use super::super::super::problem::graph_of;
    use super::*;

    #[test]
    fn each_task_has_the_length_that_it_had_on_its_rank() {
        let graph = graph_of("cholesky", 3, 8).expect("there is such a graph");
        let shares = Shares::block_cyclic(&graph, 2);
        let of = |rank: usize| -> Vec<Length> {
            let tasks = shares.ranks[rank].roles.iter().filter_map(|role| match role {
                Role::Task(task) => Some(*task),
                _ => None,
            });
            let kind = |task| fnv_1a(graph.kind_of(graph.task(task)).name.as_bytes());
            tasks.map(|task| Length { kind: kind(task), nanos: 100 + u64::from(task.0) }).collect()
        };
        let found = measured(graph.clone(), &[of(0), of(1)]).expect("the ranks ran it");
        let nanos = found.tasks.iter().map(|task| task.lengths.get(Arch::CPU).map(|length| length.as_nanos()));
        assert!(nanos.eq((100..110).map(Some)), "{:?}", found.tasks);
        // Others than those of the graph.
        assert_eq!(measured(graph.clone(), &[of(0), of(0)]), None);
        assert_eq!(measured(graph.clone(), &[of(0), Vec::new()]), None);
    }
}
