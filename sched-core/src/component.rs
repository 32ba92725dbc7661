//! The component: the type that an author writes.

use crate::abi::extension::RawExecution;
use crate::estimate::Time;
use crate::info::Info;
use crate::node::{Child, Node};
use crate::params::{BuildError, Params};
use crate::task::{Task, TaskId};
use crate::workers::WorkerId;
use std::fmt;
use std::time::Duration;

/// The answer to a push: accepted, or handed back with the reason.
pub type Push = Result<(), Refused>;

/// A task that was not accepted.
#[derive(Debug)]
#[must_use = "the task inside is yours again: keep it, or hand it on"]
pub struct Refused {
    /// The task, which the caller owns again.
    pub task: Task,
    /// Why it was not taken.
    pub why: Refusal,
}

impl Refused {
    /// Hands `task` back to the caller.
    pub fn new(task: Task, why: Refusal) -> Refused {
        Refused { task, why }
    }
}

/// Why a task was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// No room now. A `can_push` follows when there is.
    Full,
    /// No worker below can execute it.
    NoWorker,
    /// A worker below was woken to pull it.
    PullInstead,
    /// A performance model needs it to be measured first.
    Uncalibrated,
}

impl Refusal {
    /// The wire encoding of this refusal.
    pub(crate) fn code(self) -> u32 {
        match self {
            Refusal::Full => 1,
            Refusal::NoWorker => 2,
            Refusal::PullInstead => 3,
            Refusal::Uncalibrated => 4,
        }
    }

    /// Decodes a refusal from the wire. An unknown code, from a later version, reads as [`Refusal::Full`], which is
    /// always safe: the task waits.
    #[must_use]
    pub fn from_code(code: u32) -> Refusal {
        match code {
            2 => Refusal::NoWorker,
            3 => Refusal::PullInstead,
            4 => Refusal::Uncalibrated,
            _ => Refusal::Full,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Full => "full",
            Refusal::NoWorker => "no worker below can execute it",
            Refusal::PullInstead => "a worker was woken to pull it instead",
            Refusal::Uncalibrated => "a model needs it to be measured first",
        })
    }
}

/// One component of a scheduler tree.
///
/// The host calls a component from many threads concurrently, each with its own call. `self` is shared, so mutable
/// state belongs in a lock of the component's own ([`Mutex`](crate::Mutex)) or in atomics. Two rules:
///
/// - **Never hold a lock across a hop**: any method of [`Node`] that reaches another component, marked *hop*. The
///   neighbour may call back. Debug builds and the rig assert this for [`Mutex`](crate::Mutex).
/// - **Read no ambient state**: time, randomness and settings come from [`Node`] and [`Params`], so that the same
///   component runs under a virtual clock and gives the same run for the same seed.
///
/// Every method but [`push_task`](Component::push_task) has a default that forwards the call, so a component implements
/// only where it differs.
///
/// # Parts that contexts share
///
/// In a part of a policy that several contexts share (`shared "name" between-contexts=#true`), a component has a node
/// in the tree of each: [`parents`](Node::parents), [`workers_in_context`](Node::workers_in_context) and
/// [`context`](Node::context) are those of the context whose call it answers, the children and
/// [`workers`](Node::workers) are the same in all. What it keeps should not depend on the context.
/// [`notify_change_workers`](Component::notify_change_workers) may be called while other contexts call it.
pub trait Component: Send + Sync + 'static {
    /// Takes `task` and stores it or pushes it on, or hands it back with the reason.
    ///
    /// # Errors
    /// [`Refused`], which contains the task.
    fn push_task(&self, node: Node<'_>, task: Task) -> Push;

    /// Gives child `to` a task that the requesting worker ([`Node::requester`]) can execute.
    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        let _ = to;
        node.pull_from_parents()
    }

    /// Called when child `to` has room: pushes tasks down to it, or asks the parents for more. Returns whether any task
    /// was sent.
    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        let _ = to;
        node.parents_can_push()
    }

    /// Called when there is work above: wakes a worker that can use it. Returns whether one was woken.
    fn can_pull(&self, node: Node<'_>) -> bool {
        node.wake_one()
    }

    /// The time at which the workers below run out of work, as far as that was [predicted](Task::set_predicted): tasks
    /// stored here or below without a prediction add nothing. By default the
    /// [earliest end below](Node::earliest_end_below), to which a component that stores tasks adds
    /// [those](Node::end_below_with_queued).
    ///
    /// It is a question, which anybody may ask at any time and as often as they like: it moves no tasks, and wakes
    /// nobody. So is [`estimated_load`](Self::estimated_load).
    fn estimated_end(&self, node: Node<'_>) -> Time {
        node.earliest_end_below()
    }

    /// Number of tasks waiting here and below, divided by the relative speed of the workers below. It moves no tasks,
    /// as [`estimated_end`](Self::estimated_end).
    fn estimated_load(&self, node: Node<'_>) -> f64 {
        node.load_below()
    }

    /// Called once the component is in a tree, before any other call; and after workers were added to the context or
    /// removed from it, if the component [lives on](crate::Info::keeps_state) then. No other call is in the tree
    /// meanwhile.
    fn notify_change_workers(&self, node: Node<'_>) {
        let _ = node;
    }

    /// Gives up every stored task, in the order in which they should run. The host calls it when the policy is swapped,
    /// and when workers are added or removed (unless the component [lives on](crate::Info::keeps_state)). No other call
    /// is in the tree meanwhile. At shutdown the component is dropped without it, and the host takes back what is left.
    fn drain(&self) -> Vec<Task> {
        Vec::new()
    }

    /// [`drain`](Self::drain) with the node, for a component that needs it: there is no call, no neighbour can be
    /// reached, and the clock does not run.
    fn drain_at(&self, node: Node<'_>) -> Vec<Task> {
        let _ = node;
        self.drain()
    }

    /// Adds the component's current state to a stall report or a picture of the tree.
    fn describe(&self, report: &mut Report) {
        let _ = report;
    }

    /// [`describe`](Self::describe) with the node, for a component that needs it.
    fn describe_at(&self, node: Node<'_>, report: &mut Report) {
        let _ = node;
        self.describe(report);
    }

    /// Called just before a worker below executes a task of this tree, if the component declares
    /// [`hears_tasks`](crate::Info::hears_tasks). The worker ([`Node::requester`]) waits meanwhile.
    fn task_started(&self, node: Node<'_>, task: &Execution) {
        let _ = (node, task);
    }

    /// Called when a worker below has executed a task of this tree, before tasks that wait for it are pushed, if the
    /// component declares [`hears_tasks`](crate::Info::hears_tasks).
    fn task_ended(&self, node: Node<'_>, task: &Execution, end: &ExecutionEnd) {
        let _ = (node, task, end);
    }

    /// What the component has learnt, for the one that takes its place when the policy is swapped: a component of the
    /// same name and plugin, which stands for the same [topology object](Node::topology_object), gets it by
    /// [`import`](Self::import). The format is the component's own; a newer build may be the one that reads it. No
    /// other call is in the tree meanwhile: no neighbour can be reached, and the clock does not run. Stored tasks are
    /// no part of it: they are [drained](Self::drain).
    fn export(&self, node: Node<'_>) -> Option<Vec<u8>> {
        let _ = node;
        None
    }

    /// Takes what a predecessor [exported](Self::export): after
    /// [`notify_change_workers`](Self::notify_change_workers), before the first task. No neighbour can be reached, as in
    /// `export`.
    fn import(&self, node: Node<'_>, state: &[u8]) {
        let _ = (node, state);
    }
}

