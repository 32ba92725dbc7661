//! Memory of the host that a driver keeps where it is, for faster copies.
//!
//! Copies from and to memory that the system may move pass through memory of the driver, by the thread that starts them.
//! To pin memory takes about half as long as such a copy of it, where it is large (docs/decisions/memory.md). So memory is
//! pinned as soon as half of it has been copied, at the first copy of all of it.

use super::{Spread, Storage};
use crate::device::Device;
use sched_core::MemoryNode;
use sched_core::driver::HostMemory;
use std::sync::Arc;

/// Bytes that have to be copied before memory is pinned, however small it is: a call of the driver takes its time.
const WORTH: u64 = 1 << 20;

/// Whether the memory where the values began is pinned.
#[derive(Default)]
pub(super) enum Pinning {
    /// Not yet: nothing was copied from or to a device.
    #[default]
    Unused,
    /// Not yet: so many bytes were copied.
    After(u64),
    /// By the driver of this device.
    Pinned(Arc<Device>),
    /// A driver cannot, or gains nothing.
    Refused,
}

impl Storage {
    /// Notes a copy between the memory of `node` and a device, before it starts, and pins the memory if that pays.
    pub(super) fn note_copy(&self, spread: &Spread, node: MemoryNode, device: &Arc<Device>, bytes: u64) {
        if node != spread.home {
            return;
        }
        // Locked while it is pinned, which others would have to wait for anyway.
        let mut pinning = spread.pinning.lock();
        let copied = match *pinning {
            Pinning::Unused => bytes,
            Pinning::After(before) => before.saturating_add(bytes),
            Pinning::Pinned(_) | Pinning::Refused => return,
        };
        if copied < WORTH.max(self.device_bytes() / 2) {
            *pinning = Pinning::After(copied);
            return;
        }
        *pinning = match device.driver.pin(device.number, self.home_memory(), self.device_bytes()) {
            Ok(()) => Pinning::Pinned(Arc::clone(device)),
            Err(error) => {
                tracing::debug!("{} copies from memory that is not pinned: {error}", device.name());
                Pinning::Refused
            }
        };
    }

    /// Ends the pinning, if there is any. Nothing is copied any more.
    pub(crate) fn unpin_home(&self) {
        let Some(spread) = &self.spread else { return };
        if let Pinning::Pinned(device) = std::mem::replace(&mut *spread.pinning.lock(), Pinning::Refused) {
            let _ = device.driver.unpin(device.number, self.home_memory());
        }
    }

    fn home_memory(&self) -> HostMemory {
        // SAFETY: the memory stays until it is unpinned, which comes before its values are given back. To pin it is no
        // use of its values.
        unsafe { HostMemory::new(self.first.0.as_ptr(), self.device_bytes()) }
    }
}
