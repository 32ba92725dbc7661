//! Plans for Graphviz.

use super::bundles::{Bundle, Fold};
use super::{colour, label, tooltip};
use crate::plan::TreePlan;
use sched_text::dot::quoted;

impl TreePlan {
    /// The plan in Graphviz's language, for `dot -Tsvg`: a node for each component, or for similar ones, coloured by
    /// family; an edge for each link, with the name of its slot.
    #[must_use]
    pub fn to_dot(&self, fold: Fold) -> String {
        let bundles = self.bundles(fold);
        let nodes = bundles.iter().enumerate().map(|(at, bundle)| format!("    {}", self.node_line(at, bundle)));
        self.graph(&nodes.collect::<String>(), &bundles)
    }

    /// The plan in Graphviz's language, with each [scheduling area](Self::areas) as a coloured box around the reservoir
    /// above it and the components below. A component of several areas is in the box of the first.
    #[must_use]
    pub fn to_dot_with_areas(&self) -> String {
        let bundles = self.bundles(Fold::Nothing);
        let mut places = vec![0; self.nodes.len()];
        bundles.iter().enumerate().for_each(|(at, bundle)| places[bundle.nodes[0].0] = at);
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
                    let at = places[node.0];
                    text += &format!("        {}", self.node_line(at, &bundles[at]));
                }
            }
            text += "    }\n";
        }
        text += "    application -> n0;\n";
        self.graph(&text, &bundles)
    }

    fn graph(&self, nodes: &str, bundles: &[Bundle]) -> String {
        let mut dot = format!("digraph {} {{\n", quoted(&self.policy));
        dot += "    node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n";
        dot += "    edge [fontname=\"sans-serif\", fontsize=10];\n";
        dot += nodes;
        for (at, bundle) in bundles.iter().enumerate() {
            for link in &bundle.links {
                let slot = link.slot.as_ref().map_or(String::new(), |slot| format!(" [label={}]", quoted(slot)));
                link.to.iter().for_each(|to| dot += &format!("    n{at} -> n{to}{slot};\n"));
            }
        }
        dot += "}\n";
        dot
    }

    fn node_line(&self, at: usize, bundle: &Bundle) -> String {
        format!(
            "n{at} [label={}, fillcolor=\"{}\", tooltip={}];\n",
            quoted(&label(bundle, self).join("\n")),
            colour(bundle.first(self).info.family),
            quoted(&tooltip(bundle, self)),
        )
    }
}

/// Colours of areas, in turn: lighter than those of components.
const AREAS: [&str; 6] = ["#f3f3f3", "#eaf2fb", "#fdf6e3", "#edf7ed", "#fbeeee", "#f3eefb"];
