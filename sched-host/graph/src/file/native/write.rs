//! Writing a graph in the native format.

use super::{FORMAT, VERSION, mode_name};
use crate::{Dependencies, Summary, Task, TaskGraph, TaskId};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// Writes `graph` in the native format, which [`parse`](crate::parse()) reads.
///
/// The text is one JSON object. Each kind, piece of data and task has a line of its own, for line tools and error
/// messages. Members:
///
/// - `format` is `sched-task-graph`, `version` is 1, and `name` is the name of the graph;
/// - `kinds` are the kinds of tasks: each has a `name`, and `runs` is false where such tasks do nothing;
/// - `data`: each has a `name` or none, its size in `bytes`, and the memory node that is its `home`;
/// - `tasks`, in the order of submission: each has a `kind` (its name, or its place in `kinds` where several have that
///   name), `name`, `priority`, `context`, `where` (architectures and workers: `cpu+cuda`, `0-3`), `sched_data`,
///   `footprint`, `flops`, `seconds` by architecture, `accesses` (the place of
///   the data and the mode: `read`, `write`, `read-write`, `commute` or `scratch`), and the tasks that it comes `after`
///   explicitly;
/// - `wont_use`: the place of `data` that is not used any more once `submitted` tasks have been submitted.
///
/// All members but `format`, `version`, `tasks` and the kind of a task may be left out; without `kinds`, the kinds are
/// those that the tasks name. For other readers there are also a `summary`, and for each task its `id` (its place, from
/// 0) and the tasks that it `waits_for`, because of its accesses or explicitly. A file in which these contradict the
/// rest is refused, as is one that has a member twice in an object.
///
/// Lengths are kept to the nanosecond up to 20 days.
///
/// # Panics
/// Never: a graph has only keys that JSON can hold.
#[must_use]
pub fn to_json(graph: &TaskGraph, dependencies: &Dependencies) -> String {
    let mut names = HashSet::new();
    let ambiguous: HashSet<&str> =
        graph.kinds.iter().map(|kind| &*kind.name).filter(|name| !names.insert(*name)).collect();
    let kinds = graph.kinds.iter().map(|kind| line(&KindRow { name: &kind.name, runs: kind.runs }));
    let data = graph
        .data
        .iter()
        .map(|datum| line(&DataRow { name: datum.name.as_deref(), bytes: datum.bytes, home: datum.home.0 }));
    let tasks = graph.ids().zip(&graph.tasks).map(|(id, task)| {
        let name = &*graph.kind_of(task).name;
        let kind = if ambiguous.contains(name) { KindRef::Place(task.kind.0) } else { KindRef::Name(name) };
        line(&TaskRow::of(id, task, kind, dependencies))
    });
    let wont_use = graph.wont_use.iter().map(|hint| line(&HintRow { submitted: hint.submitted, data: hint.data.0 }));
    format!(
        "{{\n  \"format\": \"{FORMAT}\",\n  \"version\": {VERSION},\n  \"name\": {},\n  \"summary\": {},\n  \"kinds\": {},\n  \
         \"data\": {},\n  \"tasks\": {},\n  \"wont_use\": {}\n}}\n",
        line(&graph.name),
        line(&Summary::of(graph, dependencies)),
        list(kinds),
        list(data),
        list(tasks),
        list(wont_use),
    )
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("all keys are strings")
}

/// An array with a line for each element.
fn list(elements: impl Iterator<Item = String>) -> String {
    let mut text = String::from("[");
    for (place, element) in elements.enumerate() {
        text.push_str(if place == 0 { "\n    " } else { ",\n    " });
        text.push_str(&element);
    }
    text.push_str(if text.len() == 1 { "]" } else { "\n  ]" });
    text
}

#[derive(Serialize)]
struct KindRow<'g> {
    name: &'g str,
    runs: bool,
}

#[derive(Serialize)]
struct DataRow<'g> {
    name: Option<&'g str>,
    bytes: u64,
    home: u32,
}

#[derive(Serialize)]
#[serde(untagged)]
enum KindRef<'g> {
    Name(&'g str),
    Place(u32),
}

#[derive(Serialize)]
struct TaskRow<'g> {
    id: u32,
    kind: KindRef<'g>,
    name: Option<&'g str>,
    priority: i32,
    context: u16,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    only: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    sched_data: u64,
    footprint: Option<u32>,
    flops: f64,
    /// By architecture.
    seconds: BTreeMap<String, f64>,
    accesses: Vec<AccessRow>,
    after: Vec<u32>,
    waits_for: Vec<u32>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct AccessRow {
    data: u32,
    mode: &'static str,
}

#[derive(Serialize)]
struct HintRow {
    submitted: u32,
    data: u32,
}

impl<'g> TaskRow<'g> {
    fn of(id: TaskId, task: &'g Task, kind: KindRef<'g>, dependencies: &Dependencies) -> TaskRow<'g> {
        let lengths = task.lengths.archs();
        let seconds = lengths.iter().filter_map(|arch| Some((arch.to_string(), task.lengths.get(arch)?.as_secs_f64())));
        let accesses = task.accesses.iter();
        TaskRow {
            id: id.0,
            kind,
            name: task.name.as_deref(),
            priority: task.priority,
            context: task.context.0,
            only: task.only.as_ref().map(|places| places.to_string()),
            sched_data: task.sched_data,
            footprint: task.footprint,
            flops: task.flops,
            seconds: seconds.collect(),
            accesses: accesses.map(|access| AccessRow { data: access.data.0, mode: mode_name(access.mode) }).collect(),
            after: task.after.iter().map(|before| before.0).collect(),
            waits_for: dependencies.predecessors(id).iter().map(|before| before.0).collect(),
        }
    }
}
