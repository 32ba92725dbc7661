//! `eager-prio`: stores all tasks in one list by priority, and gives the best of them to the first child that accepts
//! it.

use super::by_speed::BySpeed;
use crate::queue::{ByArchs, Counted, Executable, Place, Stuck, archs_of_requester, load_here, nanos};
use sched_core::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::time::Duration;

/// A list of tasks by priority, then by arrival, above short queues: a queue that has room gets the best task that it
/// can execute. It accepts every task.
///
/// A task that no child accepts keeps its position, and tasks of lower priority for the same architectures wait behind
/// it; tasks for other architectures pass it. Behind a task that is restricted to certain workers, only those wait that
/// are restricted to the same ones. A child that is a worker is woken instead of pushed to, and pulls the best task
/// that it can execute.
///
/// The fastest children are asked first ([`Node::child_relative_speedup`]): a slow one gets a task only while all
/// faster ones have enough to do. Equally fast ones take turns, unless `in-turn` is false: then the first of them gets
/// what it can hold, and the last is idle as long as the others can take everything, which may save energy.
///
/// # One pass at a time
///
/// Tasks are removed from the list while they are offered. If several threads offered tasks concurrently, a task of
/// lower priority could take the room that a higher one was just refused, and a child with new room could find the list
/// empty. Therefore one thread makes a *pass* at a time, without others waiting for it: a thread that arrives meanwhile
/// leaves a request, and the thread that makes the pass makes another. A later pass sees everything that was pushed,
/// and all room that appeared, before a request.
#[derive(Debug)]
pub struct EagerPrio {
    queue: Counted<ByArchs>,
    /// Sum of the expected lengths in `queue` in nanoseconds, written under its lock.
    expected: AtomicU64,
    /// Number of requests for a pass since the last idle moment; 0 while nobody makes one.
    requests: AtomicU32,
    /// Whether equally fast children take turns.
    in_turn: bool,
    /// The child to start with.
    next: AtomicU32,
    by_speed: BySpeed,
}

const IN_TURN: &str = "in-turn";

const IN_TURN_DOC: &str = "equally fast children take turns, that of the worker that asks first; without, the first \
     gets what it can hold, then the next, as in StarPU";

impl Build for EagerPrio {
    const INFO: Info =
        Info::new("eager-prio", Family::ResourceMapping, "Gives the best task to the first child that takes it.")
            .package(env!("CARGO_PKG_NAME"))
            .storage(Storage::Unbounded)
            .params(const { &[Param::bool(IN_TURN, true, IN_TURN_DOC)] })
            .may_refuse(false);

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(EagerPrio {
            in_turn: params.bool(IN_TURN)?,
            queue: Counted::new(ByArchs::default()),
            expected: AtomicU64::new(0),
            requests: AtomicU32::new(0),
            next: AtomicU32::new(0),
            by_speed: BySpeed::default(),
        })
    }
}

/// A task that no child accepted.
struct Kept {
    task: Task,
    /// Whether a child that is a worker could pull it.
    pullable: bool,
}

impl EagerPrio {
    fn change<A>(&self, change: impl FnOnce(&mut ByArchs) -> A) -> A {
        self.queue.change(|queue| {
            let answer = change(queue);
            self.expected.store(queue.expected(), Relaxed);
            answer
        })
    }

    fn pop(&self, pop: impl FnOnce(&mut ByArchs) -> Option<(Task, Place)>) -> Option<(Task, Place)> {
        if self.queue.is_empty() { None } else { self.change(pop) }
    }

    /// Sends down what children accept now. Returns whether this thread sent anything; another thread may do so
    /// instead.
    fn progress(&self, node: Node<'_>) -> bool {
        if node.children().all(|child| node.child_worker(child).is_some()) {
            node.children_can_pull();
            return false;
        }
        if self.requests.fetch_add(1, AcqRel) > 0 {
            return false;
        }
        let (mut moved, mut answered) = (false, 1);
        loop {
            moved |= self.pass(node);
            match self.requests.compare_exchange(answered, 0, AcqRel, Acquire) {
                Ok(_) => return moved,
                Err(asked) => answered = asked,
            }
        }
    }

    fn pass(&self, node: Node<'_>) -> bool {
        let mut moved = false;
        let mut stuck = Stuck::default();
        while let Some((task, place)) = self.pop(|queue| queue.pop_of(|able| stuck.lets_pass(able), |_| true)) {
            let able = task.able();
            let Err(kept) = self.offer(node, task) else {
                moved = true;
                continue;
            };
            stuck.note(able);
            self.change(|queue| queue.unpop(kept.task, place));
            if kept.pullable {
                // A worker may have looked here while the task was out.
                node.children_can_pull();
            }
            // There may be as many sets of workers as there are workers, and all of them full.
            if able.is_restricted() && !node.has_room_below() {
                break;
            }
        }
        moved
    }

    /// Offers a task to the fastest children first; among equally fast ones, to that of the requesting worker, then in
    /// turn, or as they come in the policy.
    fn offer(&self, node: Node<'_>, mut task: Task) -> Result<(), Kept> {
        let mut pullable = false;
        for child in self.by_speed.order(node, self.in_turn.then(|| Child(self.next.load(Relaxed)))) {
            if !node.child_can_execute(child, &task) {
                continue;
            }
            if node.child_worker(child).is_some() {
                pullable = true;
                continue;
            }
            match node.push_to(child, task) {
                Ok(()) => {
                    self.next.store(child.0 + 1, Relaxed);
                    return Ok(());
                }
                Err(refused) => task = refused.task,
            }
        }
        Err(Kept { task, pullable })
    }
}

impl Component for EagerPrio {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let (priority, expected) = (task.priority(), task.predicted().map_or(0, nanos));
        self.change(|queue| queue.push(task, priority, expected));
        self.progress(node);
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let archs = archs_of_requester(node);
        let able = |task: &Task| node.requester_can_execute(task);
        let best = || self.pop(|queue| queue.pop(archs, able)).map(|(task, _)| task);
        // A parent may push instead of giving.
        best().or_else(|| node.pull_from_parents()).or_else(best)
    }

    fn can_push(&self, node: Node<'_>, _to: Child) -> bool {
        self.progress(node) || node.parents_can_push()
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        node.end_below_with_queued(Duration::from_nanos(self.expected.load(Relaxed)))
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        node.load_below() + load_here(node, self.queue.len())
    }

    fn drain(&self) -> Vec<Task> {
        self.change(ByArchs::drain)
    }

    fn describe(&self, report: &mut Report) {
        report.fact("tasks", self.queue.len());
        let expected = Duration::from_nanos(self.expected.load(Relaxed));
        report.fact("expected length", format_args!("{expected:?}"));
    }
}

#[cfg(test)]
mod tests;
