//! Remarks about nodes of the scheduler, while they are recorded.

use super::event::{Note, NoteId};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The remarks recorded so far.
#[derive(Default)]
pub struct Notes(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Number of remarks so far, also of those that were taken.
    count: u32,
    notes: BTreeMap<NoteId, Note>,
}

impl Notes {
    /// Records a remark, unless there are `most` already.
    pub fn add(&self, note: Note, most: usize) -> Option<NoteId> {
        let kept = &mut *self.0.lock();
        if kept.notes.len() >= most {
            return None;
        }
        let id = NoteId(kept.count);
        kept.count = kept.count.wrapping_add(1);
        kept.notes.insert(id, note);
        Some(id)
    }

    /// Removes and returns the remarks recorded so far.
    pub fn take(&self) -> BTreeMap<NoteId, Note> {
        std::mem::take(&mut self.0.lock().notes)
    }
}
