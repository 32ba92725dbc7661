//! Copies and kernels that are held, so that a test does something while they are under way.

use super::locked;
use sched_core::driver::DeviceNumber;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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
    pub fn wait_for_one(&self) {
        drop(wait_until(|all| all.entry((self.device, self.kind)).or_default().waiting > 0));
    }

    /// Waits until this number of copies from and to the device have ended since this was made.
    pub fn wait_for_copies(&self, count: usize) {
        drop(wait_until(|all| all.entry((self.device, Kind::Copy)).or_default().ended - self.copies >= count));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        locked(&OPERATIONS).get_or_insert_default().entry((self.device, self.kind)).or_default().is_held = false;
        CHANGED.notify_all();
    }
}

/// Waits until something is so.
fn wait_until(mut is_so: impl FnMut(&mut All) -> bool) -> MutexGuard<'static, Option<All>> {
    let is_not = |all: &mut Option<All>| !is_so(all.get_or_insert_default());
    CHANGED.wait_while(locked(&OPERATIONS), is_not).unwrap_or_else(PoisonError::into_inner)
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
    let mut all = wait_until(|all| !all.entry((device, kind)).or_default().is_held);
    all.get_or_insert_default().entry((device, kind)).or_default().waiting -= 1;
}

/// Notes the end of an operation.
pub(crate) fn note_end(device: DeviceNumber, kind: Kind) {
    locked(&OPERATIONS).get_or_insert_default().entry((device, kind)).or_default().ended += 1;
    CHANGED.notify_all();
}
