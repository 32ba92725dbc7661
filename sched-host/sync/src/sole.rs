//! Values that one thread changes without locks while no other thread does: what submissions change, since most
//! programs submit from one thread.
//!
//! # Protocol
//!
//! The first thread that [enters](Sole::enter) becomes the holder. As long as it is, it is *alone* inside: it says that
//! it is inside, looks whether it is still the holder, and then uses [values](InTurn) without their locks. That costs
//! plain loads and stores.
//!
//! Another thread that enters ends this for good. It
//! 1. takes the holder's place away;
//! 2. waits until the holder is not inside;
//! 3. says that values are *shared*: from now on each thread, the former holder included, locks them.
//!
//! [`share`](Sole::share) takes these steps without entering, for a thread that counts what was done alone.
//!
//! *Nobody is inside with somebody who is alone.* Between the holder's word that it is inside and its look at its place
//! stands a light fence, and a heavy one between steps 1 and 2: so the holder sees that its place is taken, and locks
//! as all others do, or the other thread sees it inside, and waits. What the holder changed is seen by those who lock
//! afterwards: step 2 reads its word that it has left, and they read that of step 3.
//!
//! The holder must not wait inside for anything that a thread has while it enters: it would wait for itself. So whoever
//! needs other locks as well enters first.

#[cfg(all(test, loom))]
mod models;

use crate::fence::{heavy_fence, light_fence, prepare_fences};
use crate::primitives::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering::*, UnsafeCell, lock, pause};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic;

/// State before the first thread enters.
const NOBODY: u64 = 0;
/// State while a thread waits for the holder to leave.
const ENDING: u64 = u64::MAX - 1;
/// State when values are shared.
const SHARED: u64 = u64::MAX;

/// See the [module](self).
pub struct Sole {
    number: u64,
    /// The number of the thread that is the holder, or a state.
    holder: AtomicU64,
    /// Whether the holder is inside.
    inside: AtomicBool,
}

/// What a thread inside may do.
pub enum Right<'a> {
    /// It has all values to itself.
    Alone(Alone<'a>),
    /// It locks each value that it uses.
    Shared(Shared),
}

/// A thread is alone inside, until this is dropped.
pub struct Alone<'a> {
    of: &'a Sole,
    /// It stays with the thread.
    _here: PhantomData<*const ()>,
}

/// Values are shared, now and from now on.
#[derive(Clone, Copy)]
pub struct Shared {
    number: u64,
}

/// A value that threads use in turn, each with a [right](Right) from the one [`Sole`] that it belongs to.
pub struct InTurn<T> {
    /// Number of its [`Sole`].
    of: u64,
    lock: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: a thread has `&mut T` under the lock, or while it is alone; the protocol orders one after the other.
unsafe impl<T: Send> Sync for InTurn<T> {}

/// A [value](InTurn) that is locked.
pub struct Locked<'a, T> {
    value: &'a UnsafeCell<T>,
    _lock: MutexGuard<'a, ()>,
}

/// A number that no other thread has.
#[inline(always)]
pub(crate) fn this_thread() -> u64 {
    static NEXT: atomic::AtomicU64 = atomic::AtomicU64::new(NOBODY + 1);
    #[cfg(not(loom))]
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(NOBODY) });
    #[cfg(loom)]
    loom::thread_local!(static NUMBER: Cell<u64> = Cell::new(NOBODY));
    NUMBER.with(|number| {
        if number.get() == NOBODY {
            number.set(NEXT.fetch_add(1, atomic::Ordering::Relaxed));
        }
        number.get()
    })
}

impl Default for Sole {
    fn default() -> Sole {
        static NEXT: atomic::AtomicU64 = atomic::AtomicU64::new(1);
        prepare_fences();
        let number = NEXT.fetch_add(1, atomic::Ordering::Relaxed);
        Sole { number, holder: AtomicU64::new(NOBODY), inside: AtomicBool::new(false) }
    }
}

