//! Similar nodes of a plan, which a drawing shows as one.

use crate::plan::{Child, NodeIndex, PlanNode, TreePlan};
use sched_text::ranges;
use std::collections::HashSet;

/// Whether a drawing combines similar children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Three or more similar children in a row are drawn as one: `× 64 (workers 0-63)`.
    Runs,
    /// Each node is drawn.
    Nothing,
}

/// Similar nodes, drawn as one.
pub(super) struct Bundle {
    pub(super) nodes: Vec<NodeIndex>,
    pub(super) links: Vec<Link>,
}

/// A link from a bundle to similar children of its nodes.
pub(super) struct Link {
    pub(super) slot: Option<String>,
    /// The children.
    pub(super) nodes: Vec<NodeIndex>,
    /// Places of the bundles that have them.
    pub(super) to: Vec<usize>,
    /// Whether this is the first link to them. They are one bundle then, whose place comes after that of this one.
    pub(super) is_first: bool,
}

/// Children of a bundle's nodes that are the same but for their workers.
struct Run {
    nodes: Vec<NodeIndex>,
    slot: Option<String>,
}

impl Bundle {
    /// The node that stands for all.
    pub(super) fn first<'p>(&self, plan: &'p TreePlan) -> &'p PlanNode {
        &plan[self.nodes[0]]
    }

    /// Where in the machine they are: `workers 0-63`.
    pub(super) fn places(&self, plan: &TreePlan) -> String {
        places(plan, &self.nodes)
    }
}

impl TreePlan {
    /// The nodes in bundles, each in one of them; the root's is the first.
    pub(super) fn bundles(&self, fold: Fold) -> Vec<Bundle> {
        let mut bundler = Bundler { plan: self, fold, bundle_of: vec![None; self.nodes.len()], bundles: Vec::new() };
        bundler.add(vec![self.root().id]);
        bundler.bundles
    }
}

struct Bundler<'a> {
    plan: &'a TreePlan,
    fold: Fold,
    /// The bundle of each node that has one.
    bundle_of: Vec<Option<usize>>,
    bundles: Vec<Bundle>,
}

impl Bundler<'_> {
    /// Adds a bundle of similar nodes, and those below it. Returns its place.
    fn add(&mut self, nodes: Vec<NodeIndex>) -> usize {
        let place = self.bundles.len();
        nodes.iter().for_each(|node| self.bundle_of[node.0] = Some(place));
        let below = self.below(&nodes);
        self.bundles.push(Bundle { nodes, links: Vec::new() });
        for Run { nodes, slot } in below {
            // Some may have been found below another parent.
            let (known, new): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| self.bundle_of[node.0].is_some());
            if !new.is_empty() {
                let to = vec![self.add(new.clone())];
                self.bundles[place].links.push(Link { slot: slot.clone(), nodes: new, to, is_first: true });
            }
            if !known.is_empty() {
                let to = self.bundles_of(&known);
                self.bundles[place].links.push(Link { slot, nodes: known, to, is_first: false });
            }
        }
        place
    }

    fn bundles_of(&self, nodes: &[NodeIndex]) -> Vec<usize> {
        let mut found: Vec<usize> = nodes.iter().filter_map(|node| self.bundle_of[node.0]).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The children of similar nodes, in runs.
    fn below(&self, nodes: &[NodeIndex]) -> Vec<Run> {
        let plan = self.plan;
        let children = &plan[nodes[0]].children;
        // Below a bundle everything stands for several nodes anyway.
        let shortest = if nodes.len() > 1 { 2 } else { 3 };
        let mut runs = Vec::new();
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
            runs.push(Run { nodes: all, slot: children[start].slot.clone() });
            start = end;
        }
        runs
    }

    /// Whether two nodes differ in their workers only.
    fn is_same_shape(&self, one: NodeIndex, other: NodeIndex) -> bool {
        let (a, b): (&PlanNode, &PlanNode) = (&self.plan[one], &self.plan[other]);
        one == other
            || (a.info.name == b.info.name
                && a.params == b.params
                && a.archs == b.archs
                && a.leaf_worker.is_some() == b.leaf_worker.is_some()
                && self.bundle_of[one.0].is_some() == self.bundle_of[other.0].is_some()
                && a.children.len() == b.children.len()
                && a.children
                    .iter()
                    .zip(&b.children)
                    .all(|(a, b)| a.slot == b.slot && self.is_same_shape(a.node, b.node)))
    }
}

/// Parts of the machine in short: `worker 3`, `workers 0-63`, `numa 0-1`.
pub(super) fn places(plan: &TreePlan, nodes: &[NodeIndex]) -> String {
    let mut labels: Vec<&str> = nodes.iter().map(|node| plan[*node].place.as_str()).collect();
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
