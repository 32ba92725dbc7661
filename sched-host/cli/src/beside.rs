//! A thread beside the work.

use miette::{Report, miette};
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

/// Does `work`, while another thread does `aside`, which is to return when the channel that it is passed is closed.
/// Says whether that thread could be started, too; the work is done in any case.
pub(crate) fn beside<R>(aside: &(dyn Fn(&Receiver<()>) + Sync), work: impl FnOnce() -> R) -> (R, io::Result<()>) {
    let (mut work, mut result) = (Some(work), None);
    let started = while_aside(Builder::new(), aside, &mut || result = work.take().map(|work| work()));
    (result.expect("the work was done"), started)
}

/// What [`beside`] is, for all types of work, with this thread.
fn while_aside(thread: Builder, aside: &(dyn Fn(&Receiver<()>) + Sync), work: &mut dyn FnMut()) -> io::Result<()> {
    thread::scope(|scope| {
        // Dropped when the work ends or panics.
        let (alive, ended) = channel::<()>();
        let started = thread.spawn_scoped(scope, move || aside(&ended)).map(drop);
        work();
        drop(alive);
        started
    })
}

/// Starts a thread without which there is no result.
///
/// # Errors
/// If the system has none.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> miette::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(|why| not_started(&why))
}

/// The error that a thread could not be started.
pub(crate) fn not_started(why: &io::Error) -> Report {
    miette!(help = "raise the limit of threads", "a thread could not be started: {why}")
}

#[cfg(test)]
mod tests {
    use super::while_aside;
    use std::thread::Builder;

    #[test]
    fn work_is_done_where_no_thread_can_be_started() {
        let mut times = 0;
        // No address space has such a stack.
        let started = while_aside(Builder::new().stack_size(1 << 62), &|_| (), &mut || times += 1);
        assert!(started.is_err(), "it was started");
        assert_eq!(times, 1);
    }
}
