//! The native format: task graphs in JSON.

#[cfg(test)]
mod tests;
mod waits_for;
mod write;

pub use write::to_json;

use super::json::{Operations, Seconds, Signed, Truth, Whole, Word};
use super::json::{Shape, bytes, document, member, needed, nothing, refuse_others, shaped};
use super::problems::{Found, Problems, quote};
use crate::{
    Access, AccessMode, ContextId, DataId, Datum, Kind, KindId, Lengths, Task, TaskGraph, TaskId, Where, WontUse,
};
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use sched_core::{Arch, MemoryNode};
use std::collections::HashMap;
use waits_for::Claims;

/// Value of the member `format`.
const FORMAT: &str = "sched-task-graph";

/// The only version.
const VERSION: u64 = 1;

/// Names of modes.
const MODES: [(&str, AccessMode); 6] = [
    ("read", AccessMode::Read),
    ("write", AccessMode::Write),
    ("read-write", AccessMode::ReadWrite),
    ("commute", AccessMode::Commute),
    ("redux", AccessMode::Redux),
    ("scratch", AccessMode::Scratch),
];

fn mode_name(mode: AccessMode) -> &'static str {
    MODES.iter().find(|(_, known)| *known == mode).map_or("read-write", |(name, _)| name)
}

/// Whether a JSON text declares this format.
pub(super) fn is_named(text: &str) -> bool {
    text.contains(&format!("\"{FORMAT}\""))
}

pub(super) fn parse(text: &str) -> Result<TaskGraph, Found> {
    let mut problems = Problems::new(text);
    let Some(document) = document(text, &mut problems) else {
        return Err(if problems.is_empty() {
            nothing("a task graph is a JSON object with `\"format\": \"sched-task-graph\"`")
        } else {
            problems.done()
        });
    };
    match read(&document, &mut problems) {
        Some(graph) if problems.is_empty() => Ok(graph),
        _ => Err(problems.done()),
    }
}

fn read<'t>(document: &Value<'t>, problems: &mut Problems<'t>) -> Option<TaskGraph> {
    let root: &Object<'t> = shaped(document, "the document", problems)?;
    let format: Word<'_> = needed(root, "format", problems)?;
    if format.text != FORMAT {
        let message = format!("`format` is {}: `{FORMAT}` is expected", quote(format.text));
        problems.report_at(bytes(format.range), message, None);
        return None;
    }
    let Whole(version) = needed(root, "version", problems)?;
    if version != VERSION {
        let place = root.get("version").map_or(root.range, |property| property.value.range());
        let help = "a later version of the program reads it".to_owned();
        problems.report_at(bytes(place), format!("`version` is {version}: {VERSION} is expected"), Some(help));
        return None;
    }
    let members = ["format", "version", "name", "summary", "kinds", "data", "tasks", "wont_use"];
    refuse_others(root, &members, problems);
    let mut graph = TaskGraph::new(optional::<Word<'_>>(root, "name", problems).map_or("", |name| name.text));
    let mut kinds = Kinds::read(root, &mut graph, problems);
    for datum in objects(root, "data", problems) {
        graph.data.push(read_datum(datum, problems));
    }
    if root.get("tasks").is_none() {
        needed::<&[Value<'t>]>(root, "tasks", problems);
    }
    let mut claims = Claims::default();
    for task in objects(root, "tasks", problems) {
        claims.read(task, graph.tasks.len(), problems);
        // An invalid one keeps its place, so that the numbers of the others stay valid.
        let task = read_task(task, &mut kinds, &mut graph, problems).unwrap_or_else(|| Task::new(KindId(0)));
        graph.tasks.push(task);
    }
    for hint in objects(root, "wont_use", problems) {
        refuse_others(hint, &["submitted", "data"], problems);
        let submitted = place(hint, "submitted", graph.tasks.len() + 1, "task", problems);
        let data = place(hint, "data", graph.data.len(), "data", problems);
        graph.wont_use.extend(submitted.zip(data).map(|(submitted, data)| WontUse { submitted, data: DataId(data) }));
    }
    if problems.is_empty() {
        claims.check(&graph, problems);
    }
    Some(graph)
}

/// The kinds, by name.
struct Kinds<'v> {
    /// The first of each name, and the second if there are several.
    by_name: HashMap<&'v str, (KindId, Option<KindId>)>,
    /// Whether the file lists them.
    listed: bool,
}

