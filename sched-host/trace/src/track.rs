//! Traces.

use super::event::{CodeletId, Event, Note, NoteId, Stamped};
use super::queues::queue_lengths;
use sched_core::{MemoryNode, TaskId};
use sched_graph::{ContextId, DataId, TaskGraph};
use sched_text::svg::KernelColours;
use sched_tree::ObservedNode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Events of a run or a simulation, with the names of workers, tasks, data and nodes in them.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Trace {
    /// Title, such as the policy.
    pub title: String,
    /// Names of the ranks, whose workers are shown apart; empty if there is only one process.
    pub ranks: Vec<String>,
    /// Workers, by id.
    pub workers: Vec<WorkerTrack>,
    /// Names of memory nodes, by id.
    pub memories: Vec<String>,
    /// Names of the contexts, by number.
    pub contexts: Vec<String>,
    /// Paths of the nodes of the scheduler, by id.
    pub nodes: Vec<String>,
    /// Names of codelets, by id.
    pub codelets: Vec<String>,
    /// Names of the tasks that have one of their own.
    pub names: BTreeMap<TaskId, Arc<str>>,
    /// Names of the data that has one.
    pub data: BTreeMap<DataId, Arc<str>>,
    /// Faults of nodes of the scheduler, and what they logged.
    pub notes: BTreeMap<NoteId, Note>,
    /// Events, in the order of time.
    pub events: Vec<Stamped>,
    /// End of the last task in nanoseconds since the first submission.
    pub end: u64,
    /// Time of the first submission in nanoseconds since the start of the runtime.
    pub origin: u64,
    /// Number of events that were dropped for lack of room.
    pub dropped: u64,
}

/// Worker of a track.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerTrack {
    /// Name, unique in the trace.
    pub name: String,
    /// Class or architecture. Pictures show the workers of a group together.
    pub group: String,
    /// Its rank: the place in [`Trace::ranks`]. 0 if there are none.
    pub rank: u32,
}

impl WorkerTrack {
    /// The worker with this id, in a group.
    #[must_use]
    pub fn new(id: usize, group: String) -> WorkerTrack {
        WorkerTrack { name: format!("{group} {id}"), group, rank: 0 }
    }

    /// The worker with this id on a rank of this name. Pictures show the workers of a rank together.
    #[must_use]
    pub fn of_rank(rank: u32, name: &str, id: usize, class: &str) -> WorkerTrack {
        WorkerTrack { name: format!("{rank}:{class} {id}"), group: name.to_owned(), rank }
    }
}

impl Trace {
    /// A trace of the tasks of `graph`, without events and without workers.
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

    /// Sets the events, which may be in any order: they are sorted, times are made relative to the first submission,
    /// and queue lengths replace single moves.
    #[must_use]
    pub fn with_events(mut self, mut events: Vec<Stamped>) -> Trace {
        events.sort_by_key(|stamped| stamped.nanos);
        let submitted = |stamped: &&Stamped| matches!(stamped.event, Event::Submitted { .. });
        let first = events.iter().find(submitted).or(events.first()).map_or(0, |stamped| stamped.nanos);
        for stamped in &mut events {
            stamped.nanos = stamped.nanos.saturating_sub(first);
        }
        self.origin = first;
        self.events = queue_lengths(events, self.nodes.len());
        self.end = self.last_end();
        self
    }

    /// Gives tasks the names of those of `graph`, which are submitted in the same order.
    pub fn name_tasks(&mut self, graph: &TaskGraph) {
        let tasks = graph.ids().zip(&graph.tasks);
        let named = tasks.filter_map(|(id, task)| Some((id.submitted(), task.name.as_deref()?.into())));
        named.for_each(|(task, name)| _ = self.names.entry(task).or_insert(name));
    }

    /// Time of the end of its last task.
    pub(crate) fn last_end(&self) -> u64 {
        let ended = |stamped: &&Stamped| matches!(stamped.event, Event::Ended { .. });
        self.events.iter().rev().find(ended).map_or(0, |stamped| stamped.nanos)
    }

    /// Name of a task; its number if it has none.
    #[must_use]
    pub fn task_name(&self, task: TaskId) -> String {
        self.names.get(&task).map_or_else(|| task.to_string(), ToString::to_string)
    }

    /// Name of a piece of data; its number if it has none.
    #[must_use]
    pub fn data_name(&self, data: DataId) -> String {
        self.data.get(&data).map_or_else(|| format!("data {}", data.0), ToString::to_string)
    }

    /// Name of a codelet.
    #[must_use]
    pub fn codelet(&self, codelet: CodeletId) -> &str {
        self.codelets.get(codelet.index()).map_or("?", String::as_str)
    }

    /// Name of a context.
    #[must_use]
    pub fn context(&self, context: ContextId) -> &str {
        self.contexts.get(context.index()).map_or("?", String::as_str)
    }

    /// Path of a node of the scheduler.
    #[must_use]
    pub fn node_path(&self, node: ObservedNode) -> &str {
        self.nodes.get(node.index()).map_or("?", String::as_str)
    }

    /// The colours of its codelets, the same as in the picture of a graph with tasks of these kinds.
    pub(crate) fn kernel_colours(&self) -> KernelColours {
        KernelColours::of(self.codelets.iter().map(String::as_str))
    }

    /// The name of the link between two memories.
    #[must_use]
    pub fn link_name(&self, from: MemoryNode, to: MemoryNode) -> String {
        let name = |memory: MemoryNode| self.memories.get(memory.index()).map_or("?", String::as_str);
        format!("{} → {}", name(from), name(to))
    }
}
