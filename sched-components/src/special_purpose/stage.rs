//! `stage`: joins several schedulers above one worker or queue, and takes from the first that has a task.

use sched_core::*;

/// Pulls from its parents in order, so that an earlier scheduler with a task takes precedence. Pushed tasks pass
/// through, and room below is announced to the parents in the same order.
///
/// A policy gives it several parents with `shared` and `use`; the order of the `use`s in the text is that of the
/// parents.
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

/// All other methods keep their defaults.
impl Component for Stage {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.push_to(Child(0), task)
    }
}

#[cfg(test)]
mod tests;
