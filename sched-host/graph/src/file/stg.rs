//! The Standard Task Graph format (Kasahara Laboratory).

use super::findings::{Findings, Found, quote};
use super::order::{told, topological};
use crate::{Kind, KindId, Lengths, Task, TaskGraph, TaskId};
use sched_core::Arch;
use std::time::Duration;

/// What a unit of time is taken for.
const UNIT: Duration = Duration::from_millis(1);

/// A line of a task.
struct Row<'t> {
    line: &'t str,
    length: u32,
    waits_for: Vec<&'t str>,
}

pub(super) fn parse(text: &str) -> Result<TaskGraph, Found> {
    let mut findings = Findings::new(text);
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(line));
    let mut lines = lines.filter(|line| !line.trim().is_empty());

    let Some(header) = lines.next() else {
        return Err(Found::only("there is nothing in it", Some("the first line is the number of tasks")));
    };
    let declared = number(header.trim(), &mut findings, "the number of tasks");
    let mut rows = Vec::new();
    for line in lines {
        rows.extend(row(line, rows.len(), &mut findings));
    }
    if let Some(declared) = declared
        && findings.is_empty()
        && rows.len() != declared as usize + 2
        && rows.len() != declared as usize
    {
        findings.report_with(
            header.trim(),
            format!("it says {declared} tasks, and there are lines for {}", rows.len()),
            format!("{} lines are expected, with the dummy tasks at both ends", u64::from(declared) + 2),
        );
    }
    let with_dummies = declared.is_some_and(|declared| rows.len() == declared as usize + 2);

    let mut waits_for = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut before = Vec::with_capacity(row.waits_for.len());
        for word in &row.waits_for {
            match number(word, &mut findings, "the number of a task") {
                Some(task) if (task as usize) < rows.len() => before.push(task),
                Some(task) => findings.report(
                    word,
                    format!("there is no task {task}: tasks have the numbers 0 to {}", rows.len().saturating_sub(1)),
                ),
                None => {}
            }
        }
        waits_for.push(before);
    }
    if !findings.is_empty() {
        return Err(findings.done());
    }
    let order = match topological(&waits_for) {
        Ok(order) => order,
        Err(cycle) => {
            let message = format!("task {}", told(&cycle, |task| task.to_string()));
            findings.report(rows[cycle[0] as usize].line.trim(), message);
            return Err(findings.done());
        }
    };

    let mut graph = TaskGraph::default();
    let task_kind = graph.add_kind("task");
    let dummy = KindId(1);
    graph.kinds.push(Kind { name: "dummy".to_owned(), runs: false });
    let mut ids = vec![TaskId(0); rows.len()];
    for place in order {
        let row = &rows[place as usize];
        let ends = with_dummies && (place == 0 || place as usize == rows.len() - 1);
        let mut task = if ends && row.length == 0 {
            Task::new(dummy)
        } else {
            let mut task = Task::new(task_kind);
            task.lengths = Lengths::default().with(Arch::CPU, UNIT * row.length);
            task
        };
        task.name = Some(place.to_string().into());
        task.after = waits_for[place as usize].iter().map(|before| ids[*before as usize]).collect();
        ids[place as usize] = graph.add_task(task);
    }
    Ok(graph)
}

fn row<'t>(line: &'t str, expected: usize, findings: &mut Findings<'t>) -> Option<Row<'t>> {
    let mut words = line.split_whitespace();
    let whole = line.trim();
    let (Some(id), Some(length), Some(count)) = (words.next(), words.next(), words.next()) else {
        findings
            .report(whole, "a task is its number, its processing time, how many tasks it waits for, and their numbers");
        return None;
    };
    let waits_for: Vec<&str> = words.collect();
    if let Some(id) = number(id, findings, "the number of the task")
        && id as usize != expected
    {
        findings
            .report(whole, format!("this is task {id}, where task {expected} is expected: tasks are numbered from 0"));
    }
    let length = number(length, findings, "the processing time");
    if let Some(count) = number(count, findings, "the number of tasks to wait for")
        && count as usize != waits_for.len()
    {
        findings
            .report(whole, format!("it says that the task waits for {count} others, and names {}", waits_for.len()));
    }
    Some(Row { line, length: length.unwrap_or(0), waits_for })
}

fn number<'t>(word: &'t str, findings: &mut Findings<'t>, what: &str) -> Option<u32> {
    let parsed = word.parse().ok();
    if parsed.is_none() {
        findings.report(word, format!("{} is not {what}: a whole number below 2³² is expected", quote(word)));
    }
    parsed
}
