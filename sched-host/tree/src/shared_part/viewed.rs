//! The component of a shared part, as one tree has it.

use super::{FULL, SharedPart, View};
use crate::node::record;
use sched_core::abi::component::WireComponent;
use sched_core::abi::extension::RawExtension;
use sched_core::abi::std_types::{ROption, RStr, RString, RVec, Tuple2};
use sched_core::abi::wire::{RawNode, RawPush};
use sched_core::abi::{ComponentObject, RawTask};
use std::sync::Arc;
use std::sync::atomic::{Ordering::*, fence};

/// See the [module](self).
pub(super) struct Viewed {
    pub(super) part: Arc<SharedPart>,
    pub(super) view: Arc<View>,
}

impl Viewed {
    /// The component, unless it failed: the node is quarantined then.
    #[inline]
    fn component(&self, node: &RawNode) -> Option<&ComponentObject> {
        if self.part.has_failed() {
            self.quarantine(node);
            return None;
        }
        Some(&self.part.component)
    }

    #[cold]
    fn quarantine(&self, node: &RawNode) {
        let tree = record(node.call()).tree;
        if let Some(node) = tree.nodes.get(node.host().place().id as usize) {
            tree.quarantine(node);
        }
    }
}

impl WireComponent for Viewed {
    fn push_task(&self, node: &RawNode, task: RawTask) -> RawPush {
        // The host takes back what a quarantined node holds.
        let Some(component) = self.component(node) else { return RawPush::TAKEN };
        let answer = component.push_task(node, task);
        if answer.why != FULL || answer.refused.head != task.head || !self.part.stores {
            return answer;
        }
        self.view.waits.store(true, SeqCst);
        self.part.waits.store(true, SeqCst);
        fence(SeqCst);
        component.push_task(node, answer.refused)
    }

    fn pull_task(&self, node: &RawNode, to: u32) -> RawTask {
        let Some(component) = self.component(node) else { return RawTask::NONE };
        let task = component.pull_task(node, to);
        if !task.is_none() {
            self.part.announce_room(&self.view);
        }
        task
    }

    fn can_push(&self, node: &RawNode, to: u32) -> bool {
        let sent = self.component(node).is_some_and(|component| component.can_push(node, to));
        if sent {
            self.part.announce_room(&self.view);
        }
        sent
    }

    fn can_pull(&self, node: &RawNode) -> bool {
        self.component(node).is_some_and(|component| component.can_pull(node))
    }

    fn estimated_end(&self, node: &RawNode) -> u64 {
        self.component(node).map_or(0, |component| component.estimated_end(node))
    }

    fn estimated_load(&self, node: &RawNode) -> f64 {
        self.component(node).map_or(0.0, |component| component.estimated_load(node))
    }

    fn notify_change_workers(&self, node: &RawNode) {
        if let Some(component) = self.component(node) {
            component.notify_change_workers(node);
        }
    }

    fn drain(&self, node: &RawNode) -> RVec<RawTask> {
        self.component(node).map_or_else(RVec::new, |component| component.drain(node))
    }

    fn describe(&self, node: &RawNode) -> RVec<Tuple2<RString, RString>> {
        self.component(node).map_or_else(RVec::new, |component| component.describe(node))
    }

    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension> {
        self.part.component.extension(name)
    }
}

/// Stands for a component while it is moved.
pub(super) struct Nothing;

impl WireComponent for Nothing {
    fn push_task(&self, _: &RawNode, task: RawTask) -> RawPush {
        RawPush { refused: task, why: 2 }
    }

    fn pull_task(&self, _: &RawNode, _: u32) -> RawTask {
        RawTask::NONE
    }

    fn can_push(&self, _: &RawNode, _: u32) -> bool {
        false
    }

    fn can_pull(&self, _: &RawNode) -> bool {
        false
    }

    fn estimated_end(&self, _: &RawNode) -> u64 {
        0
    }

    fn estimated_load(&self, _: &RawNode) -> f64 {
        0.0
    }

    fn notify_change_workers(&self, _: &RawNode) {}

    fn drain(&self, _: &RawNode) -> RVec<RawTask> {
        RVec::new()
    }

    fn describe(&self, _: &RawNode) -> RVec<Tuple2<RString, RString>> {
        RVec::new()
    }

    fn extension(&self, _: RStr<'_>) -> ROption<RawExtension> {
        ROption::RNone
    }
}
