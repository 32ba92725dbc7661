//! The host's business with bare pointers, done for the [rig](crate::rig): heads that outlive every handle, and a node
//! for one call.

use super::extension::{HostLog, RawExtension};
use super::host::WireHost;
use super::task::{RawTask, TaskHead};
use super::wire::{CallRef, RawNode};
use crate::task::Task;
use abi_stable::std_types::RStr;
use parking_lot::Mutex;
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
}

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

static HOST_LOG: HostLog = HostLog { log };

/// The log that a fake host offers.
pub(crate) fn host_log() -> RawExtension {
    RawExtension::new(&HOST_LOG)
}
