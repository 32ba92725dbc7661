//! `mct`: minimum completion time. Each task goes to the child that is expected to complete it first, considering data
//! transfers and energy; `completion` has the formula.

use super::completion::{Basis, Candidate, Weights, ask_ends, deliver, least_loaded, with_candidates};
use super::promise::Promises;
use sched_core::*;

/// Sends each task to the child that is expected to complete it first.
///
/// It stores nothing. If the chosen child refuses the task, so does this component: another child would accept it, but
/// complete it later than this one after a wait. A child that is a worker is woken and pulls the task.
///
/// It decides by expected lengths, so it belongs below `perfmodel-select`. A task of unknown length goes to the child
/// with the least load.
///
/// Concurrent decisions see each other, although no lock is held while a task is pushed: a decision records until when
/// it keeps the chosen child busy, and this counts until the child's own estimated end includes the task.
#[derive(Debug)]
pub struct Mct {
    weights: Weights,
    promises: Promises,
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
        Ok(Mct { weights: Weights::read(params)?, promises: Promises::default() })
    }
}

/// The child chosen for a task.
enum Decision {
    /// The promise must be kept or withdrawn.
    Promised(Candidate),
    Unpredicted(Child),
    /// No worker can execute it.
    None,
}

impl Mct {
    fn decide(&self, node: Node<'_>, task: &Task) -> Decision {
        with_candidates(|candidates| {
            match self.weights.estimate(node, task, candidates) {
                Basis::Known => {}
                Basis::Unknown => return least_loaded(node, task).map_or(Decision::None, Decision::Unpredicted),
                Basis::NoWorker => return Decision::None,
            }
            let mut seen = self.promises.begin();
            let now = node.now();
            ask_ends(node, candidates);
            loop {
                let choose = |candidates: &mut [Candidate]| self.weights.choose(now, candidates).0;
                if let Some(chosen) = self.promises.settle(&mut seen, candidates, choose) {
                    return Decision::Promised(chosen);
                }
                for candidate in candidates.iter_mut().filter(|candidate| !candidate.asked) {
                    candidate.avail = node.child_estimated_end(candidate.child).as_nanos();
                    candidate.asked = true;
                }
            }
        })
    }
}

impl Component for Mct {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        match self.decide(node, &task) {
            Decision::Promised(chosen) => {
                chosen.predict(&mut task);
                let answer = deliver(node, chosen.child, task);
                self.promises.landed(chosen.child, answer.is_ok());
                answer
            }
            Decision::Unpredicted(child) => {
                task.set_predicted(None);
                deliver(node, child, task)
            }
            Decision::None => Err(Refused::new(task, Refusal::NoWorker)),
        }
    }
}

#[cfg(test)]
mod tests;
