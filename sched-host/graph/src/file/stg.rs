//! The Standard Task Graph format (Kasahara Laboratory).

use super::order::{FileTask, WaitsFor, describe, topological};
use super::problems::{Found, Problems, quote};
use crate::{Kind, KindId, Lengths, Task, TaskGraph, TaskId};
use sched_core::Arch;
use std::collections::HashSet;
use std::time::Duration;

/// Length of a unit of time, which the format leaves open.
const UNIT: Duration = Duration::from_millis(1);

/// A line of a task.
struct Row<'t> {
    line: &'t str,
    length: u32,
}

impl<'t> Row<'t> {
    /// The numbers of the tasks that it waits for, as they are written.
    fn waits_for(&self) -> impl Iterator<Item = &'t str> {
        self.line.split_whitespace().skip(3)
    }
}

pub(super) fn parse(text: &str) -> Result<TaskGraph, Found> {
    let mut problems = Problems::new(text);
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(line));
    let mut lines = lines.filter(|line| !line.trim().is_empty());

    let Some(header) = lines.next() else {
        return Err(Found::only("there is nothing in it", Some("the first line is the number of tasks")));
    };
    let declared = number(header.trim(), &mut problems, "the number of tasks");
    let mut rows = Vec::new();
    for line in lines {
        rows.extend(row(line, rows.len(), &mut problems));
    }
    if let Some(declared) = declared
        && problems.is_empty()
        && !is_whole(&rows, declared as usize)
    {
        let lines = match rows.len() == declared as usize {
            true => format!("{} and one dummy task", declared.saturating_sub(1)),
            false => rows.len().to_string(),
        };
        problems.report_with(
            header.trim(),
            format!("it says {declared} tasks, and there are lines for {lines}"),
            format!("{} lines are expected, with the dummy tasks at both ends", u64::from(declared) + 2),
        );
    }
    let with_dummies = declared.is_some_and(|declared| rows.len() == declared as usize + 2);

    let waits_for = waits_for(&rows, &mut problems);
    if !problems.is_empty() {
        return Err(problems.done());
    }
    match topological(&waits_for) {
        Ok(order) => Ok(graph(&rows, with_dummies, &order, &waits_for)),
        Err(cycle) => {
            let message = format!("task {}", describe(&cycle, |task| task.0.to_string()));
            problems.report(rows[cycle[0].index()].line.trim(), message);
            Err(problems.done())
        }
    }
}

/// Whether there are lines for all of the `declared` tasks. Some files have no dummy tasks, and some count them; one
/// with a dummy task at one end only is cut.
fn is_whole(rows: &[Row<'_>], declared: usize) -> bool {
    let is_first = |row: &Row<'_>| row.length == 0 && row.waits_for().next().is_none();
    let ends_alike = || rows.first().is_some_and(is_first) == rows.last().is_some_and(|row| row.length == 0);
    rows.len() == declared + 2 || (rows.len() == declared && ends_alike())
}

/// The tasks that each task waits for.
fn waits_for<'t>(rows: &[Row<'t>], problems: &mut Problems<'t>) -> Vec<Vec<FileTask>> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let mut waits_for = Vec::new();
        let mut named = HashSet::new();
        for word in row.waits_for() {
            let Some(task) = known(word, rows.len(), problems) else { continue };
            if named.insert(task) {
                waits_for.push(task);
            } else {
                let message = format!("the task waits for task {} twice", task.0);
                problems.report_with(word, message, "name each task once; another one may be meant");
            }
        }
        all.push(waits_for);
    }
    all
}

/// The task that `word` names, of `count`; reports that there is none.
fn known<'t>(word: &'t str, count: usize, problems: &mut Problems<'t>) -> Option<FileTask> {
    let task = number(word, problems, "the number of a task")?;
    if FileTask(task).index() >= count {
        let last = count.saturating_sub(1);
        problems.report(word, format!("there is no task {task}: tasks have the numbers 0 to {last}"));
        return None;
    }
    Some(FileTask(task))
}

/// The graph of the tasks in this order; the first and the last task do nothing if they are dummies.
fn graph(rows: &[Row<'_>], with_dummies: bool, order: &[FileTask], waits_for: &WaitsFor) -> TaskGraph {
    let mut graph = TaskGraph::default();
    let task_kind = graph.add_kind("task");
    let dummy = KindId(1);
    graph.kinds.push(Kind { name: "dummy".to_owned(), runs: false });
    let mut ids = vec![TaskId(0); rows.len()];
    for place in order {
        let at = place.index();
        let ends = with_dummies && (at == 0 || at == rows.len() - 1);
        let mut task = if ends && rows[at].length == 0 {
            Task::new(dummy)
        } else {
            let mut task = Task::new(task_kind);
            task.lengths = Lengths::default().with(Arch::CPU, UNIT * rows[at].length);
            task
        };
        task.name = Some(place.0.to_string().into());
        task.after = waits_for[at].iter().map(|before| ids[before.index()]).collect();
        ids[at] = graph.add_task(task);
    }
    graph
}

fn row<'t>(line: &'t str, expected: usize, problems: &mut Problems<'t>) -> Option<Row<'t>> {
    let mut words = line.split_whitespace();
    let whole = line.trim();
    let (Some(id), Some(length), Some(count)) = (words.next(), words.next(), words.next()) else {
        problems
            .report(whole, "a task is its number, its processing time, how many tasks it waits for, and their numbers");
        return None;
    };
    let waits_for = words.count();
    if let Some(id) = number(id, problems, "the number of the task")
        && id as usize != expected
    {
        problems
            .report(whole, format!("this is task {id}, where task {expected} is expected: tasks are numbered from 0"));
    }
    let length = number(length, problems, "the processing time");
    if let Some(count) = number(count, problems, "the number of tasks to wait for")
        && count as usize != waits_for
    {
        problems.report(whole, format!("it says that the task waits for {count} others, and names {waits_for}"));
    }
    Some(Row { line, length: length.unwrap_or(0) })
}

fn number<'t>(word: &'t str, problems: &mut Problems<'t>, what: &str) -> Option<u32> {
    let parsed = word.parse().ok();
    if parsed.is_none() {
        problems.report(word, format!("{} is not {what}: a whole number below 2³² is expected", quote(word)));
    }
    parsed
}
