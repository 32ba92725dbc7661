//! Pictures of a machine and of the workers on it: [`text`], [`dot`], [`svg`] and [`json`].
//!
//! All four are functions of a topology and a plan made for it, and return a string that ends with a newline. They show
//! the same content: every object, its memory, the PU of each worker, which PUs are free or forbidden, and the plan's
//! warnings.

mod boxes;
mod dot;
mod json;
mod svg;
mod text;

pub use dot::dot;
pub use json::json;
pub use svg::svg;
pub use text::text;

use super::{BindingPlan, Level, Object, Topology};
use sched_text::amount::bytes;
use sched_text::{count, ranges};

/// A chain of objects, each the only content of the previous one, drawn as one; and the content of the last.
struct Stack<'a> {
    objects: Vec<&'a Object>,
    contents: Contents<'a>,
}

enum Contents<'a> {
    /// No content, or only PUs, which are drawn in place.
    Pus(Vec<&'a Object>),
    Stacks(Vec<Stack<'a>>),
}

impl<'a> Stack<'a> {
    fn new(mut object: &'a Object) -> Self {
        let mut objects = vec![object];
        while let [only] = object.children.as_slice()
            && only.level != Level::Pu
        {
            objects.push(only);
            object = only;
        }
        let contents = if object.children.iter().all(|child| child.level == Level::Pu) {
            Contents::Pus(object.children.iter().collect())
        } else {
            Contents::Stacks(object.children.iter().map(Self::new).collect())
        };
        Self { objects, contents }
    }
}

/// `numa 0 (64 GiB)`, `core 3`.
fn label(object: &Object) -> String {
    match object.memory_bytes {
        // The summary shows the machine's memory; here it would repeat that of its nodes.
        Some(size) if object.level != Level::Machine => {
            format!("{} ({})", object.title(), bytes(size))
        }
        _ => object.title(),
    }
}

/// What a PU is used for.
enum Use<'a> {
    Workers(&'a [usize]),
    Free,
    Forbidden,
}

fn use_of<'a>(topology: &Topology, plan: &'a BindingPlan, pu: u32) -> Use<'a> {
    match plan.workers_on(pu) {
        [] if topology.allowed_pus().binary_search(&pu).is_ok() => Use::Free,
        [] => Use::Forbidden,
        workers => Use::Workers(workers),
    }
}

/// `worker 3`, `workers 0, 2`.
fn workers(numbers: &[usize]) -> String {
    match numbers {
        [] => "no workers".to_owned(),
        [only] => format!("worker {only}"),
        several => format!("workers {}", ranges(several.iter().copied())),
    }
}

/// `this machine: 2 packages, 2 memory nodes, 16 cores, 32 PUs, 64 GiB`.
fn summary(topology: &Topology) -> String {
    let objects = |level: Level, name: &str| {
        let n = topology.level(level).len();
        (n > 0).then(|| count(n, name))
    };
    let mut reported: Vec<String> =
        [(Level::Package, "package"), (Level::Numa, "memory node"), (Level::Core, "core"), (Level::Pu, "PU")]
            .into_iter()
            .filter_map(|(level, name)| objects(level, name))
            .collect();
    reported.extend(topology.root().memory_bytes.map(|size| format!("{} of memory", bytes(size))));
    reported.join(", ")
}

/// `12 workers on 12 of 16 PUs, each alone on its PU`.
fn usage(topology: &Topology, plan: &BindingPlan) -> String {
    let workers = plan.workers().len();
    let used = topology.pus().iter().filter(|&&pu| !plan.workers_on(pu).is_empty()).count();
    let shared = plan.workers().iter().any(|place| place.shared);
    format!(
        "{} on {used} of {}{}",
        count(workers, "worker"),
        count(topology.pus().len(), "PU"),
        match (shared, workers) {
            (true, _) => ", some sharing a PU",
            (false, 1) => "",
            (false, _) => ", each alone on its PU",
        },
    )
}

/// The workers whose memory node is `node`.
fn workers_of_node(plan: &BindingPlan, node: &Object) -> Vec<usize> {
    plan.workers().iter().filter(|place| place.numa == Some(node.index())).map(|place| place.worker).collect()
}
