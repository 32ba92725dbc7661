//! Errors of simulations.

use sched_graph::{ContextId, TaskId};
use sched_text::{Findings, closest, did_you_mean};
use sched_tree::context::ContextError;
use sched_tree::fault::task_count;
use sched_tree::{Fault, NodeState, suspect};
use std::fmt;

/// Reason why a simulation has no result. Tasks have their places in the graph here, from 0, and in the text the
/// numbers of events and traces, from 1.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum SimError {
    /// The policy is missing, is invalid, or does not fit the platform; or the platform is invalid.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Policy(#[from] Findings),
    /// No worker can run some tasks.
    #[error("the platform `{platform}` cannot run {}", list(.unknown))]
    #[diagnostic(help("{}", kernel_help(unknown, kinds)))]
    Kernels {
        /// Name of the platform.
        platform: String,
        /// Kinds of these tasks.
        unknown: Vec<Unknown>,
        /// Kinds that the platform knows.
        kinds: Vec<String>,
    },
    /// Tasks are restricted to places without a worker that can execute them.
    #[error("no worker of the platform `{platform}` may execute {}", .tasks.iter().map(Nowhere::to_string).collect::<Vec<_>>().join(", "))]
    #[diagnostic(help(
        "restrict them to places with a worker that has an implementation: `sched topology` and the platform file number the workers"
    ))]
    Nowhere {
        /// Name of the platform.
        platform: String,
        /// These tasks, by kind.
        tasks: Vec<Nowhere>,
    },
    /// No worker of a context can execute some of its tasks.
    #[error("{}", .tasks.iter().map(|(context, tasks)| format!("no worker of context `{context}` may execute {tasks}")).collect::<Vec<_>>().join("\n"))]
    #[diagnostic(help("give the context a worker that can execute them, or restrict them to other places"))]
    NowhereInContext {
        /// Names of the contexts, with these tasks by kind.
        tasks: Vec<(String, Nowhere)>,
    },
    /// The data at home on a memory node does not fit there.
    #[error("the data of the graph takes {needed} bytes of the memory `{memory}`, which has {capacity}")]
    #[diagnostic(help("use fewer or smaller tiles, files or arrays, or a platform with a larger memory"))]
    Data {
        /// Name of the memory.
        memory: String,
        /// Bytes of the data.
        needed: u64,
        /// Bytes of the memory.
        capacity: u64,
    },
    /// A task needs more memory than its node has, and so it does on the nodes of all workers that can execute it.
    #[error("task {} needs {needed} bytes of the memory `{memory}`, which has room for {capacity} beside the data at home there", number(*.task))]
    #[diagnostic(help("use smaller tiles, files or arrays, a larger memory, or other workers that can execute it"))]
    Task {
        /// Number of the task.
        task: u32,
        /// Name of the memory.
        memory: String,
        /// Bytes that the task accesses.
        needed: u64,
        /// Bytes that are available for it.
        capacity: u64,
    },
    /// The clock may overflow.
    #[error(
        "tasks and transfers may take more than {years:.0} years, the range of the clock; task {} alone may take {seconds:.3e} s",
        number(*.task)
    )]
    #[diagnostic(help("use shorter tasks, less data, or faster workers and links; check the units"))]
    TooLong {
        /// The longest task.
        task: u32,
        /// Maximum length of it and its transfers in seconds.
        seconds: f64,
        /// Range of the clock in years.
        years: f64,
    },
    /// The clock of a cluster would overflow: each node is in its range, but they wait for each other.
    #[error("the simulation goes on for more than {years:.0} years, the range of the clock")]
    #[diagnostic(help("use shorter tasks, less data, or faster workers and links; check the units"))]
    TooLate {
        /// Range of the clock in years.
        years: f64,
    },
    /// The number of transferred bytes may overflow.
    #[error("the tasks access more data than can be counted; task {} alone accesses {bytes:.3e} bytes", number(*.task))]
    #[diagnostic(help("use less data; check the units"))]
    TooLarge {
        /// The task that accesses the most.
        task: u32,
        /// Bytes that it accesses.
        bytes: f64,
    },
    /// The platform has no memory node on which the graph has data.
    #[error("the graph has data on memory node {node}, and the platform has {memories} memory nodes")]
    #[diagnostic(help("use a platform with more memory nodes"))]
    Home {
        /// The node that the graph names.
        node: u32,
        /// Number of memory nodes of the platform.
        memories: usize,
    },
    /// A context cannot be made, or cannot be changed while the simulation runs.
    #[error("context `{context}` cannot be {done}")]
    Context {
        /// Name of the context.
        context: String,
        /// `made`, or `changed` with the time.
        done: String,
        /// The reason.
        #[source]
        #[diagnostic_source]
        error: ContextError,
    },
    /// A context to change does not exist.
    #[error("there is no context `{name}`")]
    #[diagnostic(help("{}", did_you_mean(name, known.iter().map(String::as_str), "contexts")))]
    NoContext {
        /// The name.
        name: String,
        /// Names of all contexts.
        known: Vec<String>,
    },
    /// A task belongs to a context that does not exist.
    #[error("task {} belongs to context {}, and the simulation has contexts 0 to {}", number(*.task), context.0, .contexts - 1)]
    #[diagnostic(help("add a context to the simulation for each number that tasks of the graph have"))]
    TaskContext {
        /// Number of the task.
        task: u32,
        /// Number of the context.
        context: ContextId,
        /// Number of contexts, with the default one.
        contexts: usize,
    },
    /// The priority of a task is not in the range of its context.
    #[error("task {} has priority {priority}; context `{context}` has {min} to {max}", number(*.task))]
    #[diagnostic(help("choose a priority in that range, or change the range of the context"))]
    Priority {
        /// Number of the task.
        task: u32,
        /// Its priority.
        priority: i32,
        /// The context.
        context: String,
        /// Lowest priority of the context.
        min: i32,
        /// Highest priority of the context.
        max: i32,
    },
    /// A node of a cluster has no result.
    #[error("node {node} of the cluster: {error}")]
    #[diagnostic(help("its platform is `{platform}`"))]
    Node {
        /// Number of the node.
        node: usize,
        /// Name of its platform.
        platform: String,
        /// The reason.
        error: Box<SimError>,
    },
    /// A datum has no owner among the nodes of a cluster.
    #[error(
        "data {data} has {}, and the cluster has nodes 0 to {}",
        .owner.map_or("no owner".to_owned(), |owner| format!("owner {owner}")),
        .nodes - 1
    )]
    #[diagnostic(help("give one owner for each datum of the graph"))]
    Owner {
        /// Number of the datum.
        data: usize,
        /// Its owner, if one is given.
        owner: Option<usize>,
        /// Number of nodes.
        nodes: usize,
    },
    /// Nothing more can happen, and tasks are left.
    #[error(
        "the scheduler kept {left} of {tasks} tasks: nothing more can happen at {nanos} ns{}{}",
        idle(.without_workers),
        places(.nodes, .faults)
    )]
    #[diagnostic(help("{}", stall_help(without_workers)))]
    Stalled {
        /// Number of tasks that have not ended.
        left: usize,
        /// Number of tasks.
        tasks: usize,
        /// Time of the last event.
        nanos: u64,
        /// Contexts with tasks and without workers.
        without_workers: Vec<String>,
        /// Nodes of the trees, with the tasks that they hold.
        nodes: Vec<NodeState>,
        /// Faults of components.
        faults: Vec<Fault>,
    },
}

