//! What minor versions add: tables of functions found by name.

use super::HostObject;
use super::task::RawTask;
use super::wire::CallRef;
use crate::estimate::NO_MODEL;
use abi_stable::StableAbi;
use abi_stable::std_types::{RSliceMut, RStr};
use abi_stable::type_layout::TypeLayout;

/// A table of functions behind a name. The name fixes its type for ever.
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

    /// The table.
    ///
    /// # Safety
    /// The other side gave this extension when it was asked for [`Named::NAME`] of `T`, and the plugin passed the
    /// layout check when it was loaded.
    #[must_use]
    pub unsafe fn table<T: Named>(self) -> &'static T {
        // SAFETY: the caller vouches for the type; tables are static and libraries are never unloaded.
        unsafe { &*self.table.cast::<T>() }
    }
}

/// A table type and the name it goes by.
pub trait Named: StableAbi + 'static {
    /// Unique; a changed table gets a new name.
    const NAME: &'static str;
}

/// A name with the layout of its table, as one side knows it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct KnownExtension {
    /// The name.
    pub name: RStr<'static>,
    /// The layout.
    pub layout: &'static TypeLayout,
}

impl KnownExtension {
    /// What this side knows under the name of `T`.
    #[must_use]
    pub const fn of<T: Named>() -> KnownExtension {
        KnownExtension { name: RStr::from_str(T::NAME), layout: T::LAYOUT }
    }
}

/// Every extension that this version knows, offered by whichever side.
pub const KNOWN: &[KnownExtension] = &[
    KnownExtension::of::<HostLog>(),
    KnownExtension::of::<WorkerDistance>(),
    KnownExtension::of::<HostTimes>(),
    KnownExtension::of::<HostTeams>(),
    KnownExtension::of::<HostProspects>(),
    KnownExtension::of::<HostGraph>(),
    KnownExtension::of::<HostEnds>(),
];

/// Since 1.1, offered by the host: a component's words in the host's log.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostLog {
    /// Notes a line. Levels are those of [`LogLevel`](crate::LogLevel).
    pub log: extern "C" fn(call: CallRef<'_>, node: u32, level: u32, line: RStr<'_>),
}

impl Named for HostLog {
    const NAME: &'static str = "host-log/1";
}

