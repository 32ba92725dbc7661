//! Owners and uses that go at the same moment, under loom: the value is dropped once, after the last who sees it.
//!
//! Each of these, done by hand to `counted.rs`, makes a model fail: a relaxed end of a use; no fence before the value is
//! dropped with its last use; a relaxed end of an owner; no fence before the last owner reads `made`; a relaxed exchange
//! when the value is let go; a use on another thread, or a clone of a use, that is counted as those that the maker makes of an
//! owner; a relaxed look at either count before the value is taken.

use super::{Counted, LetGo};
use crate::model::model;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::thread;

/// A value that is looked at by those who have it, and changed by who drops it.
struct Value {
    looked_at: UnsafeCell<u32>,
    drops: Arc<AtomicUsize>,
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: nobody else has it; the model checks that.
        self.looked_at.with_mut(|value| unsafe { *value = 0 });
        self.drops.fetch_add(1, SeqCst);
    }
}

impl LetGo<Value> for () {}

type Reference = Counted<(), Value>;

fn look(reference: &Reference) {
    // SAFETY: nobody changes it while there are references; the model checks that.
    assert_eq!(reference.value().looked_at.with(|value| unsafe { *value }), 7);
}

/// Each body has a thread of its own, with a reference that the maker made for it, and the maker drops the owner.
fn run(preemptions: usize, bodies: &'static [(fn(&Reference) -> Reference, fn(Reference))]) {
    model(preemptions, move || {
        let drops = Arc::new(AtomicUsize::new(0));
        let owner = Counted::new((), Value { looked_at: UnsafeCell::new(7), drops: Arc::clone(&drops) });
        let threads: Vec<_> = bodies
            .iter()
            .map(|(make, body)| {
                let made = make(&owner);
                thread::spawn(move || body(made))
            })
            .collect();
        look(&owner);
        drop(owner);
        threads.into_iter().for_each(|thread| thread.join().expect("it drops its references"));
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// Looks at the value, and lets it go.
fn end(reference: Reference) {
    look(&reference);
}

fn make_and_go(owner: Reference) {
    let made = owner.to_use();
    drop(owner);
    look(&made);
}

#[test]
fn two_uses_end_while_the_owner_goes() {
    run(3, &[(Counted::to_use, end), (Counted::to_use, end)]);
}

#[test]
fn an_owner_of_another_thread_makes_a_use_and_goes() {
    run(3, &[(Clone::clone, make_and_go), (Counted::to_use, end)]);
}

#[test]
fn a_use_is_cloned_while_the_owner_goes() {
    fn clone(one: Reference) {
        let other = one.clone();
        drop(one);
        look(&other);
    }
    run(3, &[(Counted::to_use, clone), (Counted::to_use, end)]);
}

#[test]
fn the_maker_makes_uses_while_others_end() {
    model(3, || {
        let drops = Arc::new(AtomicUsize::new(0));
        let owner = Counted::new((), Value { looked_at: UnsafeCell::new(7), drops: Arc::clone(&drops) });
        let (first, other) = (owner.to_use(), owner.clone());
        // The last owner is another thread's, which has to see what the maker has made.
        let ends = thread::spawn(move || end(first));
        let (second, third) = (owner.to_use(), owner.to_use());
        drop(owner);
        let goes = thread::spawn(move || drop((other, second)));
        end(third);
        [ends, goes].into_iter().for_each(|thread| thread.join().expect("it drops its references"));
        assert_eq!(drops.load(SeqCst), 1);
    });
}

#[test]
fn the_maker_clones_a_use_while_the_owner_goes() {
    model(3, || {
        let drops = Arc::new(AtomicUsize::new(0));
        let owner = Counted::new((), Value { looked_at: UnsafeCell::new(7), drops: Arc::clone(&drops) });
        let one = owner.to_use();
        let goes = thread::spawn(move || drop(owner));
        let other = one.clone();
        drop(one);
        look(&other);
        goes.join().expect("it drops the owner");
        look(&other);
        drop(other);
        assert_eq!(drops.load(SeqCst), 1);
    });
}

fn take_while(make: fn(&Reference) -> Reference, body: fn(Reference)) {
    model(3, move || {
        let drops = Arc::new(AtomicUsize::new(0));
        let owner = Counted::new((), Value { looked_at: UnsafeCell::new(7), drops: Arc::clone(&drops) });
        let made = make(&owner);
        let ends = thread::spawn(move || body(made));
        // SAFETY: nobody lends.
        match unsafe { owner.try_take() } {
            // SAFETY: nobody else has it; the model checks that.
            Ok(value) => value.looked_at.with_mut(|value| unsafe { *value = 7 }),
            Err(owner) => look(&owner),
        }
        ends.join().expect("it drops its references");
        assert_eq!(drops.load(SeqCst), 1);
    });
}

#[test]
fn the_only_reference_takes_the_value() {
    take_while(Counted::to_use, end);
    take_while(Clone::clone, make_and_go);
}
