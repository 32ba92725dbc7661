//! Values that still belong to the program, which lends them for the time of a [scope](crate::Scope).

use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::ptr::NonNull;

/// Whether lent values may be used. Whoever uses them, or copies them to or from another memory node, holds the lock for
/// reading; the end of the scope takes it for writing, and nobody uses them afterwards.
pub(crate) struct Loan {
    is_open: RwLock<bool>,
    is_writable: bool,
}

const ENDED: &str = "the scope that lent the data has ended: nothing uses the data afterwards";
const READ_ONLY: &str = "the data was lent for reading only";

impl Loan {
    pub(crate) fn new(is_writable: bool) -> Loan {
        Loan { is_open: RwLock::new(true), is_writable }
    }

    /// Begins a use.
    ///
    /// # Panics
    /// If the scope has ended, or for a write of what was lent for reading.
    pub(crate) fn enter(&self, writes: bool) -> RwLockReadGuard<'_, bool> {
        let open = self.try_enter().unwrap_or_else(|why| panic!("{why}"));
        assert!(self.is_writable || !writes, "{READ_ONLY}");
        open
    }

    /// Begins a copy from or to the values; the reason if the scope has ended.
    pub(crate) fn try_enter(&self) -> Result<RwLockReadGuard<'_, bool>, &'static str> {
        let open = self.is_open.read_recursive();
        if *open { Ok(open) } else { Err(ENDED) }
    }

    /// Whether a task may name the data, to write it or only to read it; the reason if not.
    pub(crate) fn check(&self, writes: bool) -> Result<(), &'static str> {
        match *self.is_open.read_recursive() {
            false => Err(ENDED),
            true if writes && !self.is_writable => Err(READ_ONLY),
            true => Ok(()),
        }
    }

    /// Ends the loan, as soon as nobody uses the values.
    pub(crate) fn end(&self) {
        *self.is_open.write() = false;
    }
}

/// A value that was lent as a reference.
pub(crate) struct LentValue<T> {
    /// `None` when the scope has ended.
    value: RwLock<Option<Pointer<T>>>,
    is_writable: bool,
}

struct Pointer<T>(NonNull<T>);

// SAFETY: it stands for a reference to the value, shared or exclusive by the lock around it.
unsafe impl<T: Send + Sync> Send for Pointer<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Pointer<T> {}

impl<T> LentValue<T> {
    /// # Safety
    /// Until [`end`](Self::end) has returned, the value stays where it is and nobody else writes it; if it is
    /// `writable`, nobody else uses it.
    pub(crate) unsafe fn new(value: NonNull<T>, is_writable: bool) -> LentValue<T> {
        LentValue { value: RwLock::new(Some(Pointer(value))), is_writable }
    }

    /// # Panics
    /// If the scope has ended.
    pub(crate) fn read(&self) -> MappedRwLockReadGuard<'_, T> {
        RwLockReadGuard::map(self.value.read_recursive(), |value| {
            // SAFETY: the value is there until the end of the scope, which waits for this lock; so does who writes it.
            unsafe { value.as_ref().expect(ENDED).0.as_ref() }
        })
    }

    /// # Panics
    /// If the scope has ended, or lent the value for reading only.
    pub(crate) fn write(&self) -> MappedRwLockWriteGuard<'_, T> {
        assert!(self.is_writable, "{READ_ONLY}");
        RwLockWriteGuard::map(self.value.write(), |value| {
            // SAFETY: as in `read`, and nobody else has the lock.
            unsafe { value.as_mut().expect(ENDED).0.as_mut() }
        })
    }

    /// Ends the loan, as soon as nobody uses the value.
    pub(crate) fn end(&self) {
        *self.value.write() = None;
    }
}
