//! Plans for Graphviz.

use super::title;
use crate::policy::plan::{Plan, PlanNode};
use sched_core::Family;

impl Plan {
    /// The plan in Graphviz's language, for `dot -Tsvg`: a node for each component, coloured by family, an edge for
    /// each link, with the name of its slot.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut dot = format!("digraph {} {{\n", quote(&self.policy));
        dot += "    node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n";
        dot += "    edge [fontname=\"sans-serif\", fontsize=10];\n";
        for node in &self.nodes {
            dot += &format!(
                "    n{} [label={}, fillcolor=\"{}\", tooltip={}];\n",
                node.id.0,
                quote(&label(node)),
                colour(node.info.family),
                quote(&node.path),
            );
        }
        for node in &self.nodes {
            for child in &node.children {
                let slot = child.slot.as_ref().map_or(String::new(), |slot| format!(" [label={}]", quote(slot)));
                dot += &format!("    n{} -> n{}{slot};\n", node.id.0, child.node.0);
            }
        }
        dot += "}\n";
        dot
    }
}

fn label(node: &PlanNode) -> String {
    let title = title(node, "\n");
    match node.leaf_worker {
        Some(worker) => {
            let archs: Vec<String> = node.archs.iter().map(|arch| arch.to_string()).collect();
            format!("{title}\n{worker} ({})", archs.join(", "))
        }
        None => title,
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

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
