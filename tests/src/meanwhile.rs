//! Tasks that threads submit while another thread changes the runtime.

use sched_host::runtime::{RunError, Runtime};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

/// Number of changes before the second half of the tasks is submitted.
const CHANGES: usize = 4;

/// Number of changes made; the greatest once there will be no more, also by a panic.
struct Made(AtomicUsize);

impl Made {
    fn change(&self, stop: &AtomicBool, mut change: impl FnMut(usize)) {
        struct NoMore<'a>(&'a Made);
        impl Drop for NoMore<'_> {
            fn drop(&mut self) {
                self.0.0.store(usize::MAX, SeqCst);
            }
        }
        let _no_more = NoMore(self);
        for number in 0.. {
            if stop.load(SeqCst) {
                break;
            }
            change(number);
            self.0.store(number + 1, SeqCst);
        }
    }

    fn wait(&self) {
        while self.0.load(SeqCst) < CHANGES {
            thread::yield_now();
        }
    }
}

/// Calls `change` with 0, 1, and so on, while `threads` threads submit tasks, each of them `tasks`, until all have
/// ended. `submitter` gives what thread number `n` calls with the number of each of its tasks. Some changes are made
/// before the second half of the tasks is submitted, however late that thread begins and however fast tasks end.
///
/// # Errors
/// What [`Runtime::wait_all`] gives.
///
/// # Panics
/// When one of the threads does.
pub fn submit_meanwhile<S: FnMut(usize)>(
    runtime: &Runtime,
    (threads, tasks): (usize, usize),
    submitter: impl Fn(usize) -> S + Sync,
    change: impl FnMut(usize) + Send,
) -> Result<(), RunError> {
    let (stop, made) = (AtomicBool::new(false), Made(AtomicUsize::new(0)));
    thread::scope(|scope| {
        let submitters: Vec<_> = (0..threads)
            .map(|thread| {
                let (submitter, made) = (&submitter, &made);
                scope.spawn(move || {
                    let mut submit = submitter(thread);
                    for task in 0..tasks {
                        if task == tasks / 2 {
                            made.wait();
                        }
                        submit(task);
                    }
                })
            })
            .collect();
        let changer = scope.spawn(|| made.change(&stop, change));
        let submitted: Vec<_> = submitters.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let ended = runtime.wait_all();
        stop.store(true, SeqCst);
        changer.join().expect("no change panics");
        submitted.into_iter().for_each(|submitted| submitted.expect("no submission panics"));
        ended
    })
}
