//! The host's business with bare pointers, done for the [rig](crate::rig): heads that outlive every handle, and a node
//! for one call.

use super::extension::{HostLog, HostTeams, HostTimes, Named, RawExtension, WorkerDistance};
use super::host::WireHost;
use super::task::{RawTask, TaskHead};
use super::wire::{CallRef, NO_ID, RawNode};
use crate::task::Task;
use abi_stable::std_types::RStr;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Told of each handle that a component dropped.
pub(crate) type Listener = Arc<dyn Fn(RawTask) + Send + Sync>;

/// A head with who listens. Records are never freed, only used again, as in a host.
#[repr(C)]
struct Record {
    head: TaskHead,
    listener: Mutex<Option<Listener>>,
}

static FREE: Mutex<Vec<&'static Record>> = Mutex::new(Vec::new());

extern "C" fn lost(task: RawTask) {
    // SAFETY: only `Head::handle` makes handles with this function in their head; it points at a whole record, which is
    // never freed.
    let record = unsafe { &*task.head.cast::<Record>() };
    let listener = record.listener.lock().clone();
    if let Some(listener) = listener {
        listener(task);
    }
}

/// A head in use. When it is dropped, all handles to it are stale.
pub(crate) struct Head {
    record: &'static Record,
}

impl Head {
    /// A head, new or used again, whose dropped handles `listener` is told of.
    pub(crate) fn new(listener: Listener) -> Head {
        let free = FREE.lock().pop();
        let record = free.unwrap_or_else(|| {
            Box::leak(Box::new(Record { head: TaskHead::new(0, lost), listener: Mutex::new(None) }))
        });
        record.head.reset();
        *record.listener.lock() = Some(listener);
        Head { record }
    }

    /// The fields.
    pub(crate) fn fields(&self) -> &TaskHead {
        &self.record.head
    }

    /// The current handle.
    pub(crate) fn handle(&self) -> RawTask {
        RawTask { head: std::ptr::from_ref(self.record).cast(), generation: self.record.head.state.load(Relaxed) >> 32 }
    }

    /// Makes the handles given until now stale.
    pub(crate) fn revoke(&self) {
        self.record.head.state.fetch_add(1 << 32, Relaxed);
    }

    /// Looks at the task as a component would, without owning it.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Task) -> T) -> T {
        // SAFETY: the record is never freed, and the second owner made here is neither dropped nor moved out.
        let task = ManuallyDrop::new(unsafe { Task::from_raw(self.handle()) });
        look(&task)
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        self.revoke();
        *self.record.listener.lock() = None;
        FREE.lock().push(self.record);
    }
}

/// The rig's record of one call.
pub(crate) struct Call<'a> {
    /// The worker on whose behalf it happens, or `NO_ID`.
    pub(crate) requester: u32,
    /// Where the component's words go.
    pub(crate) log: &'a Mutex<Vec<String>>,
    /// How far apart workers are, the lower number first; `None` for a host that does not say.
    pub(crate) distances: &'a Mutex<Option<Distances>>,
    /// What the host knows of the workers' time and teams.
    pub(crate) books: &'a dyn Books,
}

/// What a fake host answers to the functions of [`HostTimes`] and [`HostTeams`].
pub(crate) trait Books {
    fn busy_until(&self, worker: u32) -> u64;
    fn free_at(&self, worker: u32) -> u64;
    fn note_queued(&self, nanos: u64);
    fn members(&self, worker: u32) -> Vec<u32>;
    fn members_load(&self, worker: u32) -> f64;
}

/// Distances of pairs of workers.
pub(crate) type Distances = HashMap<(u32, u32), u32>;

/// Runs `body` with a node of `host` for `call`.
pub(crate) fn with_node<H: WireHost + 'static, T>(host: &H, call: &Call<'_>, body: impl FnOnce(&RawNode) -> T) -> T {
    // SAFETY: host and call outlive `node`, which does not leave this function: `body` takes it for any lifetime, so
    // nothing of it can be in the result.
    let node = unsafe { RawNode::new(host, CallRef::new(call)) };
    body(&node)
}

/// The record behind a reference that a fake host was given.
pub(crate) fn call_of<'a>(call: CallRef<'a>) -> &'a Call<'a> {
    // SAFETY: a fake host is reached only through nodes that `with_node` made, and those carry a `Call`.
    unsafe { &*call.as_ptr().cast::<Call<'a>>() }
}

extern "C" fn log(call: CallRef<'_>, _node: u32, level: u32, line: RStr<'_>) {
    let level = ["error", "warn", "info", "debug"].get(level.wrapping_sub(1) as usize).unwrap_or(&"?");
    call_of(call).log.lock().push(format!("{level}: {line}"));
}

extern "C" fn busy_until(call: CallRef<'_>, worker: u32) -> u64 {
    call_of(call).books.busy_until(worker)
}

extern "C" fn free_at(call: CallRef<'_>, worker: u32) -> u64 {
    call_of(call).books.free_at(worker)
}

extern "C" fn note_queued(call: CallRef<'_>, _node: u32, nanos: u64) {
    call_of(call).books.note_queued(nanos);
}

extern "C" fn size(call: CallRef<'_>, worker: u32) -> u32 {
    call_of(call).books.members(worker).len() as u32
}

extern "C" fn member(call: CallRef<'_>, worker: u32, rank: u32) -> u32 {
    call_of(call).books.members(worker).get(rank as usize).copied().unwrap_or(NO_ID)
}

extern "C" fn load(call: CallRef<'_>, worker: u32) -> f64 {
    call_of(call).books.members_load(worker)
}

static HOST_LOG: HostLog = HostLog { log };
static HOST_TIMES: HostTimes = HostTimes { busy_until, free_at, note_queued };
static HOST_TEAMS: HostTeams = HostTeams { size, member, load };

extern "C" fn between(call: CallRef<'_>, _node: u32, one: u32, other: u32) -> u32 {
    let distances = call_of(call).distances.lock();
    distances.as_ref().and_then(|known| known.get(&(one.min(other), one.max(other))).copied()).unwrap_or(NO_ID)
}

static WORKER_DISTANCE: WorkerDistance = WorkerDistance { between };

/// What a fake host offers: everything, but distances only if it says any.
pub(crate) fn offer(name: &str, distances: bool) -> Option<RawExtension> {
    match name {
        HostLog::NAME => Some(RawExtension::new(&HOST_LOG)),
        HostTimes::NAME => Some(RawExtension::new(&HOST_TIMES)),
        HostTeams::NAME => Some(RawExtension::new(&HOST_TEAMS)),
        WorkerDistance::NAME if distances => Some(RawExtension::new(&WORKER_DISTANCE)),
        _ => None,
    }
}
