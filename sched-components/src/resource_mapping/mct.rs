//! `mct`: minimum completion time. Each task goes to the child that is expected to complete it first, considering data
//! transfers and energy; `completion` has the formula.

use super::completion::Weights;
use super::soonest::Soonest;
use sched_core::*;

/// Sends each task to the child that is expected to complete it first.
///
/// It stores nothing. If the chosen child refuses the task, so does this component: another child would accept it, but
/// complete it later than this one after a wait. The decision stands: the task goes to that child as soon as it has
/// room, unless a worker below runs out of work before. A child that is a worker is woken and pulls the task.
///
/// It decides by expected lengths, so it belongs below `perfmodel-select`. A task of unknown length goes to the child
/// with the least load.
///
/// Concurrent decisions see each other, although no lock is held while a task is pushed: a decision records until when
/// it keeps the chosen child busy, and this counts until the child's own estimated end includes the task.
#[derive(Debug)]
pub struct Mct {
    soonest: Soonest,
}

impl Build for Mct {
    const INFO: Info = Info::new(
        "mct",
        Family::ResourceMapping,
        "Sends each task to the child that is expected to complete it first.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .params(const { &[Weights::ALPHA, Weights::BETA, Weights::GAMMA, Weights::IDLE_POWER] })
    .lookahead(30)
    .needs_models()
    .forwards_pull()
    .forwards_push()
    .end_is_noted()
    .wakes_workers();

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Mct { soonest: Soonest::read(params)? })
    }
}

impl Component for Mct {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.soonest.push_anywhere(node, task)
    }
}

#[cfg(test)]
mod tests;
