//! A graph for programs.

use crate::{AccessMode, Dependencies, Summary, TaskGraph};
use serde::Serialize;

/// Everything about the graph: its summary, kinds, data and tasks, with what each waits for.
///
/// # Panics
/// Never: the graph has no keys that JSON could not hold.
#[must_use]
pub fn json(graph: &TaskGraph, dependencies: &Dependencies) -> String {
    let data = graph.data.iter().map(|datum| DataRow { name: datum.name.as_deref(), bytes: datum.bytes });
    let tasks = graph.ids().zip(&graph.tasks).map(|(id, task)| TaskRow {
        id: id.0,
        kind: &graph.kind_of(task).name,
        name: task.name.as_deref(),
        priority: task.priority,
        footprint: task.footprint,
        flops: task.flops,
        seconds: task
            .lengths
            .archs()
            .iter()
            .filter_map(|arch| Some((arch.to_string(), task.lengths.get(arch)?.as_secs_f64())))
            .collect(),
        accesses: task
            .accesses
            .iter()
            .map(|access| AccessRow { data: access.data.0, mode: mode(access.mode) })
            .collect(),
        waits_for: dependencies.predecessors(id).iter().map(|before| before.0).collect(),
    });
    let document = Document { summary: Summary::of(graph, dependencies), data: data.collect(), tasks: tasks.collect() };
    let mut text = serde_json::to_string_pretty(&document).expect("all keys are strings, and all numbers finite");
    text.push('\n');
    text
}

const fn mode(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::Read => "read",
        AccessMode::Write => "write",
        AccessMode::ReadWrite => "read-write",
        AccessMode::Commute => "commute",
        AccessMode::Scratch => "scratch",
    }
}

#[derive(Serialize)]
struct Document<'g> {
    summary: Summary,
    data: Vec<DataRow<'g>>,
    tasks: Vec<TaskRow<'g>>,
}

#[derive(Serialize)]
struct DataRow<'g> {
    name: Option<&'g str>,
    bytes: u64,
}

#[derive(Serialize)]
struct TaskRow<'g> {
    id: u32,
    kind: &'g str,
    name: Option<&'g str>,
    priority: i32,
    footprint: Option<u32>,
    flops: f64,
    /// By architecture.
    seconds: std::collections::BTreeMap<String, f64>,
    accesses: Vec<AccessRow>,
    waits_for: Vec<u32>,
}

#[derive(Serialize)]
struct AccessRow {
    data: u32,
    mode: &'static str,
}
