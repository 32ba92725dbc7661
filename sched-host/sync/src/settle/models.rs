//! What several need at once under loom: it is put together once, before any of them sees it.
//!
//! Each of these, done by hand to `settle.rs`, makes a model fail: no lock; no second look under the lock; the flag
//! cleared before the parts are together; a flag that is read or cleared without an order.

use super::Settling;
use crate::model::model;
use crate::primitives::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::*};
use loom::thread;

struct Sum {
    settling: Settling,
    value: UnsafeCell<()>,
    parts: UnsafeCell<()>,
    /// Number of times that the parts were put together.
    together: AtomicUsize,
}

impl Sum {
    fn look(&self) {
        self.settling.settle(|| {
            // Those who come at once wait for this; loom fails the model otherwise.
            self.parts.with_mut(|_| ());
            self.value.with_mut(|_| ());
            self.together.fetch_add(1, Relaxed);
        });
        // Nobody writes it afterwards; loom fails the model otherwise.
        self.value.with(|_| ());
        assert_eq!(self.together.load(Relaxed), 1);
    }
}

#[test]
fn all_who_come_at_once_see_the_whole() {
    model(3, || {
        let sum = Arc::new(Sum {
            settling: Settling::default(),
            value: UnsafeCell::new(()),
            parts: UnsafeCell::new(()),
            together: AtomicUsize::new(0),
        });
        let other = Arc::clone(&sum);
        let worker = thread::spawn(move || {
            other.settling.leave();
            // Tasks that need the whole come later; loom fails the model otherwise.
            other.parts.with_mut(|_| ());
        });
        // The order of tasks.
        worker.join().expect("it leaves its part");
        let readers = [(); 2].map(|()| {
            let sum = Arc::clone(&sum);
            thread::spawn(move || sum.look())
        });
        sum.look();
        readers.into_iter().for_each(|reader| reader.join().expect("it sees the whole"));
    });
}
