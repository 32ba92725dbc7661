//! What happened to single tasks, and why: which child each component chose for them, and what the others would have
//! cost.

use super::event::{Event, Transfer};
use super::observer::Observer;
use super::recorder::add_nodes;
use parking_lot::Mutex;
use sched_core::{Refusal, TaskId, WorkerId};
use sched_graph::DataId;
use sched_tree::{Choice, NoteKind, ObservedNode, TreeObserver};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Collects what happens to some tasks of a simulation. It is an [`Observer`], and has a
/// [`TreeObserver`](Self::tree_observer).
///
/// ```
/// use sched_graph::generate::cholesky;
/// use sched_sim::Simulation;
/// use sched_sim::platform::find;
/// use sched_trace::{Explainer, Step};
/// use std::sync::Arc;
/// # let registry = sched_tree::plugin::Registry::compiled_in();
///
/// let graph = Arc::new(cholesky(4, 960));
/// let platform = Arc::new(find("cpu9-gpu3")?);
/// let last = graph.ids().last().expect("there are tasks");
/// let data = graph.task(last).accesses.iter().map(|access| access.data);
/// let mut explainer = Explainer::new([(last.submitted(), data)]);
/// let simulation = Simulation::new(graph, platform).policy("tree-heft").registry(registry.into());
/// simulation.tree_observer(explainer.tree_observer(None)).observe(&mut explainer)?;
/// let explained = explainer.finish();
/// let steps = &explained.tasks[0].steps;
/// assert!(steps.iter().any(|step| matches!(step.what, Step::Chosen(_))), "`mct` chose a child");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Explainer {
    collected: Arc<Collected>,
    /// Tasks that access each piece of data.
    users: BTreeMap<DataId, Vec<TaskId>>,
    /// The task that each worker ended last.
    ended: BTreeMap<WorkerId, TaskId>,
    /// Times at which transfers began that have not ended.
    transfers: Vec<(Transfer, u64)>,
}

/// What happened to some tasks.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Explained {
    /// Paths of the nodes of the scheduler, by id.
    pub nodes: Vec<String>,
    /// The tasks, in the order of submission.
    pub tasks: Vec<Explanation>,
}

/// What happened to a task.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The task.
    pub task: TaskId,
    /// In the order of time.
    pub steps: Vec<Moment>,
}

/// A step at its time.
#[derive(Clone, PartialEq, Debug)]
pub struct Moment {
    /// Nanoseconds since the beginning.
    pub nanos: u64,
    /// The step.
    pub what: Step,
}

/// What happened to a task at some time.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Step {
    /// The application submitted it.
    Submitted,
    /// It became ready.
    Ready {
        /// The task that it waited for last, and the worker that ended that; `None` if it waited for none when it was
        /// submitted.
        after: Option<(TaskId, WorkerId)>,
    },
    /// A component pushes it to one of its children.
    Chosen(Choice),
    /// A node stores it.
    Held(ObservedNode),
    /// A node refuses it.
    Refused(ObservedNode, Refusal),
    /// A worker pulled it.
    Pulled(WorkerId),
    /// Data that it uses has arrived in a memory.
    Arrived {
        /// The transfer.
        transfer: Transfer,
        /// When it began.
        began: u64,
    },
    /// A worker begins to execute it.
    Started(WorkerId),
    /// A worker has executed it.
    Ended(WorkerId),
    /// It ended on no worker.
    Passed,
}

/// What the scheduler and the engine report.
#[derive(Default)]
struct Collected {
    nodes: Mutex<Vec<String>>,
    /// One for each wanted task. There is one thread in a simulation, so the lock is never contended.
    steps: Mutex<BTreeMap<TaskId, Vec<Moment>>>,
    wanted: BTreeSet<TaskId>,
}

impl Collected {
    fn add(&self, task: TaskId, nanos: u64, what: Step) {
        if let Some(steps) = self.steps.lock().get_mut(&task) {
            steps.push(Moment { nanos, what });
        }
    }
}

impl Explainer {
    /// An explainer of these tasks, which use this data.
    pub fn new<D: IntoIterator<Item = DataId>>(tasks: impl IntoIterator<Item = (TaskId, D)>) -> Explainer {
        let mut users: BTreeMap<DataId, Vec<TaskId>> = BTreeMap::new();
        let mut wanted = BTreeSet::new();
        for (task, data) in tasks {
            wanted.insert(task);
            data.into_iter().for_each(|data| users.entry(data).or_default().push(task));
        }
        let steps = Mutex::new(wanted.iter().map(|task| (*task, Vec::new())).collect());
        let collected = Arc::new(Collected { nodes: Mutex::default(), steps, wanted });
        Explainer { collected, users, ended: BTreeMap::new(), transfers: Vec::new() }
    }