/// Since 1.1, offered by the host: how far apart workers are.
#[repr(C)]
#[derive(StableAbi)]
pub struct WorkerDistance {
    /// What [`Node::worker_distance`](crate::Node::worker_distance) says; `u32::MAX` for what is not known.
    pub between: extern "C" fn(call: CallRef<'_>, node: u32, one: u32, other: u32) -> u32,
}

impl Named for WorkerDistance {
    const NAME: &'static str = "worker-distance/1";
}

/// Since 1.1, offered by the host: the books that it keeps of each worker's time. Times are nanoseconds since the start of
/// the run; a *worker* may be a combined one, which is free when the last of its members is.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostTimes {
    /// When what the worker executes now should end, past or 0 when it executes nothing of an expected length;
    /// [`NO_TIME`] when no such books are kept.
    pub busy_until: extern "C" fn(call: CallRef<'_>, worker: u32) -> u64,
    /// When the worker should have done all that waits for it in leaves as well, now at the earliest; [`NO_TIME`] when no
    /// such books are kept.
    pub free_at: extern "C" fn(call: CallRef<'_>, worker: u32) -> u64,
    /// What waits at `node` should take this many nanoseconds, instead of what was noted before.
    pub note_queued: extern "C" fn(call: CallRef<'_>, node: u32, nanos: u64),
}

/// See [`HostTimes`].
pub const NO_TIME: u64 = u64::MAX;

impl Named for HostTimes {
    const NAME: &'static str = "worker-times/1";
}

/// Since 1.1, offered by the host: who is in a combined worker.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostTeams {
    /// Number of members of a worker: 1 for a simple one, 0 for none.
    pub size: extern "C" fn(call: CallRef<'_>, worker: u32) -> u32,
    /// Member number `rank` of a worker, counted from 0; [`NO_ID`](crate::abi::wire::NO_ID) from its size on.
    pub member: extern "C" fn(call: CallRef<'_>, worker: u32, rank: u32) -> u32,
    /// Hop: the sum of the loads of the members' own leaves; 0 for a worker that is no combined one.
    pub load: extern "C" fn(call: CallRef<'_>, worker: u32) -> f64,
}

impl Named for HostTeams {
    const NAME: &'static str = "worker-teams/1";
}

/// Since 1.1, offered by the host: what is to be expected of a task below the children of a node, many in one call.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostProspects {
    /// Writes what [`Node::prospects`](crate::Node::prospects) says of the children from number `first` on, with the
    /// energy or without, in order, until there are no more children or no more room.
    pub below: extern "C" fn(
        call: CallRef<'_>,
        node: u32,
        first: u32,
        task: RawTask,
        with_energy: bool,
        into: RSliceMut<'_, RawProspect>,
    ),
    /// What [`Node::expected_below`](crate::Node::expected_below) says, as an [`Estimate`](crate::Estimate) on the wire.
    pub here: extern "C" fn(call: CallRef<'_>, node: u32, task: RawTask) -> u64,
}

impl Named for HostProspects {
    const NAME: &'static str = "children-prospects/1";
}

/// See [`Prospect`](crate::Prospect).
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawProspect {
    /// Workers that can execute the task.
    pub able: u32,
    /// The shortest of the known lengths, as an [`Estimate`](crate::Estimate) on the wire.
    pub length: u64,
    /// Nanoseconds, on average.
    pub transfer: u64,
    /// Joules, or not a number.
    pub energy: f64,
}

impl RawProspect {
    /// That of a child without a worker for the task.
    pub const NONE: RawProspect = RawProspect { able: 0, length: NO_MODEL, transfer: 0, energy: f64::NAN };
}

/// Since 1.1, offered by hosts that know it: the tasks that are submitted, with what they wait for and what they access. Tasks
/// are named by their [sequence](crate::TaskId::sequence), data by numbers of the host's.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostGraph {
    /// Which tasks there are.
    pub range: extern "C" fn(call: CallRef<'_>) -> RawRange,
    /// One of them; with [`RawSubmitted::NONE`] as its stage where there is none of this number.
    pub task: extern "C" fn(call: CallRef<'_>, task: u64) -> RawSubmitted,
    /// Number `index` of those that wait for a task; [`RawSubmitted::NO_TASK`] from their number on.
    pub successor: extern "C" fn(call: CallRef<'_>, task: u64, index: u32) -> u64,
    /// Number `index` of what a task accesses.
    pub access: extern "C" fn(call: CallRef<'_>, task: u64, index: u32) -> RawAccess,
    /// How long a task takes on a worker, as an [`Estimate`](crate::Estimate) on the wire.
    pub length: extern "C" fn(call: CallRef<'_>, task: u64, worker: u32) -> u64,
    /// Bit *n* for a copy of the data in memory node *n*.
    pub copies: extern "C" fn(call: CallRef<'_>, data: u64) -> u64,
    /// Nanoseconds that so many bytes should take from one memory node to another.
    pub transfer: extern "C" fn(call: CallRef<'_>, from: u32, to: u32, bytes: u64) -> u64,
}

impl Named for HostGraph {
    const NAME: &'static str = "task-graph/1";
}

/// Sequences of tasks: those before `first` have ended, and `end` is behind the last that was submitted.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawRange {
    /// The first.
    pub first: u64,
    /// Behind the last.
    pub end: u64,
}

/// A submitted task.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawSubmitted {
    /// A [`Stage`](crate::Stage), or [`NONE`](Self::NONE).
    pub stage: u32,
    /// How many tasks wait for it, of those that are submitted. Where there is no such task: how many numbers on the next one
    /// may be, 0 if that is not known.
    pub successors: u32,
    /// How many pieces of data it accesses.
    pub accesses: u32,
    /// It ends by itself as soon as it waits for nothing.
    pub passes: bool,
}

impl RawSubmitted {
    /// There is no such task.
    pub const NONE: u32 = u32::MAX;
    /// In place of a sequence.
    pub const NO_TASK: u64 = u64::MAX;
    /// The answer where there is no such task.
    pub const ABSENT: RawSubmitted = RawSubmitted { stage: Self::NONE, successors: 0, accesses: 0, passes: false };
}

/// What a task does with a piece of data.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawAccess {
    /// Which data.
    pub data: u64,
    /// Its size.
    pub bytes: u64,
    /// The task reads it.
    pub reads: bool,
    /// The task changes it.
    pub writes: bool,
}

/// Since 1.1, offered by the host: when the children of a node will have nothing left to do, many in one call.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostEnds {
    /// Hop: writes the ends of the children from number `first` on, in order, until there are no more children or no more
    /// room.
    pub below: extern "C" fn(call: CallRef<'_>, node: u32, first: u32, into: RSliceMut<'_, u64>),
}

impl Named for HostEnds {
    const NAME: &'static str = "children-ends/1";
}

/// The host's table of this type, if it has one.
pub(crate) fn offered<T: Named>(host: &HostObject<'_>) -> Option<&'static T> {
    let extension = host.extension(T::NAME.into()).into_option()?;
    // SAFETY: it was asked for by the name of its type, and layouts were compared when the plugin was loaded.
    Some(unsafe { extension.table::<T>() })
}
