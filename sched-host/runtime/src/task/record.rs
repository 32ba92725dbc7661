//! The runtime's record of a task, beside its slot in the ledger.

use super::failure::{Cause, Outcome};
use super::job::Job;
use super::nest::NestState;
use crate::core::TaskPlace;
use crate::data::DataHeader;
use crate::memory::advice::Advice;
use crate::recording::{Draft, Recorded, Replayed};
use crate::wait::held::Asked;
use parking_lot::Mutex;
use sched_core::Brief;
use sched_graph::{ContextId, Where};
use sched_sync::link::{self, Pending};
use sched_tree::ledger::{CHUNKS, chunk_of};
use sched_tree::{Slot, SlotId};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::*};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Identifies a task: a slot, and its sequence among the tasks that used the slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TaskKey {
    pub(crate) slot: SlotId,
    /// Place in the order of submission, from 1.
    pub(crate) sequence: u64,
}

/// Called when a task is finished.
pub(crate) type Callback = Box<dyn FnOnce(&Outcome) + Send>;

/// The record of a task, in one cache line.
///
/// The slot identifies the task: `current` in the methods is the sequence in the slot's head, 0 when the task is
/// finished.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Record {
    pending: Pending,
    /// Whether the body has a `rare`; otherwise the body of a ready task is not read.
    special: AtomicBool,
    /// Whether a thread waits for the task; changes under the body's lock.
    watched: AtomicBool,
    /// Number of the context of the task.
    context: AtomicU16,
    pub(crate) body: Brief<Body>,
}

const _: () = assert!(size_of::<Record>() == 64, "see above");

impl Record {
    /// Drops what is left of the last runtime.
    fn clear(&self) {
        let body = std::mem::take(&mut *self.body.lock());
        self.special.store(false, Relaxed);
        self.watched.store(false, Relaxed);
        drop(body);
    }
}

/// Records of all slots of a ledger, with the same indices. Like the slots, they are never returned to the system, so
/// references to them stay valid.
#[derive(Default)]
pub(crate) struct Records {
    chunks: [OnceLock<Chunk>; CHUNKS],
}

/// Records, and their slots beside them: mostly both are looked up.
struct Chunk {
    records: &'static [Record],
    slots: &'static [Slot],
}

const GROW_TOGETHER: &str = "records grow with the slots";

/// Records that no runtime uses, for reuse.
static UNUSED: Mutex<Vec<&'static [Record]>> = Mutex::new(Vec::new());

impl Records {
    /// Creates records for slots that [`Ledger::grow`](sched_tree::Ledger::grow) created.
    pub(crate) fn grow(&self, slots: &'static [Slot]) {
        let Some(first) = slots.first() else { return };
        let (chunk, _) = chunk_of(first.id());
        let unused = {
            let mut unused = UNUSED.lock();
            let fits = unused.iter().position(|records| records.len() == slots.len());
            fits.map(|fits| unused.swap_remove(fits))
        };
        let records = unused.unwrap_or_else(|| Vec::leak(slots.iter().map(|_| Record::default()).collect()));
        let _ = self.chunks[chunk].set(Chunk { records, slots });
    }

    /// The place of the task in this slot.
    ///
    /// # Panics
    /// If there is no record for it.
    #[inline(always)]
    pub(crate) fn place(&self, slot: SlotId) -> TaskPlace {
        let (chunk, offset) = chunk_of(slot);
        let Chunk { records, slots } = self.chunks[chunk].get().expect(GROW_TOGETHER);
        TaskPlace { slot: &slots[offset], record: &records[offset] }
    }

    /// The record of this slot.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(crate) fn get(&self, slot: SlotId) -> &'static Record {
        let (chunk, offset) = chunk_of(slot);
        &self.chunks[chunk].get().expect(GROW_TOGETHER).records[offset]
    }
}

