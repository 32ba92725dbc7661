//! What stands around a node, and the context that its tree serves: [`HostNeighbours`].

use super::LiveTree;
use super::ledger::NodeId;
use super::node::{TreeNode, record};
use sched_core::abi::extension::HostNeighbours;
use sched_core::abi::manifest::family_number;
use sched_core::abi::std_types::{RSlice, RStr};
use sched_core::abi::wire::{CallRef, NO_ID};

pub(super) static NEIGHBOURS: HostNeighbours =
    HostNeighbours { child, parent, child_family, parent_family, context, user_data };

/// The context that a tree serves, as its components see it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContextFacts {
    /// Its name.
    pub name: String,
    /// What the application attached to it.
    pub user_data: Vec<u8>,
}

impl LiveTree {
    fn child_of(&self, node: u32, child: u32) -> Option<&TreeNode> {
        let child = self.nodes.get(node as usize)?.children.get(child as usize)?;
        self.at(*child)
    }

    fn parent_of(&self, node: u32, parent: u32) -> Option<&TreeNode> {
        let link = self.nodes.get(node as usize)?.parents.get(parent as usize)?;
        self.at(link.parent)
    }

    fn at(&self, node: NodeId) -> Option<&TreeNode> {
        self.nodes.get(node.index())
    }
}

fn name(node: Option<&TreeNode>) -> RStr<'_> {
    node.map_or("", |node| &node.origin.component).into()
}

fn family(node: Option<&TreeNode>) -> u32 {
    node.and_then(|node| node.family).map_or(NO_ID, family_number)
}

extern "C" fn child<'a>(call: CallRef<'a>, node: u32, child: u32) -> RStr<'a> {
    name(record(call).tree.child_of(node, child))
}

extern "C" fn parent<'a>(call: CallRef<'a>, node: u32, parent: u32) -> RStr<'a> {
    name(record(call).tree.parent_of(node, parent))
}

extern "C" fn child_family(call: CallRef<'_>, node: u32, child: u32) -> u32 {
    family(record(call).tree.child_of(node, child))
}

extern "C" fn parent_family(call: CallRef<'_>, node: u32, parent: u32) -> u32 {
    family(record(call).tree.parent_of(node, parent))
}

extern "C" fn context<'a>(call: CallRef<'a>) -> RStr<'a> {
    record(call).tree.context.name.as_str().into()
}

extern "C" fn user_data<'a>(call: CallRef<'a>) -> RSlice<'a, u8> {
    record(call).tree.context.user_data.as_slice().into()
}
