//! Memory of the host that a driver keeps where it is, for faster copies.
//!
//! Copies from and to memory that the system may move pass through memory of the driver, by the thread that starts
//! them. To pin memory takes about half as long as such a copy of it, where it is large, and a sixth of what it takes to
//! fill new memory for the first time (docs/decisions/memory.md). So arrays that the runtime owns are pinned when they are
//! registered, where no task waits for it. What a scope lends may be lent again and again, for tasks on cores: it is
//! pinned as soon as half of it has been copied, at the first copy of all of it; so is what is small.

use super::{Spread, Storage};
use crate::device::Device;
use sched_core::MemoryNode;
use sched_core::driver::HostMemory;
use std::sync::Arc;

/// Bytes that have to be copied before memory is pinned, however small it is: a call of the driver takes its time.
const WORTH: u64 = 1 << 20;

/// Whether the memory where the values began is pinned.
pub(super) enum Pinning {
    /// Not yet, after this number of bytes was copied.
    After(u64),
    /// By the driver of this device.
    Pinned(Arc<Device>),
    /// The driver cannot, or gains nothing.
    Refused,
}

impl Storage {
    /// Pins the memory of new values, if it is large and a driver gains by that.
    pub(crate) fn pin_home(&self) {
        let Some(spread) = self.spread.as_ref().filter(|_| self.device_bytes() >= WORTH) else { return };
        let pinning = spread.memories.devices().iter().map(|device| self.pinned_by(device));
        let pinned = pinning.into_iter().find(|pinning| matches!(pinning, Pinning::Pinned(_)));
        *spread.pinning.lock() = pinned.unwrap_or(Pinning::Refused);
    }

    /// Notes a copy between the memory of `node` and a device, before it starts, and pins the memory if that pays.
    pub(super) fn note_copy(&self, spread: &Spread, node: MemoryNode, device: &Arc<Device>, bytes: u64) {
        if node != spread.home {
            return;
        }
        // Locked while it is pinned, which others would have to wait for anyway.
        let mut pinning = spread.pinning.lock();
        if let Pinning::After(before) = *pinning {
            let copied = before.saturating_add(bytes);
            *pinning = match copied < WORTH.max(self.device_bytes() / 2) {
                true => Pinning::After(copied),
                false => self.pinned_by(device),
            };
        }
    }

    fn pinned_by(&self, device: &Arc<Device>) -> Pinning {
        match device.pin(self.home_memory(), self.device_bytes()) {
            true => Pinning::Pinned(Arc::clone(device)),
            false => Pinning::Refused,
        }
    }

    /// Ends the pinning, if there is any. Nothing is copied any more.
    pub(crate) fn unpin_home(&self) {
        let Some(spread) = &self.spread else { return };
        if let Pinning::Pinned(device) = std::mem::replace(&mut *spread.pinning.lock(), Pinning::Refused) {
            device.unpin(self.home_memory());
        }
    }

    fn home_memory(&self) -> HostMemory {
        // SAFETY: the memory stays until it is unpinned, which comes before its values are given back. To pin it is no
        // use of its values.
        unsafe { HostMemory::new(self.first.0.as_ptr(), self.device_bytes()) }
    }
}
