//! `--explain`: what happened to single tasks, and what the scheduler could know when it chose for them.

mod text;

pub(super) use text::text;

use crate::makespan::{MAKESPAN, seconds};
use miette::miette;
use sched_core::{MemoryNode, WorkerId};
use sched_graph::{Task, TaskGraph, TaskId};
use sched_sim::Platform;
use sched_text::{count, did_you_mean, ranges};
use sched_trace::{Explained, Explainer, Moment, Step, Trace};
use sched_tree::{Alternative, Choice, ObservedNode};
use serde::Serialize;
use std::collections::BTreeSet;

/// What is explained.
#[derive(Default)]
pub(crate) struct Explain {
    tasks: BTreeSet<TaskId>,
    pub(super) makespan: bool,
}

impl Explain {
    /// Nothing.
    pub(crate) const NOTHING: Explain = Explain { tasks: BTreeSet::new(), makespan: false };
}

/// The tasks of these numbers, as in messages and traces, or names; or the makespan.
///
/// # Errors
/// The tasks that there are not, all at once.
pub(super) fn find(wanted: &[String], graph: &TaskGraph) -> miette::Result<Explain> {
    let (mut found, mut missing, mut help) = (Explain::default(), Vec::new(), BTreeSet::new());
    for text in wanted {
        let number = text.trim().trim_start_matches("task ").parse::<usize>();
        let is_it = |(id, task): &(TaskId, &Task)| match number {
            Ok(number) => id.index() + 1 == number,
            Err(_) => task.name.as_deref() == Some(text),
        };
        let mut these = graph.ids().zip(&graph.tasks).filter(is_it).map(|(id, _)| id).peekable();
        if these.peek().is_some() {
            found.tasks.extend(these);
            continue;
        }
        if text == MAKESPAN {
            found.makespan = true;
            continue;
        }
        missing.push(if number.is_ok() { text.clone() } else { format!("`{text}`") });
        let names = graph.tasks.iter().filter_map(|task| task.name.as_deref());
        help.insert(match number {
            Ok(_) => format!("{} has {}, numbered from 1", graph.name, count(graph.tasks.len() as u64, "task")),
            Err(_) => did_you_mean(text, names, "tasks with a name"),
        });
    }
    match missing.is_empty() {
        true => Ok(found),
        false => {
            let help: Vec<String> = help.into_iter().collect();
            Err(miette!(help = help.join("\n"), "there is no task {}", missing.join(" and no task ")))
        }
    }
}

/// An explainer of the wanted tasks, if there are any.
pub(super) fn explainer(wanted: &Explain, graph: &TaskGraph) -> Option<Explainer> {
    let data = |task: &TaskId| graph.tasks[task.index()].accesses.iter().map(|access| access.data);
    let tasks = || wanted.tasks.iter().map(|task| (task.submitted(), data(task)));
    (!wanted.tasks.is_empty()).then(|| Explainer::new(tasks()))
}

/// What happened to a task. Fields are JSON keys; times are in seconds since the beginning.
#[derive(Serialize)]
pub(crate) struct TaskReport {
    /// Its number.
    task: u64,
    /// Its name, or that of its kind.
    name: String,
    kind: String,
    steps: Vec<StepReport>,
}

#[derive(Serialize)]
struct StepReport {
    at_s: f64,
    #[serde(flatten)]
    what: What,
}

/// One variant for each [`Step`], with names in the place of numbers.
#[derive(Serialize, PartialEq)]
#[serde(tag = "step", rename_all = "kebab-case")]
enum What {
    Submitted,
    Ready {
        /// The task that it waited for last, and the worker that ended that.
        after: Option<String>,
        by: Option<String>,
    },
    Chosen {
        component: String,
        node: String,
        child: String,
        children: Vec<Child>,
    },
    Stored {
        node: String,
    },
    Refused {
        node: String,
        why: String,
    },
    Pulled {
        #[serde(flatten)]
        by: Workers,
    },
    Arrived {
        data: String,
        bytes: u64,
        from: String,
        to: String,
        began_s: f64,
    },
    Started {
        #[serde(flatten)]
        by: Workers,
    },
    Ended {
        #[serde(flatten)]
        by: Workers,
        length_s: f64,
        /// What was expected when the task was pushed to a child for the last time.
        expected_s: Option<f64>,
    },
    Passed,
}

/// A worker, or the members of a team.
#[derive(Serialize, PartialEq)]
struct Workers {
    workers: Vec<u32>,
    /// Their classes and numbers.
    #[serde(skip)]
    names: String,
}

/// A child that a component could choose.
#[derive(Serialize, PartialEq)]
struct Child {
    child: String,
    workers: Vec<u32>,
    chosen: bool,
    /// Whether any of the workers can execute the task.
    able: bool,
    free_at_s: f64,
    transfer_s: f64,
    length_s: Option<f64>,
    energy_j: Option<f64>,
    /// When the task would end there.
    end_s: Option<f64>,
}

