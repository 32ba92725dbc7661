//! The nodes of a plan in order.

use super::{Draft, Expansion};
use crate::plan::{Child, NodeIndex, PlanNode, TreePlan};
use sched_core::ArchSet;
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
        let mut nodes: Vec<PlanNode> = Vec::with_capacity(order.len());
        for draft in order.iter().map(|draft| &self.drafts[*draft]) {
            let seen = paths.entry(&draft.path).or_default();
            *seen += 1;
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
                archs: ArchSet::EMPTY,
                leaf_worker: draft.leaf_worker,
                place: draft.place.clone(),
                path: if *seen == 1 { draft.path.clone() } else { format!("{}#{seen}", draft.path) },
                span: draft.span,
            });
        }
        for parent in (0..nodes.len()).rev() {
            for child in nodes[parent].children.clone() {
                let below = nodes[child.node.0].workers.clone();
                nodes[parent].workers.union_with(&below);
            }
            nodes[parent].archs = nodes[parent].workers.iter().filter_map(|worker| self.arch(worker)).collect();
        }
        for parent in 0..nodes.len() {
            for child in nodes[parent].children.clone() {
                let parents = &mut nodes[child.node.0].parents;
                // The same child may fill two slots.
                if parents.last() != Some(&NodeIndex(parent)) {
                    parents.push(NodeIndex(parent));
                }
            }
        }
        TreePlan { policy: self.policy.name.clone(), nodes, source: self.policy.source.clone() }
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
