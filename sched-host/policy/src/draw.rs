//! Plans as pictures: text with box characters, Graphviz, and SVG.

mod areas;
mod dot;
mod svg;
mod text;

pub use text::Fold;

use super::plan::PlanNode;
use super::print;
use sched_core::Family;

/// A node's name, with the parameters whose value is not the default: `fifo ntasks-threshold=2`.
fn title(node: &PlanNode, between: &str) -> String {
    let params = node.changed_params().map(|(name, value)| format!("{between}{name}={}", print::value(value)));
    node.info.name.clone() + &params.collect::<String>()
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
