//! Why a simulation does not begin, or does not end.

use sched_text::{Findings, closest, did_you_mean};
use sched_tree::NodeState;
use sched_tree::context::ContextError;
use sched_tree::fault::task_count;
use std::fmt;

/// Why there is no result.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum SimError {
    /// The policy is not there, is wrong, or does not fit the platform; or the platform is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Policy(#[from] Findings),
    /// No worker can run some tasks.
    #[error("the platform `{platform}` cannot run {}", list(.unknown))]
    #[diagnostic(help("{}", kernel_help(unknown, kinds)))]
    Kernels {
        /// Name of the platform.
        platform: String,
        /// The kinds of these tasks.
        unknown: Vec<Unknown>,
        /// The kinds that the platform names.
        kinds: Vec<String>,
    },
    /// What is at home in a memory does not fit there.
    #[error("the data of the graph takes {needed} bytes of the memory `{memory}`, which has {capacity}")]
    #[diagnostic(help("take fewer or smaller tiles, or a platform with a larger memory"))]
    Data {
        /// Name of the memory.
        memory: String,
        /// Bytes at home there.
        needed: u64,
        /// Bytes that there are.
        capacity: u64,
    },
    /// One task needs more memory than there is.
    #[error("task {task} needs {needed} bytes of the memory `{memory}`, which has {capacity}")]
    #[diagnostic(help("take smaller tiles, or a platform with a larger memory"))]
    Task {
        /// Number of the task.
        task: u32,
        /// Name of the memory.
        memory: String,
        /// Bytes that the task accesses.
        needed: u64,
        /// Bytes that there are for it.
        capacity: u64,
    },
    /// The clock would not reach to the end.
    #[error(
        "tasks and transfers may take more than {years:.0} years, which is as far as the clock counts; task {task} alone may take {seconds:.3e} s"
    )]
    #[diagnostic(help("take shorter tasks, less data, or faster workers and links: mind the units"))]
    TooLong {
        /// The longest task.
        task: u32,
        /// How long it may take, with its transfers, in seconds.
        seconds: f64,
        /// How far the clock counts.
        years: f64,
    },
    /// More bytes are on the way than can be counted.
    #[error("the tasks access more data than can be counted; task {task} alone accesses {bytes:.3e} bytes")]
    #[diagnostic(help("take less data: mind the units"))]
    TooLarge {
        /// The task that accesses most.
        task: u32,
        /// Bytes that it accesses.
        bytes: f64,
    },
    /// Memory `node` of a task or piece of data is not one of the platform.
    #[error("data is at home on memory node {node}, and the platform has {memories}")]
    #[diagnostic(help("take a platform with more memories"))]
    Home {
        /// The memory that the graph names.
        node: u32,
        /// Number of memories.
        memories: usize,
    },
    /// A context is not made, or not changed while the simulation runs.
    #[error("context `{context}` cannot be {done}")]
    Context {
        /// Its name.
        context: String,
        /// `made`, or `changed` and when.
        done: String,
        /// Why.
        #[source]
        #[diagnostic_source]
        error: ContextError,
    },
    /// What is to be changed is no context.
    #[error("there is no context `{name}`")]
    #[diagnostic(help("{}", did_you_mean(name, known.iter().map(String::as_str), "contexts")))]
    NoContext {
        /// The name.
        name: String,
        /// The contexts that there are.
        known: Vec<String>,
    },
    /// A task belongs to a context that there is not.
    #[error("task {task} belongs to context {context}, and the simulation has contexts 0 to {}", .contexts - 1)]
    #[diagnostic(help("give the simulation a context for each number that tasks of the graph have"))]
    TaskContext {
        /// Number of the task.
        task: u32,
        /// Number of the context.
        context: u16,
        /// How many contexts there are, the default one included.
        contexts: usize,
    },
    /// The priority of a task is not one that its context allows.
    #[error("task {task} has priority {priority}; context `{context}` has {min} to {max}")]
    #[diagnostic(help("choose a priority of that range, or make the context with another one"))]
    Priority {
        /// Number of the task.
        task: u32,
        /// Its priority.
        priority: i32,
        /// The context.
        context: String,
        /// The lowest priority there.
        min: i32,
        /// The highest priority there.
        max: i32,
    },
    /// Nothing happens any more, and tasks are left.
    #[error(
        "the scheduler kept {left} of {tasks} tasks: at {nanos} ns nothing moves any more{}{}",
        idle(.without_workers),
        places(.nodes)
    )]
    #[diagnostic(help("{}", stall_help(without_workers)))]
    Stalled {
        /// Tasks that have not ended.
        left: usize,
        /// All tasks.
        tasks: usize,
        /// When the last thing happened.
        nanos: u64,
        /// Contexts with tasks that have no workers.
        without_workers: Vec<String>,
        /// Where the tasks sit.
        nodes: Vec<NodeState>,
    },
}

/// A kind of tasks that cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// Its name.
    pub kind: String,
    /// How many tasks of it there are that cannot run.
    pub tasks: usize,
    /// The first of them.
    pub first: usize,
    /// The platform knows the kind, but not for such tasks.
    pub known: bool,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.tasks == 1 { "" } else { "s" };
        write!(f, "`{}` ({} task{plural}, first task {}", self.kind, self.tasks, self.first)?;
        f.write_str(if self.known { ": no time for its size, footprint or operations)" } else { ")" })
    }
}

fn list(unknown: &[Unknown]) -> String {
    unknown.iter().map(Unknown::to_string).collect::<Vec<_>>().join(", ")
}

fn kernel_help(unknown: &[Unknown], kinds: &[String]) -> String {
    let known = kinds.iter().map(String::as_str);
    let mut help = unknown.iter().filter(|unknown| !unknown.known).filter_map(|unknown| {
        let name = closest(&unknown.kind, known.clone())?;
        Some(format!("did you mean `{name}` for `{}`?", unknown.kind))
    });
    let meant = help.by_ref().collect::<Vec<_>>().join(" ");
    let names = known.clone().collect::<Vec<_>>().join(", ");
    let meant = if meant.is_empty() { String::new() } else { format!("{meant}\n") };
    format!("{meant}add `kernel \"name\" {{ on \"class\" time=\"3 ms\" }}` to the platform; it knows: {names}")
}

fn idle(without_workers: &[String]) -> String {
    without_workers.iter().map(|context| format!("\n  context `{context}` has tasks and no workers")).collect()
}

fn stall_help(without_workers: &[String]) -> &'static str {
    if without_workers.is_empty() {
        "run `sched check` on the policy; if it is valid, a component loses tasks or wakes nobody"
    } else {
        "give these contexts workers"
    }
}

fn places(nodes: &[NodeState]) -> String {
    let held: Vec<String> = nodes
        .iter()
        .filter(|node| node.tasks > 0)
        .map(|node| {
            let refusal = node.last_refusal.as_ref().map_or(String::new(), |why| format!(", last refused: {why}"));
            let context = if node.context.is_empty() { String::new() } else { format!("{}: ", node.context) };
            format!("\n  {context}{}: {}{refusal}", node.node, task_count(node.tasks))
        })
        .collect();
    held.concat()
}

sched_text::debug_as_text!(SimError);
