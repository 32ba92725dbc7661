//! The data types of the calls.

use super::task::RawTask;
use super::{HostObject, WireHost, WireHost_TO};
use abi_stable::RRef;
use abi_stable::StableAbi;
use abi_stable::std_types::{RSlice, RStr};
use abi_stable::type_level::downcasting::TD_Opaque;
use std::marker::PhantomData;

/// Stands for "any worker", "no worker", "every child" or "no implementation".
pub const NO_ID: u32 = u32::MAX;

/// Stands for the requesting worker where a worker number is expected; any worker if there is no requester.
pub const REQUESTER: u32 = u32::MAX - 1;

/// A reference to the host's record of one call into the tree, which lives on the stack of the thread that made the
/// call. Only the host reads it.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct CallRef<'a> {
    record: *const (),
    _lives: PhantomData<&'a ()>,
}

impl<'a> CallRef<'a> {
    /// A reference to the host's record.
    pub fn new<T>(record: &'a T) -> CallRef<'a> {
        CallRef { record: std::ptr::from_ref(record).cast(), _lives: PhantomData }
    }

    /// Pointer to the host's record, for the host that made it to cast back.
    #[must_use]
    pub fn as_ptr(self) -> *const () {
        self.record
    }
}

/// A component's position in the tree during one call.
///
/// The lifetimes inside are nominal: both parts live as long as the reference to the `RawNode` that a component
/// receives. Therefore making one is unsafe, and nothing in it can be kept beyond the call.
#[repr(C)]
#[derive(StableAbi)]
pub struct RawNode {
    /// The host, as this node sees it.
    host: HostObject<'static>,
    /// The call.
    call: CallRef<'static>,
}

impl RawNode {
    /// A node for one call.
    ///
    /// # Safety
    /// The referents of `host` and `call` outlive the result.
    #[must_use]
    pub unsafe fn new<H: WireHost + 'static>(host: &H, call: CallRef<'_>) -> RawNode {
        // SAFETY: the caller keeps the host alive as long as the node, which lends its parts for no longer.
        let host: &'static H = unsafe { &*std::ptr::from_ref(host) };
        let call = CallRef { record: call.record, _lives: PhantomData };
        RawNode { host: WireHost_TO::from_ptr(RRef::new(host), TD_Opaque), call }
    }

    /// The host, as this node sees it.
    #[must_use]
    pub fn host(&self) -> &HostObject<'static> {
        &self.host
    }

    /// The call.
    #[must_use]
    pub fn call(&self) -> CallRef<'_> {
        self.call
    }
}

/// The answer to a push. A refused task goes back with the reason.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawPush {
    /// The task that is handed back, or none when it was taken.
    pub refused: RawTask,
    /// One of the [`Refusal`](crate::Refusal) codes when it was refused.
    pub why: u32,
}

impl RawPush {
    /// The task was taken.
    pub const TAKEN: RawPush = RawPush { refused: RawTask::NONE, why: 0 };
}

/// A node's static properties. They change only while no call is in the tree.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawPlace<'a> {
    /// Number of the node in its tree.
    pub id: u32,
    /// Number of children.
    pub children: u32,
    /// Number of parents.
    pub parents: u32,
    /// Bits of [`place`].
    pub flags: u32,
    /// The memory node of all workers below, or [`NO_ID`].
    pub memory_node: u32,
    /// The worker that a leaf stands for, or [`NO_ID`].
    pub worker: u32,
    /// Sum of the relative speeds of the workers below that are in the context.
    pub relative_speedup: f64,
    /// Name of the node, unique in the tree.
    pub path: RStr<'a>,
    /// The topology object that the node stands for: `numa 1`, `worker 3`, or empty.
    pub object: RStr<'a>,
    /// The slot of its parent that it fills, or empty.
    pub slot: RStr<'a>,
    /// All workers below.
    pub workers: RSlice<'a, u64>,
    /// The workers below that are in the context now.
    pub workers_in_context: RSlice<'a, u64>,
}

impl RawPlace<'static> {
    /// A place without neighbours, workers or name.
    pub const NOWHERE: RawPlace<'static> = RawPlace {
        id: 0,
        children: 0,
        parents: 0,
        flags: 0,
        memory_node: NO_ID,
        worker: NO_ID,
        relative_speedup: 0.0,
        path: RStr::empty(),
        object: RStr::empty(),
        slot: RStr::empty(),
        workers: RSlice::EMPTY,
        workers_in_context: RSlice::EMPTY,
    };
}

/// Bits of [`RawPlace::flags`].
pub mod place {
    /// All workers below have one architecture.
    pub const HOMOGENEOUS: u32 = 1;
    /// All workers below share one memory node.
    pub const SINGLE_MEMORY_NODE: u32 = 2;
    /// The node is a worker.
    pub const LEAF: u32 = 4;
    /// Since 1.1: data is never transferred, so prefetching is pointless.
    pub const NO_TRANSFERS: u32 = 8;
}

/// The properties of one worker.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawWorker {
    /// Number of its architecture.
    pub arch: u32,
    /// Number of its memory node.
    pub memory_node: u32,
    /// Speed relative to one CPU core.
    pub relative_speedup: f64,
}
