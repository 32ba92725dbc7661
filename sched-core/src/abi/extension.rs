//! What minor versions add: tables of functions, found by name.

use super::HostObject;
use super::driver::{DriverPinning, DriverSpans, RawRemarks};
use super::task::RawTask;
use super::wire::{CallRef, RawNode};
use crate::estimate::NO_MODEL;
use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RSlice, RSliceMut, RStr, RVec};
use abi_stable::type_layout::TypeLayout;

/// A named table of functions. The name fixes its type for all time.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawExtension {
    /// Points to a static table.
    table: *const (),
}

impl RawExtension {
    /// Offers a table.
    pub fn new<T: Named>(table: &'static T) -> RawExtension {
        RawExtension { table: std::ptr::from_ref(table).cast() }
    }

    /// Offers a table in an object, which reads the object through the pointer that it is called with.
    ///
    /// # Safety
    /// Who gets the extension uses it no longer than the object is there, where the object is not moved.
    #[must_use]
    pub unsafe fn of_object<T: Named>(table: *const T) -> RawExtension {
        RawExtension { table: table.cast() }
    }

    /// Pointer to the table.
    #[must_use]
    pub fn as_ptr(self) -> *const () {
        self.table
    }

    /// The table.
    ///
    /// # Safety
    /// The other side returned this extension when asked for [`Named::NAME`] of `T`, and the plugin passed the layout
    /// check when it was loaded.
    #[must_use]
    pub unsafe fn table<T: Named>(self) -> &'static T {
        // SAFETY: the caller guarantees the type; tables are static and libraries are never unloaded.
        unsafe { &*self.table.cast::<T>() }
    }
}

/// A table type and its name.
pub trait Named: StableAbi + 'static {
    /// Unique; a modified table gets a new name.
    const NAME: &'static str;
}

/// An extension's name and the layout of its table, as one side knows it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct KnownExtension {
    /// The name.
    pub name: RStr<'static>,
    /// The layout.
    pub layout: &'static TypeLayout,
}

impl KnownExtension {
    /// The name and layout of `T`.
    #[must_use]
    pub const fn of<T: Named>() -> KnownExtension {
        KnownExtension { name: RStr::from_str(T::NAME), layout: T::LAYOUT }
    }
}

/// Every extension that this version knows, whichever side offers it.
pub const KNOWN: &[KnownExtension] = &[
    KnownExtension::of::<HostLog>(),
    KnownExtension::of::<WorkerDistance>(),
    KnownExtension::of::<HostTimes>(),
    KnownExtension::of::<HostTeams>(),
    KnownExtension::of::<HostProspects>(),
    KnownExtension::of::<HostProspectRuns>(),
    KnownExtension::of::<HostGraph>(),
    KnownExtension::of::<HostEnds>(),
    KnownExtension::of::<HostRoom>(),
    KnownExtension::of::<HostNeighbours>(),
    KnownExtension::of::<ComponentExecution>(),
    KnownExtension::of::<ComponentState>(),
    KnownExtension::of::<HostRoutes>(),
    KnownExtension::of::<HostCapacities>(),
    KnownExtension::of::<HostSubmission>(),
    KnownExtension::of::<RawRemarks>(),
    KnownExtension::of::<DriverSpans>(),
    KnownExtension::of::<DriverPinning>(),
];

/// Since 1.1, offered by the host: lets a component write to the host's log.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostLog {
    /// Writes a line. Levels are those of [`LogLevel`](crate::LogLevel).
    pub log: extern "C" fn(call: CallRef<'_>, node: u32, level: u32, line: RStr<'_>),
}

impl Named for HostLog {
    const NAME: &'static str = "host-log/1";
}

