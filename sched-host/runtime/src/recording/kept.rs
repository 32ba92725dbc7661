//! What the tasks of a recording are given: read while they run, and changed between replays, without a lock.

use super::{CHANGING, State};
use std::cell::UnsafeCell;

/// The right to change what is kept in one recording: no replay of it is in progress, and nothing else changes it. Ends
/// the change when dropped.
pub(crate) struct Changing<'a>(&'a State);

impl<'a> Changing<'a> {
    /// The right, unless the recording of this state is in use.
    pub(super) fn begin(state: &'a State) -> Option<Changing<'a>> {
        state.begin(CHANGING).then(|| Changing(state))
    }

    /// The right of who dismantles the recording, which nothing uses any more.
    pub(super) fn at_the_end(state: &'a State) -> Changing<'a> {
        Changing(state)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Parameters and handles of a task of a recording, until that is dismantled. A lock would be taken by whoever runs the
/// task, and so carry a cache line from one worker to the other with each replay, although nothing changes.
pub(crate) struct Kept<T>(UnsafeCell<Option<T>>);

// SAFETY: during a replay, which runs the task once, one thread after the other reads it; between replays, whoever has
// the right to change the recording reads and changes it. So no two threads use it at a time, as behind a mutex. Who
// looks ahead reads it under the lock of the record of a task that has not begun and will ask for that record.
unsafe impl<T: Send> Sync for Kept<T> {}

impl<T> Kept<T> {
    pub(crate) fn new(value: T) -> Kept<T> {
        Kept(UnsafeCell::new(Some(value)))
    }

    /// The value, for the thread that runs the task, or has the right to change the recording.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: a task runs in replays only, and those who change it have nobody beside them.
        unsafe { &*self.0.get() }.as_ref()
    }

    /// Changes the value.
    pub(crate) fn change(&self, _right: &mut Changing<'_>, change: impl FnOnce(&mut T)) {
        // SAFETY: there is one right at a time, which is borrowed, and no replay, so nobody reads.
        unsafe { &mut *self.0.get() }.as_mut().map(change);
    }

    /// Takes the value.
    pub(crate) fn take(&self, _right: &mut Changing<'_>) -> Option<T> {
        // SAFETY: as above.
        unsafe { &mut *self.0.get() }.take()
    }
}
