//! The component: what an author writes.

use crate::estimate::Time;
use crate::info::Info;
use crate::node::{Child, Node};
use crate::params::{BuildError, Params};
use crate::task::Task;
use std::fmt;

/// The answer to a push: taken, or handed back with the reason.
pub type Push = Result<(), Refused>;

/// A task that was not taken.
#[derive(Debug)]
#[must_use = "the task inside is yours again: keep it, or hand it on"]
pub struct Refused {
    /// The task, which belongs to the caller again.
    pub task: Task,
    /// Why it was not taken.
    pub why: Refusal,
}

impl Refused {
    /// Hands `task` back.
    pub fn new(task: Task, why: Refusal) -> Refused {
        Refused { task, why }
    }
}

/// Why a task was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no room now. A `can_push` follows when there is.
    Full,
    /// No worker below can execute it.
    NoWorker,
    /// A worker below was told to come and pull it.
    PullInstead,
    /// A model needs it to be measured first.
    Uncalibrated,
}

impl Refusal {
    /// The number that stands for it on the wire.
    pub(crate) fn code(self) -> u32 {
        match self {
            Refusal::Full => 1,
            Refusal::NoWorker => 2,
            Refusal::PullInstead => 3,
            Refusal::Uncalibrated => 4,
        }
    }

    /// Reads a number from the wire. One of a later version is taken for [`Refusal::Full`], which is always safe: the
    /// task waits.
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
            Refusal::PullInstead => "a worker was told to pull it instead",
            Refusal::Uncalibrated => "a model needs it to be measured first",
        })
    }
}

/// One component of a scheduler tree.
///
/// The host calls a component from many threads at once, one call for each; `self` is shared, so what changes stands
/// behind a lock of the component's own ([`Mutex`](crate::Mutex)) or in atomics. Two rules:
///
/// - **Never hold a lock across a hop** (any method of [`Node`] that reaches another component: they are marked *hop*).
///   The neighbour may call back. Debug builds and the rig assert this for [`Mutex`](crate::Mutex).
/// - **Read nothing ambient**: time, randomness and settings come from [`Node`] and [`Params`], so that the same
///   component runs under a virtual clock and gives the same run for the same seed.
///
/// Every method but [`push_task`](Component::push_task) has a default that passes the call on, so a component only
/// says what it does differently.
pub trait Component: Send + Sync + 'static {
    /// Takes `task`, keeping it or pushing it on, or hands it back with the reason.
    ///
    /// # Errors
    /// [`Refused`] with the task in it.
    fn push_task(&self, node: Node<'_>, task: Task) -> Push;

    /// Gives a task to child `to`, one that the worker on whose behalf the call happens ([`Node::requester`]) can execute.
    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        let _ = to;
        node.pull_from_parents()
    }

    /// Child `to` has room: sends something down to it, or asks further up. Whether anything was sent.
    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        let _ = to;
        node.parents_can_push()
    }

    /// There is work above: wakes a worker that can use it. Whether one was woken.
    fn can_pull(&self, node: Node<'_>) -> bool {
        node.wake_one()
    }

    /// When the workers below will have nothing left to do.
    fn estimated_end(&self, node: Node<'_>) -> Time {
        node.earliest_end_below()
    }

    /// Tasks waiting here and below, divided by the relative speed of the workers below.
    fn estimated_load(&self, node: Node<'_>) -> f64 {
        node.load_below()
    }

    /// Workers were added to the context, or removed. No other call is in the tree meanwhile.
    fn notify_change_workers(&self, node: Node<'_>) {
        let _ = node;
    }

    /// Gives up every stored task, in the order in which they should run: on a swap, a resize or a shutdown. No other
    /// call is in the tree meanwhile.
    fn drain(&self) -> Vec<Task> {
        Vec::new()
    }

    /// What a stall report or a picture should say about the component now.
    fn describe(&self, report: &mut Report) {
        let _ = report;
    }
}

/// A component that a policy can name.
pub trait Build: Component + Sized {
    /// What it is.
    const INFO: Info;

    /// Makes one from its parameters: every parameter that [`INFO`](Build::INFO) declares is there, typed and in range.
    ///
    /// # Errors
    /// When the values do not make sense together; the message goes to the author of the policy.
    fn build(params: &Params) -> Result<Self, BuildError>;
}

/// Facts about a component, for people.
#[derive(Clone, Default, Debug)]
pub struct Report {
    facts: Vec<(String, String)>,
}

impl Report {
    /// Adds a fact: `report.fact("tasks", 12)`.
    pub fn fact(&mut self, name: impl Into<String>, value: impl fmt::Display) {
        self.facts.push((name.into(), value.to_string()));
    }

    /// What was added, in order.
    #[must_use]
    pub fn facts(&self) -> &[(String, String)] {
        &self.facts
    }
}
