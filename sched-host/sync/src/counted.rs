//! A value with owners, uses and loans: it is dropped when none of them is left.
//!
//! An [`Arc`](std::sync::Arc) would do. But each reference costs two exchanges there, and where the threads that make
//! references are not those that drop them, each exchange fetches the line of the count from another core. A program
//! submits tasks that name few data, again and again, on one thread, and others end them.
//!
//! # Protocol
//!
//! *Owners* are counted as by an `Arc`.
//!
//! *Uses* outlive owners. The thread that made the value, its *maker*, counts those that it makes of owners by plain
//! loads and stores, in `made`. All others count in `ended`, on another cache line: a use that ends adds one; one that
//! another thread makes, or that is a clone of a use or of a loan, takes one away. So the number of uses is at any time
//! `made` − (`ended` − `OPEN`).
//!
//! *Loans* are not counted. Instead, the last owner that goes [lets the value go](LetGo::let_go), and whoever makes
//! loans keeps it from then on until they have ended, by what it knows of them itself. No loan is made any more then,
//! since only owners lend.
//!
//! When it is not kept any more, `made` is final too: only owners make what counts there, and what they did is seen by
//! who drops the last one. `OPEN` and `made` are taken off `ended`, which is from now on minus the number of uses.
//! Whoever brings it to zero, this step or a use that ends, drops the value. Before, `ended` is near `OPEN`, far from
//! zero; so uses that end need not know whether there are owners.

#[cfg(all(test, loom))]
mod models;

use crate::primitives::{AtomicU64, AtomicUsize, Ordering::*, fence};
use crate::sole::this_thread;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// What `ended` begins with: more than there will be uses.
const OPEN: u64 = 1 << 62;

/// Most owners, as many as an `Arc` has.
const MOST: usize = isize::MAX as usize;

/// Bits of the address in a reference: that it is a use, or a loan. An owner has none.
const USE: usize = 1;
const LOAN: usize = 2;
const KIND: usize = USE | LOAN;

/// What stands before a value, on the cache lines of the maker.
pub trait LetGo<V>: Sized {
    /// The last owner of the value goes. It is kept as long as `last` is: until loans have ended, if any were made.
    fn let_go(last: Last<Self, V>) {
        drop(last);
    }
}

/// A reference to a value: an owner, a use or a loan. `S` is what those look at who make uses and loans, `V` is on
/// cache lines that only those change who end uses. See the [module](self).
///
/// ```
/// use sched_sync::counted::{Counted, LetGo};
///
/// struct Name(&'static str);
/// impl<V> LetGo<V> for Name {}
///
/// let owner = Counted::new(Name("name"), vec![1, 2]);
/// let use_of_it = owner.to_use();
/// drop(owner);
/// assert_eq!((use_of_it.head().0, use_of_it.value().len()), ("name", 2));
/// ```
pub struct Counted<S: LetGo<V>, V> {
    /// With its kind in its address.
    place: NonNull<Place<S, V>>,
    _owns: PhantomData<Place<S, V>>,
}

/// A value without owners, which is kept until this is dropped.
pub struct Last<S: LetGo<V>, V>(NonNull<Place<S, V>>, PhantomData<Place<S, V>>);

// Of its own lines, since the maker changes it.
#[repr(C, align(64))]
struct Place<S, V> {
    owners: AtomicUsize,
    /// Number of the thread that made it.
    maker: u64,
    /// Uses that the maker has made; nobody else changes it.
    made: AtomicU64,
    head: S,
    used: Used<V>,
}

#[repr(C, align(64))]
struct Used<V> {
    ended: AtomicU64,
    value: V,
}

// SAFETY: as for an `Arc`: threads share the values, and the last one drops them.
unsafe impl<S: LetGo<V> + Send + Sync, V: Send + Sync> Send for Counted<S, V> {}
// SAFETY: as above.
unsafe impl<S: LetGo<V> + Send + Sync, V: Send + Sync> Sync for Counted<S, V> {}
// SAFETY: as above.
unsafe impl<S: LetGo<V> + Send + Sync, V: Send + Sync> Send for Last<S, V> {}

impl<S: LetGo<V>, V> Counted<S, V> {
    /// The first owner of a value.
    pub fn new(head: S, value: V) -> Counted<S, V> {
        let used = Used { ended: AtomicU64::new(OPEN), value };
        let (owners, made) = (AtomicUsize::new(1), AtomicU64::new(0));
        let place = Box::new(Place { owners, maker: this_thread(), made, head, used });
        Counted { place: NonNull::from(Box::leak(place)), _owns: PhantomData }
    }

    /// What stands before the value.
    #[inline(always)]
    pub fn head(&self) -> &S {
        &self.place().head
    }

    /// The value.
    #[inline(always)]
    pub fn value(&self) -> &V {
        &self.place().used.value
    }