    /// The observer for the scheduler, which passes everything on to another one.
    #[must_use]
    pub fn tree_observer(&self, other: Option<Arc<dyn TreeObserver>>) -> Arc<dyn TreeObserver> {
        Arc::new(Within { collected: Arc::clone(&self.collected), other })
    }

    /// All that was collected.
    #[must_use]
    pub fn finish(self) -> Explained {
        let nodes = std::mem::take(&mut *self.collected.nodes.lock());
        let steps = std::mem::take(&mut *self.collected.steps.lock());
        Explained { nodes, tasks: steps.into_iter().map(|(task, steps)| Explanation { task, steps }).collect() }
    }

    fn arrived(&mut self, nanos: u64, transfer: Transfer) {
        let begun = self.transfers.iter().position(|(begun, _)| *begun == transfer);
        let began = begun.map_or(nanos, |place| self.transfers.swap_remove(place).1);
        let mut all = self.collected.steps.lock();
        for task in self.users.get(&transfer.data).into_iter().flatten() {
            let Some(steps) = all.get_mut(task).filter(|steps| is_waiting(steps)) else { continue };
            steps.push(Moment { nanos, what: Step::Arrived { transfer, began } });
        }
    }
}

/// Whether a task with these steps is ready and has not started.
fn is_waiting(steps: &[Moment]) -> bool {
    let is_over = |step: &Step| matches!(step, Step::Started(_) | Step::Ended(_) | Step::Passed);
    steps.last().is_some_and(|last| !is_over(&last.what) && last.what != Step::Submitted)
}

impl Observer for Explainer {
    fn event(&mut self, nanos: u64, event: &Event) {
        let add = |task: TaskId, what: Step| {
            if self.collected.wanted.contains(&task) {
                self.collected.add(task, nanos, what);
            }
        };
        match *event {
            Event::Submitted { task } => add(task, Step::Submitted),
            Event::Ready { task, by } => {
                let after = by.and_then(|worker| Some((*self.ended.get(&worker)?, worker)));
                add(task, Step::Ready { after });
            }
            Event::Pulled { task, worker } => add(task, Step::Pulled(worker)),
            Event::Started { task, worker, .. } => add(task, Step::Started(worker)),
            Event::Ended { task, worker } => {
                add(task, Step::Ended(worker));
                self.ended.insert(worker, task);
            }
            Event::Passed { task } => add(task, Step::Passed),
            Event::TransferStarted(transfer) if self.users.contains_key(&transfer.data) => {
                self.transfers.push((transfer, nanos));
            }
            Event::TransferEnded(transfer) if self.users.contains_key(&transfer.data) => self.arrived(nanos, transfer),
            _ => {}
        }
    }
}

/// The observer of the scheduler.
struct Within {
    collected: Arc<Collected>,
    other: Option<Arc<dyn TreeObserver>>,
}

impl TreeObserver for Within {
    fn nodes(&self, paths: &[&str]) -> ObservedNode {
        if let Some(other) = &self.other {
            other.nodes(paths);
        }
        add_nodes(&mut self.collected.nodes.lock(), paths)
    }

    fn ready(&self, nanos: u64, by: Option<WorkerId>, task: TaskId) {
        if let Some(other) = &self.other {
            other.ready(nanos, by, task);
        }
    }

    fn held(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, node: ObservedNode) {
        if let Some(other) = &self.other {
            other.held(nanos, by, task, node);
        }
        self.collected.add(task, nanos, Step::Held(node));
    }

    fn refused(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, node: ObservedNode, why: Refusal) {
        if let Some(other) = &self.other {
            other.refused(nanos, by, task, node, why);
        }
        self.collected.add(task, nanos, Step::Refused(node, why));
    }

    fn noted(&self, nanos: u64, by: Option<WorkerId>, node: ObservedNode, kind: NoteKind, text: &str) {
        if let Some(other) = &self.other {
            other.noted(nanos, by, node, kind, text);
        }
    }

    fn wants_choices(&self, task: TaskId) -> bool {
        self.collected.wanted.contains(&task) || self.other.as_ref().is_some_and(|other| other.wants_choices(task))
    }

    fn chose(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, choice: Choice) {
        if let Some(other) = self.other.as_ref().filter(|other| other.wants_choices(task)) {
            other.chose(nanos, by, task, choice.clone());
        }
        self.collected.add(task, nanos, Step::Chosen(choice));
    }
}
