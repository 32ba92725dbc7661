//! A thread beside the work.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Does `work`, while another thread does `aside`, which is to return when the channel that it is passed is closed.
pub(crate) fn beside<R>(aside: &(dyn Fn(&Receiver<()>) + Sync), work: impl FnOnce() -> R) -> R {
    let (mut work, mut result) = (Some(work), None);
    while_aside(aside, &mut || result = work.take().map(|work| work()));
    result.expect("the work was done")
}

/// What [`beside`] is, for all types of work.
fn while_aside(aside: &(dyn Fn(&Receiver<()>) + Sync), work: &mut dyn FnMut()) {
    thread::scope(|scope| {
        // Dropped when the work ends or panics.
        let (alive, ended) = channel::<()>();
        scope.spawn(move || aside(&ended));
        work();
        drop(alive);
    });
}
