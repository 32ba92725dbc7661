//! Which threads of a runtime have ended: so that its end can wait for them with patience.

use parking_lot::{Condvar, Mutex};
use std::collections::HashSet;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Ended {
    threads: Mutex<HashSet<ThreadId>>,
    changed: Condvar,
}

/// Notes, when it is dropped, that the thread has ended.
pub(crate) struct EndOfThread<'a>(&'a Ended);

impl Ended {
    /// To be kept by a thread until its end.
    pub(crate) fn at_end(&self) -> EndOfThread<'_> {
        EndOfThread(self)
    }

    /// Waits until this number of threads has ended, or until the patience is at its end. Those that have ended.
    pub(crate) fn wait_for(&self, threads: usize, patience: Duration) -> HashSet<ThreadId> {
        let deadline = Instant::now() + patience;
        let mut ended = self.threads.lock();
        while ended.len() < threads && !self.changed.wait_until(&mut ended, deadline).timed_out() {}
        ended.clone()
    }
}

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        self.0.threads.lock().insert(std::thread::current().id());
        self.0.changed.notify_all();
    }
}
