//! Data that a memory node may fetch ahead of tasks.
//!
//! A thread of the node follows the hints, rather than an idle worker: a worker that copies would be late for a task
//! that arrives meanwhile, and without idle workers nothing would be copied while tasks run, which is the purpose of
//! hints. The thread runs on the processing units of the node's workers only, so that memory that it touches first
//! belongs to the node; when all of them are busy, it takes the time that the copy would later take a worker. It sleeps
//! while there is nothing to do.

use crate::data::DataHeader;
use crate::task::record::TaskKey;
use parking_lot::{Condvar, Mutex};
use sched_tree::SlotId;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of hints kept. Dropping further ones costs little: their tasks are far from running.
const MOST: usize = 1024;

/// What to fetch.
pub(crate) enum Hint {
    /// The inputs of a queued task, as far as they are there.
    Task(TaskKey),
    /// Data that the program wants there. It is the reader's turn in this slot, which ends afterwards.
    Data {
        /// The data.
        header: Arc<DataHeader>,
        /// The turn.
        turn: SlotId,
    },
}

/// Hints for one memory node, in order of arrival.
#[derive(Default)]
pub(crate) struct Hints {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    hints: VecDeque<Hint>,
    stopped: bool,
}

impl Hints {
    /// Adds a hint. Returns whether it was kept.
    pub(crate) fn add(&self, hint: Hint) -> bool {
        let mut waiting = self.waiting.lock();
        let is_kept = waiting.hints.len() < MOST && !waiting.stopped;
        if is_kept {
            waiting.hints.push_back(hint);
            drop(waiting);
            self.changed.notify_one();
        }
        is_kept
    }

    /// Waits for the next hint; `None` when the runtime stops.
    pub(crate) fn next(&self) -> Option<Hint> {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.stopped {
                return None;
            }
            if let Some(hint) = waiting.hints.pop_front() {
                return Some(hint);
            }
            self.changed.wait(&mut waiting);
        }
    }

    /// Stops the thread: there is no next hint.
    pub(crate) fn stop(&self) {
        self.waiting.lock().stopped = true;
        self.changed.notify_all();
    }
}
