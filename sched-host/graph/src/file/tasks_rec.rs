//! StarPU's `tasks.rec`, as its replay reads it, except that a gap in `SubmitOrder` is an error. The replay fills gaps
//! with empty tasks, so that others begin too early and a damaged trace looks like a whole one.

mod record;

use super::order::{Cycle, FileTask, WaitsFor, describe, topological};
use super::problems::{Found, Problems, quote};
use crate::{AccessMode, DataId, Datum, Kind, KindId, Task, TaskGraph, TaskId, WontUse};
pub(super) use record::is_field;
use record::{Record, records, report_gaps};
use sched_text::count;
use std::collections::HashMap;

/// The graph, with warnings if tasks are missing at the beginning or a handle has several sizes. In messages the file is
/// called `name`.
pub(super) fn parse(name: &str, text: &str) -> Result<(TaskGraph, Vec<String>), Found> {
    let mut problems = Problems::new(text);
    let mut records = records(text, &mut problems);
    if records.is_empty() && problems.is_empty() {
        return Err(Found::only(
            "there are no records in it",
            Some("a record has a line `JobId: 1`, and ends at a blank line"),
        ));
    }
    if !problems.is_empty() {
        return Err(problems.done());
    }
    // A record without a priority has that of the record before, in the order of the file.
    let mut priority = 0;
    for record in records.iter_mut().filter(|record| record.worker) {
        priority = *record.priority.get_or_insert(priority);
    }
    // The sort is stable, and records without a number come first.
    records.sort_by_key(|record| record.submit_order);
    let late = report_gaps(&records, &mut problems);
    if !problems.is_empty() {
        return Err(problems.done());
    }

    let mut reading = Reading::default();
    for record in &records {
        reading.add(record);
    }
    let explicit = reading.explicit_dependencies(&records);
    let late = late.map(|(record, order)| {
        let (line, column) = problems.line_and_column(record);
        format!(
            "{name}:{line}:{column}: the trace begins with the `SubmitOrder` {order}: what the earlier tasks wrote is there \
             from the beginning"
        )
    });
    let warnings = late.into_iter().chain(reading.resized(name, &problems)).collect();
    let graph = reading.graph;
    match order(&graph, &explicit) {
        Ok(order) => Ok((reordered(graph, &order, &explicit), warnings)),
        Err(cycle) => {
            let tasks: Vec<&Record<'_>> = records.iter().filter(|record| record.control.is_none()).collect();
            let job = |task: FileTask| tasks[task.index()].job_id;
            problems.report(job(cycle[0]), format!("job {}", describe(&cycle, |task| job(task).to_owned())));
            Err(problems.done())
        }
    }
}

