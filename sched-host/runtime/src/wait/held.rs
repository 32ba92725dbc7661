//! Guards that the program holds on data, for the report of a stall.

use crate::core::{Core, NO_CODELET};
use sched_graph::AccessMode;
use sched_tree::Phase;
use serde::Serialize;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::ThreadId;

/// A request of the program for a guard.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    data: u64,
    mode: AccessMode,
    at: &'static Location<'static>,
    thread: ThreadId,
}

impl Asked {
    /// A request by this thread.
    #[track_caller]
    pub(crate) fn here(data: u64, mode: AccessMode) -> Asked {
        Asked { data, mode, at: Location::caller(), thread: std::thread::current().id() }
    }
}

/// A guard that the program holds: the result of a [read](crate::Runtime::read), a [write](crate::Runtime::write) or
/// one of their variants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HeldGuard {
    /// Number of the data, as `{:?}` of its handle shows it.
    pub data: u64,
    /// Whether it is a guard for writing.
    pub writes: bool,
    /// Where the program asked for it: file, line and column.
    pub at: String,
    /// Whether the thread that asked for it is the one that waits.
    pub is_of_this_thread: bool,
    /// Number of tasks that wait for its end directly.
    pub waiting: u64,
}

impl fmt::Display for HeldGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldGuard { data, writes, at, is_of_this_thread, waiting } = self;
        let holder = if *is_of_this_thread { "the thread that waits" } else { "the program" };
        let verb = if *writes { "writing" } else { "reading" };
        let tasks = if *waiting == 1 { "1 task waits".to_owned() } else { format!("{waiting} tasks wait") };
        write!(f, "{holder} holds a guard of data {data} for {verb}, from {at}: {tasks} for it to be dropped")
    }
}

/// The guards that the program holds.
pub(super) fn guards(core: &Core) -> Vec<HeldGuard> {
    let this = std::thread::current().id();
    let guard = |slot: &sched_tree::Slot| {
        if slot.phase() != Phase::Waiting || slot.head().codelet.load(Relaxed) != NO_CODELET {
            return None;
        }
        let body = core.records.get(slot.id()).body.lock();
        // The callback is gone when the turn has come.
        let rare = body.rare.as_ref().filter(|rare| rare.callback.is_none())?;
        let Asked { data, mode, at, thread } = rare.asked?;
        Some(HeldGuard {
            data,
            writes: mode.writes(),
            at: at.to_string(),
            is_of_this_thread: thread == this,
            waiting: body.dependents.len() as u64,
        })
    };
    core.ledger.slots().filter_map(guard).collect()
}
