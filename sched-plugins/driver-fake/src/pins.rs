//! Memory of the host that is pinned: copies are no faster by that here, and tests look at what is. As with CUDA, what
//! is copied at once has to be pinned as a whole or not at all, and to stay so meanwhile.

use super::{DriverError, invalid, locked};
use sched_core::driver::DeviceNumber;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Bytes, by device and address.
type All = BTreeMap<(DeviceNumber, usize), u64>;

static PINNED: Mutex<All> = Mutex::new(BTreeMap::new());

/// Sizes in bytes of the memory that is pinned for a device, in order of address.
#[must_use]
pub fn pinned(device: u32) -> Vec<u64> {
    let of_device = (DeviceNumber(device), 0)..=(DeviceNumber(device), usize::MAX);
    locked(&PINNED).range(of_device).map(|(_, bytes)| *bytes).collect()
}

/// Begin and end of what overlaps with some memory.
fn overlapping(pinned: &All, first: usize, bytes: u64) -> Vec<(usize, usize)> {
    let end = first + bytes as usize;
    let all = pinned.iter().map(|((_, at), bytes)| (*at, at + *bytes as usize));
    all.filter(|(at, to)| *at < end && first < *to).collect()
}

pub(crate) fn pin(device: DeviceNumber, first: usize, bytes: u64) -> Result<(), DriverError> {
    let mut pinned = locked(&PINNED);
    if !overlapping(&pinned, first, bytes).is_empty() {
        return Err(invalid("some of the memory is pinned already"));
    }
    pinned.insert((device, first), bytes);
    Ok(())
}

/// Whether memory is pinned, for any device.
pub(crate) fn is_pinned(first: usize, bytes: u64) -> Result<bool, DriverError> {
    let over = overlapping(&locked(&PINNED), first, bytes);
    match over.iter().any(|(at, to)| *at <= first && first + bytes as usize <= *to) {
        false if !over.is_empty() => Err(invalid("some of the memory of a copy is pinned, and some is not")),
        is_pinned => Ok(is_pinned),
    }
}

pub(crate) fn unpin(device: DeviceNumber, first: usize) {
    locked(&PINNED).remove(&(device, first));
}