/// A task that a worker executes.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Execution {
    /// The task.
    pub task: TaskId,
    /// The codelet's number in the runtime.
    pub codelet: u32,
    /// See [`Task::footprint`].
    pub footprint: u64,
    /// Its priority.
    pub priority: i32,
    /// The worker, simple or combined.
    pub worker: WorkerId,
    /// The duration that a component [predicted](Task::predicted).
    pub predicted: Option<Duration>,
}

/// The end of a task's execution.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct ExecutionEnd {
    /// Time from the start to the end.
    pub length: Duration,
    /// Energy in joules, if the host knows it: in a simulation what the platform gives, in a run the expected value.
    pub energy: Option<f64>,
    /// Whether the task failed.
    pub failed: bool,
}

impl Execution {
    pub(crate) fn of(raw: &RawExecution) -> Execution {
        Execution {
            task: TaskId::new(raw.task),
            codelet: raw.codelet,
            footprint: raw.footprint,
            priority: raw.priority,
            worker: WorkerId(raw.worker),
            predicted: (raw.predicted != u64::MAX).then(|| Duration::from_nanos(raw.predicted)),
        }
    }
}

impl ExecutionEnd {
    pub(crate) fn of(raw: &RawExecution) -> ExecutionEnd {
        ExecutionEnd {
            length: Duration::from_nanos(raw.length),
            energy: Some(raw.energy).filter(|energy| !energy.is_nan()),
            failed: raw.failed != 0,
        }
    }
}

/// A component that a policy can name.
pub trait Build: Component + Sized {
    /// The component's name, family, parameters and properties.
    const INFO: Info;

    /// Builds a component from its parameters: each one that [`INFO`](Build::INFO) declares is present, typed and in
    /// range.
    ///
    /// # Errors
    /// When values contradict each other; the message is shown to the author of the policy.
    fn build(params: &Params) -> Result<Self, BuildError>;
}

/// Facts about a component, for people to read.
#[derive(Clone, Default, Debug)]
pub struct Report {
    facts: Vec<(String, String)>,
}

impl Report {
    /// Adds a fact: `report.fact("tasks", 12)`.
    pub fn fact(&mut self, name: impl Into<String>, value: impl fmt::Display) {
        self.facts.push((name.into(), value.to_string()));
    }

    /// The facts, in the order in which they were added.
    #[must_use]
    pub fn facts(&self) -> &[(String, String)] {
        &self.facts
    }
}
