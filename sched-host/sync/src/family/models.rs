//! Nested tasks under loom: the task ends once, after all of them, and whoever ends it sees what they did.
//!
//! Each of these, done by hand to `family.rs`, makes a model fail: a count that begins at 0; a nested task that is
//! counted by itself instead of on entering; a return that leaves the list; leaving without release or without acquire.

use super::Family;
use crate::model::model;
use crate::primitives::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::*};
use loom::thread;

struct Task {
    family: Family<usize>,
    /// What the kernel holds until it returns, then its nested tasks.
    held: UnsafeCell<()>,
    /// What the nested tasks write.
    written: [UnsafeCell<()>; 2],
    ended: AtomicUsize,
}

impl Task {
    fn leave(&self) {
        if self.family.leave() {
            // All have ended; loom fails the model otherwise.
            self.written.iter().for_each(|written| written.with(|_| ()));
            self.held.with(|_| ());
            self.ended.fetch_add(1, Relaxed);
        }
    }

    fn run_nested(&self, number: usize) {
        self.written[number].with_mut(|_| ());
        self.leave();
    }
}

#[test]
fn a_task_ends_once_with_the_last_of_its_nested_tasks() {
    model(3, || {
        let task = Arc::new(Task {
            family: Family::default(),
            held: UnsafeCell::new(()),
            written: [UnsafeCell::new(()), UnsafeCell::new(())],
            ended: AtomicUsize::new(0),
        });
        // The kernel submits one that begins at once, and one that needs what the kernel holds.
        assert!(!task.family.enter(None));
        let other = Arc::clone(&task);
        let free = thread::spawn(move || other.run_nested(0));
        assert!(task.family.enter(Some(1)));
        // The kernel holds it; loom fails the model if another looks.
        task.held.with_mut(|_| ());
        let waiting = task.family.returned();
        assert_eq!(waiting, [1]);
        let released: Vec<_> = waiting
            .into_iter()
            .map(|number| {
                let task = Arc::clone(&task);
                thread::spawn(move || {
                    // The kernel has returned.
                    task.held.with(|_| ());
                    task.run_nested(number);
                })
            })
            .collect();
        task.leave();
        free.join().expect("it ends");
        released.into_iter().for_each(|nested| nested.join().expect("it ends"));
        assert_eq!(task.ended.load(Relaxed), 1);
        assert!(task.family.has_ended());
    });
}
