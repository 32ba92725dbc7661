//! Turns under loom: each is ended once, and who waits for one is woken.
//!
//! Each of these, done by hand to `turn.rs`, makes a model fail: no second look after a waker was left; a look before
//! it is left only; the waker taken before the state is exchanged; a store in the place of the exchange that says that
//! the turn has come.

use super::{Came, Turn};
use crate::model::{Parker, model};
use crate::primitives::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::*};
use loom::thread;

struct Asked {
    turn: Turn<Parker>,
    /// What the thread wrote that lets go of the data.
    data: UnsafeCell<()>,
    /// Number of times that the turn was ended.
    ended: AtomicUsize,
}

/// A turn that comes on another thread.
fn asked() -> (Arc<Asked>, thread::JoinHandle<()>) {
    let asked = Arc::new(Asked { turn: Turn::default(), data: UnsafeCell::new(()), ended: AtomicUsize::new(0) });
    let other = Arc::clone(&asked);
    let comes = thread::spawn(move || {
        // Loom fails the model if somebody looks.
        other.data.with_mut(|_| ());
        match other.turn.come() {
            Came::Awaited(waker) => waker.into_iter().for_each(|waker| waker.wake()),
            Came::GivenUp(5) => _ = other.ended.fetch_add(1, Relaxed),
            Came::GivenUp(name) => panic!("{name} was not given up"),
        }
    });
    (asked, comes)
}

impl Asked {
    /// Uses the data, in the turn.
    fn use_data(&self) {
        // Loom fails the model if somebody writes.
        self.data.with(|_| ());
        self.ended.fetch_add(1, Relaxed);
    }
}

#[test]
fn who_waits_for_a_turn_is_woken() {
    model(4, || {
        let (asked, comes) = asked();
        // As an executor does: it polls, and parks until it is woken.
        let parker = Parker::new();
        while !asked.turn.has_come_or_wakes(parker.clone()) {
            parker.park();
        }
        asked.use_data();
        comes.join().expect("it comes");
        assert_eq!(asked.ended.load(Relaxed), 1);
    });
}

#[test]
fn a_turn_that_is_given_up_is_ended_once() {
    model(4, || {
        let (asked, comes) = asked();
        let _ = asked.turn.has_come_or_wakes(Parker::new());
        if !asked.turn.give_up(5) {
            asked.use_data();
        }
        comes.join().expect("it comes");
        assert_eq!(asked.ended.load(Relaxed), 1);
    });
}