    /// Another reference, which is a use.
    #[inline(always)]
    #[must_use]
    pub fn to_use(&self) -> Counted<S, V> {
        let place = self.place();
        if self.kind() == 0 && place.maker == this_thread() {
            place.made.store(place.made.load(Relaxed) + 1, Relaxed);
        } else {
            place.used.ended.fetch_sub(1, Relaxed);
        }
        self.of_kind(USE)
    }

    /// Another reference, which is a loan.
    ///
    /// # Panics
    /// Debug builds: if this is no owner.
    ///
    /// # Safety
    /// This is an owner; and from when the last owner has gone, [`LetGo::let_go`] keeps the value until the loan has
    /// been dropped, or is not used any more.
    #[inline(always)]
    #[must_use]
    pub unsafe fn lend(&self) -> Counted<S, V> {
        debug_assert_eq!(self.kind(), 0, "owners lend");
        self.of_kind(LOAN)
    }

    /// Whether this is the only owner. What others did before they went is seen then.
    #[must_use]
    pub fn is_only(&self) -> bool {
        self.kind() == 0 && self.place().owners.load(Acquire) == 1
    }

    /// Takes the value, if this is the only owner and there is no use; else gives the reference back.
    ///
    /// # Errors
    /// If it is not the only one.
    ///
    /// # Safety
    /// There is no loan that is used any more.
    pub unsafe fn try_take(self) -> Result<V, Counted<S, V>> {
        if !self.is_only() {
            return Err(self);
        }
        let place = self.place();
        // Only this owner could make another use, and a use makes one only while it is there itself.
        let uses = place.made.load(Relaxed).wrapping_add(OPEN).wrapping_sub(place.used.ended.load(Acquire));
        if uses > 0 {
            return Err(self);
        }
        let only = ManuallyDrop::new(self);
        // SAFETY: it came from a box, and this is the only reference to it, which is not used any more.
        let place = unsafe { Box::from_raw(only.place.as_ptr()) };
        Ok(place.used.value)
    }

    #[inline(always)]
    fn kind(&self) -> usize {
        self.place.addr().get() & KIND
    }

    #[inline(always)]
    fn of_kind(&self, kind: usize) -> Counted<S, V> {
        let bare = self.bare();
        // SAFETY: the address of a box is not 0, and has no bits of kinds.
        let place = unsafe { NonNull::new_unchecked(bare.as_ptr().map_addr(|address| address | kind)) };
        Counted { place, _owns: PhantomData }
    }

    /// The address without its kind.
    #[inline(always)]
    fn bare(&self) -> NonNull<Place<S, V>> {
        // SAFETY: it is that of a box, whose alignment leaves the bits of kinds 0.
        unsafe { NonNull::new_unchecked(self.place.as_ptr().map_addr(|address| address & !KIND)) }
    }

    #[inline(always)]
    fn place(&self) -> &Place<S, V> {
        // SAFETY: the box is there as long as references are.
        unsafe { self.bare().as_ref() }
    }
}

// By value, so that references can stay in registers, where something may drop them.

/// Lets a value go, after its last owner.
#[cold]
#[inline(never)]
fn let_go<S: LetGo<V>, V>(place: NonNull<Place<S, V>>) {
    // What other owners did, `made` among it, comes before.
    fence(Acquire);
    S::let_go(Last(place, PhantomData));
}

/// Drops a value with its last use.
///
/// # Safety
/// Neither owners nor uses are left, nor is it kept.
#[cold]
#[inline(never)]
unsafe fn end_last<S, V>(place: NonNull<Place<S, V>>) {
    // What others did with it comes before.
    fence(Acquire);
    // SAFETY: see above.
    unsafe { destroy(place) };
}

/// Drops a value.
///
/// # Safety
/// Nothing refers to it any more.
unsafe fn destroy<S, V>(place: NonNull<Place<S, V>>) {
    // SAFETY: it came from a box.
    drop(unsafe { Box::from_raw(place.as_ptr()) });
}

impl<S: LetGo<V>, V> Last<S, V> {
    /// What stands before the value.
    #[must_use]
    pub fn head(&self) -> &S {
        &self.place().head
    }

    fn place(&self) -> &Place<S, V> {
        // SAFETY: it is kept.
        unsafe { self.0.as_ref() }
    }
}

impl<S: LetGo<V>, V> Drop for Last<S, V> {
    fn drop(&mut self) {
        let place = self.place();
        let taken = OPEN.wrapping_add(place.made.load(Relaxed));
        if place.used.ended.fetch_sub(taken, AcqRel) == taken {
            // SAFETY: neither owners nor uses are left, nor is it kept any more.
            unsafe { destroy(self.0) };
        }
    }
}

impl<S: LetGo<V>, V> Clone for Counted<S, V> {
    /// Another owner of an owner, another use of a use or of a loan.
    fn clone(&self) -> Counted<S, V> {
        if self.kind() != 0 {
            return self.to_use();
        }
        let before = self.place().owners.fetch_add(1, Relaxed);
        if before > MOST {
            // Owners that were forgotten, not dropped; the count must not go round.
            std::process::abort();
        }
        self.of_kind(0)
    }
}

