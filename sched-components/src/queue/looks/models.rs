//! Looks into a queue out of which a task is taken and put back, under loom: nobody who found nothing is left unaware.
//!
//! Each of these, done by hand to `looks.rs`, makes a model fail: no fence in `begin`, or none in `is_alone`; no regard
//! to looks that were under way before.

use super::Looks;
use crate::queue::SharedQueue;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::*};
use loom::thread;

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

struct Place {
    queue: SharedQueue<u32>,
    looks: Looks,
    /// Whether somebody was told to look again.
    is_told: AtomicBool,
}

impl Place {
    /// A place with one task, which everybody is to refuse.
    fn new() -> Arc<Place> {
        let place = Place { queue: SharedQueue::new(()), looks: Looks::new(), is_told: AtomicBool::new(false) };
        place.queue.push(1, 0);
        Arc::new(place)
    }

    /// Takes the task out, and puts it back. Returns whether it was there.
    fn send(&self) -> bool {
        let look = self.looks.begin_to_send();
        let popped = self.queue.pop(|_| true, |_| ());
        let found = popped.is_some();
        if let Some((task, at)) = popped {
            self.queue.change(|queue| queue.unpop(task, at), |_| ());
            if !self.looks.is_alone(&look) {
                self.is_told.store(true, SeqCst);
            }
        }
        self.looks.end(look);
        found
    }

    /// Looks as a worker that takes tasks does. Returns whether there is one.
    fn look(&self) -> bool {
        if !self.queue.is_empty() {
            return true;
        }
        if !self.looks.are_counted() {
            return false;
        }
        let look = self.looks.begin();
        let found = !self.queue.is_empty();
        self.looks.end(look);
        found
    }
}

#[test]
fn who_looks_while_a_task_is_out_is_told() {
    model(|| {
        let place = Place::new();
        let sender = thread::spawn({
            let place = Arc::clone(&place);
            move || place.send()
        });
        let found = place.look();
        assert!(sender.join().expect("nobody panics"));
        assert!(found || place.is_told.load(SeqCst));
    });
}

#[test]
fn of_two_that_send_the_one_in_vain_is_told() {
    model(|| {
        let place = Place::new();
        let sender = thread::spawn({
            let place = Arc::clone(&place);
            move || place.send()
        });
        let found = place.send();
        let other_found = sender.join().expect("nobody panics");
        assert!(found || other_found);
        assert!((found && other_found) || place.is_told.load(SeqCst));
    });
}

/// A look that began before the task was taken out, and ends after it is back.
#[test]
fn a_look_that_began_earlier_is_told_as_well() {
    model(|| {
        let place = Place::new();
        let looker = thread::spawn({
            let place = Arc::clone(&place);
            move || place.look()
        });
        let found = [place.send(), place.send()];
        assert_eq!(found, [true; 2]);
        assert!(looker.join().expect("nobody panics") || place.is_told.load(SeqCst));
    });
}
