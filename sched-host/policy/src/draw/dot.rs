//! Plans for Graphviz.

use super::{colour, title};
use crate::plan::{PlanNode, TreePlan};
use sched_text::dot::quoted;

impl TreePlan {
    /// The plan in Graphviz's language, for `dot -Tsvg`: a node for each component, coloured by family, an edge for
    /// each link, with the name of its slot.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let nodes: String = self.nodes.iter().map(|node| format!("    {}", node_line(node))).collect();
        self.graph(&nodes)
    }

    /// The plan in Graphviz's language, with each [scheduling area](Self::areas) as a coloured box around the reservoir
    /// above it and the components below. A component of several areas is in the box of the first.
    #[must_use]
    pub fn to_dot_with_areas(&self) -> String {
        let mut text = String::new();
        let mut drawn = vec![false; self.nodes.len()];
        for (index, area) in self.areas().iter().enumerate() {
            let number = index + 1;
            text += &format!("    subgraph cluster_{number} {{\n");
            text += &format!("        label=\"area {number}\"; style=\"rounded,filled\";");
            text += &format!(" color=\"{}\"; fontname=\"sans-serif\";\n", AREAS[index % AREAS.len()]);
            if area.above.is_none() {
                text += "        application [shape=plaintext, style=\"\"];\n";
            }
            for node in area.above.iter().chain(&area.through).chain(&area.workers) {
                if !std::mem::replace(&mut drawn[node.0], true) {
                    text += &format!("        {}", node_line(&self[*node]));
                }
            }
            text += "    }\n";
        }
        text += &format!("    application -> n{};\n", self.root().id.0);
        self.graph(&text)
    }

    fn graph(&self, nodes: &str) -> String {
        let mut dot = format!("digraph {} {{\n", quoted(&self.policy));
        dot += "    node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n";
        dot += "    edge [fontname=\"sans-serif\", fontsize=10];\n";
        dot += nodes;
        for node in &self.nodes {
            for child in &node.children {
                let slot = child.slot.as_ref().map_or(String::new(), |slot| format!(" [label={}]", quoted(slot)));
                dot += &format!("    n{} -> n{}{slot};\n", node.id.0, child.node.0);
            }
        }
        dot += "}\n";
        dot
    }
}

/// Colours of areas, in turn: lighter than those of components.
const AREAS: [&str; 6] = ["#f3f3f3", "#eaf2fb", "#fdf6e3", "#edf7ed", "#fbeeee", "#f3eefb"];

fn node_line(node: &PlanNode) -> String {
    format!(
        "n{} [label={}, fillcolor=\"{}\", tooltip={}];\n",
        node.id.0,
        quoted(&label(node)),
        colour(node.info.family),
        quoted(&node.path),
    )
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
