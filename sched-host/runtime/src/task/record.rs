//! What the runtime keeps of a task beside its slot in the ledger.

use super::codelet::Job;
use super::failure::{Cause, Outcome};
use crate::data::DataHeader;
use parking_lot::Mutex;
use sched_sync::link::{self, Pending};
use sched_tree::ledger::{CHUNKS, chunk_of};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::*};
use std::sync::{Arc, OnceLock};

/// Which task: a slot, and which of the tasks that used it one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TaskKey {
    pub(crate) slot: u32,
    /// Order of submission, from 1.
    pub(crate) sequence: u64,
}

/// Called when a task is finished.
pub(crate) type Callback = Box<dyn FnOnce(&Outcome) + Send>;

/// The record of a task, in one cache line.
///
/// Which task it is of, the slot says: `current` in the methods is the sequence in the slot's head, 0 when the task is
/// finished.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Record {
    pending: Pending,
    /// There is a `rare` in the body: otherwise a task that becomes ready needs no look at it.
    special: AtomicBool,
    /// Somebody waits for it; changes under the body's lock.
    watched: AtomicBool,
    /// The context of the task, by its number.
    context: AtomicU16,
    pub(crate) body: Mutex<Body>,
}

const _: () = assert!(size_of::<Record>() == 64, "see above");

impl Record {
    /// Lets go of everything that it still has of a runtime that is gone.
    fn clear(&self) {
        let body = std::mem::take(&mut *self.body.lock());
        self.special.store(false, Relaxed);
        self.watched.store(false, Relaxed);
        drop(body);
    }
}

/// The records of all slots of a ledger, by the same numbers. Like the slots, they are never given back to the system, so
/// that whoever has one needs not look it up.
#[derive(Default)]
pub(crate) struct Records {
    chunks: [OnceLock<&'static [Record]>; CHUNKS],
}

/// Records that no runtime uses, for the next one.
static UNUSED: Mutex<Vec<&'static [Record]>> = Mutex::new(Vec::new());

impl Records {
    /// Makes records for slots that [`Ledger::grow`](sched_tree::Ledger::grow) made.
    pub(crate) fn grow(&self, slots: &Range<u32>) {
        let (chunk, _) = chunk_of(slots.start);
        let unused = {
            let mut unused = UNUSED.lock();
            let fits = unused.iter().position(|records| records.len() == slots.len());
            fits.map(|fits| unused.swap_remove(fits))
        };
        let records = unused.unwrap_or_else(|| Vec::leak(slots.clone().map(|_| Record::default()).collect()));
        let _ = self.chunks[chunk].set(records);
    }

    /// The record of this slot.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &'static Record {
        let (chunk, offset) = chunk_of(slot);
        let records: &'static [Record] = self.chunks[chunk].get().expect("records grow with the slots");
        &records[offset]
    }
}

impl Drop for Records {
    /// Gives the records to the next runtime.
    fn drop(&mut self) {
        for chunk in &mut self.chunks {
            if let Some(records) = chunk.take() {
                records.iter().for_each(Record::clear);
                UNUSED.lock().push(records);
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct Body {
    /// The kernel and its arguments. The box stays when the task is finished, for the next one of the same codelet.
    pub(crate) job: Option<Box<dyn Job>>,
    /// Tasks that wait for this one.
    pub(crate) dependents: SmallVec<[Dependent; 4]>,
    /// What few tasks have.
    pub(crate) rare: Option<Box<RareFields>>,
}

/// What few tasks have.
#[derive(Default)]
pub(crate) struct RareFields {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) callback: Option<Callback>,
    /// Data that it must have a turn at, in order of their numbers.
    pub(crate) turns: Vec<Arc<DataHeader>>,
    /// A task that it was told to wait for has failed.
    pub(crate) cancelled: Option<Cause>,
    /// It is no task: this data is not used for now.
    pub(crate) unused: Option<Arc<DataHeader>>,
}

/// What a task needs to run and to end, taken out of its record by who does that.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) job: Option<Box<dyn Job>>,
    pub(crate) rare: Option<Box<RareFields>>,
}

impl Body {
    /// What few tasks have, made if need be.
    pub(crate) fn rare(&mut self, record: &Record) -> &mut RareFields {
        record.special.store(true, Release);
        self.rare.get_or_insert_default()
    }

    pub(crate) fn take(&mut self) -> Taken {
        Taken { job: self.job.take(), rare: self.rare.take() }
    }
}

/// A task that waits for another.
#[derive(Clone, Copy)]
pub(crate) struct Dependent(u32);

impl Dependent {
    /// The task in `slot` waits; `explicit` if it was told to, so that it makes no sense if the other fails. (Where it
    /// waits because of data, the data tells.)
    pub(crate) fn new(slot: u32, explicit: bool) -> Dependent {
        debug_assert!(slot < 1 << 31, "a ledger has fewer than 2^31 slots");
        Dependent(slot << 1 | u32::from(explicit))
    }

    pub(crate) fn slot(self) -> u32 {
        self.0 >> 1
    }

    pub(crate) fn is_explicit(self) -> bool {
        self.0 & 1 != 0
    }
}

impl Record {
    /// The context of the task.
    #[inline]
    pub(crate) fn context(&self) -> u16 {
        self.context.load(Relaxed)
    }

    /// Takes the record for a new task, which is not released before [`submitted`](Self::submitted).
    pub(crate) fn open(&self, current: &AtomicU64, sequence: u64, context: u16) {
        self.context.store(context, Relaxed);
        self.pending.open();
        current.store(sequence, Release);
    }

    /// Whether the task has a `rare`, for who makes it ready.
    pub(crate) fn is_special(&self) -> bool {
        self.special.load(Acquire)
    }

    /// The task is finished: nobody can begin to wait for it. The caller holds the body's lock.
    pub(crate) fn close(&self, current: &AtomicU64) {
        self.special.store(false, Relaxed);
        link::end(current);
    }

    /// Lets `dependent` wait for the task, unless it is finished. Whether it has to wait.
    pub(crate) fn link(&self, current: &AtomicU64, sequence: u64, dependent: Dependent) -> bool {
        link::link(current, sequence, || self.body.lock(), |body| body.dependents.push(dependent))
    }

    /// Somebody waits for the task, unless it is finished.
    pub(crate) fn watch(&self, current: &AtomicU64, sequence: u64) {
        let _body = self.body.lock();
        if current.load(Acquire) == sequence {
            self.watched.store(true, Relaxed);
        }
    }

    /// Whether somebody waited for the task, which has ended. The caller holds the body's lock.
    pub(crate) fn take_watched(&self) -> bool {
        let watched = self.watched.load(Relaxed);
        if watched {
            self.watched.store(false, Relaxed);
        }
        watched
    }

    /// The task is submitted, and was linked to so many others. Whether it need not wait for any of them (any more).
    pub(crate) fn submitted(&self, links: u32) -> bool {
        self.pending.submitted(links)
    }

    /// One thing less to wait for. Whether it was the last.
    pub(crate) fn release(&self) -> bool {
        self.pending.release()
    }
}
