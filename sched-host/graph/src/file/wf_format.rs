//! The WfFormat of WfCommons, from schema 1.5 on.

use super::json::{Bytes, Seconds, Word, bytes, document, member, needed, nothing, shaped, words};
use super::order::{FileTask, WaitsFor, describe, topological};
use super::problems::{Found, Problems, quote};
use crate::{AccessMode, DataId, Datum, KindId, Lengths, Task, TaskGraph, TaskId};
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use sched_core::Arch;
use sched_text::line_and_column;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The known versions of the schema.
const VERSIONS: [&str; 2] = ["1.5", "1.6"];

/// A task of the specification.
struct Specified<'v> {
    id: Word<'v>,
    name: &'v str,
    parents: Vec<Word<'v>>,
    children: Vec<Word<'v>>,
    inputs: Vec<Word<'v>>,
    outputs: Vec<Word<'v>>,
}

/// The execution of a task.
struct Executed<'v> {
    length: Duration,
    program: Option<&'v str>,
}

/// Whether a JSON text may have this format.
pub(super) fn is_named(text: &str) -> bool {
    text.contains("\"workflow\"")
}

/// The workflow, with a warning for each part that may be missing, or mean something else than is known here.
pub(super) fn parse(name: &str, text: &str) -> Result<(TaskGraph, Vec<String>), Found> {
    let mut problems = Problems::new(text);
    let Some(document) = document(text, &mut problems) else {
        return Err(if problems.is_empty() {
            nothing("a WfFormat file is a JSON object with a member `workflow`")
        } else {
            problems.done()
        });
    };
    let read = read(&document, &mut problems);
    match read {
        Some(graph) if problems.is_empty() => {
            let warnings = [unknown_version(name, text, &document), unlisted_files(name, &graph, &document)];
            Ok((graph, warnings.into_iter().flatten().collect()))
        }
        _ => Err(problems.done()),
    }
}

/// A warning if the file names a version of the schema that is not known.
fn unknown_version(name: &str, text: &str, document: &Value<'_>) -> Option<String> {
    let value = &document.as_object()?.get("schemaVersion")?.value;
    let found = match value {
        Value::StringLit(word) => &word.value,
        other => other.text(text),
    };
    if VERSIONS.contains(&found) {
        return None;
    }
    let (line, column) = line_and_column(text, value.range().start);
    let (known, found) = (VERSIONS.join(" or "), quote(found));
    Some(format!(
        "{name}:{line}:{column}: `schemaVersion` is {found}, expected {known}: members that those lack are ignored"
    ))
}

/// A warning if tasks have files and the workflow has no list of them, which the schema allows.
fn unlisted_files(name: &str, graph: &TaskGraph, document: &Value<'_>) -> Option<String> {
    let workflow = document.as_object()?.get("workflow")?.value.as_object()?;
    let specification = workflow.get("specification")?.value.as_object()?;
    (specification.get("files").is_none() && !graph.data.is_empty())
        .then(|| format!("{name}: there is no list of `files`: they are taken to be empty"))
}

fn read<'t>(document: &Value<'t>, problems: &mut Problems<'t>) -> Option<TaskGraph> {
    let root: &Object<'t> = shaped(document, "the document", problems)?;
    let name = member::<Word<'_>>(root, "name", problems).map_or("", |name| name.text);
    let workflow: &Object<'t> = needed(root, "workflow", problems)?;
    if workflow.get("specification").is_none()
        && let Some(old) = ["tasks", "jobs"].iter().find_map(|name| workflow.get(name))
    {
        let help = "schema 1.5 has `workflow.specification` and `workflow.execution` instead".to_owned();
        problems.report_at(bytes(old.range), "this is WfFormat of a schema before 1.5", Some(help));
        return None;
    }
    let specification: &Object<'t> = needed(workflow, "specification", problems)?;
    let tasks = specified(specification, problems);
    let files = files(specification, problems);
    let executed: Option<&Object<'t>> = member(workflow, "execution", problems);
    let executed = executed.map(|execution| executions(execution, problems));

    let by_id = places(&tasks, problems);
    let executed = executed.map(|executed| by_task(executed, &tasks, &by_id, problems));
    let stated = stated_dependencies(&tasks, &by_id, problems);
    let listed = specification.get("files").is_some();
    for file in tasks.iter().flat_map(|task| task.inputs.iter().chain(&task.outputs)) {
        if listed && !files.contains_key(file.text) {
            let message = format!("there is no file {} in `files`", quote(file.text));
            problems.report_at(bytes(file.range), message, None);
        }
    }
    if !problems.is_empty() {
        return None;
    }
    let with_writers = with_writers(&tasks, &stated);
    // A task may replace a file that one before it reads: what the workflow tells counts then.
    let (order, waits_for) = match topological(&with_writers) {
        Ok(order) => (order, with_writers),
        Err(_) => match topological(&stated) {
            Ok(order) => (order, stated),
            Err(cycle) => {
                let message = format!("task {}", describe(&cycle, |task| quote(tasks[task.index()].id.text)));
                problems.report_at(bytes(tasks[cycle[0].index()].id.range), message, None);
                return None;
            }
        },
    };
    Some(graph(name, &tasks, &files, executed.as_deref(), &order, &waits_for))
}

