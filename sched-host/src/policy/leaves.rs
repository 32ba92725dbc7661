//! The rule that a plan must keep: every worker has exactly one leaf. A combined worker may have one.

use super::part::Policy;
use super::plan::{Plan, PlanNode};
use super::problem::Problem;
use super::ranges;
use sched_core::{WorkerId, WorkerSet};
use std::collections::HashMap;

/// The workers that have no leaf, and those that have several.
pub(super) fn check_leaves(plan: &Plan, policy: &Policy, workers: &WorkerSet, combined: &WorkerSet) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut missing = WorkerSet::new();
    let mut several = WorkerSet::new();
    let mut leaves: HashMap<WorkerId, u32> = HashMap::new();
    plan.nodes.iter().filter_map(|node| node.leaf_worker).for_each(|worker| *leaves.entry(worker).or_default() += 1);
    for worker in workers.iter().chain(combined.iter()) {
        match leaves.get(&worker).copied().unwrap_or(0) {
            0 if combined.contains(worker) => {}
            0 => drop(missing.insert(worker)),
            1 => {}
            _ => drop(several.insert(worker)),
        }
    }
    if !missing.is_empty() {
        problems.push(
            Problem::error(format!("policy `{}` does not reach {}", policy.name, ranges::workers(&missing)))
                .at(policy.span, "no leaf for them")
                .help("add `each \"worker\" { worker }`, or an `each` without an `arch` that leaves them out")
                .help("why: a worker without a leaf never gets a task")
                .breaks("V4")
                .code("unreachable"),
        );
    }
    if let Some(worker) = several.iter().next() {
        let leaves: Vec<&PlanNode> = plan.nodes.iter().filter(|node| node.leaf_worker == Some(worker)).collect();
        // Simple workers come first: what is wrong with those is told of these.
        let (whom, one, mend) = if combined.contains(worker) {
            (leaves[0].place.clone(), leaves[0].place.clone(), ("team", "combined-worker"))
        } else {
            let simple = several.iter().filter(|worker| !combined.contains(*worker)).collect();
            (ranges::workers(&simple), worker.to_string(), ("leaf", "worker"))
        };
        let mut problem = Problem::error(format!("policy `{}` has several leaves for {whom}", policy.name));
        let mut spans = Vec::new();
        for leaf in &leaves {
            let span = leaf.span.get();
            if span.is_none() || !spans.contains(&span) {
                problem = problem.at(leaf.span, format!("a leaf of {one}"));
            }
            spans.push(span);
        }
        problems.push(
            problem
                .help(format!(
                    "write `shared \"{0}\" each=\"{1}\" {{ {1} }}` once, and `use \"{0}\"` in each place",
                    mend.0, mend.1
                ))
                .help("why: a leaf keeps its worker's books, so a worker has exactly one")
                .breaks("V4")
                .code("leaf"),
        );
    }
    problems
}
