//! The decision of components that send each task to the child that is expected to complete it first: `mct`, and
//! `block-cyclic` among the children that it allows.

use super::completion::{Basis, Candidate, Weights, ask_ends, deliver, least_loaded, with_candidates, with_runs};
use super::promise::Promises;
use sched_core::*;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Soonest {
    weights: Weights,
    promises: Promises,
}

/// The child chosen for a task.
enum Decision {
    /// The promise must be kept or withdrawn.
    Promised(Candidate),
    Unpredicted(Child),
    /// No worker can execute it.
    None,
}

impl Soonest {
    pub(super) fn read(params: &Params) -> Result<Self, BuildError> {
        Ok(Soonest { weights: Weights::read(params)?, promises: Promises::default() })
    }

    /// Forgets what was promised to children, which may be others now. No push is in progress.
    pub(super) fn forget_children(&self) {
        self.promises.forget();
    }

    /// Pushes `task` to the best of the candidates that `restrict` leaves. A task of unknown length goes to the child
    /// with the least load. *Hop.*
    #[inline]
    pub(super) fn push_task(
        &self,
        node: Node<'_>,
        mut task: Task,
        restrict: impl FnOnce(&Task, &mut Vec<Candidate>),
    ) -> Push {
        match self.decide(node, &task, restrict) {
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

    /// [`push_task`](Self::push_task) without a restriction. *Hop.*
    #[inline]
    pub(super) fn push_anywhere(&self, node: Node<'_>, mut task: Task) -> Push {
        match self.decide_by_runs(node, &task) {
            Some(chosen) => {
                chosen.predict(&mut task);
                let answer = deliver(node, chosen.child, task);
                self.promises.landed(chosen.child, answer.is_ok());
                answer
            }
            None => self.push_task(node, task, |_, _| {}),
        }
    }

    /// The decision that [`decide`](Self::decide) makes, at a lower cost where many children have equal costs; `None`
    /// where another decision interferes, and where no length is known.
    fn decide_by_runs(&self, node: Node<'_>, task: &Task) -> Option<Candidate> {
        with_runs(|runs| {
            if !self.weights.prefer_ends() || self.weights.estimate_runs(node, task, runs) != Basis::Known {
                return None;
            }
            let seen = self.promises.begin();
            runs.ask(node, node.now());
            let chosen = self.weights.choose_run(runs)?;
            self.promises.settle_alone(seen, &chosen).then_some(chosen)
        })
    }

    #[inline]
    fn decide(&self, node: Node<'_>, task: &Task, restrict: impl FnOnce(&Task, &mut Vec<Candidate>)) -> Decision {
        with_candidates(|candidates| {
            match self.weights.estimate(node, task, candidates) {
                Basis::Known => {}
                Basis::Unknown => return least_loaded(node, task).map_or(Decision::None, Decision::Unpredicted),
                Basis::NoWorker => return Decision::None,
            }
            restrict(task, candidates);
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
