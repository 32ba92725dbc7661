//! A task as both sides see it: a head in the host's memory, and handles to it.

use abi_stable::StableAbi;
use std::mem::offset_of;
use std::sync::atomic::{AtomicI32, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The fields of a task that a component may read and write, at the start of the host's record of the task.
///
/// The memory of a head is never freed while a plugin may hold a handle: records are recycled, and each reuse
/// increments the generation. A stale handle is therefore harmless: reading through it gives at worst the values of
/// another task, and every hop ignores it. For that reason all mutable fields are atomic; none of them implies any
/// ordering.
///
/// The first 64 bytes hold what every task needs. Rarely used fields follow, and [`touched`](Self::touched) says
/// whether any was set, so that the second cache line of a task is seldom read.
#[repr(C)]
#[derive(StableAbi)]
pub struct TaskHead {
    /// Returns a handle that a component dropped to the host.
    pub lost: extern "C" fn(RawTask),
    /// The host's record of where the task is. The upper half is the current generation: handles of another one are
    /// stale.
    pub state: AtomicU64,
    /// Position in the order of submission.
    pub sequence: AtomicU64,
    /// Higher runs earlier.
    pub priority: AtomicI32,
    /// Architectures with an implementation, as bits; 0 for a task that is [restricted](Self::restriction) to workers.
    pub archs: AtomicU32,
    /// The codelet's number in the runtime.
    pub codelet: AtomicU32,
    /// Number of the chosen implementation, or `u16::MAX`.
    pub implementation: AtomicU16,
    /// Maximum number of workers that may execute it together: 1, or more for a parallel task.
    pub width: AtomicU16,
    /// Hash of the sizes and shapes of the data: tasks of one codelet and one footprint have the same duration.
    pub footprint: AtomicU64,
    /// Expected duration in nanoseconds, or `u64::MAX`.
    pub predicted: AtomicU64,
    /// The host's number of the record.
    pub record: u32,
    /// Lower half: nonzero when a field below was set. Upper half: the number after that of its [home](Self::home), or 0.
    /// (Older components take a home for a field that was set, and find that none was.)
    pub touched: AtomicU32,
    /// Expected duration of its transfers in nanoseconds, or `u64::MAX`.
    pub predicted_transfer: AtomicU64,
    /// A number from the application for the scheduler; 0 if it gave none.
    pub sched_data: AtomicU64,
    /// See [`restriction`](Self::restriction) for the first, [`all_archs`](Self::all_archs) for the second and
    /// [`set_priority`](Self::set_priority) for the third; the last is reserved for a later minor version, and 0.
    pub reserved: [AtomicU64; 4],
}

/// What of [`TaskHead::touched`] says whether a field below was set.
const SET: u32 = 0xffff;
/// Where in [`TaskHead::touched`] the number after that of its home begins.
const HOME: u32 = 16;
/// Place of the restriction in [`TaskHead::reserved`].
const RESTRICTION: usize = 0;
/// Place of the architectures of a restricted task in [`TaskHead::reserved`].
const RESTRICTED_ARCHS: usize = 1;
/// Place of the application's priority in [`TaskHead::reserved`], once a component has changed it; 0 before.
const GIVEN_PRIORITY: usize = 2;
/// What tells a given priority of 0 from none.
const GIVEN: u64 = 1 << 32;

impl TaskHead {
    /// Creates the head of a record that holds no task yet. `lost` is called with each handle that a component drops.
    #[must_use]
    pub const fn new(record: u32, lost: extern "C" fn(RawTask)) -> TaskHead {
        TaskHead {
            lost,
            state: AtomicU64::new(0),
            sequence: AtomicU64::new(0),
            priority: AtomicI32::new(0),
            archs: AtomicU32::new(0),
            codelet: AtomicU32::new(0),
            implementation: AtomicU16::new(u16::MAX),
            width: AtomicU16::new(1),
            footprint: AtomicU64::new(0),
            predicted: AtomicU64::new(u64::MAX),
            record,
            touched: AtomicU32::new(0),
            predicted_transfer: AtomicU64::new(u64::MAX),
            sched_data: AtomicU64::new(0),
            reserved: [const { AtomicU64::new(0) }; 4],
        }
    }

    /// Clears what components and models wrote about the record's previous task. Its priority stays: that of the next
    /// one is set, or [restored](Self::restore_priority) before if that is the same.
    #[inline]
    pub fn reset(&self) {
        self.implementation.store(u16::MAX, Relaxed);
        self.width.store(1, Relaxed);
        self.predicted.store(u64::MAX, Relaxed);
        let touched = self.touched.load(Relaxed);
        if touched != 0 {
            self.touched.store(0, Relaxed);
        }
        if touched & SET != 0 {
            self.predicted_transfer.store(u64::MAX, Relaxed);
            self.sched_data.store(0, Relaxed);
            self.reserved[RESTRICTION].store(0, Relaxed);
            self.reserved[RESTRICTED_ARCHS].store(0, Relaxed);
            self.reserved[GIVEN_PRIORITY].store(0, Relaxed);
        }
    }

    /// Sets the priority for the components below. The first change notes what the application gave, so that a task
    /// whose priority nobody changes pays nothing.
    #[inline]
    pub fn set_priority(&self, priority: i32) {
        if self.reserved[GIVEN_PRIORITY].load(Relaxed) == 0 {
            let given = self.priority.load(Relaxed).cast_unsigned();
            self.touched.store(self.touched.load(Relaxed) | SET, Relaxed);
            self.reserved[GIVEN_PRIORITY].store(GIVEN | u64::from(given), Relaxed);
        }
        self.priority.store(priority, Relaxed);
    }

    /// Sets the priority that the application gave, if a component changed it.
    pub fn restore_priority(&self) {
        let given = self.reserved[GIVEN_PRIORITY].load(Relaxed);
        if given & GIVEN != 0 {
            self.reserved[GIVEN_PRIORITY].store(0, Relaxed);
            self.priority.store((given as u32).cast_signed(), Relaxed);
        }
    }

    /// Sets the worker near which the task is to run. Those with large numbers are homes of no task.
    #[inline]
    pub fn set_home(&self, worker: u32) {
        if worker < SET {
            self.touched.store(self.touched.load(Relaxed) & SET | (worker + 1) << HOME, Relaxed);
        }
    }

    /// The worker near which the task is to run, if the host says one.
    #[inline]
    #[must_use]
    pub fn home(&self) -> Option<u32> {
        (self.touched.load(Relaxed) >> HOME).checked_sub(1)
    }

    /// Restricts the task to a set of workers that the host knows by a number from 1. No architecture is set then: who
    /// decides by [`archs`](Self::archs) alone finds nobody, and asks the host, which knows the set.
    pub fn restrict(&self, set: u64, archs: u32) {
        self.touched.store(self.touched.load(Relaxed) | SET, Relaxed);
        self.archs.store(0, Relaxed);
        self.reserved[RESTRICTION].store(set, Relaxed);
        self.reserved[RESTRICTED_ARCHS].store(u64::from(archs), Relaxed);
    }

    /// The host's number of the set of workers that the task is restricted to; 0 for none.
    #[inline]
    #[must_use]
    pub fn restriction(&self) -> u64 {
        self.reserved[RESTRICTION].load(Relaxed)
    }

    /// Architectures with an implementation, as bits, of any task.
    #[inline]
    #[must_use]
    pub fn all_archs(&self) -> u32 {
        match self.archs.load(Relaxed) {
            0 => self.reserved[RESTRICTED_ARCHS].load(Relaxed) as u32,
            archs => archs,
        }
    }

    /// Sets [`predicted_transfer`](Self::predicted_transfer).
    pub fn set_predicted_transfer(&self, nanos: u64) {
        self.touched.store(self.touched.load(Relaxed) | SET, Relaxed);
        self.predicted_transfer.store(nanos, Relaxed);
    }

    /// Sets [`sched_data`](Self::sched_data).
    pub fn set_sched_data(&self, data: u64) {
        self.touched.store(self.touched.load(Relaxed) | SET, Relaxed);
        self.sched_data.store(data, Relaxed);
    }
}

/// FNV-1a hash of the size, alignment and field offsets of [`TaskHead`], for the stamp.
#[must_use]
pub const fn layout_number() -> u64 {
    let parts = [
        size_of::<TaskHead>(),
        align_of::<TaskHead>(),
        offset_of!(TaskHead, lost),
        offset_of!(TaskHead, state),
        offset_of!(TaskHead, sequence),
        offset_of!(TaskHead, priority),
        offset_of!(TaskHead, archs),
        offset_of!(TaskHead, codelet),
        offset_of!(TaskHead, implementation),
        offset_of!(TaskHead, width),
        offset_of!(TaskHead, footprint),
        offset_of!(TaskHead, predicted),
        offset_of!(TaskHead, record),
        offset_of!(TaskHead, touched),
        offset_of!(TaskHead, predicted_transfer),
        offset_of!(TaskHead, sched_data),
        offset_of!(TaskHead, reserved),
    ];
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut index = 0;
    while index < parts.len() {
        hash = (hash ^ parts[index] as u64).wrapping_mul(0x0100_0000_01b3);
        index += 1;
    }
    hash
}

/// A handle to a task on the wire; null for "none". Whoever holds it owns the task.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawTask {
    /// Points into the host's memory, which outlives every plugin object; null for "none".
    pub head: *const TaskHead,
    /// Generation of the record when the handle was made.
    pub generation: u64,
}

impl RawTask {
    /// No task.
    pub const NONE: RawTask = RawTask { head: std::ptr::null(), generation: 0 };

    /// Whether it is no task.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.head.is_null()
    }
}
