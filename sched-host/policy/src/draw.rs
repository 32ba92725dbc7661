//! Plans as pictures: text with box characters, Graphviz, and SVG.

mod areas;
mod bundles;
mod dot;
mod svg;
mod text;

pub use bundles::Fold;

use super::plan::{PlanNode, TreePlan};
use super::print;
use bundles::Bundle;
use sched_core::Family;

/// A node's name, with the parameters whose value is not the default: `fifo ntasks-threshold=2`.
fn title(node: &PlanNode, between: &str) -> String {
    let params = node.changed_params().map(|(name, value)| format!("{between}{name}={}", print::value(value)));
    node.info.name.clone() + &params.collect::<String>()
}

/// The lines in the box of a bundle: its title, how many nodes it is, and the worker of a leaf.
fn label(bundle: &Bundle, plan: &TreePlan) -> Vec<String> {
    let first = bundle.first(plan);
    let mut lines: Vec<String> = title(first, "\n").lines().map(str::to_owned).collect();
    let archs = || first.archs.iter().map(|arch| arch.to_string()).collect::<Vec<_>>().join(", ");
    match (bundle.nodes.len(), first.leaf_worker) {
        (1, None) => {}
        (1, Some(worker)) => lines.push(format!("{worker} ({})", archs())),
        (count, None) => lines.push(format!("× {count} ({})", bundle.places(plan))),
        (count, Some(_)) => lines.push(format!("× {count} ({}), {}", bundle.places(plan), archs())),
    }
    lines
}

/// Path of a bundle's first node, and how many more there are.
fn tooltip(bundle: &Bundle, plan: &TreePlan) -> String {
    let path = &bundle.first(plan).path;
    match bundle.nodes.len() {
        1 => path.clone(),
        count => format!("{path}, and {} more", count - 1),
    }
}

fn colour(family: Family) -> &'static str {
    match family {
        Family::FlowControl => "#cfe2f3",
        Family::ResourceMapping => "#fff2cc",
        Family::SpecialPurpose => "#d9ead3",
        Family::Worker => "#f4cccc",
        _ => "#eeeeee",
    }
}
