//! Memory of the host that is pinned: nothing changes by that here, and tests look at what is.

use super::{DriverError, DriverErrorKind, locked};
use sched_core::driver::DeviceNumber;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Bytes, by device and address.
static PINNED: Mutex<BTreeMap<(DeviceNumber, usize), u64>> = Mutex::new(BTreeMap::new());

/// Sizes in bytes of the memory that is pinned for a device, in order of address.
#[must_use]
pub fn pinned(device: u32) -> Vec<u64> {
    let of_device = (DeviceNumber(device), 0)..=(DeviceNumber(device), usize::MAX);
    locked(&PINNED).range(of_device).map(|(_, bytes)| *bytes).collect()
}

pub(crate) fn pin(device: DeviceNumber, address: usize, bytes: u64) -> Result<(), DriverError> {
    match locked(&PINNED).insert((device, address), bytes) {
        None => Ok(()),
        Some(_) => Err(DriverError::new(DriverErrorKind::Invalid, "the memory is pinned already")),
    }
}

pub(crate) fn unpin(device: DeviceNumber, address: usize) {
    locked(&PINNED).remove(&(device, address));
}
