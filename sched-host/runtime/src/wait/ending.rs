//! The end of accesses of the application itself.
//!
//! The end of one may be the turn of the next, whose callback ends that at once: a turn that was given up, or a lease
//! that is dropped where it comes. A chain of these may be long, so none ends inside the callback of another: it is
//! noted, and ends when that has returned.

use crate::core::Core;
use crate::task::complete::WorkerScratch;
use crate::task::failure::Outcome;
use crate::task::record::Taken;
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
        let is_noted = ENDED.with_borrow_mut(|noted| match noted {
            Some((core, slots)) if *core == self.id => {
                slots.push(slot);
                true
            }
            _ => false,
        });
        if !is_noted {
            let mut scratch = WorkerScratch::default();
            self.end(self.place(slot), &Outcome::Done, Taken::default(), None, &mut scratch);
            self.give_back(&mut scratch);
        }
    }

    /// Calls the callback of an access, and ends those that have ended in it after the current step.
    pub(crate) fn noting_ends(&self, scratch: &mut WorkerScratch, callback: impl FnOnce()) {
        let before = Before(ENDED.replace(Some((self.id, Vec::new()))));
        callback();
        let noted = ENDED.take();
        drop(before);
        let ended = noted.into_iter().flat_map(|(_, slots)| slots);
        ended.for_each(|slot| scratch.end_later(slot, Outcome::Done));
    }
}
