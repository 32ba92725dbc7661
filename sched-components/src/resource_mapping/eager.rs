//! `eager`: gives each task to the first child that accepts it, and stores none. The requesting worker gets the task if
//! it can execute it and no faster one accepts it; otherwise the children take turns.

use super::by_speed::BySpeed;
use sched_core::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Gives each task to the first child that accepts it: the fastest are asked first, and equally fast ones in turn.
///
/// A child that is a worker is woken instead of pushed to, and pulls the task, which stays in the flow control above.
#[derive(Debug, Default)]
pub struct Eager {
    /// The child to start with.
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
        for child in self.by_speed.order(node, Some(Child(self.next.load(Relaxed)))) {
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
