//! `stage`: stands where several schedulers meet above one worker or queue, and takes from the first that has a task.

use sched_core::*;

/// Pulls from its parents in order: the first scheduler that has a task comes before the others. What is pushed passes
/// through, and room below is told to the parents in the same order.
///
/// A policy gives it several parents with `shared` and `use`; the order of the `use`s in the text is that of the parents.
#[derive(Debug, Default)]
pub struct Stage;

impl Build for Stage {
    const INFO: Info =
        Info::new("stage", Family::SpecialPurpose, "Takes tasks from the first of several schedulers that has one.")
            .package(env!("CARGO_PKG_NAME"))
            .forwards_pull()
            .forwards_push()
            .end_is_noted();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Stage)
    }
}

/// All the rest is what every component does unless it says otherwise.
impl Component for Stage {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.push_to(Child(0), task)
    }
}

#[cfg(test)]
mod tests;
