//! A value in one place, without a lock.
//!
//! Tasks that name the data run in the order that [`AccessOrder`](sched_graph::AccessOrder) keeps: while one writes, no
//! other uses the value, and each sees what those before it wrote. That alone separates them, so a lock would never be
//! waited for; it would cost each access two atomic exchanges, most of what an access costs.
//!
//! A defect of the runtime that lets two tasks meet must not pass unseen. So the value has a version, which is odd
//! while somebody writes. Whoever writes looks at it before and after, and so does whoever reads: if it is not what it
//! should be, the task fails with [`KEPT_APART`]. Plain loads and stores do for this, since in the right order nobody
//! competes.

use super::KEPT_APART;
use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering::*};

/// See the [module](self).
pub(crate) struct Plain<T> {
    version: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: tasks on any thread share `&T` or have `&mut T`, as behind an `RwLock`; their order keeps the two apart.
unsafe impl<T: Send + Sync> Sync for Plain<T> {}

impl<T> Plain<T> {
    pub(crate) fn new(value: T) -> Plain<T> {
        Plain { version: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// The value for whose turn it is to read.
    ///
    /// # Panics
    /// If somebody writes.
    #[inline(always)]
    pub(crate) fn read(&self) -> PlainRead<'_, T> {
        let version = self.version.load(Acquire);
        assert!(version.is_multiple_of(2), "{KEPT_APART}");
        PlainRead { of: self, version }
    }

    /// The value for whose turn it is to write.
    ///
    /// # Panics
    /// If somebody else writes.
    #[inline(always)]
    pub(crate) fn write(&self) -> PlainWrite<'_, T> {
        let version = self.version.load(Acquire);
        assert!(version.is_multiple_of(2), "{KEPT_APART}");
        self.version.store(version.wrapping_add(1), Release);
        PlainWrite { of: self, version }
    }

    /// Checks that the version is still that of an access that ends.
    #[inline(always)]
    fn check(&self, expected: u32) {
        if self.version.load(Acquire) != expected {
            met();
        }
    }
}

/// Two accesses have met, which the order of tasks excludes.
#[cold]
#[inline(never)]
fn met() {
    // The kernel's own panic is on its way.
    if !std::thread::panicking() {
        panic!("{KEPT_APART}");
    }
}

/// A [plain](Plain) value while it is read.
pub struct PlainRead<'a, T> {
    of: &'a Plain<T>,
    version: u32,
}

impl<T> Deref for PlainRead<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it is the turn of those who read, and whoever writes waits for them.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> Drop for PlainRead<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.of.check(self.version);
    }
}

/// A [plain](Plain) value while it is written.
pub struct PlainWrite<'a, T> {
    of: &'a Plain<T>,
    version: u32,
}

impl<T> Deref for PlainWrite<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it is the turn of this access, and all others wait for it.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for PlainWrite<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for PlainWrite<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.of.check(self.version.wrapping_add(1));
        self.of.version.store(self.version.wrapping_add(2), Release);
    }
}

/// A value of any kind while it is read.
pub enum Reading<'a, T> {
    Plain(PlainRead<'a, T>),
    Locked(MappedRwLockReadGuard<'a, T>),
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match self {
            Reading::Plain(value) => value,
            Reading::Locked(value) => value,
        }
    }
}

/// A value of any kind while it is written.
pub enum Writing<'a, T> {
    Plain(PlainWrite<'a, T>),
    Locked(MappedRwLockWriteGuard<'a, T>),
}

impl<T> Deref for Writing<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match self {
            Writing::Plain(value) => value,
            Writing::Locked(value) => value,
        }
    }
}

impl<T> DerefMut for Writing<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Writing::Plain(value) => value,
            Writing::Locked(value) => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Whether this panics with the words for a defect.
    fn is_refused<R>(access: impl FnOnce() -> R) -> bool {
        let refused = catch_unwind(AssertUnwindSafe(|| drop(access())));
        refused.is_err_and(|payload| payload.downcast_ref::<String>().is_some_and(|said| said == KEPT_APART))
    }

    #[test]
    fn accesses_in_turn_see_what_was_written_before() {
        let plain = Plain::new(1);
        *plain.write() += 1;
        let (one, other) = (plain.read(), plain.read());
        assert_eq!([*one, *other], [2; 2]);
        drop((one, other));
        *plain.write() += 1;
        assert_eq!(plain.into_inner(), 3);
    }

    #[test]
    fn accesses_that_meet_are_refused() {
        let plain = Plain::new(1);
        let writer = plain.write();
        assert!(is_refused(|| plain.read()) && is_refused(|| plain.write()));
        drop(writer);
        let reader = plain.read();
        drop(plain.write());
        assert!(is_refused(|| drop(reader)), "somebody has written meanwhile");
        assert_eq!(*plain.read(), 1);
    }
}
