//! Plans as an indented tree of text.

use super::title;
use crate::plan::{Child, NodeIndex, PlanNode, TreePlan};
use sched_text::ranges;
use std::collections::HashSet;

/// Whether a drawing combines similar children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Three or more similar children in a row become one line: `× 64 (workers 0-63)`.
    Runs,
    /// One line for each node.
    Nothing,
}

impl TreePlan {
    /// The plan as an indented tree. Parameters are shown where they are not the default. A node with several parents
    /// is drawn once, at the first, and named at the others.
    #[must_use]
    pub fn to_text(&self, fold: Fold) -> String {
        let mut pen = Pen { plan: self, fold, drawn: vec![false; self.nodes.len()], text: String::new() };
        pen.bundle(&[self.root().id], LineContext { slot: None, above: "machine", lead: "", stem: "" });
        pen.text
    }
}

struct Pen<'a> {
    plan: &'a TreePlan,
    fold: Fold,
    /// Nodes that have a line.
    drawn: Vec<bool>,
    text: String,
}

/// The surroundings of a line.
#[derive(Clone, Copy)]
struct LineContext<'a> {
    slot: Option<&'a str>,
    /// The part of the machine that the line above named.
    above: &'a str,
    /// Prefix of the line.
    lead: &'a str,
    /// Prefix of the lines below it.
    stem: &'a str,
}

/// Similar nodes, drawn as one.
struct Bundle<'a> {
    nodes: Vec<NodeIndex>,
    slot: Option<&'a str>,
}

impl<'a> Pen<'a> {
    /// Draws similar nodes in one line, with their children below.
    fn bundle(&mut self, nodes: &[NodeIndex], place: LineContext<'_>) {
        let plan = self.plan;
        let first = &plan[nodes[0]];
        let known = self.drawn[first.id.0];
        let places = places(nodes.iter().map(|node| plan[*node].place.as_str()));
        let mut line = place.slot.map_or(String::new(), |slot| format!("{slot}: "));
        line += &title(first, " ");
        if nodes.len() > 1 {
            line += &format!(" × {}", nodes.len());
        }
        if places != place.above || known {
            line += &format!(" ({places})");
        }
        if first.leaf_worker.is_some() && plan.root().archs.iter().count() > 1 {
            let archs: Vec<String> = first.archs.iter().map(|arch| format!(", {arch}")).collect();
            line += &archs.concat();
        }
        if known {
            line += " ↑ drawn above";
        }
        self.text += &format!("{}{line}\n", place.lead);
        if known {
            return;
        }
        nodes.iter().for_each(|node| self.drawn[node.0] = true);
        let mut below = self.below(nodes).into_iter().peekable();
        while let Some(bundle) = below.next() {
            let (branch, stem) = if below.peek().is_some() { ("├─ ", "│  ") } else { ("└─ ", "   ") };
            let (lead, stem) = (format!("{}{branch}", place.stem), format!("{}{stem}", place.stem));
            self.bundle(&bundle.nodes, LineContext { slot: bundle.slot, above: &places, lead: &lead, stem: &stem });
        }
    }

    /// The children of similar nodes, in bundles.
    fn below(&self, nodes: &[NodeIndex]) -> Vec<Bundle<'a>> {
        let plan = self.plan;
        let children = &plan[nodes[0]].children;
        // Below a bundle every line stands for several nodes anyway.
        let shortest = if nodes.len() > 1 { 2 } else { 3 };
        let mut bundles = Vec::new();
        let mut start = 0;
        while start < children.len() {
            let run = || {
                let is_same = |child: &&Child| {
                    child.slot == children[start].slot && self.is_same_shape(children[start].node, child.node)
                };
                children[start..].iter().take_while(is_same).count()
            };
            // Unfolded, a look at all that follow each child would be a square of their number.
            let end = match self.fold {
                Fold::Runs => Some(run()).filter(|run| *run >= shortest).map_or(start + 1, |run| start + run),
                Fold::Nothing => start + 1,
            };
            let mut all: Vec<NodeIndex> = Vec::new();
            let mut found = HashSet::new();
            for node in nodes {
                let children = plan[*node].children[start..end].iter().map(|child| child.node);
                all.extend(children.filter(|child| found.insert(*child)));
            }
            // Some may have been drawn below another parent.
            let (known, new): (Vec<_>, Vec<_>) = all.into_iter().partition(|node| self.drawn[node.0]);
            let parts = [new, known].into_iter().filter(|nodes| !nodes.is_empty());
            bundles.extend(parts.map(|nodes| Bundle { nodes, slot: children[start].slot.as_deref() }));
            start = end;
        }
        bundles
    }

    /// Whether two nodes differ in their workers only.
    fn is_same_shape(&self, one: NodeIndex, other: NodeIndex) -> bool {
        let (a, b): (&PlanNode, &PlanNode) = (&self.plan[one], &self.plan[other]);
        one == other
            || (a.info.name == b.info.name
                && a.params == b.params
                && a.archs == b.archs
                && a.leaf_worker.is_some() == b.leaf_worker.is_some()
                && self.drawn[one.0] == self.drawn[other.0]
                && a.children.len() == b.children.len()
                && a.children
                    .iter()
                    .zip(&b.children)
                    .all(|(a, b)| a.slot == b.slot && self.is_same_shape(a.node, b.node)))
    }
}

/// Parts of the machine in short: `worker 3`, `workers 0-63`, `numa 0-1`.
fn places<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    let mut labels: Vec<&str> = labels.collect();
    labels.dedup();
    let numbered: Option<Vec<(&str, u32)>> = labels
        .iter()
        .map(|label| label.rsplit_once(' ').and_then(|(kind, number)| Some((kind, number.parse().ok()?))))
        .collect();
    match numbered.as_deref() {
        Some([(kind, _), _, ..]) if numbered.iter().flatten().all(|(other, _)| other == kind) => {
            let plural = if *kind == "worker" { "s" } else { "" };
            let mut numbers: Vec<u32> = numbered.iter().flatten().map(|(_, number)| *number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            format!("{kind}{plural} {}", ranges(numbers))
        }
        _ => labels.join(", "),
    }
}
