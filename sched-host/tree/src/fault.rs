//! Faults of components during a run.

use super::attendance::Method;
use super::attended::PATIENCE;
use super::breach::Breach;
use super::claims::Declaration;
use serde::Serialize;
use std::fmt;

/// A breach of contract by a component. The run continues without harm: every task is executed exactly once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fault {
    /// The context that the tree schedules for; empty if there is only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The node, by its path in the tree.
    pub node: String,
    /// The component in it.
    pub component: String,
    /// The plugin it came from.
    pub plugin: String,
    /// The kind of fault.
    #[serde(flatten)]
    pub kind: FaultKind,
}

/// Kind of a fault of a component.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "fault", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FaultKind {
    /// It panicked. The node is quarantined: calls pass through it.
    Panicked {
        /// Message and location of the panic.
        message: String,
        /// Number of tasks taken back from it.
        rehomed: u64,
    },
    /// It called its neighbours in a cycle. The node is quarantined.
    Cycle {
        /// Number of tasks taken back from it.
        rehomed: u64,
    },
    /// A call of it did not come back in time, while the tree was exchanged or taken down. Its thread stays behind.
    Overdue {
        /// The method.
        method: Method,
        /// Tasks taken back from it.
        rehomed: u64,
    },
    /// It dropped tasks, which were executed nevertheless.
    Dropped {
        /// Number of tasks.
        tasks: u64,
    },
    /// It gave workers tasks that they cannot execute, which were executed elsewhere.
    WrongWorker {
        /// Number of tasks.
        tasks: u64,
    },
    /// It did something that its contract rules out. The host made up for it.
    Breach {
        /// What it did.
        breach: Breach,
        /// The method that did it.
        method: Method,
        /// How often; for [`Breach::TasksKept`] the number of tasks.
        count: u64,
    },
    /// It did not do what it declares. Calls of third-party components are compared with their declarations in samples.
    Declaration {
        /// What it declares.
        declaration: Declaration,
        /// The method that did something else.
        method: Method,
        /// How often that was seen.
        count: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { context, node, component, plugin, kind } = self;
        if !context.is_empty() {
            write!(f, "context `{context}`, ")?;
        }
        write!(f, "component `{component}` of {plugin}, node `{node}`: ")?;
        match kind {
            FaultKind::Panicked { message, rehomed } => {
                write!(f, "panicked: {message}; the node is quarantined, {} taken back from it", were(*rehomed))
            }
            FaultKind::Cycle { rehomed } => {
                let taken = were(*rehomed);
                write!(f, "calls went in a circle through it; the node is quarantined, {taken} taken back from it")
            }
            FaultKind::Overdue { method, rehomed } => {
                let taken = were(*rehomed);
                write!(
                    f,
                    "`{method}` did not come back within {PATIENCE:?} and was left behind, {taken} taken back from it"
                )
            }
            FaultKind::Dropped { tasks: 1 } => f.write_str("dropped a task, which was executed all the same"),
            FaultKind::Dropped { tasks } => write!(f, "dropped {tasks} tasks, which were executed all the same"),
            FaultKind::WrongWorker { tasks: 1 } => {
                f.write_str("gave a task to a worker that cannot execute it; it was executed elsewhere")
            }
            FaultKind::WrongWorker { tasks } => {
                write!(f, "gave {tasks} tasks to workers that cannot execute them; they were executed elsewhere")
            }
            FaultKind::Breach { breach, method, count } => f.write_str(&breach.describe(*method, *count)),
            FaultKind::Declaration { declaration, method, count } => {
                f.write_str(&declaration.describe(*method, *count))
            }
        }
    }
}

fn were(tasks: u64) -> String {
    format!("{} {}", task_count(tasks), if tasks == 1 { "was" } else { "were" })
}

/// A number of tasks, in words.
pub fn task_count(tasks: u64) -> String {
    if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") }
}