/// Since 1.1, offered by the host: distances between workers.
#[repr(C)]
#[derive(StableAbi)]
pub struct WorkerDistance {
    /// See [`Node::worker_distance`](crate::Node::worker_distance); `u32::MAX` if unknown.
    pub between: extern "C" fn(call: CallRef<'_>, node: u32, one: u32, other: u32) -> u32,
}

impl Named for WorkerDistance {
    const NAME: &'static str = "worker-distance/1";
}

/// Since 1.1, offered by the host: the expected times at which workers become free. Times are nanoseconds since the
/// start of the run. A *worker* may be a combined one, which is free when the last of its members is.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostTimes {
    /// Expected end of what the worker executes now; in the past or 0 when it executes nothing of known length;
    /// [`NO_TIME`] when the host keeps no such records, and for a worker that does not exist.
    pub busy_until: extern "C" fn(call: CallRef<'_>, worker: u32) -> u64,
    /// Expected time at which the worker finishes all tasks queued for it in leaves too, never earlier than now;
    /// [`NO_TIME`] when the host keeps no such records, and for a worker that does not exist.
    pub free_at: extern "C" fn(call: CallRef<'_>, worker: u32) -> u64,
    /// Reports the total expected length, in nanoseconds, of the tasks queued at `node`, replacing the previous report.
    pub note_queued: extern "C" fn(call: CallRef<'_>, node: u32, nanos: u64),
}

/// No time is known; see [`HostTimes`].
pub const NO_TIME: u64 = u64::MAX;

impl Named for HostTimes {
    const NAME: &'static str = "worker-times/1";
}

/// Since 1.1, offered by the host: the members of combined workers.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostTeams {
    /// Number of members of a worker: 1 for a simple worker, 0 if there is no such worker.
    pub size: extern "C" fn(call: CallRef<'_>, worker: u32) -> u32,
    /// Member number `rank` of a worker, counted from 0; [`NO_ID`](crate::abi::wire::NO_ID) beyond the last.
    pub member: extern "C" fn(call: CallRef<'_>, worker: u32, rank: u32) -> u32,
    /// Hop: the sum of the loads of the members' own leaves; 0 for a simple worker.
    pub load: extern "C" fn(call: CallRef<'_>, worker: u32) -> f64,
}

impl Named for HostTeams {
    const NAME: &'static str = "worker-teams/1";
}

/// Since 1.1, offered by the host: the expected cost of a task below the children of a node, for many children per
/// call.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostProspects {
    /// Writes [`Node::prospects`](crate::Node::prospects) of the children from number `first` on, with or without the
    /// energy, in order, until it runs out of children or space.
    pub below: extern "C" fn(
        call: CallRef<'_>,
        node: u32,
        first: u32,
        task: RawTask,
        with_energy: bool,
        into: RSliceMut<'_, RawProspect>,
    ),
    /// [`Node::expected_below`](crate::Node::expected_below), as an [`Estimate`](crate::Estimate) on the wire.
    pub here: extern "C" fn(call: CallRef<'_>, node: u32, task: RawTask) -> u64,
}

impl Named for HostProspects {
    const NAME: &'static str = "children-prospects/1";
}

/// Since 1.1, offered by the host: the expected cost of a task below the children of a node, once for each run of
/// neighbouring children with equal prospects.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostProspectRuns {
    /// Writes [`Node::prospect_runs`](crate::Node::prospect_runs), in order, and returns their number; 0 where there
    /// are more than `into` has room for.
    pub below: extern "C" fn(
        call: CallRef<'_>,
        node: u32,
        task: RawTask,
        with_energy: bool,
        into: RSliceMut<'_, RawProspectRun>,
    ) -> u32,
}

impl Named for HostProspectRuns {
    const NAME: &'static str = "children-prospect-runs/1";
}

/// Neighbouring children with equal prospects.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawProspectRun {
    /// Number of children.
    pub count: u32,
    /// The prospect of each.
    pub prospect: RawProspect,
}

/// See [`Prospect`](crate::Prospect).
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawProspect {
    /// Number of workers that can execute the task.
    pub able: u32,
    /// The shortest known length, as an [`Estimate`](crate::Estimate) on the wire.
    pub length: u64,
    /// Average transfer time in nanoseconds.
    pub transfer: u64,
    /// Energy in joules; NaN if unknown.
    pub energy: f64,
}

impl RawProspect {
    /// The value for a child without a worker for the task.
    pub const NONE: RawProspect = RawProspect { able: 0, length: NO_MODEL, transfer: 0, energy: f64::NAN };
}

/// Since 1.1, offered by hosts that know them: the submitted tasks, with their dependencies and accesses. Tasks are
/// identified by their [sequence numbers](crate::TaskId::sequence), data by the host's numbers.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostGraph {
    /// The range of known tasks.
    pub range: extern "C" fn(call: CallRef<'_>) -> RawRange,
    /// One task; its stage is [`RawSubmitted::NONE`] if there is none of this number.
    pub task: extern "C" fn(call: CallRef<'_>, task: u64) -> RawSubmitted,
    /// Number `index` of the tasks that wait for a task; [`RawSubmitted::NO_TASK`] beyond the last.
    pub successor: extern "C" fn(call: CallRef<'_>, task: u64, index: u32) -> u64,
    /// Access number `index` of a task.
    pub access: extern "C" fn(call: CallRef<'_>, task: u64, index: u32) -> RawAccess,
    /// Expected length of a task on a worker, as an [`Estimate`](crate::Estimate) on the wire.
    pub length: extern "C" fn(call: CallRef<'_>, task: u64, worker: u32) -> u64,
    /// Bit *n* is set if memory node *n* has a copy of the data.
    pub copies: extern "C" fn(call: CallRef<'_>, data: u64) -> u64,
    /// Expected nanoseconds for transferring `bytes` bytes from one memory node to another.
    pub transfer: extern "C" fn(call: CallRef<'_>, from: u32, to: u32, bytes: u64) -> u64,
}

impl Named for HostGraph {
    const NAME: &'static str = "task-graph/1";
}

/// A range of sequence numbers: all tasks before `first` have ended, and `end` is one past the last submitted.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawRange {
    /// The first.
    pub first: u64,
    /// One past the last.
    pub end: u64,
}

/// A submitted task.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawSubmitted {
    /// A [`Stage`](crate::Stage), or [`NONE`](Self::NONE).
    pub stage: u32,
    /// Number of submitted tasks that wait for it. If there is no such task: the distance to the next number that may
    /// have one, or 0 if unknown.
    pub successors: u32,
    /// Number of pieces of data that it accesses.
    pub accesses: u32,
    /// It ends by itself as soon as it waits for nothing.
    pub passes: bool,
}

impl RawSubmitted {
    /// There is no such task.
    pub const NONE: u32 = u32::MAX;
    /// Stands for "no task" in place of a sequence number.
    pub const NO_TASK: u64 = u64::MAX;
    /// The answer where there is no such task.
    pub const ABSENT: RawSubmitted = RawSubmitted { stage: Self::NONE, successors: 0, accesses: 0, passes: false };
}

/// An access of a task to a piece of data.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawAccess {
    /// The data's number.
    pub data: u64,
    /// Its size.
    pub bytes: u64,
    /// The task reads it.
    pub reads: bool,
    /// The task modifies it.
    pub writes: bool,
}

/// Since 1.1, offered by hosts that provide [`HostGraph`]: whether more tasks are being submitted.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostSubmission {
    /// [`ENDED`](Self::ENDED), [`GOES_ON`](Self::GOES_ON), or anything else where the host does not know. See
    /// [`Node::submission_goes_on`](crate::Node::submission_goes_on).
    pub state: extern "C" fn(call: CallRef<'_>) -> u32,
}

impl HostSubmission {
    /// The application waits for its tasks, or has ended.
    pub const ENDED: u32 = 0;
    /// The application submits tasks.
    pub const GOES_ON: u32 = 1;
    /// The host does not know.
    pub const UNKNOWN: u32 = u32::MAX;
}

impl Named for HostSubmission {
    const NAME: &'static str = "submission/1";
}

/// Since 1.1, offered by the host: the times at which the children of a node run out of work, for many children per
/// call.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostEnds {
    /// Hop: writes the ends of the children from number `first` on, in order, until it runs out of children or space.
    pub below: extern "C" fn(call: CallRef<'_>, node: u32, first: u32, into: RSliceMut<'_, u64>),
}

impl Named for HostEnds {
    const NAME: &'static str = "children-ends/1";
}

/// Since 1.1, offered by the host: which nodes have room for tasks.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostRoom {
    /// Reports whether the component at `node` has room for a task, replacing the previous report. See
    /// [`Node::note_room`](crate::Node::note_room).
    pub note: extern "C" fn(call: CallRef<'_>, node: u32, has_room: bool),
    /// Whether child number `child` of `node` may have room; true if there is no such child.
    pub of_child: extern "C" fn(call: CallRef<'_>, node: u32, child: u32) -> bool,
    /// Whether any child of `node` may have room.
    pub below: extern "C" fn(call: CallRef<'_>, node: u32) -> bool,
}

impl Named for HostRoom {
    const NAME: &'static str = "room/1";
}

/// Since 1.1, offered by the host: the routes of transfers between memory nodes.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostRoutes {
    /// The route from one memory node to another; writes its links, in order, until it runs out of links or space.
    pub route: extern "C" fn(call: CallRef<'_>, from: u32, to: u32, into: RSliceMut<'_, RawPassage>) -> RawRoute,
}

impl Named for HostRoutes {
    const NAME: &'static str = "memory-routes/2";
}

/// See [`Route`](crate::Route).
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawRoute {
    /// Nanoseconds before the first byte.
    pub latency: u64,
    /// Nanoseconds that an allocation at the destination takes.
    pub allocation: u64,
    /// Number of links; [`RawRoute::UNKNOWN`] if the host does not know the route.
    pub links: u32,
    /// Share of a link that a transfer gets, relative to others.
    pub weight: f64,
}

impl RawRoute {
    /// The host does not know the route.
    pub const UNKNOWN: u32 = u32::MAX;
    /// The answer where there is no such route.
    pub const NONE: RawRoute = RawRoute { latency: 0, allocation: 0, links: Self::UNKNOWN, weight: 1.0 };
}

/// See [`Passage`](crate::Passage).
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawPassage {
    /// Number of the link.
    pub link: u32,
    /// Nanoseconds for each byte.
    pub per_byte: f64,
}

/// Since 1.1, offered by the host: the capacities of memory nodes.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostCapacities {
    /// Bytes that a memory node has for data; [`u64::MAX`] if that is not limited, or not known.
    pub of: extern "C" fn(call: CallRef<'_>, memory_node: u32) -> u64,
}

impl Named for HostCapacities {
    const NAME: &'static str = "memory-capacities/1";
}

/// Since 1.1, offered by the host: what stands around a node, and the context that its tree serves.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostNeighbours {
    /// Name of the component of child number `child`; empty if there is no such child.
    pub child: for<'a> extern "C" fn(call: CallRef<'a>, node: u32, child: u32) -> RStr<'a>,
    /// Name of the component of parent number `parent`; empty if there is no such parent.
    pub parent: for<'a> extern "C" fn(call: CallRef<'a>, node: u32, parent: u32) -> RStr<'a>,
    /// Number of the family of a child, as in [`RawInfo`](crate::abi::manifest::RawInfo); `u32::MAX` if unknown.
    pub child_family: extern "C" fn(call: CallRef<'_>, node: u32, child: u32) -> u32,
    /// Number of the family of a parent.
    pub parent_family: extern "C" fn(call: CallRef<'_>, node: u32, parent: u32) -> u32,
    /// Name of the context.
    pub context: for<'a> extern "C" fn(call: CallRef<'a>) -> RStr<'a>,
    /// What the application attached to the context; empty if nothing.
    pub user_data: for<'a> extern "C" fn(call: CallRef<'a>) -> RSlice<'a, u8>,
}

impl Named for HostNeighbours {
    const NAME: &'static str = "host-neighbours/1";
}

/// Since 1.1, offered by components that [hear of tasks](crate::Info::hears_tasks). `this` is the pointer that the
/// component offered ([`RawExtension::as_ptr`]).
#[repr(C)]
#[derive(StableAbi)]
pub struct ComponentExecution {
    /// See [`Component::task_started`](crate::Component::task_started).
    pub started: extern "C" fn(this: *const (), node: &RawNode, task: &RawExecution),
    /// See [`Component::task_ended`](crate::Component::task_ended).
    pub ended: extern "C" fn(this: *const (), node: &RawNode, task: &RawExecution),
}

impl Named for ComponentExecution {
    const NAME: &'static str = "component-execution/1";
}

/// A task that starts, or has ended.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, Debug)]
pub struct RawExecution {
    /// Position in the order of submission.
    pub task: u64,
    /// Footprint.
    pub footprint: u64,
    /// Expected duration in nanoseconds, or `u64::MAX`.
    pub predicted: u64,
    /// Duration of the kernel in nanoseconds; 0 at its start.
    pub length: u64,
    /// Energy in joules; NaN if unknown, and at the start.
    pub energy: f64,
    /// Number of the codelet.
    pub codelet: u32,
    /// The worker, simple or combined.
    pub worker: u32,
    /// Priority.
    pub priority: i32,
    /// Nonzero if the task failed.
    pub failed: u32,
}

/// Since 1.1, offered by components: what an instance leaves to its successor. `this` is the pointer that the component
/// offered ([`RawExtension::as_ptr`]).
#[repr(C)]
#[derive(StableAbi)]
pub struct ComponentState {
    /// See [`Component::export`](crate::Component::export).
    pub export: extern "C" fn(this: *const (), node: &RawNode) -> ROption<RVec<u8>>,
    /// See [`Component::import`](crate::Component::import).
    pub import: extern "C" fn(this: *const (), node: &RawNode, state: RSlice<'_, u8>),
}

impl Named for ComponentState {
    const NAME: &'static str = "component-state/1";
}

/// The host's table of this type, if it has one.
pub(crate) fn offered<T: Named>(host: &HostObject<'_>) -> Option<&'static T> {
    let extension = host.extension(T::NAME.into()).into_option()?;
    // SAFETY: the extension was requested by the name of its type, and layouts were compared when the plugin was
    // loaded.
    Some(unsafe { extension.table::<T>() })
}