impl Drop for Records {
    /// Keeps the records for the next runtime.
    fn drop(&mut self) {
        for chunk in &mut self.chunks {
            if let Some(Chunk { records, .. }) = chunk.take() {
                records.iter().for_each(Record::clear);
                UNUSED.lock().push(records);
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct Body {
    /// The kernel and its arguments. The box stays when the task is finished, for the next task of the codelet.
    pub(crate) job: Option<Box<dyn Job>>,
    /// Tasks that wait for this one.
    pub(crate) dependents: SmallVec<[Dependent; 4]>,
    /// Fields that few tasks have.
    pub(crate) rare: Option<Box<RareFields>>,
}

/// Fields that few tasks have. First those that the end of a task of a recording reads, in one cache line.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct RareFields {
    /// The recording that the task belongs to.
    pub(crate) replayed: Option<Replayed>,
    /// Tasks nested in this one.
    pub(crate) nests: Option<Arc<NestState>>,
    /// The tasks that this one is nested among.
    pub(crate) nested_in: Option<Arc<NestState>>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) callback: Option<Callback>,
    /// Whether an access of the application itself ends when its callback has returned.
    pub(crate) ends_with_callback: bool,
    /// How the application asked for its access.
    pub(crate) asked: Option<Asked>,
    /// The only workers that may execute it.
    pub(crate) only: Option<Where>,
    /// Data with commute accesses, in order of their ids.
    pub(crate) turns: Vec<Arc<DataHeader>>,
    /// The failure of a task that it explicitly waits for.
    pub(crate) cancelled: Option<Cause>,
    /// What the program says about data: the entry stands for that, and is no task.
    pub(crate) advice: Option<(Arc<DataHeader>, Advice)>,
    /// The job of a task that is cancelled before it has begun.
    pub(crate) withdrawn: Option<Box<dyn Job>>,
    /// When the task is not to begin any more.
    pub(crate) deadline: Option<Instant>,
    /// The recording that captures the task, which is not submitted then.
    pub(crate) draft: Option<Arc<Draft>>,
    /// The recording whose replay the entry stands for.
    pub(crate) launches: Option<Arc<Recorded>>,
}

impl RareFields {
    /// Begins to bring near what the end of the task will write.
    #[inline]
    pub(crate) fn fetch_ahead(&self) {
        if let Some(replayed) = &self.replayed {
            replayed.fetch_successors();
        }
    }

    /// Whether the task belongs to a recording, and nothing else is to be done at its end.
    #[inline]
    pub(crate) fn is_only_replayed(&self) -> bool {
        self.replayed.is_some() && self.nests.is_none() && self.nested_in.is_none()
    }
}

/// Fields of a record that are taken out to run and end the task.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) job: Option<Box<dyn Job>>,
    pub(crate) rare: Option<Box<RareFields>>,
}

impl Body {
    /// The rare fields, created if necessary.
    #[inline]
    pub(crate) fn rare(&mut self, record: &Record) -> &mut RareFields {
        record.special.store(true, Release);
        self.rare.get_or_insert_default()
    }

    /// Sets the rare fields of a task that is being submitted, and may be cancelled already.
    #[inline]
    pub(crate) fn add_rare(&mut self, record: &Record, mut fields: Box<RareFields>) {
        record.special.store(true, Release);
        fields.cancelled = self.rare.take().and_then(|rare| rare.cancelled);
        self.rare = Some(fields);
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Taken {
        Taken { job: self.job.take(), rare: self.rare.take() }
    }
}

/// A task that waits for another.
#[derive(Clone, Copy)]
pub(crate) struct Dependent(u32);

impl Dependent {
    /// The task in `slot` waits; `explicit` if the application requested it, so that the failure of the other task
    /// cancels it. (For an order by data, the data carries the failure.)
    #[inline]
    pub(crate) fn new(slot: SlotId, explicit: bool) -> Dependent {
        debug_assert!(slot.0 < 1 << 31, "a ledger has fewer than 2^31 slots");
        Dependent(slot.0 << 1 | u32::from(explicit))
    }

    #[inline]
    pub(crate) fn slot(self) -> SlotId {
        SlotId(self.0 >> 1)
    }

    #[inline]
    pub(crate) fn is_explicit(self) -> bool {
        self.0 & 1 != 0
    }
}

impl Record {
    /// The context of the task.
    #[inline]
    pub(crate) fn context(&self) -> ContextId {
        ContextId(self.context.load(Relaxed))
    }

    /// Sets up the record for a new task, which is not released before [`submitted`](Self::submitted).
    #[inline]
    pub(crate) fn open(&self, current: &AtomicU64, sequence: u64, context: ContextId) {
        self.context.store(context.0, Relaxed);
        self.pending.open();
        current.store(sequence, Release);
    }

    /// Has the record name this context, for a task of a recording that is not replayed now.
    pub(crate) fn move_to(&self, context: ContextId) {
        self.context.store(context.0, Relaxed);
    }

    /// Has the `rare` of the task be looked at when it becomes ready.
    #[inline]
    pub(crate) fn mark_special(&self) {
        self.special.store(true, Release);
    }

    /// Whether the task has a `rare`, checked when it becomes ready.
    #[inline]
    pub(crate) fn is_special(&self) -> bool {
        self.special.load(Acquire)
    }

    /// Closes the record: the task is finished, and no task can wait for it any more. The caller holds the lock of the
    /// body.
    #[inline]
    pub(crate) fn close(&self, current: &AtomicU64) {
        self.special.store(false, Relaxed);
        link::end(current);
    }

    /// Makes `dependent` wait for the task, unless it is finished. Returns whether it waits.
    #[inline]
    pub(crate) fn link(&self, current: &AtomicU64, sequence: u64, dependent: Dependent) -> bool {
        link::link(current, sequence, || self.body.lock(), |body| body.dependents.push(dependent))
    }

    /// Announces a thread that waits for the task, unless it is finished.
    pub(crate) fn watch(&self, current: &AtomicU64, sequence: u64) {
        link::link(current, sequence, || self.body.lock(), |_| self.watched.store(true, Relaxed));
    }

    /// Whether a thread waited for the task, which has ended. The caller holds the lock of the body.
    pub(crate) fn take_watched(&self) -> bool {
        let watched = self.watched.load(Relaxed);
        if watched {
            self.watched.store(false, Relaxed);
        }
        watched
    }

    /// Ends the submission of the task, which has this number of links. Returns whether it need not wait (any more).
    #[inline]
    pub(crate) fn submitted(&self, links: u32) -> bool {
        self.pending.submitted(links)
    }

    /// Removes one link. Returns whether it was the last.
    #[inline]
    pub(crate) fn release(&self) -> bool {
        self.pending.release()
    }
}