impl<'v> Kinds<'v> {
    fn read<'t>(root: &'v Object<'t>, graph: &mut TaskGraph, problems: &mut Problems<'t>) -> Kinds<'v> {
        let mut kinds = Kinds { by_name: HashMap::new(), listed: root.get("kinds").is_some() };
        for kind in objects(root, "kinds", problems) {
            refuse_others(kind, &["name", "runs"], problems);
            let name = needed::<Word<'v>>(kind, "name", problems).map_or("", |name| name.text);
            let runs = optional::<Truth>(kind, "runs", problems).is_none_or(|Truth(runs)| runs);
            let id = KindId(graph.kinds.len() as u32);
            kinds.by_name.entry(name).and_modify(|(_, second)| *second = second.or(Some(id))).or_insert((id, None));
            graph.kinds.push(Kind { name: name.to_owned(), runs });
        }
        kinds
    }

    /// The kind that a task names.
    fn of_task<'t>(
        &mut self,
        task: &'v Object<'t>,
        graph: &mut TaskGraph,
        problems: &mut Problems<'t>,
    ) -> Option<KindId> {
        if task.get("kind").is_some_and(|kind| kind.value.as_number_lit().is_some()) {
            return place(task, "kind", graph.kinds.len(), "kind", problems).map(KindId);
        }
        let word: Word<'v> = needed(task, "kind", problems)?;
        match self.by_name.get(word.text) {
            Some((known, None)) => return Some(*known),
            Some((first, Some(second))) => {
                let message = format!("`kinds` has several kinds {}", quote(word.text));
                let help =
                    format!("write the place of the one that is meant: {}, {} or a later one", first.0, second.0);
                problems.report_at(bytes(word.range), message, Some(help));
                return None;
            }
            None => {}
        }
        if self.listed {
            let near = self.by_name.keys().map(|known| (sched_text::distance(known, word.text), *known));
            // Looking at all kinds for each of many tasks takes too long.
            let near = if problems.count() < 10 { near.min().filter(|(distance, _)| *distance <= 2) } else { None };
            let help = near.map(|(_, near)| format!("did you mean `{near}`?"));
            problems.report_at(bytes(word.range), format!("there is no kind {} in `kinds`", quote(word.text)), help);
            return None;
        }
        let kind = graph.add_kind(word.text);
        self.by_name.insert(word.text, (kind, None));
        Some(kind)
    }
}

fn read_datum<'t>(datum: &Object<'t>, problems: &mut Problems<'t>) -> Datum {
    refuse_others(datum, &["name", "bytes", "home"], problems);
    let size = needed::<Whole>(datum, "bytes", problems).map_or(0, |Whole(size)| size);
    let home = optional::<Node>(datum, "home", problems).map_or(MemoryNode(0), |Node(home)| home);
    let name = optional::<Word<'_>>(datum, "name", problems).map(|name| name.text.into());
    Datum { name, bytes: size, home }
}

/// The next task of `graph`, which has its data and the tasks before it.
fn read_task<'v, 't>(
    task: &'v Object<'t>,
    kinds: &mut Kinds<'v>,
    graph: &mut TaskGraph,
    problems: &mut Problems<'t>,
) -> Option<Task> {
    const MEMBERS: [&str; 13] = [
        "id",
        "kind",
        "name",
        "priority",
        "context",
        "where",
        "sched_data",
        "footprint",
        "flops",
        "seconds",
        "accesses",
        "after",
        "waits_for",
    ];
    refuse_others(task, &MEMBERS, problems);
    let number = graph.tasks.len();
    if let Some(Whole(id)) = optional(task, "id", problems)
        && id != number as u64
    {
        let message = format!("this is task {id}, where task {number} is expected: tasks are numbered from 0");
        let range = task.get("id").map_or(task.range, |property| property.value.range());
        problems.report_at(bytes(range), message, None);
    }
    let kind = kinds.of_task(task, graph, problems);
    let mut read = Task::new(kind.unwrap_or(KindId(0)));
    read.name = optional::<Word<'_>>(task, "name", problems).map(|name| name.text.into());
    read.priority = optional::<Signed>(task, "priority", problems).map_or(0, |Signed(priority)| priority);
    read.context =
        optional::<Short>(task, "context", problems).map_or(ContextId::DEFAULT, |Short(context)| ContextId(context));
    read.only = places(task, problems).map(Box::new);
    read.sched_data = optional::<Whole>(task, "sched_data", problems).map_or(0, |Whole(data)| data);
    read.footprint = optional::<Footprint>(task, "footprint", problems).map(|Footprint(footprint)| footprint);
    read.flops = optional::<Operations>(task, "flops", problems).map_or(0.0, |Operations(flops)| flops);
    read.lengths = lengths(task, problems);
    for access in objects(task, "accesses", problems) {
        refuse_others(access, &["data", "mode"], problems);
        let data = place(access, "data", graph.data.len(), "data", problems);
        let mode = mode(access, problems);
        read.accesses.extend(data.zip(mode).map(|(data, mode)| Access { data: DataId(data), mode }));
    }
    for before in optional::<&[Value<'t>]>(task, "after", problems).unwrap_or_default() {
        let Some(Whole(before_number)) = shaped(before, "after", problems) else { continue };
        if before_number < number as u64 {
            read.after.push(TaskId(before_number as u32));
        } else {
            let message = format!("task {number} comes after task {before_number}, which is not before it");
            let help = "tasks stand in the order of submission, and wait for earlier ones only".to_owned();
            problems.report_at(bytes(before.range()), message, Some(help));
        }
    }
    kind.map(|_| read)
}

