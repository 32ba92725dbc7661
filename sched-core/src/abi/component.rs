//! A component as the host sees it.

use super::extension::RawExtension;
use super::task::RawTask;
use super::wire::{RawNode, RawPush};
use abi_stable::sabi_trait;
use abi_stable::std_types::{RBox, ROption, RStr, RString, RVec, Tuple2};
use abi_stable::type_level::downcasting::TD_Opaque;

/// The wire form of [`Component`](crate::Component), with plain types; the adapter implements it.
///
/// Frozen for [`ABI_MAJOR`](crate::abi::ABI_MAJOR). No method unwinds: a panic inside is caught and reported to the
/// host with [`WireHost::report_panic`](crate::abi::WireHost::report_panic).
#[sabi_trait]
pub trait WireComponent: Send + Sync + 'static {
    /// See [`Component::push_task`](crate::Component::push_task).
    fn push_task(&self, node: &RawNode, task: RawTask) -> RawPush;
    /// See [`Component::pull_task`](crate::Component::pull_task).
    fn pull_task(&self, node: &RawNode, to: u32) -> RawTask;
    /// See [`Component::can_push`](crate::Component::can_push).
    fn can_push(&self, node: &RawNode, to: u32) -> bool;
    /// See [`Component::can_pull`](crate::Component::can_pull).
    fn can_pull(&self, node: &RawNode) -> bool;
    /// See [`Component::estimated_end`](crate::Component::estimated_end).
    fn estimated_end(&self, node: &RawNode) -> u64;
    /// See [`Component::estimated_load`](crate::Component::estimated_load).
    fn estimated_load(&self, node: &RawNode) -> f64;
    /// See [`Component::notify_change_workers`](crate::Component::notify_change_workers).
    fn notify_change_workers(&self, node: &RawNode);
    /// See [`Component::drain`](crate::Component::drain).
    fn drain(&self, node: &RawNode) -> RVec<RawTask>;
    /// See [`Component::describe`](crate::Component::describe).
    fn describe(&self, node: &RawNode) -> RVec<Tuple2<RString, RString>>;
    /// The component's [`extension`](crate::abi::extension) of this name, if it offers one.
    #[sabi(last_prefix_field)]
    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension>;
}

/// The stable object of what speaks the wire form itself: a host's own, around a component for instance.
pub fn object_of<C: WireComponent>(component: C) -> super::ComponentObject {
    WireComponent_TO::from_ptr(RBox::new(component), TD_Opaque)
}
