//! The fixed properties of a node, in the form in which components read them.

use sched_core::WorkerId;
use sched_core::abi::wire::{NO_ID, RawPlace};
use std::sync::Arc;

/// Constant facts of a node, as components read them.
pub(super) struct Place {
    raw: RawPlace<'static>,
    // Owners of the memory that `raw` points to. No boxes: who moves a box claims that nothing else points into it.
    _path: Arc<str>,
    _object: Arc<str>,
    _slot: Arc<str>,
    _workers: Arc<[u64]>,
    _in_context: Arc<[u64]>,
}

impl Place {
    /// `workers` are all below, and those in the context. `fill` completes a place whose texts and workers are set.
    pub(super) fn new(
        path: &str,
        object: &str,
        slot: &str,
        workers: (&[u64], &[u64]),
        fill: impl FnOnce(&mut RawPlace<'static>),
    ) -> Place {
        let (path, object, slot): (Arc<str>, Arc<str>, Arc<str>) = (path.into(), object.into(), slot.into());
        let (workers, in_context): (Arc<[u64]>, Arc<[u64]>) = (workers.0.into(), workers.1.into());
        // SAFETY: the owners live as long as the place and what they own does not move with it; `raw` is lent out for
        // no longer than the place lives.
        let (raw_path, raw_object, raw_slot) = unsafe { (extend(&*path), extend(&*object), extend(&*slot)) };
        // SAFETY: as above.
        let (raw_workers, raw_in_context) = unsafe { (extend(&*workers), extend(&*in_context)) };
        let mut raw = RawPlace {
            path: raw_path.into(),
            object: raw_object.into(),
            slot: raw_slot.into(),
            workers: raw_workers.into(),
            workers_in_context: raw_in_context.into(),
            ..RawPlace::NOWHERE
        };
        fill(&mut raw);
        Place { raw, _path: path, _object: object, _slot: slot, _workers: workers, _in_context: in_context }
    }

    pub(super) fn raw(&self) -> &RawPlace<'_> {
        &self.raw
    }

    pub(super) fn path(&self) -> &str {
        self.raw.path.as_str()
    }

    pub(super) fn leaf_worker(&self) -> Option<WorkerId> {
        (self.raw.worker != NO_ID).then_some(WorkerId(self.raw.worker))
    }
}

/// # Safety
/// The result is not used after what it refers to is gone.
unsafe fn extend<T: ?Sized>(reference: &T) -> &'static T {
    // SAFETY: as the caller promises.
    unsafe { &*std::ptr::from_ref(reference) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // What this test is for shows under Miri: CONTRIBUTING.md has the command.
    #[test]
    fn a_place_is_read_where_it_was_moved_to() {
        let place = Place::new("root/0", "core 0", "left", (&[3, 1], &[1]), |raw| raw.worker = 7);
        let moved: Box<[Place]> = [place].into_iter().collect();
        let raw = moved[0].raw();
        assert_eq!((raw.path.as_str(), raw.object.as_str(), raw.slot.as_str()), ("root/0", "core 0", "left"));
        assert_eq!((&raw.workers[..], &raw.workers_in_context[..]), (&[3, 1][..], &[1][..]));
        assert_eq!(moved[0].leaf_worker(), Some(WorkerId(7)));
    }
}