/// A task as messages, events and traces number it: from 1.
fn number(task: u32) -> u64 {
    TaskId(task).submitted().sequence()
}

/// A kind of task that cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// Name of the kind.
    pub kind: String,
    /// Number of tasks of this kind that cannot run.
    pub tasks: usize,
    /// Number of the first of them.
    pub first: usize,
    /// What the platform lacks for the first of them.
    pub lack: Lack,
}

/// What a platform lacks to run a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Lack {
    /// A kernel for its kind.
    Kernel,
    /// A measurement of its kind, of which there is a model.
    Measurement,
    /// A time without operations: the kernel has a speed, and the task no operations.
    Time,
    /// A time for its footprint.
    Footprint,
    /// A time on every class of some architecture that has workers.
    Class,
}

/// Tasks of one kind that no worker may execute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nowhere {
    /// Name of the kind.
    pub kind: String,
    /// Places that the first of them is restricted to; empty if it is not.
    pub places: String,
    /// Number of the first of them.
    pub first: u32,
    /// Number of such tasks.
    pub tasks: usize,
}

impl fmt::Display for Nowhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Nowhere { kind, places, first, tasks } = self;
        write!(f, "{} of kind `{kind}` (first task {}", task_count(*tasks as u64), number(*first))?;
        if places.is_empty() { f.write_str(")") } else { write!(f, ", restricted to {places})") }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.tasks == 1 { "" } else { "s" };
        write!(f, "`{}` ({} task{plural}, first task {}", self.kind, self.tasks, self.first + 1)?;
        f.write_str(match self.lack {
            Lack::Kernel => ")",
            Lack::Measurement => ", whose model has no measurement on its workers)",
            Lack::Time => ", which has no operations)",
            Lack::Footprint => ", whose footprint has no time)",
            Lack::Class => ", without a time on all workers of an architecture)",
        })
    }
}

