//! The queues of a work-stealing component.

use super::victims::{Neighbourhoods, Victims};
use crate::queue::{Held, Place, SharedQueue, TaskQueue, nanos};
use sched_core::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// Where a task was taken from, for putting it back: the queue of a child, or else the common one.
pub(super) type From = (Option<Child>, Place);

/// The queue of one child, or the common one, which has no owner.
#[derive(Debug)]
pub(super) struct Lane {
    queue: SharedQueue<Held, Owner>,
}

/// The owner of a queue, and the queue's state.
#[derive(Debug)]
#[repr(C)]
struct Owner {
    /// Whether the queue is listed as one that may hold tasks.
    is_listed: AtomicBool,
    /// The child's worker, if it has exactly one.
    worker: Option<WorkerId>,
    /// The queues to steal from, in order; computed at the first theft.
    victims: OnceLock<Victims>,
}

impl Lane {
    fn new(worker: Option<WorkerId>) -> Lane {
        let owner = Owner { is_listed: AtomicBool::new(false), worker, victims: OnceLock::new() };
        Lane { queue: SharedQueue::new(owner) }
    }

    /// The child's worker, if it has exactly one.
    pub(super) fn worker(&self) -> Option<WorkerId> {
        self.queue.beside.worker
    }

    /// Puts a task into the queue, on behalf of the owner.
    #[inline(always)]
    fn push_inside(&self, task: Task) {
        let (priority, expected) = (task.priority(), task.predicted().map_or(0, nanos));
        self.queue.push_inside(Held::new(task), priority, expected);
    }

    /// Puts a task into the queue, on behalf of another thread, or into the common one.
    #[inline(always)]
    fn push(&self, task: Task) {
        let (priority, expected) = (task.priority(), task.predicted().map_or(0, nanos));
        let held = Held::new(task);
        if expected == 0 {
            self.queue.push(held, priority);
        } else {
            self.queue.change(|queue| queue.push(held, priority, expected), |_| ());
        }
    }

    fn unpop(&self, task: Task, place: Place) {
        let held = Held::new(task);
        self.queue.change(|queue| queue.unpop(held, place), |_| ());
    }

    /// For the owner: takes the last task of the highest priority.
    #[inline]
    pub(super) fn pop_last(&self, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, Place)> {
        self.queue.pop_newest(eligible).map(|(held, place)| (held.task, place))
    }

    /// [`pop_last`](Self::pop_last) of a task that will not be put back.
    #[inline(always)]
    pub(super) fn pop_last_for_good(&self, eligible: impl FnMut(&Held) -> bool) -> Option<Task> {
        self.queue.pop_newest_for_good(eligible).map(|held| held.task)
    }

    /// For all others: takes the first task of the highest priority.
    pub(super) fn pop_first(&self, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, Place)> {
        self.queue.pop(eligible, |_| ()).map(|(held, place)| (held.task, place))
    }

    /// [`pop_first`](Self::pop_first), if it is more urgent than all tasks of `other`.
    pub(super) fn pop_urgent(&self, other: &Lane, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, Place)> {
        let popped = match other.queue.highest() {
            Some(priority) => self.queue.pop_above(priority, eligible),
            None => self.queue.pop(eligible, |_| ()),
        };
        popped.map(|(held, place)| (held.task, place))
    }

    /// Whether any task has a priority.
    #[inline]
    pub(super) fn is_ranked(&self) -> bool {
        self.queue.is_ranked()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Expected length in nanoseconds.
    pub(super) fn expected(&self) -> u64 {
        self.queue.expected()
    }

    pub(super) fn drain(&self) -> Vec<Task> {
        self.queue.change(TaskQueue::drain, |_| ()).into_iter().map(|held| held.task).collect()
    }
}

/// A queue for each child, a common one, and a list of the former that may hold tasks.
///
/// A worker that takes a task from the common queue takes a share of what is there into its own: where many workers have
/// small tasks, they meet at the common queue once a share.
///
/// Thieves use the list, so that passing over any number of empty queues costs almost nothing. A queue is listed when
/// it gets its first task, and stays listed when it becomes empty: while each worker has work, nobody writes to the
/// shared list. Thieves remove empty queues from it when they pass more than [`PATIENCE`] of them. Both happen under
/// the queue's locks, and a thread that inserts a task checks afterwards whether the queue is listed: an unlisted queue
/// is therefore empty, or about to be listed.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Box<[Lane]>,
    /// What no worker made ready, and has no home.
    common: Lane,
    list: SharedSet,
    /// The child above each worker; the first if there are several.
    homes: Box<[Option<Child>]>,
    neighbourhoods: Neighbourhoods,
}

