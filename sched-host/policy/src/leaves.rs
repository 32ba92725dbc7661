//! The rule on leaves of a plan: every worker has exactly one leaf, a combined worker at most one.

use super::element::Policy;
use super::plan::{PlanNode, TreePlan};
use sched_core::{WorkerId, WorkerSet};
use sched_text as text;
use sched_text::Finding;
use std::collections::HashSet;

/// Reports workers without a leaf, and those with several. Combined workers are numbered from `first_combined` on.
pub(super) fn check_leaves(plan: &TreePlan, policy: &Policy, workers: &WorkerSet, first_combined: u32) -> Vec<Finding> {
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
        // Simple workers come first: problems are reported for them.
        let (whom, one, fix) = if is_combined(worker) {
            (leaves[0].place.clone(), leaves[0].place.clone(), ("team", "combined-worker"))
        } else {
            let simple = several.iter().filter(|worker| !is_combined(*worker)).collect();
            (text::workers(&simple), worker.to_string(), ("leaf", "worker"))
        };
        let mut finding = Finding::error(format!("policy `{}` has several leaves for {whom}", policy.name));
        let mut spans = HashSet::new();
        for leaf in &leaves {
            let span = leaf.span.get().map(|span| (span.offset(), span.len()));
            if span.is_none() || spans.insert(span) {
                finding = finding.at(leaf.span, format!("a leaf of {one}"));
            }
        }
        findings.push(
            finding
                .help(format!(
                    "write `shared \"{0}\" each=\"{1}\" {{ {1} }}` once, and `use \"{0}\"` in each place",
                    fix.0, fix.1
                ))
                .help("why: a leaf accounts for the tasks of its worker, so a worker has exactly one")
                .breaks("V4")
                .code("policy::leaf"),
        );
    }
    findings
}
