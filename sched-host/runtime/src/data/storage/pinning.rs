//! Memory of the host that a driver keeps where it is, for faster copies.
//!
//! Copies from and to memory that the system may move pass through memory of the driver, by the thread that starts
//! them. To pin memory takes about half as long as such a copy of it, where it is large, and a sixth of what it takes to
//! fill new memory for the first time (docs/decisions/memory.md). So arrays that the runtime owns are pinned when they are
//! registered, where no task waits for it. What a scope lends may be lent again and again, for tasks on cores: it is
//! pinned as soon as half of it has been copied, at the first copy of all of it; so is what is small.
//!
//! Drivers copy from and to memory that is pinned as a whole or not at all, and stays so meanwhile. What is lent may
//! overlap with other memory that is lent, or with an array that the program reads or writes. So memory is *claimed*
//! before it is used, where nobody has claimed any of it, and only what is claimed is pinned, or given to drivers; the
//! rest is copied piece by piece through memory of the copy's own.

use super::{Spread, Storage};
use crate::device::Device;
use parking_lot::Mutex;
use sched_core::MemoryNode;
use sched_core::driver::{DeviceMemory, DriverError, HostMemory, Rows};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Begin and end of what is claimed, which does not overlap.
static CLAIMED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Bytes of a piece that is copied through memory of its own.
const PIECE: u64 = 256 << 10;

/// Bytes that have to be copied before memory is pinned, however small it is: a call of the driver takes its time.
const WORTH: u64 = 1 << 20;

/// Whether the memory where the values began is pinned.
pub(super) enum Pinning {
    /// It is not claimed.
    Unclaimed,
    /// Not yet, after this number of bytes was copied.
    After(u64),
    /// By the driver of this device.
    Pinned(Arc<Device>),
    /// The driver cannot, or gains nothing.
    Refused,
}

impl Storage {
    /// Claims the memory of new values, unless others have claimed some of it.
    pub(crate) fn claim_home(&self) {
        let Some(spread) = self.spread.as_ref().filter(|spread| !spread.memories.devices().is_empty()) else { return };
        let (begin, bytes) = (self.home_memory().first().addr(), self.span * self.element.size());
        let mut claimed = CLAIMED.lock();
        let is_free = claimed.range(..begin + bytes).next_back().is_none_or(|(_, end)| *end <= begin);
        if bytes > 0 && is_free {
            claimed.insert(begin, begin + bytes);
            *spread.pinning.lock() = Pinning::After(0);
        }
    }

    /// Pins the memory of new values, if it is large and a driver gains by that.
    pub(crate) fn pin_home(&self) {
        let Some(spread) = self.spread.as_ref().filter(|_| self.device_bytes() >= WORTH) else { return };
        if matches!(*spread.pinning.lock(), Pinning::Unclaimed) {
            return;
        }
        let pinning = spread.memories.devices().iter().map(|device| self.pinned_by(device));
        let pinned = pinning.into_iter().find(|pinning| matches!(pinning, Pinning::Pinned(_)));
        *spread.pinning.lock() = pinned.unwrap_or(Pinning::Refused);
    }

    /// Notes a copy between the memory of `node` and a device, before it starts, and pins the memory if that pays.
    /// Returns whether the driver may use the memory.
    pub(super) fn note_copy(&self, spread: &Spread, node: MemoryNode, device: &Arc<Device>, bytes: u64) -> bool {
        if node != spread.home {
            return true;
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
        !matches!(*pinning, Pinning::Unclaimed)
    }

    fn pinned_by(&self, device: &Arc<Device>) -> Pinning {
        match device.pin(self.home_memory(), self.device_bytes()) {
            true => Pinning::Pinned(Arc::clone(device)),
            false => Pinning::Refused,
        }
    }

    /// Ends the pinning, if there is any, and the claim. Nothing is copied any more.
    pub(crate) fn unpin_home(&self) {
        let Some(spread) = &self.spread else { return };
        let pinning = std::mem::replace(&mut *spread.pinning.lock(), Pinning::Unclaimed);
        if let Pinning::Pinned(device) = &pinning {
            device.unpin(self.home_memory());
        }
        if !matches!(pinning, Pinning::Unclaimed) {
            CLAIMED.lock().remove(&self.home_memory().first().addr());
        }
    }

    fn home_memory(&self) -> HostMemory {
        // SAFETY: the memory stays until it is unpinned, which comes before its values are given back. To pin it is no
        // use of its values.
        unsafe { HostMemory::new(self.first.0.as_ptr(), self.device_bytes()) }
    }
}

/// Copies rows of the host, which are not claimed, to a device, or from there.
pub(super) fn copy_apart(
    device: &Device,
    host: HostMemory,
    memory: DeviceMemory,
    rows: Rows,
    is_in: bool,
) -> Result<(), DriverError> {
    let mut piece = vec![0; PIECE.min(rows.bytes * rows.count) as usize];
    // Several rows at once, or less than one.
    let (most, width) = ((PIECE / rows.bytes).max(1), PIECE.min(rows.bytes));
    for (row, begin) in (0..rows.count)
        .step_by(most as usize)
        .flat_map(|row| (0..rows.bytes).step_by(width as usize).map(move |begin| (row, begin)))
    {
        let part = Rows { bytes: width.min(rows.bytes - begin), count: most.min(rows.count - row) };
        let offset = memory.offset + row * memory.pitch + begin;
        let place = DeviceMemory { offset, ..memory };
        let each = |piece: &mut [u8], copy: fn(*mut u8, *mut u8, usize)| {
            for (number, there) in (row..row + part.count).zip(piece.chunks_exact_mut(part.bytes as usize)) {
                // SAFETY: as `host` promises, the row is there.
                let here = unsafe { host.first().add((number * host.pitch() + begin) as usize) };
                copy(here, there.as_mut_ptr(), there.len());
            }
        };
        if is_in {
            // SAFETY: the bytes are in the row and in the piece, and nobody writes the row, as `host` promises.
            each(&mut piece, |here, there, bytes| unsafe { there.copy_from_nonoverlapping(here, bytes) });
        }
        // SAFETY: nobody else has the piece, which stays until the copy has ended.
        let own = unsafe { HostMemory::new(piece.as_mut_ptr(), part.bytes) };
        device.finish(match is_in {
            true => device.driver.copy_in(own, place, part, device.copying()),
            false => device.driver.copy_out(place, own, part, device.copying()),
        })?;
        if !is_in {
            // SAFETY: as above, and nobody uses the row.
            each(&mut piece, |here, there, bytes| unsafe { here.copy_from_nonoverlapping(there, bytes) });
        }
    }
    Ok(())
}
