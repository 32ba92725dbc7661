//! A host that hears nothing but a panic: for a call that a component must not do anything in.

use super::place::Place;
use parking_lot::Mutex;
use sched_core::abi::extension::RawExtension;
use sched_core::abi::std_types::{ROption, RStr};
use sched_core::abi::wire::{CallRef, NO_ID, RawNode, RawPlace, RawPush, RawWorker};
use sched_core::abi::{RawTask, WireHost};

/// See the [module](self).
#[derive(Default)]
pub(super) struct Deaf {
    /// The place of the component, if it has one.
    place: Option<Place>,
    panic: Mutex<Option<String>>,
}

impl Deaf {
    /// A host that tells a component where it stands.
    pub(super) fn at(place: &RawPlace<'_>) -> Deaf {
        let (path, object, slot) = (place.path.as_str(), place.object.as_str(), place.slot.as_str());
        let copy = Place::new(path, object, slot, (&place.workers, &place.workers_in_context), |raw| {
            raw.id = place.id;
            (raw.children, raw.parents, raw.flags) = (place.children, place.parents, place.flags);
            (raw.memory_node, raw.worker) = (place.memory_node, place.worker);
            raw.relative_speedup = place.relative_speedup;
        });
        Deaf { place: Some(copy), panic: Mutex::default() }
    }

    /// Runs `body` with a node whose host this is.
    pub(super) fn with<T>(&self, body: impl FnOnce(&RawNode) -> T) -> T {
        // SAFETY: host and call outlive the `RawNode`, which lives for this call.
        let raw = unsafe { RawNode::new(self, CallRef::new(&())) };
        body(&raw)
    }

    /// What was said of a panic, if there was one.
    pub(super) fn into_panic(self) -> Option<String> {
        self.panic.into_inner()
    }
}

impl WireHost for Deaf {
    fn push_to(&self, _call: CallRef<'_>, _child: u32, task: RawTask) -> RawPush {
        RawPush { refused: task, why: 2 }
    }

    fn pull_from(&self, _call: CallRef<'_>, _parent: u32) -> RawTask {
        RawTask::NONE
    }

    fn parents_can_push(&self, _call: CallRef<'_>) -> bool {
        false
    }

    fn child_can_pull(&self, _call: CallRef<'_>, _child: u32) -> bool {
        false
    }

    fn wake(&self, _call: CallRef<'_>, _all: bool) -> bool {
        false
    }

    fn child_estimated_end(&self, _call: CallRef<'_>, _child: u32) -> u64 {
        0
    }

    fn child_estimated_load(&self, _call: CallRef<'_>, _child: u32) -> f64 {
        0.0
    }

    fn place(&self) -> &RawPlace<'_> {
        self.place.as_ref().map_or(&RawPlace::NOWHERE, Place::raw)
    }

    fn child_place(&self, _child: u32) -> ROption<&RawPlace<'_>> {
        ROption::RNone
    }

    fn worker(&self, _worker: u32) -> ROption<RawWorker> {
        ROption::RNone
    }

    fn requester(&self, _call: CallRef<'_>) -> u32 {
        NO_ID
    }

    fn now(&self, _call: CallRef<'_>) -> u64 {
        0
    }

    fn random(&self, _call: CallRef<'_>) -> u64 {
        0
    }

    fn can_execute(&self, _call: CallRef<'_>, _worker: u32, _task: RawTask) -> bool {
        false
    }

    fn child_can_execute(&self, _call: CallRef<'_>, _child: u32, _task: RawTask) -> bool {
        false
    }

    fn implementations(&self, _call: CallRef<'_>, _worker: u32, _task: RawTask) -> u32 {
        0
    }

    fn expected_length(&self, _call: CallRef<'_>, _worker: u32, _task: RawTask, _implementation: u32) -> u64 {
        u64::MAX
    }

    fn expected_transfer(&self, _call: CallRef<'_>, _memory_node: u32, _task: RawTask) -> u64 {
        0
    }

    fn expected_energy(&self, _call: CallRef<'_>, _worker: u32, _task: RawTask, _implementation: u32) -> f64 {
        f64::NAN
    }

    fn prefetch(&self, _call: CallRef<'_>, _memory_node: u32, _task: RawTask) {}

    fn report_panic(&self, _call: CallRef<'_>, message: RStr<'_>) {
        self.panic.lock().get_or_insert_with(|| message.to_string());
    }

    fn extension(&self, _name: RStr<'_>) -> ROption<RawExtension> {
        ROption::RNone
    }
}
