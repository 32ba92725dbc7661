//! `heft`: heterogeneous earliest finish time. It stores tasks by priority, compares the first few, and sends the one
//! that can be completed first to the child that completes it first.

use super::completion::{Basis, Candidate, Weights, expected_here, least_loaded, with_candidates};
use super::turn::Turn;
use crate::queue::{ByArchs, Counted, Executable, Place, Stuck, archs_of_requester, load_here};
use sched_core::*;
use std::time::Duration;

/// Sends the task that can be completed first, among those of the highest priority, to the child that completes it
/// first.
///
/// It stores tasks and never refuses one. It compares the first task and up to `window` − 1 others of the same
/// priority, takes the one with the earliest end, and chooses its child as [`Mct`](super::Mct) does. It continues until
/// a child refuses; that task then returns to the front of its priority, and every task that only the same
/// architectures can execute waits until a child has room. A child that is a worker is woken and pulls.
///
/// One thread decides at a time, and each task is delivered before the next decision. Other threads that arrive
/// meanwhile do not wait: the deciding thread checks again before it ends.
#[derive(Debug)]
pub struct Heft {
    weights: Weights,
    window: usize,
    queue: Counted<ByArchs>,
    /// The right to decide.
    turn: Turn,
    /// Storage for a decision, kept for reuse.
    spare: Mutex<Scratch>,
}

/// Storage for one decision.
#[derive(Default, Debug)]
struct Scratch {
    window: Vec<(Task, Place)>,
    /// When each child runs out of work, once asked.
    ends: Vec<Time>,
}

impl Build for Heft {
    const INFO: Info = Info::new(
        "heft",
        Family::ResourceMapping,
        "Keeps tasks by priority, and sends the one that can be completed first to the child that completes it.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .storage(Storage::Unbounded)
    .params(
        const {
            &[
                Weights::ALPHA,
                Weights::BETA,
                Weights::GAMMA,
                Weights::IDLE_POWER,
                Param::int("window", 5, "number of tasks of equal priority compared at a time")
                    .at_least(1)
                    .unit("tasks"),
            ]
        },
    )
    .lookahead(30)
    .may_refuse(false)
    .needs_models();

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Heft {
            weights: Weights::read(params)?,
            window: usize::try_from(params.int("window")?).unwrap_or(usize::MAX),
            queue: Counted::new(ByArchs::default()),
            turn: Turn::default(),
            spare: Mutex::default(),
        })
    }
}

/// Which of the compared tasks goes where.
#[derive(Clone, Copy)]
enum Pick {
    Known(Candidate),
    /// It has no estimate: the child with the least load gets it.
    Unknown,
}

impl Heft {
    /// Takes the first task that other than the `stuck` workers can execute, and more tasks of its priority. Tasks that
    /// no worker can execute are skipped.
    fn fill(&self, node: Node<'_>, stuck: &Stuck, window: &mut Vec<(Task, Place)>) {
        let next = |queue: &mut ByArchs| queue.pop_of(|able| stuck.lets_pass(able), |task| node.can_execute(task));
        self.queue.change(|queue| {
            while window.len() < self.window {
                let Some((task, place)) = next(queue) else { break };
                if window.first().is_some_and(|(first, _)| first.priority() != task.priority()) {
                    queue.unpop(task, place);
                    break;
                }
                window.push((task, place));
            }
        });
    }

    fn give_back(&self, tasks: impl IntoIterator<Item = (Task, Place)>) {
        self.queue.change(|queue| tasks.into_iter().for_each(|(task, place)| queue.unpop(task, place)));
    }