/// Number of rounds in which the children would empty the common queue, if each took one share in each: enough is left
/// for the others, should nothing more be submitted.
const ROUNDS: usize = 2;

/// Number of empty queues that a thief passes over before it removes them from the list. A small machine has no more.
const PATIENCE: usize = 4;

impl Lanes {
    pub(super) fn new(node: Node<'_>) -> Lanes {
        let workers = node.workers().iter().last().map_or(0, |last| last.0 + 1);
        let mut homes = vec![None; workers as usize];
        for child in node.children() {
            for worker in node.child_workers(child).iter() {
                if let Some(home) = homes.get_mut(worker.0 as usize) {
                    home.get_or_insert(child);
                }
            }
        }
        Lanes {
            lanes: node.children().map(|child| Lane::new(node.child_worker(child))).collect(),
            common: Lane::new(None),
            list: SharedSet::new(node.children().len()),
            homes: homes.into(),
            neighbourhoods: Neighbourhoods::default(),
        }
    }

    /// The queues of the children.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter()
    }

    pub(super) fn common(&self) -> &Lane {
        &self.common
    }

    /// Takes the first task of the common queue for good, and moves a share of what follows to the queue of `to`.
    /// Returns whether anything was moved. Under the queue's lock, `eligible` asks the host nothing.
    #[inline]
    pub(super) fn take_share(&self, to: Child, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, bool)> {
        let own = self.lane(to)?;
        let len = self.common.len();
        if len == 0 {
            return None;
        }
        // A child without others has nobody to meet.
        let more = if self.lanes.len() == 1 { 0 } else { len / (ROUNDS * self.lanes.len()) };
        let (held, moved) = self.common.queue.pop_and_move(more, &own.queue, eligible)?;
        if moved {
            self.list(to);
        }
        Some((held.task, moved))
    }

    pub(super) fn lane(&self, child: Child) -> Option<&Lane> {
        self.lanes.get(child.0 as usize)
    }

    /// The child above `worker`.
    pub(super) fn home(&self, worker: WorkerId) -> Option<Child> {
        self.homes.get(worker.0 as usize).copied().flatten()
    }

    /// Puts a task into the queue of a child, on behalf of its owner or of another thread.
    #[inline]
    pub(super) fn push(&self, child: Child, task: Task, by_owner: bool) {
        let lane = &self.lanes[child.0 as usize];
        if by_owner {
            lane.push_inside(task);
        } else {
            lane.push(task);
        }
        self.list(child);
    }

    /// Puts a task into the common queue.
    #[inline(always)]
    pub(super) fn push_common(&self, task: Task) {
        self.common.push(task);
    }

    /// Puts a task back at its position.
    pub(super) fn unpop(&self, task: Task, (child, place): From) {
        match child {
            Some(child) => {
                self.lanes[child.0 as usize].unpop(task, place);
                self.list(child);
            }
            None => self.common.unpop(task, place),
        }
    }

    /// Lists the queue of a child that was given a task.
    #[inline]
    fn list(&self, child: Child) {
        let queue = &self.lanes[child.0 as usize].queue;
        let is_listed = &queue.beside.is_listed;
        if !is_listed.load(Acquire) {
            queue.hold(|_| {
                self.list.insert(child.0);
                is_listed.store(true, Release);
            });
        }
    }

    /// A task from the queue of the nearest victim of `thief` that holds an eligible one.
    pub(super) fn steal(
        &self,
        node: Node<'_>,
        thief: Child,
        eligible: &impl Fn(&Held) -> bool,
    ) -> Option<(Task, From)> {
        let victims = self.lane(thief)?.queue.beside.victims.get_or_init(|| self.neighbourhoods.victims(node, thief));
        let mut passed = 0;
        victims.find(&self.list, |victim| {
            let lane = self.lane(victim)?;
            if lane.queue.is_empty() {
                passed += 1;
                if passed > PATIENCE {
                    self.strike_off(victim);
                }
                return None;
            }
            let (task, place) = lane.pop_first(eligible)?;
            Some((task, (Some(victim), place)))
        })
    }

    /// Removes a queue from the list if it is empty.
    fn strike_off(&self, child: Child) {
        let queue = &self.lanes[child.0 as usize].queue;
        let is_listed = &queue.beside.is_listed;
        queue.hold(|is_empty| {
            if is_empty && is_listed.load(Relaxed) {
                is_listed.store(false, Release);
                self.list.remove(child.0);
            }
        });
    }
}
