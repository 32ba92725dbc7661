//! Pictures of a machine and of the workers on it: [`text`], [`dot`], [`svg`] and [`json`].
//!
//! All four are functions of a topology and a plan made for it, and return a string that ends with a
//! newline. They show the same: every object, its memory, which worker has which PU, which PUs are free or
//! forbidden, and the plan's warnings.

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

/// Objects of which each is the only content of the one before, drawn as one; and what the last contains.
struct Stack<'a> {
    objects: Vec<&'a Object>,
    contents: Contents<'a>,
}

enum Contents<'a> {
    /// Nothing, or PUs only, which are drawn in place.
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
        // The summary tells the machine's memory; here it would repeat that of its nodes.
        Some(bytes) if object.level != Level::Machine => {
            format!("{} ({})", object.title(), size(bytes))
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
    let count = |level: Level, name: &str| {
        let n = topology.level(level).len();
        (n > 0).then(|| format!("{n} {name}{}", if n == 1 { "" } else { "s" }))
    };
    let mut told: Vec<String> =
        [(Level::Package, "package"), (Level::Numa, "memory node"), (Level::Core, "core"), (Level::Pu, "PU")]
            .into_iter()
            .filter_map(|(level, name)| count(level, name))
            .collect();
    told.extend(topology.root().memory_bytes.map(|bytes| format!("{} of memory", size(bytes))));
    told.join(", ")
}

/// `12 workers on 12 of 16 PUs, each alone on its PU`.
fn usage(topology: &Topology, plan: &BindingPlan) -> String {
    let workers = plan.workers().len();
    let used = topology.pus().iter().filter(|&&pu| !plan.workers_on(pu).is_empty()).count();
    let shared = plan.workers().iter().any(|place| place.shared);
    format!(
        "{workers} worker{} on {used} of {} PU{}{}",
        if workers == 1 { "" } else { "s" },
        topology.pus().len(),
        if topology.pus().len() == 1 { "" } else { "s" },
        match (shared, workers) {
            (true, _) => ", some sharing a PU",
            (false, 1) => "",
            (false, _) => ", each alone on its PU",
        },
    )
}

/// `512 B`, `32 KiB`, `1.5 GiB`: at most one decimal.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    // Tenths, rounded, in integers: exact, and the same everywhere.
    let mut unit = 0;
    let mut divisor = 1_u64;
    while unit + 1 < UNITS.len() && bytes / divisor >= 1024 {
        unit += 1;
        divisor *= 1024;
    }
    let tenths = (u128::from(bytes) * 10 + u128::from(divisor / 2)) / u128::from(divisor);
    match tenths % 10 {
        0 => format!("{} {}", tenths / 10, UNITS[unit]),
        rest => format!("{}.{rest} {}", tenths / 10, UNITS[unit]),
    }
}

/// `0-7, 16-23, 30` for ascending numbers.
pub(super) fn ranges<N: TryInto<u64>>(numbers: impl IntoIterator<Item = N>) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers.into_iter().filter_map(|number| number.try_into().ok()) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let told = runs.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The workers whose memory node is `node`.
fn workers_of_node(plan: &BindingPlan, node: &Object) -> Vec<usize> {
    plan.workers().iter().filter(|place| place.numa == Some(node.index())).map(|place| place.worker).collect()
}
