//! `eager`: gives each task to the first child that takes it, and keeps none. A task goes to the worker that asked for
//! one, if it can run it and no faster one takes it; otherwise the children take turns.

use super::by_speed::BySpeed;
use sched_core::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The first child that takes a task gets it: the fastest are offered it first, and equally fast ones in turn.
///
/// A child that is a worker is not pushed to: it is woken, and comes for the task, which stays with the flow control
/// above.
#[derive(Debug, Default)]
pub struct Eager {
    /// The child to begin with.
    next: AtomicU32,
    by_speed: BySpeed,
}

impl Build for Eager {
    const INFO: Info = Info::new("eager", Family::ResourceMapping, "Gives each task to the first child that takes it.")
        .package(env!("CARGO_PKG_NAME"))
        .forwards_pull()
        .forwards_push()
        .end_is_noted()
        .wakes_workers();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Eager::default())
    }
}

impl Component for Eager {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        let mut why = Refusal::NoWorker;
        for child in self.by_speed.order(node, Child(self.next.load(Relaxed))) {
            if !node.child_can_execute(child, &task) {
                continue;
            }
            if node.child_worker(child).is_some() {
                if node.child_can_pull(child) {
                    self.next.store(child.0 + 1, Relaxed);
                    return Err(Refused::new(task, Refusal::PullInstead));
                }
                why = Refusal::Full;
                continue;
            }
            match node.push_to(child, task) {
                Ok(()) => {
                    self.next.store(child.0 + 1, Relaxed);
                    return Ok(());
                }
                Err(refused) => task = refused.task,
            }
            why = Refusal::Full;
        }
        Err(Refused::new(task, why))
    }
}

#[cfg(test)]
mod tests;