fn places<'t>(task: &Object<'t>, problems: &mut Problems<'t>) -> Option<Where> {
    let word: Word<'_> = optional(task, "where", problems)?;
    match word.text.parse() {
        Ok(places) => Some(places),
        Err(message) => {
            problems.report_at(bytes(word.range), message, None);
            None
        }
    }
}

fn lengths<'t>(task: &Object<'t>, problems: &mut Problems<'t>) -> Lengths {
    let mut lengths = Lengths::default();
    let Some(seconds) = optional::<&Object<'t>>(task, "seconds", problems) else { return lengths };
    for property in &seconds.properties {
        let name = property.name.as_str();
        let length = shaped::<Seconds>(&property.value, name, problems);
        match (Arch::from_name(name), length) {
            (Some(arch), Some(Seconds(length))) => lengths = lengths.with(arch, length),
            (Some(_), None) => {}
            (None, _) => {
                let message = format!("there is no architecture {}", quote(name));
                let help = "`cpu`, `cuda`, `opencl`, `hip`, `sycl`, `mpi`, `fpga`, or `arch7` to `arch31`".to_owned();
                problems.report_at(bytes(property.name.range()), message, Some(help));
            }
        }
    }
    lengths
}

fn mode<'t>(access: &Object<'t>, problems: &mut Problems<'t>) -> Option<AccessMode> {
    let word: Word<'_> = needed(access, "mode", problems)?;
    let known = MODES.iter().find(|(name, _)| *name == word.text).map(|(_, mode)| *mode);
    if known.is_none() {
        let message =
            format!("{} is no mode: read, write, read-write, commute, redux or scratch is expected", quote(word.text));
        problems.report_at(bytes(word.range), message, None);
    }
    known
}

/// The number in the member `name` of `object`, which must be below `end`.
fn place<'t>(object: &Object<'t>, name: &str, end: usize, what: &str, problems: &mut Problems<'t>) -> Option<u32> {
    let Whole(number) = needed(object, name, problems)?;
    if number < end as u64 {
        return u32::try_from(number).ok();
    }
    let message = match end {
        0 => format!("there is no {what} {number}: there is none at all"),
        _ => format!("there is no {what} {number}: {} is the last", end - 1),
    };
    let range = object.get(name).map_or(object.range, |property| property.value.range());
    problems.report_at(bytes(range), message, None);
    None
}

/// The member `name`, if it exists and is not `null`.
fn optional<'v, 't, S: Shape<'v, 't>>(object: &'v Object<'t>, name: &str, problems: &mut Problems<'t>) -> Option<S> {
    let is_null = object.get(name).is_some_and(|property| matches!(property.value, Value::NullKeyword(_)));
    if is_null { None } else { member(object, name, problems) }
}

/// The objects of the array `name`; reports other elements.
fn objects<'v, 't>(object: &'v Object<'t>, name: &str, problems: &mut Problems<'t>) -> Vec<&'v Object<'t>> {
    let elements: &'v [Value<'t>] = optional(object, name, problems).unwrap_or_default();
    elements.iter().filter_map(|element| shaped(element, name, problems)).collect()
}

/// The number of a memory node.
struct Node(MemoryNode);

impl<'v, 't> Shape<'v, 't> for Node {
    const WHAT: &'static str = "the number of a memory node, from 0";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        value.as_number_lit()?.value.parse().ok().map(|node| Node(MemoryNode(node)))
    }
}

/// The number of a context.
struct Short(u16);

impl<'v, 't> Shape<'v, 't> for Short {
    const WHAT: &'static str = "a whole number from 0 to 65535";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        value.as_number_lit()?.value.parse().ok().map(Short)
    }
}

/// The footprint of a task for performance models.
struct Footprint(u32);

impl<'v, 't> Shape<'v, 't> for Footprint {
    const WHAT: &'static str = "a whole number from 0 to 4294967295";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        value.as_number_lit()?.value.parse().ok().map(Footprint)
    }
}
