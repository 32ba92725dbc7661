//! A whole trace.

use super::event::{CodeletId, Event, Stamped};
use super::queues::queue_lengths;
use sched_core::{MemoryNode, TaskId};
use sched_graph::{DataId, TaskGraph};
use sched_tree::WitnessedNode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What happened in a run, with the names of all that occurs in it.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Trace {
    /// What ran: the policy, say.
    pub title: String,
    /// The workers, by number.
    pub workers: Vec<WorkerTrack>,
    /// Names of memories, by number.
    pub memories: Vec<String>,
    /// Paths of the scheduler's nodes, by number.
    pub nodes: Vec<String>,
    /// Names of codelets, by number.
    pub codelets: Vec<String>,
    /// Names of tasks that have one of their own.
    pub names: BTreeMap<TaskId, Arc<str>>,
    /// Names of data that has one.
    pub data: BTreeMap<DataId, Arc<str>>,
    /// What happened, in the order of time.
    pub events: Vec<Stamped>,
    /// When the last task ended, in nanoseconds since the first submission.
    pub end: u64,
    /// Events that there was no room for.
    pub dropped: u64,
}

/// The worker of a track.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerTrack {
    /// Its name, unique in the trace.
    pub name: String,
    /// Its class or architecture: pictures show workers of one group together.
    pub group: String,
}

impl WorkerTrack {
    /// The worker of this number in a group.
    #[must_use]
    pub fn new(id: usize, group: String) -> WorkerTrack {
        WorkerTrack { name: format!("{group} {id}"), group }
    }
}

impl Trace {
    /// A trace of the tasks of `graph`, in which nothing happens yet, and of no workers.
    #[must_use]
    pub fn of_graph(graph: &TaskGraph, title: &str) -> Trace {
        let tasks = graph.ids().zip(&graph.tasks);
        let data = (0..).map(DataId).zip(&graph.data);
        Trace {
            title: title.to_owned(),
            codelets: graph.kinds.iter().map(|kind| kind.name.clone()).collect(),
            names: tasks.filter_map(|(id, task)| Some((id.submitted(), task.name.as_deref()?.into()))).collect(),
            data: data.filter_map(|(id, datum)| Some((id, datum.name.as_deref()?.into()))).collect(),
            ..Trace::default()
        }
    }

    /// The same with these events, in any order: they are sorted, time begins with the first submission, and lengths of
    /// queues take the place of single moves.
    #[must_use]
    pub fn with_events(mut self, mut events: Vec<Stamped>) -> Trace {
        events.sort_by_key(|stamped| stamped.nanos);
        let submitted = |stamped: &&Stamped| matches!(stamped.event, Event::Submitted { .. });
        let first = events.iter().find(submitted).or(events.first()).map_or(0, |stamped| stamped.nanos);
        for stamped in &mut events {
            stamped.nanos = stamped.nanos.saturating_sub(first);
        }
        let ended = |stamped: &&Stamped| matches!(stamped.event, Event::Ended { .. });
        self.end = events.iter().rev().find(ended).map_or(0, |stamped| stamped.nanos);
        self.events = queue_lengths(events, self.nodes.len());
        self
    }

    /// The name of a task, or what stands for it.
    #[must_use]
    pub fn task_name(&self, task: TaskId) -> String {
        self.names.get(&task).map_or_else(|| task.to_string(), ToString::to_string)
    }

    /// The name of a piece of data, or what stands for it.
    #[must_use]
    pub fn data_name(&self, data: DataId) -> String {
        self.data.get(&data).map_or_else(|| format!("data {}", data.0), ToString::to_string)
    }

    /// The name of a codelet.
    #[must_use]
    pub fn codelet(&self, codelet: CodeletId) -> &str {
        self.codelets.get(codelet.index()).map_or("?", String::as_str)
    }

    /// The path of a node of the scheduler.
    #[must_use]
    pub fn node_path(&self, node: WitnessedNode) -> &str {
        self.nodes.get(node.index()).map_or("?", String::as_str)
    }

    /// The name of the link between two memories.
    #[must_use]
    pub fn link_name(&self, from: MemoryNode, to: MemoryNode) -> String {
        let name = |memory: MemoryNode| self.memories.get(memory.0 as usize).map_or("?", String::as_str);
        format!("{} → {}", name(from), name(to))
    }
}
