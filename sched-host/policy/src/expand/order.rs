//! The nodes of a plan in order.

use super::{Draft, Expansion, Reach};
use crate::element::Policy;
use crate::plan::{Child, NodeIndex, PlanNode, SharedNode, TreePlan};
use sched_core::{ArchSet, WorkerSet};
use std::collections::HashMap;
use std::sync::Arc;

impl Expansion<'_> {
    /// Orders the drafts below `root`, parents first, and fills in what depends on neighbours.
    pub(super) fn plan(self, root: usize) -> TreePlan {
        let mut order = Vec::new();
        post_order(&self.drafts, root, &mut vec![false; self.drafts.len()], &mut order);
        order.reverse();
        let mut index = vec![NodeIndex(0); self.drafts.len()];
        order.iter().enumerate().for_each(|(place, draft)| index[*draft] = NodeIndex(place));

        let mut paths: HashMap<&str, usize> = HashMap::new();
        // Counted apart from other nodes, since they have the same names in all contexts.
        let mut between: HashMap<&str, usize> = HashMap::new();
        let definitions = Definitions::of_policy(self.policy);
        let mut nodes: Vec<PlanNode> = Vec::with_capacity(order.len());
        for draft in order.iter().map(|draft| &self.drafts[*draft]) {
            let seen = paths.entry(&draft.path).or_default();
            *seen += 1;
            let between_contexts = definitions.of(draft).map(|(part, text)| {
                let seen = between.entry(&draft.path).or_default();
                *seen += 1;
                SharedNode { part: (*part).to_owned(), name: numbered(&draft.path, *seen), text: text.clone() }
            });
            nodes.push(PlanNode {
                id: NodeIndex(nodes.len()),
                info: Arc::clone(&draft.entry.info),
                plugin: draft.entry.plugin.clone(),
                file: draft.entry.file.clone(),
                params: draft.params.clone(),
                children: draft
                    .children
                    .iter()
                    .map(|(child, slot)| Child { node: index[*child], slot: slot.clone() })
                    .collect(),
                parents: Vec::new(),
                workers: draft.leaf_worker.into_iter().collect(),
                workers_in_context: WorkerSet::new(),
                between_contexts,
                archs: ArchSet::EMPTY,
                leaf_worker: draft.leaf_worker,
                place: draft.place.clone(),
                path: numbered(&draft.path, *seen),
                span: draft.span,
            });
        }
        for parent in (0..nodes.len()).rev() {
            for child in nodes[parent].children.clone() {
                let below = nodes[child.node.0].workers.clone();
                nodes[parent].workers.union_with(&below);
            }
            let here = |worker: &_| self.present.contains(*worker) || self.combined_number(*worker).is_some();
            nodes[parent].workers_in_context = nodes[parent].workers.iter().filter(here).collect();
            nodes[parent].archs = nodes[parent].workers.iter().filter_map(|worker| self.arch(worker)).collect();
        }
        link_parents(&mut nodes);
        TreePlan { policy: self.policy.name.clone(), nodes, source: self.policy.source.clone() }
    }
}

/// The definitions that contexts share, by name, as text.
struct Definitions<'a>(Vec<(&'a str, String)>);

impl Definitions<'_> {
    fn of_policy(policy: &Policy) -> Definitions<'_> {
        let between = policy.shared.iter().filter(|shared| shared.between_contexts);
        Definitions(between.map(|shared| (shared.name.as_str(), shared.to_line())).collect())
    }

    /// The definition of a draft that contexts share, whose path begins with that name.
    fn of(&self, draft: &Draft) -> Option<&(&str, String)> {
        let is_above = |name: &str| draft.path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        let above = self.0.iter().filter(|(name, _)| is_above(name));
        above.max_by_key(|(name, _)| name.len()).filter(|_| draft.reach == Reach::Machine)
    }
}

fn numbered(path: &str, number: usize) -> String {
    if number == 1 { path.to_owned() } else { format!("{path}#{number}") }
}

/// Fills in the parents of each node.
fn link_parents(nodes: &mut [PlanNode]) {
    for parent in 0..nodes.len() {
        for child in nodes[parent].children.clone() {
            let parents = &mut nodes[child.node.0].parents;
            // The same child may fill two slots.
            if parents.last() != Some(&NodeIndex(parent)) {
                parents.push(NodeIndex(parent));
            }
        }
    }
}

/// Children before parents, later children first: the reverse is the order of the policy.
fn post_order(drafts: &[Draft], draft: usize, seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[draft], true) {
        return;
    }
    for (child, _) in drafts[draft].children.iter().rev() {
        post_order(drafts, *child, seen, order);
    }
    order.push(draft);
}
