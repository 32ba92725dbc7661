//! The end of accesses of the application itself.
//!
//! The end of one may be the turn of the next, whose callback ends that at once: a turn that was given up, or a lease
//! that is dropped where it comes. A chain of these may be long, so none ends inside the callback of another: it is
//! noted, and ends when that has returned.

use crate::core::Core;
use crate::task::failure::Outcome;
use crate::task::record::Taken;
use crate::task::scratch::WorkerScratch;
use sched_tree::SlotId;
use std::cell::RefCell;
use std::sync::atomic::Ordering::*;

/// A runtime, one of whose callbacks runs on this thread, and its accesses that have ended meanwhile.
type Noted = Option<(u64, Vec<SlotId>)>;

thread_local! {
    static ENDED: RefCell<Noted> = const { RefCell::new(None) };
}

/// Has what was there before back when it is dropped: a callback may end in the callback of another runtime, or panic.
struct Before(Noted);

impl Drop for Before {
    fn drop(&mut self) {
        ENDED.set(self.0.take());
    }
}

impl Core {
    /// Ends an access of the application itself, at once or [after the callback](Self::noting_ends) that it ends in.
    pub(crate) fn end_access(&self, slot: SlotId) {
        self.own_accesses.ended.fetch_add(1, SeqCst);
        // Not at the end of a thread, which drops what it keeps for itself.
        let is_noted = ENDED.try_with(|noted| match &mut *noted.borrow_mut() {
            Some((core, slots)) if *core == self.id => {
                slots.push(slot);
                true
            }
            _ => false,
        });
        if !is_noted.unwrap_or(false) {
            let mut scratch = WorkerScratch::default();
            self.end(self.place(slot), &Outcome::Done, Taken::default(), None, &mut scratch);
            self.give_back(&mut scratch);
        }
    }

    /// Whether a callback of an access to data runs on this thread.
    pub(crate) fn is_in_access(&self) -> bool {
        // Not at the end of a thread, as above.
        ENDED.try_with(|noted| noted.borrow().as_ref().is_some_and(|(core, _)| *core == self.id)).unwrap_or_default()
    }

    /// Calls the callback of an access, and ends those that have ended in it after the current step.
    pub(crate) fn noting_ends(&self, scratch: &mut WorkerScratch, callback: impl FnOnce()) {
        // Not at the end of a thread, as above.
        let Ok(before) = ENDED.try_with(|noted| noted.replace(Some((self.id, Vec::new())))) else {
            return callback();
        };
        let before = Before(before);
        callback();
        let noted = ENDED.take();
        drop(before);
        let ended = noted.into_iter().flat_map(|(_, slots)| slots);
        ended.for_each(|slot| scratch.end_later(slot, Outcome::Done));
    }
}
