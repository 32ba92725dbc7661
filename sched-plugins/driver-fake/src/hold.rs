//! Copies that are held, so that a test does something while they are under way.

use super::locked;
use sched_core::driver::DeviceNumber;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};

/// Copies of one device.
#[derive(Default, Debug)]
struct Copies {
    is_held: bool,
    /// Number of copies that wait.
    waiting: usize,
}

static COPIES: Mutex<Option<HashMap<DeviceNumber, Copies>>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

/// Holds the copies of a device until it is dropped; see [`hold_copies`].
#[derive(Debug)]
pub struct HeldCopies(DeviceNumber);

/// Holds the copies from and to a device, those that begin from now on.
#[must_use = "they go on when it is dropped"]
pub fn hold_copies(device: u32) -> HeldCopies {
    let device = DeviceNumber(device);
    locked(&COPIES).get_or_insert_default().entry(device).or_default().is_held = true;
    HeldCopies(device)
}

impl HeldCopies {
    /// Waits until a copy is held.
    pub fn wait_for_copy(&self) {
        let is_none = |copies: &mut Option<HashMap<DeviceNumber, Copies>>| {
            copies.get_or_insert_default().entry(self.0).or_default().waiting == 0
        };
        drop(CHANGED.wait_while(locked(&COPIES), is_none).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for HeldCopies {
    fn drop(&mut self) {
        locked(&COPIES).get_or_insert_default().entry(self.0).or_default().is_held = false;
        CHANGED.notify_all();
    }
}

/// Waits while the copies of a device are held.
pub(crate) fn pass(device: DeviceNumber) {
    let mut all = locked(&COPIES);
    let Some(copies) = all.as_mut().and_then(|all| all.get_mut(&device)).filter(|copies| copies.is_held) else {
        return;
    };
    copies.waiting += 1;
    CHANGED.notify_all();
    let is_held = |all: &mut Option<HashMap<DeviceNumber, Copies>>| {
        all.as_ref().and_then(|all| all.get(&device)).is_some_and(|copies| copies.is_held)
    };
    let mut all = CHANGED.wait_while(all, is_held).unwrap_or_else(PoisonError::into_inner);
    if let Some(copies) = all.as_mut().and_then(|all| all.get_mut(&device)) {
        copies.waiting -= 1;
    }
}