impl Sole {
    /// Number by which values belong to it; no other has the same.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Enters, waiting for the holder to leave if this thread is another.
    ///
    /// # Panics
    /// If this thread is inside, and alone.
    #[inline(always)]
    pub fn enter(&self) -> Right<'_> {
        let thread = this_thread();
        match self.try_alone(thread) {
            Some(alone) => Right::Alone(alone),
            None => self.enter_as_another(thread),
        }
    }

    #[inline(always)]
    fn try_alone(&self, thread: u64) -> Option<Alone<'_>> {
        if self.holder.load(Relaxed) != thread {
            return None;
        }
        assert!(!self.inside.load(Relaxed), "a thread enters once");
        self.inside.store(true, Relaxed);
        let alone = Alone { of: self, _here: PhantomData };
        light_fence();
        (self.holder.load(Relaxed) == thread).then_some(alone)
    }

    #[inline(never)]
    fn enter_as_another(&self, thread: u64) -> Right<'_> {
        loop {
            match self.holder.load(Acquire) {
                SHARED => return Right::Shared(Shared { number: self.number }),
                ENDING => pause(),
                NOBODY => {
                    let _ = self.holder.compare_exchange(NOBODY, thread, AcqRel, Relaxed);
                    if let Some(alone) = self.try_alone(thread) {
                        return Right::Alone(alone);
                    }
                }
                _ => self.share(),
            }
        }
    }

    /// Has values shared from now on, if they are not: whoever is alone has left when this returns.
    ///
    /// # Panics
    /// If this thread is inside, and alone.
    pub fn share(&self) {
        loop {
            match self.holder.load(Acquire) {
                SHARED => return,
                ENDING => pause(),
                holder => {
                    assert!(holder != this_thread() || !self.inside.load(Relaxed), "it would wait for itself");
                    if self.holder.compare_exchange(holder, ENDING, AcqRel, Relaxed).is_ok() {
                        heavy_fence();
                        while self.inside.load(Acquire) {
                            pause();
                        }
                        self.holder.store(SHARED, Release);
                    }
                }
            }
        }
    }
}

impl Drop for Alone<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.of.inside.store(false, Release);
    }
}

impl<T> InTurn<T> {
    /// A value that belongs to the [`Sole`] of this number.
    pub fn new(of: u64, value: T) -> InTurn<T> {
        InTurn { of, lock: Mutex::new(()), value: UnsafeCell::new(value) }
    }

    /// Passes the value to `body`, without a lock.
    ///
    /// # Panics
    /// If it belongs to another [`Sole`].
    #[inline(always)]
    pub fn alone<R>(&self, right: &mut Alone<'_>, body: impl FnOnce(&mut T) -> R) -> R {
        assert_eq!(self.of, right.of.number, "the right is one to other values");
        // SAFETY: no other thread is inside, and this one uses its right once at a time.
        self.value.with_mut(|value| body(unsafe { &mut *value }))
    }

    /// Locks the value.
    ///
    /// # Panics
    /// If it belongs to another [`Sole`].
    #[inline(always)]
    pub fn shared(&self, right: Shared) -> Locked<'_, T> {
        assert_eq!(self.of, right.number, "the right is one to other values");
        Locked { _lock: lock(&self.lock), value: &self.value }
    }

    /// Passes the value to `body`, as the right of this thread allows.
    ///
    /// # Panics
    /// If it belongs to another [`Sole`].
    #[inline(always)]
    pub fn with<R>(&self, right: &mut Right<'_>, body: impl FnOnce(&mut T) -> R) -> R {
        match right {
            Right::Alone(alone) => self.alone(alone, body),
            Right::Shared(shared) => self.shared(*shared).with(body),
        }
    }
}

impl<T> Locked<'_, T> {
    /// Passes the value to `body`.
    #[inline(always)]
    pub fn with<R>(&mut self, body: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: this thread has the lock, and nobody is alone any more.
        self.value.with_mut(|value| body(unsafe { &mut *value }))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_thread_is_alone_until_another_enters() {
        let sole = Sole::default();
        let sum = InTurn::new(sole.number(), 0);
        let add = || sum.with(&mut sole.enter(), |sum| *sum += 1);
        add();
        assert!(matches!(sole.enter(), Right::Alone(_)));
        std::thread::scope(|scope| _ = scope.spawn(add));
        assert!(matches!(sole.enter(), Right::Shared(_)), "values stay shared");
        add();
        assert_eq!(sum.with(&mut sole.enter(), |sum| *sum), 3);
    }

    #[test]
    fn the_holder_itself_may_end_it() {
        let sole = Sole::default();
        drop(sole.enter());
        sole.share();
        assert!(matches!(sole.enter(), Right::Shared(_)));
        let nobodys = Sole::default();
        nobodys.share();
        assert!(matches!(nobodys.enter(), Right::Shared(_)));
    }

    #[test]
    fn many_threads_take_turns() {
        let sole = Sole::default();
        let sum = InTurn::new(sole.number(), 0);
        let add = || (0..1000).for_each(|_| sum.with(&mut sole.enter(), |sum| *sum += 1));
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(add)));
        assert_eq!(sum.with(&mut sole.enter(), |sum| *sum), 4000);
    }

    #[test]
    #[should_panic(expected = "a thread enters once")]
    fn who_is_alone_inside_does_not_enter_again() {
        let sole = Sole::default();
        let _alone = sole.enter();
        let _again = sole.enter();
    }

    #[test]
    #[should_panic(expected = "the right is one to other values")]
    fn a_right_is_one_to_the_values_that_belong_to_it() {
        let (sole, other) = (Sole::default(), Sole::default());
        InTurn::new(other.number(), 0).with(&mut sole.enter(), |value| *value += 1);
    }
}
