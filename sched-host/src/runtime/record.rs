//! What the runtime keeps of a task beside its slot in the ledger.

use super::codelet::Job;
use super::data::DataHeader;
use super::failure::{Cause, Outcome};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// Which task: a slot, and which of the tasks that used it one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TaskKey {
    pub(crate) slot: u32,
    /// Order of submission, from 1.
    pub(crate) sequence: u64,
}

/// Called when a task is finished.
pub(crate) type Callback = Box<dyn FnOnce(&Outcome) + Send>;

/// The record of a task.
#[derive(Default)]
pub(crate) struct Record {
    /// The task in it that is not finished, by its sequence; 0 when there is none.
    current: AtomicU64,
    /// Tasks that it waits for, and 1 while it is being submitted.
    pending: AtomicU32,
    pub(crate) body: Mutex<Body>,
}

#[derive(Default)]
pub(crate) struct Body {
    /// The kernel and its arguments. The box stays when the task is finished, for the next one of the same codelet.
    pub(crate) job: Option<Box<dyn Job>>,
    pub(crate) name: Option<Arc<str>>,
    /// Tasks that wait for this one.
    pub(crate) dependents: Vec<Dependent>,
    /// Data that it must have a turn at, in order of their numbers.
    pub(crate) turns: Vec<Arc<DataHeader>>,
    /// A task that it was told to wait for has failed.
    pub(crate) cancelled: Option<Cause>,
    pub(crate) callback: Option<Callback>,
    /// Somebody waits for it.
    pub(crate) watched: bool,
}

/// What a task needs to run and to end, taken out of its record by who does that.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) job: Option<Box<dyn Job>>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) callback: Option<Callback>,
    pub(crate) turns: Vec<Arc<DataHeader>>,
}

impl Body {
    pub(crate) fn take(&mut self) -> Taken {
        Taken {
            job: self.job.take(),
            name: self.name.take(),
            callback: self.callback.take(),
            turns: std::mem::take(&mut self.turns),
        }
    }
}

/// A task that waits for another.
#[derive(Clone, Copy)]
pub(crate) struct Dependent {
    pub(crate) slot: u32,
    /// It was told to wait, and makes no sense if the other fails. (Where it waits because of data, the data tells.)
    pub(crate) explicit: bool,
}

impl Record {
    /// Takes the record for a new task, which waits for its submission to end.
    pub(crate) fn open(&self, sequence: u64) {
        self.pending.store(1, Relaxed);
        self.current.store(sequence, Release);
    }

    /// Whether the task is not finished.
    pub(crate) fn is_current(&self, sequence: u64) -> bool {
        self.current.load(Acquire) == sequence
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.current.load(Acquire)
    }

    /// The task is finished: nobody can begin to wait for it. The caller holds the body's lock.
    pub(crate) fn close(&self) {
        self.current.store(0, Release);
    }

    /// Lets `dependent` wait for the task, unless it is finished. Whether it has to wait.
    pub(crate) fn link(&self, sequence: u64, dependent: Dependent, waiting: &Record) -> bool {
        if !self.is_current(sequence) {
            return false;
        }
        let mut body = self.body.lock();
        if !self.is_current(sequence) {
            return false;
        }
        waiting.pending.fetch_add(1, Relaxed);
        body.dependents.push(dependent);
        true
    }

    /// One thing less to wait for. Whether it was the last.
    pub(crate) fn release(&self) -> bool {
        self.pending.fetch_sub(1, AcqRel) == 1
    }
}
