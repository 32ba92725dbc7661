//! The counts of a context under loom: none of its tasks is left when it goes, and a thread that waits for the last one
//! is notified.
//!
//! Loom takes sequentially consistent loads and stores for weaker ones, so that only fences count: without those in
//! `in_flight.rs` the models fail.

use super::InFlight;
use crate::model::model;
use crate::primitives::{UnsafeCell, pause};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::*};
use loom::thread;

struct Context {
    in_flight: InFlight,
    /// What tasks use, and deletion takes away.
    tree: UnsafeCell<bool>,
    notified: AtomicBool,
}

impl Context {
    fn new() -> Arc<Context> {
        let context =
            Context { in_flight: InFlight::default(), tree: UnsafeCell::new(true), notified: AtomicBool::new(false) };
        assert_eq!(context.in_flight.open(), 1);
        Arc::new(context)
    }

    fn task(&self) {
        match self.in_flight.reserve(Some(1)) {
            Ok(()) => {
                // Loom fails the model when the tree is taken away meanwhile.
                self.tree.with(|_| ());
                self.end();
            }
            Err(refused) if refused.tell => self.notified.store(true, SeqCst),
            Err(_) => {}
        }
    }

    fn end(&self) {
        if self.in_flight.end() {
            self.notified.store(true, SeqCst);
        }
    }

    fn is_finished(&self) -> bool {
        self.in_flight.counts().is_finished()
    }
}

fn spawn(context: &Arc<Context>, body: impl FnOnce(&Context) + 'static) -> thread::JoinHandle<()> {
    let context = Arc::clone(context);
    thread::spawn(move || body(&context))
}

#[test]
fn a_context_goes_when_its_tasks_have_ended() {
    model(3, || {
        let context = Context::new();
        let submitter = spawn(&context, Context::task);
        assert!(context.in_flight.close(1));
        while !context.is_finished() {
            pause();
        }
        context.tree.with_mut(|_| ());
        context.in_flight.free(1);
        submitter.join().expect("it comes through");
        assert!(context.is_finished());
    });
}

#[test]
fn who_waits_is_told_of_the_last_task() {
    model(3, || {
        let context = Context::new();
        assert!(context.in_flight.reserve(Some(1)).is_ok() && context.in_flight.reserve(Some(1)).is_ok());
        let one = spawn(&context, Context::end);
        let other = spawn(&context, Context::end);
        context.in_flight.await_end();
        let finished = context.is_finished();
        one.join().expect("it comes through");
        other.join().expect("it comes through");
        assert!(finished || context.notified.load(SeqCst), "whoever does not see the end is notified");
    });
}

#[test]
fn a_refusal_hides_no_end() {
    model(3, || {
        let context = Context::new();
        assert!(context.in_flight.reserve(Some(1)).is_ok());
        assert!(context.in_flight.close(1));
        let late = spawn(&context, Context::task);
        let last = spawn(&context, Context::end);
        context.in_flight.await_end();
        let finished = context.is_finished();
        late.join().expect("it is refused");
        last.join().expect("it comes through");
        assert!(finished || context.notified.load(SeqCst), "whoever does not see the end is notified");
    });
}
