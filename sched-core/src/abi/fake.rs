//! The raw-pointer side of a host, for the [rig](crate::rig): task heads that outlive every handle, and nodes for one
//! call.

use super::ComponentObject;
use super::extension::{
    HostGraph, HostLog, HostRoom, HostTeams, HostTimes, Named, RawAccess, RawExtension, RawRange, RawSubmitted,
    WorkerDistance,
};
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

/// Receives each handle that a component drops.
pub(crate) type Listener = Arc<dyn Fn(RawTask) + Send + Sync>;

/// A head and its listener. Records are recycled but never freed, as in a real host.
#[repr(C)]
struct Record {
    head: TaskHead,
    listener: Mutex<Option<Listener>>,
}

static FREE: Mutex<Vec<&'static Record>> = Mutex::new(Vec::new());

extern "C" fn lost(task: RawTask) {
    // SAFETY: only `Head::handle` makes handles with this function in their head; it points to a whole record, which is
    // never freed.
    let record = unsafe { &*task.head.cast::<Record>() };
    let listener = record.listener.lock().clone();
    if let Some(listener) = listener {
        listener(task);
    }
}

/// A head in use. Dropping it makes all handles to it stale.
pub(crate) struct Head {
    record: &'static Record,
}

impl Head {
    /// Takes a new or recycled head; `listener` receives the handles that are dropped.
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

    /// Makes all existing handles stale.
    pub(crate) fn revoke(&self) {
        self.record.head.state.fetch_add(1 << 32, Relaxed);
    }

    /// Reads the task as a component would, without owning it.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Task) -> T) -> T {
        // SAFETY: the record is never freed, and this second owner is neither dropped nor moved out.
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
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The worker on whose behalf it happens, or `NO_ID`.
    pub(crate) requester: u32,
    /// The lines that the component logged.
    pub(crate) log: &'a Mutex<Vec<String>>,
    /// Distances between workers, the lower number first; `None` for a host that does not know them.
    pub(crate) distances: &'a Mutex<Option<Distances>>,
    /// The host's records of workers' times and teams.
    pub(crate) books: &'a dyn Books,
    /// The submitted tasks.
    pub(crate) graph: &'a dyn Graph,
}

/// The fake host's implementation of [`HostTimes`], [`HostRoom`] and [`HostTeams`].
pub(crate) trait Books {
    fn busy_until(&self, worker: u32) -> u64;
    fn free_at(&self, worker: u32) -> u64;
    fn note_queued(&self, nanos: u64);
    fn note_room(&self, has_room: bool);
    fn members(&self, worker: u32) -> Vec<u32>;
    fn members_load(&self, worker: u32) -> f64;
}

/// The fake host's implementation of [`HostGraph`].
pub(crate) trait Graph {
    fn range(&self) -> RawRange;
    fn task(&self, task: u64) -> RawSubmitted;
    fn successor(&self, task: u64, index: usize) -> u64;
    fn access(&self, task: u64, index: usize) -> RawAccess;
    fn length(&self, task: u64, worker: u32) -> u64;
    fn copies(&self, data: u64) -> u64;
    fn transfer(&self, from: u32, to: u32, bytes: u64) -> u64;
}

/// Distances of pairs of workers.
pub(crate) type Distances = HashMap<(u32, u32), u32>;

/// What a component offers: the table of this type, and the pointer that its functions get.
pub(crate) fn offer_of<T: Named>(component: &ComponentObject) -> Option<(RawExtension, &'static T)> {
    let extension = component.extension(RStr::from(T::NAME)).into_option()?;
    // SAFETY: the extension was requested by the name of its type, and a plugin has passed the layout check. The caller
    // uses it while it has the component.
    Some((extension, unsafe { extension.table::<T>() }))
}

/// Runs `body` with a node of `host`, for `call`.
pub(crate) fn with_node<H: WireHost + 'static, T>(host: &H, call: &Call<'_>, body: impl FnOnce(&RawNode) -> T) -> T {
    // SAFETY: host and call outlive `node`, which does not leave this function: `body` accepts it for any lifetime, so
    // its result cannot borrow from it.
    let node = unsafe { RawNode::new(host, CallRef::new(call)) };
    body(&node)
}

/// The record behind a reference that a fake host received.
pub(crate) fn call_of<'a>(call: CallRef<'a>) -> &'a Call<'a> {
    // SAFETY: a fake host is reached only through nodes made by `with_node`, and those carry a `Call`.
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

extern "C" fn note_room(call: CallRef<'_>, _node: u32, has_room: bool) {
    call_of(call).books.note_room(has_room);
}

/// Neighbours of the rig report nothing: they refuse.
extern "C" fn child_has_room(_call: CallRef<'_>, _node: u32, _child: u32) -> bool {
    true
}

extern "C" fn has_room_below(_call: CallRef<'_>, _node: u32) -> bool {
    true
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

extern "C" fn range(call: CallRef<'_>) -> RawRange {
    call_of(call).graph.range()
}

extern "C" fn task(call: CallRef<'_>, task: u64) -> RawSubmitted {
    call_of(call).graph.task(task)
}

extern "C" fn successor(call: CallRef<'_>, task: u64, index: u32) -> u64 {
    call_of(call).graph.successor(task, index as usize)
}

extern "C" fn access(call: CallRef<'_>, task: u64, index: u32) -> RawAccess {
    call_of(call).graph.access(task, index as usize)
}

extern "C" fn length(call: CallRef<'_>, task: u64, worker: u32) -> u64 {
    call_of(call).graph.length(task, worker)
}

extern "C" fn copies(call: CallRef<'_>, data: u64) -> u64 {
    call_of(call).graph.copies(data)
}

extern "C" fn transfer(call: CallRef<'_>, from: u32, to: u32, bytes: u64) -> u64 {
    call_of(call).graph.transfer(from, to, bytes)
}

static HOST_GRAPH: HostGraph = HostGraph { range, task, successor, access, length, copies, transfer };
static HOST_LOG: HostLog = HostLog { log };
static HOST_TIMES: HostTimes = HostTimes { busy_until, free_at, note_queued };
static HOST_ROOM: HostRoom = HostRoom { note: note_room, of_child: child_has_room, below: has_room_below };
static HOST_TEAMS: HostTeams = HostTeams { size, member, load };

extern "C" fn between(call: CallRef<'_>, _node: u32, one: u32, other: u32) -> u32 {
    let distances = call_of(call).distances.lock();
    distances.as_ref().and_then(|known| known.get(&(one.min(other), one.max(other))).copied()).unwrap_or(NO_ID)
}

static WORKER_DISTANCE: WorkerDistance = WorkerDistance { between };

/// The fake host's extension of this name: distances and submitted tasks only if enabled, all others always.
pub(crate) fn offer(name: &str, distances: bool, graph: bool) -> Option<RawExtension> {
    match name {
        HostLog::NAME => Some(RawExtension::new(&HOST_LOG)),
        HostTimes::NAME => Some(RawExtension::new(&HOST_TIMES)),
        HostRoom::NAME => Some(RawExtension::new(&HOST_ROOM)),
        HostTeams::NAME => Some(RawExtension::new(&HOST_TEAMS)),
        HostGraph::NAME if graph => Some(RawExtension::new(&HOST_GRAPH)),
        WorkerDistance::NAME if distances => Some(RawExtension::new(&WORKER_DISTANCE)),
        _ => None,
    }
}
