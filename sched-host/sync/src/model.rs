//! How the models of this crate are run.

use loom::sync::{Arc, Condvar, Mutex};

/// Where a thread parks, as that of an executor does. (Loom's `park` does not go with `join`.)
#[derive(Clone)]
pub(crate) struct Parker(Arc<(Mutex<bool>, Condvar)>);

impl Parker {
    pub(crate) fn new() -> Parker {
        Parker(Arc::new((Mutex::new(false), Condvar::new())))
    }

    pub(crate) fn wake(&self) {
        *self.0.0.lock().expect("nobody panics") = true;
        self.0.1.notify_one();
    }

    /// Parks until it was woken since the last time.
    pub(crate) fn park(&self) {
        let mut woken = self.0.0.lock().expect("nobody panics");
        while !std::mem::take(&mut *woken) {
            woken = self.0.1.wait(woken).expect("nobody panics");
        }
    }
}

/// Tries every order with at most this number of preemptions.
pub(crate) fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}
