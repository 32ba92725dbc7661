//! A lock for components, which detects that it is held across a hop.

use crate::brief::{Brief, BriefGuard};

#[cfg(debug_assertions)]
thread_local! {
    static HELD: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// A lock for the state of a component. It is a [`Brief`] one: hold it for moments. In a debug build it also records
/// that the thread holds it, so that a hop made meanwhile panics with the name of the hop.
///
/// Each plugin has its own copy of the lock's code, of its own version. Only one library may therefore use a given
/// lock: keep it inside the component.
#[derive(Default, Debug)]
pub struct Mutex<T> {
    inner: Brief<T>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex around `value`.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { inner: Brief::new(value) }
    }

    /// Locks the mutex, waiting for it if necessary.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard::new(self.inner.lock())
    }

    /// The value, without locking: `&mut self` excludes other users.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

/// Access to the value of a [`Mutex`]; unlocks it when dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    inner: BriefGuard<'a, T>,
}

impl<'a, T> MutexGuard<'a, T> {
    fn new(inner: BriefGuard<'a, T>) -> MutexGuard<'a, T> {
        #[cfg(debug_assertions)]
        HELD.with(|held| held.set(held.get() + 1));
        MutexGuard { inner }
    }
}

impl<T> std::ops::Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

#[cfg(debug_assertions)]
impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        HELD.with(|held| held.set(held.get() - 1));
    }
}

/// Panics in debug builds if this thread holds a [`Mutex`]. Every hop calls it.
#[inline]
#[track_caller]
pub(crate) fn assert_none_held(hop: &str) {
    #[cfg(debug_assertions)]
    HELD.with(|held| {
        assert!(
            held.get() == 0,
            "`{hop}` was called while holding a lock: the neighbour may call back and deadlock on it"
        );
    });
    #[cfg(not(debug_assertions))]
    let _ = hop;
}
