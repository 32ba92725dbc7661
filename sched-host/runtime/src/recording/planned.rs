//! A task of a recording, as its recording keeps it.

use super::Recorded;
use super::draft::DraftTask;
use crate::core::TaskPlace;
use crate::data::DataHeader;
use crate::task::submit::Restriction;
use parking_lot::Mutex;
use std::sync::Arc;

/// A task of a recording, in one cache line.
#[repr(align(64))]
pub(crate) struct Planned {
    pub(super) place: TaskPlace,
    /// Number of tasks that it waits for.
    pub(super) waits: u32,
    /// Where those that wait for it begin and end in [`Recorded::successors`].
    pub(super) successors: [u32; 2],
    pub(super) codelet: u32,
    pub(super) archs: u32,
    pub(super) width: u16,
    /// Whether it has turns to take.
    pub(super) has_turns: bool,
    pub(super) priority: Option<i32>,
    pub(super) footprint: u64,
    pub(super) rare: Option<Box<RarelyPlanned>>,
}

const _: () = assert!(size_of::<Planned>() == 64, "see above");

/// What few tasks of recordings have.
pub(super) struct RarelyPlanned {
    pub(super) sched_data: u64,
    pub(super) restriction: Option<Restriction>,
    /// Data with commute accesses, in order of their ids.
    pub(super) turns: Mutex<Vec<Arc<DataHeader>>>,
}

/// A task that waits for another one of its recording.
#[derive(Clone, Copy)]
pub(crate) struct Successor(u32);

impl Successor {
    /// The task of this index waits; `explicit` if the program asked for that, so that a failure cancels it.
    pub(super) fn new(task: u32, explicit: bool) -> Successor {
        debug_assert!(task < 1 << 31, "a recording has fewer than 2^31 tasks");
        Successor(task << 1 | u32::from(explicit))
    }

    pub(super) fn task(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) fn is_explicit(self) -> bool {
        self.0 & 1 != 0
    }
}

/// What the record of a task of a recording knows of it.
pub(crate) struct Replayed {
    pub(super) recorded: Arc<Recorded>,
    pub(super) index: u32,
}

impl Planned {
    /// Whether no task waits for it.
    #[inline]
    pub(super) fn is_sink(&self) -> bool {
        self.successors[0] == self.successors[1]
    }

    pub(super) fn new(task: &DraftTask, place: TaskPlace, successors: [u32; 2], waits: u32) -> Planned {
        let facts = task.job.facts();
        let has_turns = !task.rare.turns.is_empty();
        let rare = || RarelyPlanned {
            sched_data: task.sched_data,
            restriction: task.restriction.clone(),
            turns: Mutex::new(task.rare.turns.clone()),
        };
        Planned {
            place,
            waits,
            successors,
            codelet: facts.number,
            archs: facts.archs.bits(),
            width: facts.width,
            has_turns,
            priority: task.priority,
            footprint: task.footprint,
            rare: (has_turns || task.sched_data != 0 || task.restriction.is_some()).then(|| Box::new(rare())),
        }
    }
}
