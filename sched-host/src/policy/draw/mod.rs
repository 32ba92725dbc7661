//! Plans as pictures: text with box characters, and Graphviz.

mod areas;
mod dot;
mod text;

pub use text::Fold;

use super::plan::PlanNode;
use super::print;

/// A node's name, with the parameters whose value is not the default: `fifo ntasks-threshold=2`.
fn title(node: &PlanNode, between: &str) -> String {
    let params = node.changed_params().map(|(name, value)| format!("{between}{name}={}", print::value(value)));
    node.info.name.clone() + &params.collect::<String>()
}
