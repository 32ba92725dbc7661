//! A graph for Graphviz.

use super::sketch::Sketch;
use crate::{Dependencies, TaskGraph};
use sched_text::dot::quoted;
use sched_text::svg::{KernelColours, ink_on};
use std::fmt::Write;

/// The graph in the language of Graphviz: a box for each task, or for each group of a large graph, with the colour of
/// its kind; the critical path has thick edges.
#[must_use]
pub fn dot(graph: &TaskGraph, dependencies: &Dependencies) -> String {
    let sketch = Sketch::of(graph, dependencies);
    let colours = KernelColours::of(graph.kinds.iter().map(|kind| kind.name.as_str()));
    let mut out = String::new();
    let mut line = |line: String| writeln!(out, "{line}").expect("writing to a string never fails");
    line("digraph tasks {".to_owned());
    let title = match &sketch.note {
        Some(note) => format!("{}\n{note}", graph.name),
        None => graph.name.clone(),
    };
    line(format!("  label={}; labelloc=t; fontname=\"Helvetica\";", quoted(&title)));
    line("  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=11];".to_owned());
    line("  edge [color=\"#64748b\", fontname=\"Helvetica\", fontsize=9];".to_owned());
    for (number, node) in sketch.nodes.iter().enumerate() {
        let fill = colours.get(&graph.kinds[node.kind].name);
        let ink = ink_on(fill);
        let thick = if node.critical.is_some() { ", penwidth=3" } else { "" };
        let (label, hint) = (quoted(&node.label), quoted(&node.hint));
        line(format!("  t{number} [label={label}, tooltip={hint}, fillcolor=\"{fill}\", fontcolor=\"{ink}\"{thick}];"));
    }
    for (from, to, count) in &sketch.edges {
        let thick = sketch.is_critical(*from, *to);
        let look = match (count, thick) {
            (1, false) => String::new(),
            (1, true) => " [penwidth=3]".to_owned(),
            (count, _) => format!(" [label=\"{count}\"]"),
        };
        line(format!("  t{from} -> t{to}{look};"));
    }
    line("}".to_owned());
    out
}
