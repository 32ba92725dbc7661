//! Tests of policies, with a small catalogue and machines made by hand.

mod adjusting;
mod combined;
mod connecting;
mod drawing;
mod expansion;
mod growth;
mod library;
mod machines;
mod models;
mod overrides;
mod progress;
mod proofs;
mod recipes;
mod refusals;
mod round_trip;
mod rules;
mod simple;
mod slots;
mod specs;
mod text;
mod wrong_each;
mod wrong_flags;
mod wrong_names;
mod wrong_shapes;
mod wrong_text;

use super::*;
use miette::{GraphicalReportHandler, GraphicalTheme};
use sched_core::{Arch, Arity, Family, Info, Param, Slot, Storage, WorkerId, WorkerSet};
use sched_text::Finding;

const NTASKS: Param = Param::int("ntasks-threshold", 0, "tasks held at most; 0 means no limit").at_least(0);
const LENGTH: Param =
    Param::float("exp-len-threshold", 0.0, "expected length held at most; 0 means no limit").at_least(0).unit("µs");
const READY: Param = Param::bool("ready", false, "prefers tasks whose data is there");
const THRESHOLDS: &[Param] = const { &[NTASKS, LENGTH, READY] };
const OF_FIFO: &[Param] =
    const { &[NTASKS, LENGTH, READY, Param::bool("sorted", true, "higher priorities leave first")] };

const BOUNDED: Storage = Storage::BoundedBy(&["ntasks-threshold", "exp-len-threshold"]);

/// The components of the architecture's samples.
fn catalogue() -> Catalogue {
    let fifo = Info::new("fifo", Family::FlowControl, "Holds tasks in the order of their arrival.")
        .storage(BOUNDED)
        .params(OF_FIFO);
    let prio = Info::new("prio", Family::FlowControl, "Holds tasks by priority.").storage(BOUNDED).params(THRESHOLDS);
    let lifo = Info::new("lifo", Family::FlowControl, "Gives back the task that was pushed last.")
        .storage(Storage::Unbounded)
        .pulled_only();
    let eager = Info::new("eager", Family::ResourceMapping, "Gives a task to the first child that takes it.")
        .forwards_push()
        .wakes_workers();
    let random = Info::new("random", Family::ResourceMapping, "Gives a task to any child.").forwards_push();
    let tee = Info::new("tee", Family::SpecialPurpose, "Is ill described.").arity(Arity::Many);
    let calibration = Info::new("eager-calibration", Family::ResourceMapping, "Gives a task where it has no model.");
    let mct = Info::new("mct", Family::ResourceMapping, "Gives a task where it ends first.").needs_models().params(
        const {
            &[
                Param::float("alpha", 1.0, "weight of the completion time").at_least(0),
                Param::float("beta", 1.0, "weight of transfers").at_least(0),
                Param::text("log", "", "where decisions are written"),
            ]
        },
    );
    let select = Info::new("perfmodel-select", Family::SpecialPurpose, "Sorts tasks by what is known of them.").slots(
        const {
            &[
                Slot { name: "perfmodel", doc: "tasks with a calibrated model" },
                Slot { name: "calibrator", doc: "tasks whose model is not calibrated" },
                Slot { name: "no-perfmodel", doc: "tasks without a model" },
            ]
        },
    );
    let best =
        Info::new("best-implementation", Family::SpecialPurpose, "Chooses the fastest implementation.").forwards_push();
    let worker = Info::new("worker", Family::Worker, "Hands tasks to its worker.").storage(Storage::Unbounded);
    let combined = Info::new("combined-worker", Family::Worker, "Hands tasks to its workers.");
    let combined = combined.storage(Storage::Unbounded).combined();
    let sink = Info::new("sink", Family::SpecialPurpose, "Swallows tasks.").arity(Arity::Leaf);
    Catalogue::new([
        (fifo.describe(), "flow-control"),
        (prio.describe(), "flow-control"),
        (lifo.describe(), "flow-control"),
        (eager.describe(), "resource-mapping"),
        (calibration.describe(), "resource-mapping"),
        (mct.describe(), "resource-mapping"),
        (random.describe(), "resource-mapping"),
        (select.describe(), "special-purpose"),
        (best.describe(), "special-purpose"),
        (tee.describe(), "special-purpose"),
        (sink.describe(), "special-purpose"),
        (worker.describe(), "worker"),
        (combined.describe(), "worker"),
    ])
}

/// The stock components, with which shipped policies have to work.
fn stock() -> Catalogue {
    Catalogue::new(sched_components::stock().iter().map(|offer| (offer.info().describe(), "stock")))
}

/// Two NUMA nodes of `cores` cores each, and `gpus` CUDA workers with a memory node each.
struct Node {
    cores: u32,
    gpus: u32,
}

