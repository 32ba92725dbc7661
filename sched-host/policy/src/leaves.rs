//! The rule that a plan must keep: every worker has exactly one leaf. A combined worker may have one.

use super::element::Policy;
use super::plan::{Plan, PlanNode};
use sched_core::{WorkerId, WorkerSet};
use sched_text as text;
use sched_text::Finding;

/// The workers that have no leaf, and those that have several. Combined workers are numbered from `first_combined` on.
pub(super) fn check_leaves(plan: &Plan, policy: &Policy, workers: &WorkerSet, first_combined: u32) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut missing = WorkerSet::new();
    let mut several = WorkerSet::new();
    let is_combined = |worker: WorkerId| worker.0 >= first_combined;
    let mut reached = WorkerSet::new();
    for worker in plan.nodes.iter().filter_map(|node| node.leaf_worker) {
        if !reached.insert(worker) && (is_combined(worker) || workers.contains(worker)) {
            several.insert(worker);
        }
    }
    workers.iter().filter(|worker| !reached.contains(*worker)).for_each(|worker| _ = missing.insert(worker));
    if !missing.is_empty() {
        findings.push(
            Finding::error(format!("policy `{}` does not reach {}", policy.name, text::workers(&missing)))
                .at(policy.span, "no leaf for them")
                .help("add `each \"worker\" { worker }`, or an `each` without an `arch` that leaves them out")
                .help("why: a worker without a leaf never gets a task")
                .breaks("V4")
                .code("policy::unreachable"),
        );
    }
    if let Some(worker) = several.iter().next() {
        let leaves: Vec<&PlanNode> = plan.nodes.iter().filter(|node| node.leaf_worker == Some(worker)).collect();
        // Simple workers come first: what is wrong with those is told of these.
        let (whom, one, fix) = if is_combined(worker) {
            (leaves[0].place.clone(), leaves[0].place.clone(), ("team", "combined-worker"))
        } else {
            let simple = several.iter().filter(|worker| !is_combined(*worker)).collect();
            (text::workers(&simple), worker.to_string(), ("leaf", "worker"))
        };
        let mut finding = Finding::error(format!("policy `{}` has several leaves for {whom}", policy.name));
        let mut spans = Vec::new();
        for leaf in &leaves {
            let span = leaf.span.get();
            if span.is_none() || !spans.contains(&span) {
                finding = finding.at(leaf.span, format!("a leaf of {one}"));
            }
            spans.push(span);
        }
        findings.push(
            finding
                .help(format!(
                    "write `shared \"{0}\" each=\"{1}\" {{ {1} }}` once, and `use \"{0}\"` in each place",
                    fix.0, fix.1
                ))
                .help("why: a leaf keeps its worker's books, so a worker has exactly one")
                .breaks("V4")
                .code("policy::leaf"),
        );
    }
    findings
}