fn specified<'v, 't>(specification: &'v Object<'t>, problems: &mut Problems<'t>) -> Vec<Specified<'v>> {
    let Some(tasks) = needed::<&[Value<'t>]>(specification, "tasks", problems) else { return Vec::new() };
    let mut all = Vec::with_capacity(tasks.len());
    for task in tasks {
        let Some(task) = shaped::<&Object<'t>>(task, "a task", problems) else { continue };
        let Some(id) = needed::<Word<'v>>(task, "id", problems) else { continue };
        all.push(Specified {
            id,
            name: member::<Word<'v>>(task, "name", problems).map_or(id.text, |name| name.text),
            parents: words(task, "parents", problems),
            children: words(task, "children", problems),
            inputs: words(task, "inputFiles", problems),
            outputs: words(task, "outputFiles", problems),
        });
    }
    all
}

/// Sizes of files by their names.
fn files<'v, 't>(specification: &'v Object<'t>, problems: &mut Problems<'t>) -> HashMap<&'v str, u64> {
    let mut sizes = HashMap::new();
    for file in member::<&[Value<'t>]>(specification, "files", problems).unwrap_or_default() {
        let Some(file) = shaped::<&Object<'t>>(file, "a file", problems) else { continue };
        let (id, size) = (needed::<Word<'v>>(file, "id", problems), needed::<Bytes>(file, "sizeInBytes", problems));
        let size = size.map_or(0, |Bytes(size)| size);
        if let Some(id) = id
            && sizes.insert(id.text, size).is_some()
        {
            problems.report_at(bytes(id.range), format!("the file {} is there already", quote(id.text)), None);
        }
    }
    sizes
}

fn executions<'v, 't>(execution: &'v Object<'t>, problems: &mut Problems<'t>) -> Vec<(Word<'v>, Executed<'v>)> {
    let Some(tasks) = needed::<&[Value<'t>]>(execution, "tasks", problems) else { return Vec::new() };
    let mut all = Vec::with_capacity(tasks.len());
    for task in tasks {
        let Some(task) = shaped::<&Object<'t>>(task, "a task", problems) else { continue };
        let Some(id) = needed::<Word<'v>>(task, "id", problems) else { continue };
        let length = needed::<Seconds>(task, "runtimeInSeconds", problems);
        let command: Option<&Object<'t>> = member(task, "command", problems);
        let program = command.and_then(|command| member::<Word<'v>>(command, "program", problems));
        let length = length.map_or(Duration::ZERO, |Seconds(length)| length);
        // Nextflow's instances have the script of the task, or a dash, in the place of its program.
        let program = program
            .map(|program| program.text)
            .filter(|program| !program.is_empty() && *program != "-" && !program.contains(char::is_whitespace));
        all.push((id, Executed { length, program }));
    }
    all
}

fn places<'v>(tasks: &[Specified<'v>], problems: &mut Problems<'_>) -> HashMap<&'v str, FileTask> {
    let mut by_id = HashMap::with_capacity(tasks.len());
    for (place, task) in (0..).map(FileTask).zip(tasks) {
        if *by_id.entry(task.id.text).or_insert(place) != place {
            problems.report_at(bytes(task.id.range), format!("task {} is there already", quote(task.id.text)), None);
        }
    }
    by_id
}

/// The task that `word` names; reports that there is none.
fn place(word: Word<'_>, by_id: &HashMap<&str, FileTask>, problems: &mut Problems<'_>) -> Option<FileTask> {
    let place = by_id.get(word.text).copied();
    if place.is_none() {
        let near = by_id.keys().map(|known| (sched_text::distance(known, word.text), *known));
        let near = if problems.count() < 10 {
            near.min().filter(|(distance, known)| *distance <= 2 && distance * 3 <= known.len())
        } else {
            None
        };
        let help = near.map(|(_, near)| format!("did you mean `{near}`?"));
        problems.report_at(bytes(word.range), format!("there is no task {}", quote(word.text)), help);
    }
    place
}

fn by_task<'v>(
    executed: Vec<(Word<'v>, Executed<'v>)>,
    tasks: &[Specified<'v>],
    by_id: &HashMap<&str, FileTask>,
    problems: &mut Problems<'_>,
) -> Vec<Option<Executed<'v>>> {
    let mut of_task: Vec<Option<Executed<'v>>> = tasks.iter().map(|_| None).collect();
    for (id, execution) in executed {
        if let Some(place) = place(id, by_id, problems)
            && of_task[place.index()].replace(execution).is_some()
        {
            let message = format!("the execution of task {} is there already", quote(id.text));
            problems.report_at(bytes(id.range), message, None);
        }
    }
    for (task, execution) in tasks.iter().zip(&of_task) {
        let first = by_id.get(task.id.text).is_some_and(|place| std::ptr::eq(&tasks[place.index()], task));
        if execution.is_none() && first {
            let message =
                format!("task {} is not among those of `execution`, which say how long they took", quote(task.id.text));
            problems.report_at(bytes(task.id.range), message, None);
        }
    }
    of_task
}

/// For each task, the tasks that it waits for because one of the two says so.
fn stated_dependencies(
    tasks: &[Specified<'_>],
    by_id: &HashMap<&str, FileTask>,
    problems: &mut Problems<'_>,
) -> Vec<Vec<FileTask>> {
    let mut all: Vec<Vec<FileTask>> = vec![Vec::new(); tasks.len()];
    for (at, task) in (0..).map(FileTask).zip(tasks) {
        for parent in &task.parents {
            all[at.index()].extend(place(*parent, by_id, problems));
        }
        for child in &task.children {
            if let Some(child) = place(*child, by_id, problems) {
                all[child.index()].push(at);
            }
        }
    }
    for before in &mut all {
        before.sort_unstable();
        before.dedup();
    }
    all
}

/// For each task, those that the file states, and the only writer of each file that it reads.
fn with_writers(tasks: &[Specified<'_>], stated: &WaitsFor) -> Vec<Vec<FileTask>> {
    let mut all = stated.to_vec();
    let mut writers: HashMap<&str, Option<FileTask>> = HashMap::new();
    for (at, task) in (0..).map(FileTask).zip(tasks) {
        for file in &task.outputs {
            // A task may name its file twice.
            let same = |writer: &mut Option<FileTask>| *writer = writer.filter(|known| *known == at);
            writers.entry(file.text).and_modify(same).or_insert(Some(at));
        }
    }
    for (at, task) in (0..).map(FileTask).zip(tasks) {
        let before = &mut all[at.index()];
        let made = task.inputs.iter().filter_map(|file| writers.get(file.text).copied().flatten());
        before.extend(made.filter(|writer| *writer != at));
        before.sort_unstable();
        before.dedup();
    }
    all
}

/// The graph of the tasks in this order.
fn graph<'v>(
    name: &str,
    tasks: &[Specified<'v>],
    files: &HashMap<&str, u64>,
    executed: Option<&[Option<Executed<'v>>]>,
    order: &[FileTask],
    waits_for: &WaitsFor,
) -> TaskGraph {
    let mut graph = TaskGraph::new(name);
    let mut kinds: HashMap<&str, KindId> = HashMap::new();
    let mut data: HashMap<&str, DataId> = HashMap::new();
    let mut ids = vec![TaskId(0); tasks.len()];
    for of_file in order {
        let specified = &tasks[of_file.index()];
        let execution = executed.and_then(|executed| executed[of_file.index()].as_ref());
        let kind = execution.and_then(|execution| execution.program).unwrap_or(specified.name);
        let kind = *kinds.entry(kind).or_insert_with(|| graph.add_kind(kind));
        let mut task = Task::new(kind).named(specified.id.text);
        if let Some(execution) = execution {
            task.lengths = Lengths::default().with(Arch::CPU, execution.length);
        }
        let written: HashSet<&str> = specified.outputs.iter().map(|file| file.text).collect();
        let mut named = HashSet::new();
        let modes = specified.inputs.iter().map(|file| match written.contains(file.text) {
            true => (file.text, AccessMode::ReadWrite),
            false => (file.text, AccessMode::Read),
        });
        for (file, mode) in modes.chain(specified.outputs.iter().map(|file| (file.text, AccessMode::Write))) {
            if named.insert(file) {
                let bytes = files.get(file).copied().unwrap_or(0);
                let id = *data.entry(file).or_insert_with(|| graph.add_data(Datum::new(bytes).named(file)));
                task = task.access(id, mode);
            }
        }
        task.after = waits_for[of_file.index()].iter().map(|before| ids[before.index()]).collect();
        ids[of_file.index()] = graph.add_task(task);
    }
    graph
}
