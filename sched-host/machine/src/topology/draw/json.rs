//! The machine as JSON, for programs.

use serde::Serialize;

use super::workers_of_node;
use crate::topology::{BindingPlan, BindingWarning, CombinedWorker, Level, Object, Source, Topology, WorkerBinding};

#[derive(Serialize)]
struct Document<'a> {
    source: &'a Source,
    this_machine: bool,
    allowed_pus: &'a [u32],
    machine: &'a Object,
    memory_nodes: Vec<MemoryNode<'a>>,
    workers: &'a [WorkerBinding],
    combined_workers: &'a [CombinedWorker],
    warnings: Vec<Warning<'a>>,
}

#[derive(Serialize)]
struct MemoryNode<'a> {
    os_index: u32,
    memory_bytes: Option<u64>,
    pus: &'a [u32],
    workers: Vec<usize>,
}

#[derive(Serialize)]
struct Warning<'a> {
    #[serde(flatten)]
    warning: &'a BindingWarning,
    message: String,
}

/// The topology and the plan as one indented JSON object.
///
/// Its keys, which later versions keep: `source` (`kind`, and `description` or `path`), `this_machine`, `allowed_pus`,
/// `machine` (the [`Object`]s, nested in `children`), `memory_nodes` (`os_index`, `memory_bytes`, `pus`, `workers`),
/// `workers` (`worker`, `pu`, `core`, `numa`, `shared`), `combined_workers` (`members`, `within`) and `warnings`
/// (`kind`, `message`, and the numbers of that kind).
///
/// # Panics
///
/// Never: the document has only string keys and plain values.
#[must_use]
pub fn json(topology: &Topology, plan: &BindingPlan) -> String {
    let nodes = topology.level(Level::Numa);
    let document = Document {
        source: topology.source(),
        this_machine: topology.is_this_machine(),
        allowed_pus: topology.allowed_pus(),
        machine: topology.root(),
        memory_nodes: nodes
            .into_iter()
            .map(|node| MemoryNode {
                os_index: node.index(),
                memory_bytes: node.memory_bytes,
                pus: &node.pus,
                workers: workers_of_node(plan, node),
            })
            .collect(),
        workers: plan.workers(),
        combined_workers: plan.combined(),
        warnings: plan.warnings().iter().map(|warning| Warning { warning, message: warning.to_string() }).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document).expect("string keys and plain values always serialise");
    text.push('\n');
    text
}