impl<S: LetGo<V>, V> Drop for Counted<S, V> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.kind() {
            LOAN => {}
            USE => {
                if self.place().used.ended.fetch_add(1, Release) == u64::MAX {
                    // SAFETY: this was the last use, and there is no owner, nor is it kept: those count for more.
                    unsafe { end_last(self.bare()) };
                }
            }
            _ => {
                if self.place().owners.fetch_sub(1, Release) == 1 {
                    let_go(self.bare());
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use std::thread;

    #[derive(PartialEq, Debug)]
    struct Seven(u32);

    impl<V> LetGo<V> for Seven {}

    /// A value, and a word for whether it is there still.
    fn counted() -> (Counted<Seven, Arc<()>>, Arc<()>) {
        let there = Arc::new(());
        (Counted::new(Seven(7), Arc::clone(&there)), there)
    }

    fn try_take<S: LetGo<V>, V>(reference: Counted<S, V>) -> Result<V, Counted<S, V>> {
        // SAFETY: nobody lends.
        unsafe { reference.try_take() }
    }

    fn is_there(there: &Arc<()>) -> bool {
        Arc::strong_count(there) > 1
    }

    #[test]
    fn a_value_goes_with_its_last_owner_if_no_use_is_left() {
        let (owner, there) = counted();
        let other = owner.clone();
        drop((owner.to_use(), owner.to_use()));
        drop(owner);
        assert!(is_there(&there) && *other.head() == Seven(7));
        drop(other);
        assert!(!is_there(&there));
    }

    #[test]
    fn a_value_goes_with_its_last_use_if_no_owner_is_left() {
        let (owner, there) = counted();
        let (one, other) = (owner.to_use(), owner.to_use());
        let third = thread::scope(|scope| scope.spawn(|| owner.to_use()).join().expect("it makes a use"));
        let fourth = third.clone();
        thread::scope(|scope| drop(scope.spawn(move || drop((owner, third)))));
        thread::scope(|scope| drop(scope.spawn(move || drop((one, other)))));
        assert!(is_there(&there));
        assert_eq!(*fourth.head(), Seven(7));
        drop(fourth);
        assert!(!is_there(&there));
    }

    #[test]
    fn a_value_is_taken_by_its_only_reference() {
        let (owner, there) = counted();
        let other = owner.clone();
        let owner = try_take(owner).expect_err("there is another owner");
        drop(other);
        let used = owner.to_use();
        let owner = try_take(owner).expect_err("there is a use");
        let used = try_take(used).expect_err("it is no owner");
        thread::scope(|scope| drop(scope.spawn(move || drop(used))));
        let foreign = thread::scope(|scope| scope.spawn(|| owner.to_use()).join().expect("it makes a use"));
        let owner = try_take(owner).expect_err("another thread has made a use");
        drop(foreign);
        let value = try_take(owner).ok().expect("it is the only one");
        assert!(is_there(&there));
        drop(value);
        assert!(!is_there(&there));
    }

    /// Loans that are known otherwise: the value is kept with the last of them.
    #[test]
    fn a_value_is_kept_for_loans() {
        type Kept = Option<Last<Shelf, Arc<()>>>;
        struct Shelf(Arc<Mutex<Kept>>);

        impl LetGo<Arc<()>> for Shelf {
            fn let_go(last: Last<Shelf, Arc<()>>) {
                let shelf = Arc::clone(&last.head().0);
                *shelf.lock().expect("nobody panics") = Some(last);
            }
        }

        let (shelf, there) = (Arc::default(), Arc::new(()));
        let owner = Counted::new(Shelf(Arc::clone(&shelf)), Arc::clone(&there));
        // SAFETY: the shelf keeps the value.
        let loan = unsafe { owner.lend() };
        drop(owner);
        let used = loan.clone();
        assert!(is_there(loan.value()));
        drop(loan);
        assert!(is_there(&there));
        drop(shelf.lock().expect("nobody panics").take());
        assert!(is_there(&there), "a use of it is left");
        drop(used);
        assert!(!is_there(&there));
    }

    /// As many references as a random sequence of clones, uses and drops leaves, on several threads.
    #[test]
    fn of_many_references_each_counts_once() {
        let (owner, there) = counted();
        thread::scope(|scope| {
            for seed in 1..=4_u64 {
                let first = if seed % 2 == 0 { owner.clone() } else { owner.to_use() };
                scope.spawn(move || {
                    let (mut random, mut held) = (seed * 0x9E37_79B9, vec![first]);
                    for _ in 0..if cfg!(miri) { 100 } else { 10_000 } {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        let at = (random >> 33) as usize % held.len();
                        match random >> 62 {
                            0 => held.push(held[at].clone()),
                            1 => held.push(held[at].to_use()),
                            _ if held.len() > 1 => drop(held.swap_remove(at)),
                            _ => assert_eq!(*held[at].head(), Seven(7)),
                        }
                    }
                });
            }
            (0..1000).for_each(|_| drop(owner.to_use()));
            drop(owner);
        });
        assert!(!is_there(&there));
    }
}