    /// The task of the window that can be completed first. Tasks without an estimate go when no other is left.
    fn pick(&self, node: Node<'_>, scratch: &mut Scratch) -> (usize, Pick) {
        let Scratch { window, ends } = scratch;
        ends.clear();
        with_candidates(|candidates| {
            let now = node.now();
            let mut best: Option<(u64, usize, Candidate)> = None;
            for (index, (task, _)) in window.iter().enumerate() {
                if self.weights.estimate(node, task, candidates) != Basis::Known {
                    continue;
                }
                // No task is delivered between two comparisons.
                if ends.is_empty() {
                    node.ends_below(|_, end| ends.push(end));
                }
                for candidate in &mut *candidates {
                    candidate.avail = ends[candidate.child.0 as usize].as_nanos();
                }
                let (candidate, min_end) = self.weights.choose(now, candidates);
                if best.is_none_or(|(earliest, ..)| min_end < earliest) {
                    best = Some((min_end, index, candidate));
                }
            }
            best.map_or((0, Pick::Unknown), |(_, index, candidate)| (index, Pick::Known(candidate)))
        })
    }

    /// Sends one task that other than the `stuck` workers can execute. Returns whether it was accepted; `None` if there
    /// was none.
    fn step(&self, node: Node<'_>, stuck: &mut Stuck) -> Option<bool> {
        if self.queue.is_empty() || !node.has_room_below() {
            return None;
        }
        let mut scratch = std::mem::take(&mut *self.spare.lock());
        self.fill(node, stuck, &mut scratch.window);
        let picked = (!scratch.window.is_empty()).then(|| {
            let (index, pick) = self.pick(node, &mut scratch);
            let picked = scratch.window.swap_remove(index);
            if !scratch.window.is_empty() {
                self.give_back(scratch.window.drain(..));
            }
            (picked, pick)
        });
        *self.spare.lock() = scratch;
        let ((mut task, place), pick) = picked?;
        let able = task.able();
        let child = match pick {
            Pick::Known(candidate) => {
                candidate.predict(&mut task);
                Some(candidate.child)
            }
            Pick::Unknown => {
                task.set_predicted(None);
                least_loaded(node, &task)
            }
        };
        let refused = match child {
            None => task,
            Some(child) if node.child_worker(child).is_some() => {
                // Put it back first: the worker that is woken looks for it here.
                self.give_back([(task, place)]);
                node.child_can_pull(child);
                stuck.note(able);
                return Some(false);
            }
            Some(child) => match node.push_to(child, task) {
                Ok(()) => return Some(true),
                Err(refused) => refused.task,
            },
        };
        self.give_back([(refused, place)]);
        stuck.note(able);
        Some(false)
    }

    /// Sends tasks until one is refused, and then those that other workers can execute. Returns whether any was
    /// accepted.
    fn send(&self, node: Node<'_>) -> bool {
        let (mut moved, mut stuck) = (false, Stuck::default());
        while let Some(taken) = self.step(node, &mut stuck) {
            moved |= taken;
        }
        moved
    }

    fn progress(&self, node: Node<'_>) -> bool {
        self.turn.take(|| self.send(node))
    }

    fn take(&self, node: Node<'_>) -> Option<Task> {
        let archs = archs_of_requester(node);
        let first = || self.queue.change(|queue| queue.pop(archs, |task| node.requester_can_execute(task)));
        self.turn.pull(|| first().map(|(task, _)| task), || self.send(node))
    }
}

impl Component for Heft {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let (priority, expected) = (task.priority(), expected_here(node, &task));
        self.queue.change(|queue| queue.push(task, priority, expected));
        self.progress(node);
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        self.take(node).or_else(|| if node.parents_can_push() { self.take(node) } else { None })
    }

    fn can_push(&self, node: Node<'_>, _to: Child) -> bool {
        let moved = self.progress(node);
        // The tasks here do not fit now. The parents may have others that do.
        node.parents_can_push() || moved
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        let queued = self.queue.look(ByArchs::expected);
        node.end_below_with_queued(Duration::from_nanos(queued))
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        node.load_below() + load_here(node, self.queue.len())
    }

    fn drain(&self) -> Vec<Task> {
        self.queue.change(ByArchs::drain)
    }

    fn describe(&self, report: &mut Report) {
        report.fact("tasks", self.queue.len());
    }
}

#[cfg(test)]
mod tests;