impl Machine for Node {
    fn workers(&self) -> usize {
        (2 * self.cores + self.gpus) as usize
    }

    fn arch(&self, worker: WorkerId) -> Arch {
        if worker.0 < 2 * self.cores { Arch::CPU } else { Arch::CUDA }
    }

    fn groups(&self, level: Level) -> Vec<Group> {
        let cpus = 2 * self.cores;
        let all = cpus + self.gpus;
        let group = |label: String, from: u32, to: u32| Group { label, workers: (from..to).map(WorkerId).collect() };
        let numa = |index: u32| group(format!("numa {index}"), index * self.cores, (index + 1) * self.cores);
        let groups = match level {
            Level::Worker => (0..all).map(|worker| group(format!("worker {worker}"), worker, worker + 1)).collect(),
            Level::Machine => vec![group("machine".to_owned(), 0, all)],
            Level::Arch => vec![group("cpu".to_owned(), 0, cpus), group("cuda".to_owned(), cpus, all)],
            Level::Numa => vec![numa(0), numa(1)],
            Level::MemoryNode => std::iter::once(group("memory-node 0".to_owned(), 0, cpus))
                .chain((0..self.gpus).map(|gpu| group(format!("memory-node {}", gpu + 1), cpus + gpu, cpus + gpu + 1)))
                .collect(),
            Level::CombinedWorker => combined_groups(self),
            Level::Package | Level::L3 | Level::L2 | Level::Core => Vec::new(),
        };
        groups.into_iter().filter(|group| !group.workers.is_empty()).collect()
    }

    /// The cores of each NUMA node.
    fn combined(&self) -> Vec<WorkerSet> {
        let numa = |index: u32| (index * self.cores..(index + 1) * self.cores).map(WorkerId).collect();
        if self.cores > 1 { vec![numa(0), numa(1)] } else { Vec::new() }
    }
}

/// What a user sees of an error.
fn shown(error: &dyn miette::Diagnostic) -> String {
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(110)
        .without_syntax_highlighting();
    handler.render_report(&mut text, error).expect("a String takes any text");
    // Empty lines that carry the frame's indentation would be trimmed by editors.
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The only policy of a text that parses.
fn policy(text: &str) -> Policy {
    let mut policies = parse("test.kdl", text).unwrap_or_else(|errors| panic!("{}", shown(&errors)));
    assert_eq!(policies.len(), 1);
    policies.remove(0)
}

/// What a user sees of a text in which something is wrong: with the text, or with the policy. The rules on progress,
/// which small policies break by the way, have tests of their own.
fn wrong(text: &str) -> String {
    findings(text, check::check_structure)
}

/// Findings including those of the rules on progress.
fn stalls(text: &str) -> String {
    findings(text, check)
}

fn findings(text: &str, check: fn(&Policy, &Catalogue) -> Vec<Finding>) -> String {
    let Parsed { policies, mut findings } = read("test.kdl", text);
    let catalogue = catalogue();
    policies.iter().for_each(|policy| findings.extend(check(policy, &catalogue)));
    assert!(!findings.is_empty(), "nothing is found wrong");
    findings.iter().map(|finding| shown(finding)).collect::<Vec<_>>().join("\n")
}

/// The content of a plan without the policy's name and places in the text.
fn shape(policy: &Policy, machine: &dyn Machine) -> Vec<String> {
    let plan =
        expand(policy, &stock(), machine).unwrap_or_else(|errors| panic!("{}\n{}", policy.to_kdl(), shown(&errors)));
    let node = |node: &PlanNode| {
        let PlanNode { info, params, children, parents, workers, leaf_worker, place, .. } = node;
        format!("{} {params:?} {children:?} {parents:?} {workers:?} {leaf_worker:?} {place}", info.name)
    };
    plan.nodes.iter().map(node).collect()
}

fn set(workers: impl IntoIterator<Item = u32>) -> WorkerSet {
    workers.into_iter().map(WorkerId).collect()
}

const EAGER: &str = r#"policy "tree-eager" { fifo { eager { each "worker" { worker } } } }"#;

const PREFETCHING: &str = r#"
policy "tree-eager-prefetching" {
    fifo { eager { each "worker" { fifo ntasks-threshold=2 exp-len-threshold=1000000000.0 { worker } } } }
}"#;

const HEFT: &str = r#"
policy "tree-heft" {
    prio {
        perfmodel-select {
            perfmodel    { mct alpha=1.0 beta=2.0 { each "worker" { prio ntasks-threshold=30 { use "leaf" } } } }
            calibrator   { eager-calibration { use "leaf" } }
            no-perfmodel { eager             { use "leaf" } }
        }
    }
    shared "leaf" each="worker" { best-implementation { worker } }
}"#;