fn list(unknown: &[Unknown]) -> String {
    unknown.iter().map(Unknown::to_string).collect::<Vec<_>>().join(", ")
}

fn kernel_help(unknown: &[Unknown], kinds: &[String]) -> String {
    let known = kinds.iter().map(String::as_str);
    let has = |lack: Lack| unknown.iter().any(|unknown| unknown.lack == lack);
    let mut help = unknown.iter().filter(|unknown| unknown.lack == Lack::Kernel).filter_map(|unknown| {
        let name = closest(&unknown.kind, known.clone())?;
        Some(format!("did you mean `{name}` for `{}`?", unknown.kind))
    });
    let meant = help.by_ref().collect::<Vec<_>>().join(" ");
    let names = known.clone().collect::<Vec<_>>().join(", ");
    let known = if names.is_empty() { "it has no kernels".to_owned() } else { format!("it knows: {names}") };
    let of = |lack: Lack, help: &str| has(lack).then(|| help.to_owned());
    let lines = [
        (!meant.is_empty()).then_some(meant),
        of(Lack::Kernel, &format!("add `kernel \"name\" {{ on \"class\" time=\"3 ms\" }}` to the platform; {known}")),
        of(
            Lack::Measurement,
            "the models have no measurement of this kind on the cores and devices of the platform: measure it there, or \
             choose the models of a machine where it was",
        ),
        of(
            Lack::Time,
            "a speed (`gflops`) is for tasks with operations: give the tasks `flops`, or the kernel a time: \
             `on \"class\" time=\"3 ms\"`",
        ),
        of(Lack::Footprint, "the models have no measurement of this footprint: measure tasks with such data, too"),
        of(
            Lack::Class,
            "give the kind a time on each class of an architecture: `kernel \"name\" { on \"class\" time=\"3 ms\" }`",
        ),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
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

fn places(nodes: &[NodeState], faults: &[Fault]) -> String {
    let shown = nodes.iter().filter(|node| node.is_of_interest()).map(|node| format!("\n  {node}"));
    let suspect = suspect(nodes, faults).map(|(node, why)| format!("\n  look at `{}` first: {why}", node.node));
    let faults = faults.iter().map(|fault| format!("\n  fault: {fault}"));
    shown.chain(faults).chain(suspect).collect()
}

sched_text::debug_as_text!(SimError);
