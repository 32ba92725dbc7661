//! The decision of components that send each task to the child that is expected to complete it first: `mct`, and
//! `block-cyclic` among the children that it allows.

use super::completion::{Basis, Candidate, Weights, ask_ends, deliver, least_loaded, with_candidates, with_runs};
use super::promise::Promises;
use sched_core::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Soonest {
    weights: Weights,
    promises: Promises,
    standing: Standing,
}

/// The last decision whose child was full. It stands: the task waits for that child, and is offered to it again as soon
/// as any worker asks for more, without a new comparison of all children. Where queues are full most of the time, every
/// other decision would be one that was taken before.
#[derive(Default, Debug)]
struct Standing {
    /// Number of the last such task, so that others need no lock; 0 for none.
    task: AtomicU64,
    decision: Mutex<Option<(TaskId, Candidate)>>,
}

impl Standing {
    /// Takes the decision for this task, if that is the last.
    #[inline]
    fn take(&self, task: &Task) -> Option<Candidate> {
        if self.task.load(Relaxed) != task.id().sequence() {
            return None;
        }
        let decision = self.decision.lock().take_if(|(of, _)| *of == task.id());
        decision.map(|(_, chosen)| chosen)
    }

    fn set(&self, task: &Task, chosen: Candidate) {
        *self.decision.lock() = Some((task.id(), chosen));
        self.task.store(task.id().sequence(), Relaxed);
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

impl Soonest {
    pub(super) fn read(params: &Params) -> Result<Self, BuildError> {
        Ok(Soonest { weights: Weights::read(params)?, promises: Promises::default(), standing: Standing::default() })
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

    /// [`push_task`](Self::push_task) without a restriction. A task that the chosen child had no room for goes to that
    /// child as soon as it has, unless a worker has run out of work meanwhile. *Hop.*
    #[inline]
    pub(super) fn push_anywhere(&self, node: Node<'_>, mut task: Task) -> Push {
        if let Some(chosen) = self.standing.take(&task)
            && self.promises.settle_alone(self.promises.begin(), &chosen)
        {
            match self.offer(node, chosen, task) {
                Err(refused) if requester_is_idle(node) => task = refused.task,
                answer => return answer,
            }
        }
        match self.decide_by_runs(node, &task) {
            Some(chosen) => {
                chosen.predict(&mut task);
                self.offer(node, chosen, task)
            }
            None => self.push_task(node, task, |_, _| {}),
        }
    }

    /// Pushes a task, whose lengths are predicted, to the child to which it is promised. *Hop.*
    fn offer(&self, node: Node<'_>, chosen: Candidate, task: Task) -> Push {
        let answer = deliver(node, chosen.child, task);
        self.promises.landed(chosen.child, answer.is_ok());
        if let Err(Refused { task, why: Refusal::Full }) = &answer
            && node.child_worker(chosen.child).is_none()
        {
            self.standing.set(task, chosen);
        }
        answer
    }

    /// The decision that [`decide`](Self::decide) makes, at a lower cost where many children have equal costs; `None`
    /// where another decision interferes, and where no length is known.
    fn decide_by_runs(&self, node: Node<'_>, task: &Task) -> Option<Candidate> {
        with_runs(|runs| {
            if !self.weights.prefer_ends() || self.weights.estimate_runs(node, task, runs) != Basis::Known {
                return None;
            }
            let seen = self.promises.begin();
            runs.ask(node, node.now(), &self.weights);
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

/// Whether the worker that asks for more has nothing to do: the child above it is free at once.
fn requester_is_idle(node: Node<'_>) -> bool {
    let Some(worker) = node.requester() else { return false };
    // Most workers have an end that is known without a look for their child.
    if node.worker_busy_until(worker).is_some_and(|end| end > node.now()) {
        return false;
    }
    let above = node.children().find(|child| node.child_has_worker(*child, worker));
    above.is_some_and(|child| node.child_estimated_end(child) <= node.now())
}