/// Reports of what was collected, with the names in `trace`.
pub(super) fn reports(explained: &Explained, graph: &TaskGraph, platform: &Platform, trace: Trace) -> Vec<TaskReport> {
    let names = Names { trace, platform, nodes: &explained.nodes };
    let report = |explanation: &sched_trace::Explanation| {
        let task = TaskId::of_submitted(explanation.task)?;
        let of = &graph.tasks[task.index()];
        Some(TaskReport {
            task: explanation.task.sequence(),
            name: names.trace.task_name(explanation.task),
            kind: graph.kinds[of.kind.index()].name.clone(),
            steps: names.steps(&explanation.steps),
        })
    };
    explained.tasks.iter().filter_map(report).collect()
}

/// The names of what steps have numbers of.
struct Names<'a> {
    /// Without events.
    trace: Trace,
    platform: &'a Platform,
    nodes: &'a [String],
}

impl Names<'_> {
    /// A worker, or the members of a team, which are of one group.
    fn workers(&self, workers: &[WorkerId]) -> String {
        let track = |worker: &WorkerId| self.trace.workers.get(worker.index());
        match workers {
            [only] => track(only).map_or_else(String::new, |track| track.name.clone()),
            all => {
                let group = all.first().and_then(track).map_or("", |track| &track.group);
                format!("{group} {}", ranges(all.iter().map(|worker| worker.0)))
            }
        }
    }

    fn memory(&self, memory: MemoryNode) -> String {
        self.trace.memories.get(memory.index()).cloned().unwrap_or_default()
    }

    fn node(&self, node: ObservedNode) -> String {
        self.nodes.get(node.index()).cloned().unwrap_or_default()
    }

    fn steps(&self, steps: &[Moment]) -> Vec<StepReport> {
        let started =
            |step: &Moment| if let Step::Started(worker) = step.what { Some((worker, step.nanos)) } else { None };
        let (worker, began) = steps.iter().find_map(started).unzip();
        let memory = worker.and_then(|worker| self.platform.workers.get(worker.index())).map(|worker| worker.memory);
        let mut expected = None;
        // The members of a team have steps of their own.
        let same_moment = |one: &Moment, other: &Moment| {
            one.nanos == other.nanos && doer(one).zip(doer(other)).is_some_and(|(one, other)| one.0 == other.0)
        };
        let report = |steps: &[Moment]| {
            let step = &steps[0];
            let by = || {
                let workers: Vec<WorkerId> = steps.iter().filter_map(doer).map(|(_, worker)| worker).collect();
                Workers { names: self.workers(&workers), workers: workers.iter().map(|worker| worker.0).collect() }
            };
            let what = match &step.what {
                Step::Submitted => What::Submitted,
                Step::Ready { after } => What::Ready {
                    after: after.map(|(task, _)| self.trace.task_name(task)),
                    by: after.map(|(_, worker)| self.workers(&[worker])),
                },
                Step::Chosen(choice) => {
                    expected = choice.children[choice.chosen].length;
                    self.choice(choice, step.nanos)
                }
                Step::Held(node) => What::Stored { node: self.node(*node) },
                Step::Refused(node, why) => What::Refused { node: self.node(*node), why: why.to_string() },
                Step::Pulled(_) => What::Pulled { by: by() },
                // Data moves to other memories too, for other tasks.
                Step::Arrived { transfer, .. } if Some(transfer.to) != memory => return None,
                Step::Arrived { transfer, began } => What::Arrived {
                    data: self.trace.data_name(transfer.data),
                    bytes: transfer.bytes,
                    from: self.memory(transfer.from),
                    to: self.memory(transfer.to),
                    began_s: seconds(*began),
                },
                Step::Started(_) => What::Started { by: by() },
                Step::Ended(_) => What::Ended {
                    by: by(),
                    length_s: seconds(step.nanos - began.unwrap_or(step.nanos)),
                    expected_s: expected.map(seconds),
                },
                Step::Passed => What::Passed,
                _ => return None,
            };
            Some(StepReport { at_s: seconds(step.nanos), what })
        };
        steps.chunk_by(same_moment).filter_map(report).collect()
    }

    fn choice(&self, choice: &Choice, now: u64) -> What {
        let node = self.node(choice.from);
        let below = |child: ObservedNode| {
            let path = self.node(child);
            path.strip_prefix(&format!("{node}/")).map(str::to_owned).unwrap_or(path)
        };
        let child = |(place, of): (usize, &Alternative)| Child {
            child: below(of.node),
            workers: of.workers.iter().map(|worker| worker.0).collect(),
            chosen: place == choice.chosen,
            able: of.is_able,
            free_at_s: seconds(of.free_at.max(now)),
            transfer_s: seconds(of.transfer),
            length_s: of.length.map(seconds),
            energy_j: of.energy,
            end_s: of.end(now).map(seconds),
        };
        let children: Vec<Child> = choice.children.iter().enumerate().map(child).collect();
        let chosen = children[choice.chosen].child.clone();
        What::Chosen { component: choice.component.clone(), node, child: chosen, children }
    }
}

/// The worker that does a step, with the kind of step.
fn doer(step: &Moment) -> Option<(u8, WorkerId)> {
    match step.what {
        Step::Pulled(worker) => Some((0, worker)),
        Step::Started(worker) => Some((1, worker)),
        Step::Ended(worker) => Some((2, worker)),
        _ => None,
    }
}
