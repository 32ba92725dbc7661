//! What a file says of the tasks that each task waits for, beside the accesses and names from which that follows.

use super::super::json::{Whole, bytes, shaped};
use super::super::problems::Problems;
use super::optional;
use crate::{TaskGraph, TaskId};
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use std::ops::Range;

/// Number of tasks that a message names.
const MOST_NAMED: usize = 8;

/// The members `waits_for` of the tasks.
#[derive(Default)]
pub(super) struct Claims {
    claims: Vec<Claim>,
}

struct Claim {
    task: TaskId,
    /// In the order of submission.
    before: Vec<TaskId>,
    place: Range<usize>,
}

impl Claims {
    /// Reads that of task `number`, if it has one.
    pub(super) fn read<'t>(&mut self, task: &Object<'t>, number: usize, problems: &mut Problems<'t>) {
        let Some(named) = optional::<&[Value<'t>]>(task, "waits_for", problems) else { return };
        let mut before = Vec::with_capacity(named.len());
        for name in named {
            match shaped(name, "waits_for", problems) {
                Some(Whole(earlier)) if earlier < number as u64 => before.push(TaskId(earlier as u32)),
                Some(Whole(other)) => {
                    let message = format!("task {number} waits for task {other}, which is not before it");
                    let help = "tasks stand in the order of submission, and wait for earlier ones only".to_owned();
                    problems.report_at(bytes(name.range()), message, Some(help));
                }
                None => {}
            }
        }
        before.sort_unstable();
        before.dedup();
        let start = task.get("waits_for").map_or(task.range.start, |property| property.name.range().start);
        self.claims.push(Claim { task: TaskId(number as u32), before, place: start..start + 1 });
    }

    /// Reports those that `graph` contradicts: who wrote them by hand expects that the tasks wait.
    pub(super) fn check(self, graph: &TaskGraph, problems: &mut Problems<'_>) {
        if self.claims.is_empty() {
            return;
        }
        let dependencies = graph.dependencies();
        for Claim { task, before, place } in self.claims {
            let follows = dependencies.predecessors(task);
            if before != follows {
                let message = format!(
                    "`waits_for` of task {} names {}, but its accesses and `after` mean {}",
                    task.0,
                    listed(&before),
                    listed(follows)
                );
                let help = "name tasks to wait for in `after`, and leave out `waits_for`".to_owned();
                problems.report_at(place, message, Some(help));
            }
        }
    }
}

/// `no task`, `task 1`, `tasks 1 and 2`.
fn listed(tasks: &[TaskId]) -> String {
    let named: Vec<String> = tasks.iter().take(MOST_NAMED).map(|task| task.0.to_string()).collect();
    match (&named[..], tasks.len() - named.len()) {
        ([], _) => "no task".to_owned(),
        ([only], _) => format!("task {only}"),
        ([first @ .., last], 0) => format!("tasks {} and {last}", first.join(", ")),
        (_, more) => format!("tasks {} and {more} others", named.join(", ")),
    }
}