/// The graph while records are added to it, in the order of submission.
#[derive(Default)]
struct Reading<'t> {
    graph: TaskGraph,
    /// Kinds by name, and by whether their tasks run.
    kinds: HashMap<(&'t str, bool), KindId>,
    data: HashMap<&'t str, DataId>,
    /// The last task that does any work.
    last_run: Option<TaskId>,
    /// The first handle that has another size than before, with both sizes; and the number of further ones.
    resized: Option<(&'t str, u64, u64)>,
    further_resized: usize,
}

impl<'t> Reading<'t> {
    fn add(&mut self, record: &Record<'t>) {
        if record.control.is_some() {
            // A hint about data that no task has named yet has no effect.
            let data = record.handles.first().and_then(|handle| self.data.get(handle));
            let submitted = self.last_run.map_or(0, |task| task.0 + 1);
            self.graph.wont_use.extend(data.map(|data| WontUse { submitted, data: *data }));
            return;
        }
        let mut task = Task::new(self.kind(record));
        task.name = record.name.filter(|name| !name.is_empty()).map(Into::into);
        if record.worker {
            task.priority = record.priority.unwrap_or(0);
            task.footprint = record.footprint;
            task.flops = record.flops;
        }
        for (at, (handle, mode)) in record.handles.iter().zip(&record.modes).enumerate() {
            let bytes = record.sizes.get(at).copied().unwrap_or(0);
            let graph = &mut self.graph;
            let data = *self.data.entry(handle).or_insert_with(|| graph.add_data(Datum::new(bytes).named(*handle)));
            let first = self.graph.data[data.index()].bytes;
            match self.resized {
                _ if bytes == first => {}
                None => self.resized = Some((handle, first, bytes)),
                Some(_) => self.further_resized += 1,
            }
            task = task.access(data, *mode);
        }
        let id = self.graph.add_task(task);
        if record.worker {
            self.last_run = Some(id);
        }
    }

    /// A warning if a handle has several sizes: the first one counts, as in StarPU's replay. The address of data that
    /// were unregistered may be that of others later.
    fn resized(&self, name: &str, problems: &Problems<'t>) -> Option<String> {
        let (handle, first, bytes) = self.resized?;
        let (line, column) = problems.line_and_column(handle);
        let further = match self.further_resized {
            0 => String::new(),
            further => format!(" (and {})", count(further, "more such place")),
        };
        Some(format!(
            "{name}:{line}:{column}: the handle {} has {bytes} bytes here{further}, and had {first} before, which \
             count: give data of their own another handle",
            quote(handle)
        ))
    }

    fn kind(&mut self, record: &Record<'t>) -> KindId {
        let name = match record.worker {
            true => record.model.or(record.name).unwrap_or("task"),
            false => "(nothing)",
        };
        let graph = &mut self.graph;
        *self.kinds.entry((name, record.worker)).or_insert_with(|| {
            let id = KindId(graph.kinds.len() as u32);
            graph.kinds.push(Kind { name: name.to_owned(), runs: record.worker });
            id
        })
    }

    /// For each task, the tasks that its `DependsOn` names. Jobs that are not in the file ended before it began.
    fn explicit_dependencies(&self, records: &[Record<'t>]) -> Vec<Vec<FileTask>> {
        let tasks = || records.iter().filter(|record| record.control.is_none());
        let by_job: HashMap<&str, FileTask> = tasks().map(|record| record.job_id).zip((0..).map(FileTask)).collect();
        let of = |record: &Record<'_>| record.depends_on.iter().filter_map(|job| by_job.get(job).copied()).collect();
        tasks().map(of).collect()
    }
}

/// An order of the tasks in which each waits only for earlier ones: nearly always the one in the graph.
fn order(graph: &TaskGraph, explicit: &WaitsFor) -> Result<Vec<FileTask>, Cycle> {
    let tasks = || graph.ids().map(|id| FileTask(id.0));
    if tasks().zip(explicit).all(|(task, before)| before.iter().all(|before| *before < task)) {
        return Ok(tasks().collect());
    }
    let dependencies = graph.dependencies();
    let both = graph.ids().zip(explicit).map(|(task, explicit)| {
        let implicit = dependencies.predecessors(task).iter().map(|before| FileTask(before.0));
        explicit.iter().copied().chain(implicit).collect()
    });
    topological(&both.collect::<Vec<Vec<FileTask>>>())
}

/// The graph with its tasks in this order, and with explicit dependencies.
fn reordered(mut graph: TaskGraph, order: &[FileTask], explicit: &WaitsFor) -> TaskGraph {
    let mut place = vec![TaskId(0); order.len()];
    for (id, task) in graph.ids().zip(order) {
        place[task.index()] = id;
    }
    let mut tasks: Vec<Option<Task>> = std::mem::take(&mut graph.tasks).into_iter().map(Some).collect();
    for of_file in order {
        let mut task = tasks[of_file.index()].take().expect("an order names each task once");
        task.after = explicit[of_file.index()].iter().map(|before| place[before.index()]).collect();
        graph.add_task(task);
    }
    // A hint stays after the task that it followed.
    for hint in &mut graph.wont_use {
        hint.submitted = hint.submitted.checked_sub(1).map_or(0, |task| place[FileTask(task).index()].0 + 1);
    }
    graph
}

/// The access mode that StarPU's replay reads from a word: a final `C` marks tasks that commute.
fn mode(word: &str) -> Option<AccessMode> {
    match word {
        "R" => Some(AccessMode::Read),
        "W" => Some(AccessMode::Write),
        "RW" => Some(AccessMode::ReadWrite),
        "RWC" | "WC" | "X" => Some(AccessMode::Commute),
        "S" => Some(AccessMode::Scratch),
        _ => None,
    }
}
