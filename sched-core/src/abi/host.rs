//! The host as a component sees it.

use super::extension::RawExtension;
use super::task::RawTask;
use super::wire::{CallRef, RawPlace, RawPush, RawWorker};
use abi_stable::sabi_trait;
use abi_stable::std_types::{ROption, RStr};

/// The host, as the component in one node of a tree sees it: hops to neighbours, and services.
///
/// Frozen for [`ABI_MAJOR`](crate::abi::ABI_MAJOR). Hops may call other components; services never do, so that a
/// component may call them while it holds a lock. Times are nanoseconds since the start of the run; estimates are
/// encoded as [`Estimate`](crate::Estimate) defines.
#[sabi_trait]
pub trait WireHost: Send + Sync {
    /// Hop: push `task` to child number `child`.
    fn push_to(&self, call: CallRef<'_>, child: u32, task: RawTask) -> RawPush;
    /// Hop: pull from parent number `parent`, or from each in order for [`NO_ID`](crate::abi::wire::NO_ID).
    fn pull_from(&self, call: CallRef<'_>, parent: u32) -> RawTask;
    /// Hop: tell each parent in order that there is room here, until one sends something.
    fn parents_can_push(&self, call: CallRef<'_>) -> bool;
    /// Hop: tell child number `child` that there is work; for [`NO_ID`](crate::abi::wire::NO_ID), each child in order
    /// until a worker wakes.
    fn child_can_pull(&self, call: CallRef<'_>, child: u32) -> bool;
    /// Hop: wake a worker below, or all with `all`; at a leaf, its worker.
    fn wake(&self, call: CallRef<'_>, all: bool) -> bool;
    /// Hop: the time at which child number `child` runs out of work.
    fn child_estimated_end(&self, call: CallRef<'_>, child: u32) -> u64;
    /// Hop: the load of child number `child`.
    fn child_estimated_load(&self, call: CallRef<'_>, child: u32) -> f64;

    /// This node.
    fn place(&self) -> &RawPlace<'_>;
    /// Child number `child`.
    fn child_place(&self, child: u32) -> ROption<&RawPlace<'_>>;
    /// Worker number `worker`.
    fn worker(&self, worker: u32) -> ROption<RawWorker>;
    /// The worker on whose behalf the call happens, or [`NO_ID`](crate::abi::wire::NO_ID).
    fn requester(&self, call: CallRef<'_>) -> u32;

    /// The time of the run.
    fn now(&self, call: CallRef<'_>) -> u64;
    /// A random number, seeded by the run and the node.
    fn random(&self, call: CallRef<'_>) -> u64;
    /// Whether `worker` can execute `task`. [`NO_ID`](crate::abi::wire::NO_ID) asks about any worker below in the
    /// context, [`REQUESTER`](crate::abi::wire::REQUESTER) about the requesting worker.
    fn can_execute(&self, call: CallRef<'_>, worker: u32, task: RawTask) -> bool;
    /// Whether any worker below child number `child` can execute `task`.
    fn child_can_execute(&self, call: CallRef<'_>, child: u32, task: RawTask) -> bool;
    /// Number of implementations of `task` for `worker`.
    fn implementations(&self, call: CallRef<'_>, worker: u32, task: RawTask) -> u32;
    /// Expected duration of `task` on `worker` with an implementation; [`NO_ID`](crate::abi::wire::NO_ID) asks for the
    /// best.
    fn expected_length(&self, call: CallRef<'_>, worker: u32, task: RawTask, implementation: u32) -> u64;
    /// Expected nanoseconds for transferring the data of `task` to a memory node.
    fn expected_transfer(&self, call: CallRef<'_>, memory_node: u32, task: RawTask) -> u64;
    /// Expected energy in joules; NaN if unknown.
    fn expected_energy(&self, call: CallRef<'_>, worker: u32, task: RawTask, implementation: u32) -> f64;
    /// Start transferring the data of `task` to a memory node.
    fn prefetch(&self, call: CallRef<'_>, memory_node: u32, task: RawTask);
    /// Report that the component panicked in this call.
    fn report_panic(&self, call: CallRef<'_>, message: RStr<'_>);

    /// The host's [`extension`](crate::abi::extension) of this name, if it offers one.
    #[sabi(last_prefix_field)]
    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension>;
}
