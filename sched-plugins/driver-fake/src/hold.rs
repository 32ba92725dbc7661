//! Copies and kernels that are held, so that a test does something while they are under way.

use super::locked;
use sched_core::driver::DeviceNumber;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Operations of one kind on one device.
#[derive(Default, Debug)]
struct Operations {
    is_held: bool,
    /// Number of those that wait.
    waiting: usize,
    /// Number of those that have ended.
    ended: usize,
}

/// What is held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    Copy,
    Kernel,
}

type All = HashMap<(DeviceNumber, Kind), Operations>;

static OPERATIONS: Mutex<Option<All>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

/// Far longer than anything that a test waits for.
const MINUTE: Duration = Duration::from_secs(60);

/// Holds the copies or the kernels of a device until it is dropped; see [`hold_copies`] and [`hold_kernels`].
#[derive(Debug)]
pub struct Held {
    device: DeviceNumber,
    kind: Kind,
    /// Number of copies on the device that had ended before.
    copies: usize,
}

/// Holds the copies from and to a device, those that begin from now on.
#[must_use = "they go on when it is dropped"]
pub fn hold_copies(device: u32) -> Held {
    Held::new(DeviceNumber(device), Kind::Copy)
}

/// Holds the kernels on a device, those that begin from now on.
#[must_use = "they go on when it is dropped"]
pub fn hold_kernels(device: u32) -> Held {
    Held::new(DeviceNumber(device), Kind::Kernel)
}

impl Held {
    fn new(device: DeviceNumber, kind: Kind) -> Held {
        let mut all = locked(&OPERATIONS);
        let all = all.get_or_insert_default();
        let copies = all.entry((device, Kind::Copy)).or_default().ended;
        all.entry((device, kind)).or_default().is_held = true;
        Held { device, kind, copies }
    }

    /// Waits until one of them is held.
    ///
    /// # Panics
    /// If none is for a minute.
    pub fn wait_for_one(&self) {
        self.wait_until(|all| all.entry((self.device, self.kind)).or_default().waiting > 0);
    }

    /// Waits until this number of copies from and to the device have ended since this was made.
    ///
    /// # Panics
    /// If they have not after a minute.
    pub fn wait_for_copies(&self, count: usize) {
        self.wait_until(|all| all.entry((self.device, Kind::Copy)).or_default().ended - self.copies >= count);
    }

    /// Waits until something is so, and panics where the test would hang.
    fn wait_until(&self, mut is_so: impl FnMut(&mut All) -> bool) {
        let is_not = |all: &mut Option<All>| !is_so(all.get_or_insert_default());
        let waited = CHANGED.wait_timeout_while(locked(&OPERATIONS), MINUTE, is_not);
        let (all, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(all);
        assert!(
            !waited.timed_out(),
            "what a test waits for on {:?} does not happen ({:?} are held)",
            self.device,
            self.kind
        );
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        locked(&OPERATIONS).get_or_insert_default().entry((self.device, self.kind)).or_default().is_held = false;
        CHANGED.notify_all();
    }
}

/// Waits while operations of this kind are held on a device.
pub(crate) fn pass(device: DeviceNumber, kind: Kind) {
    {
        let mut all = locked(&OPERATIONS);
        let operations = all.get_or_insert_default().entry((device, kind)).or_default();
        if !operations.is_held {
            return;
        }
        operations.waiting += 1;
        CHANGED.notify_all();
    }
    let is_held = |all: &mut Option<All>| all.get_or_insert_default().entry((device, kind)).or_default().is_held;
    let mut all = CHANGED.wait_while(locked(&OPERATIONS), is_held).unwrap_or_else(PoisonError::into_inner);
    all.get_or_insert_default().entry((device, kind)).or_default().waiting -= 1;
}

/// Notes the end of an operation.
pub(crate) fn note_end(device: DeviceNumber, kind: Kind) {
    locked(&OPERATIONS).get_or_insert_default().entry((device, kind)).or_default().ended += 1;
    CHANGED.notify_all();
}
