//! The queues of a work-stealing component.

use super::victims::{Neighbourhoods, Victims};
use crate::queue::{Held, Padded, Place, SharedQueue, TaskQueue, nanos};
use sched_core::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

/// Where a task was taken from, for putting it back.
pub(super) type From = (Child, Place);

/// The queue of one child.
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

    /// Puts a task into the queue, on behalf of the owner or of another thread.
    #[inline]
    fn push(&self, task: Task, by_owner: bool) {
        let (priority, expected) = (task.priority(), task.predicted().map_or(0, nanos));
        let held = Held::new(task);
        if by_owner {
            self.queue.push_inside(held, priority, expected);
        } else if expected == 0 {
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
    pub(super) fn pop(&self, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, Place)> {
        self.queue.pop_newest(eligible).map(|(held, place)| (held.task, place))
    }

    /// [`pop`](Self::pop) of a task that will not be put back.
    #[inline(always)]
    pub(super) fn pop_for_good(&self, eligible: impl FnMut(&Held) -> bool) -> Option<Task> {
        self.queue.pop_newest_for_good(eligible).map(|held| held.task)
    }

    /// For a thief: takes the first task of the highest priority.
    fn steal(&self, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, Place)> {
        self.queue.pop(eligible, |_| ()).map(|(held, place)| (held.task, place))
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

/// A queue for each child, and a list of those that may hold tasks.
///
/// Thieves use the list, so that passing over any number of empty queues costs almost nothing. A queue is listed when
/// it gets its first task, and stays listed when it becomes empty: while each worker has work, nobody writes to the
/// shared list. Thieves remove empty queues from it when they pass more than [`PATIENCE`] of them. Both happen under
/// the queue's locks, and a thread that inserts a task checks afterwards whether the queue is listed: an unlisted queue
/// is therefore empty, or about to be listed.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Box<[Lane]>,
    list: SharedSet,
    /// The child above each worker; the first if there are several.
    homes: Box<[Option<Child>]>,
    neighbourhoods: Neighbourhoods,
    /// The next child to get a task that no worker made ready.
    next: Padded<AtomicU32>,
}

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
            list: SharedSet::new(node.children().len()),
            homes: homes.into(),
            neighbourhoods: Neighbourhoods::default(),
            next: Padded::default(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter()
    }

    pub(super) fn lane(&self, child: Child) -> Option<&Lane> {
        self.lanes.get(child.0 as usize)
    }

    /// The child above `worker`.
    pub(super) fn home(&self, worker: WorkerId) -> Option<Child> {
        self.homes.get(worker.0 as usize).copied().flatten()
    }

    /// Every child once, starting with the next in turn.
    pub(super) fn turn(&self) -> impl Iterator<Item = Child> + use<> {
        let count = self.lanes.len() as u32;
        let start = self.next.0.fetch_add(1, Relaxed).checked_rem(count).unwrap_or(0);
        (start..count).chain(0..start).map(Child)
    }

    /// Puts a task into the queue of a child, on behalf of its owner or of another thread.
    #[inline]
    pub(super) fn push(&self, child: Child, task: Task, by_owner: bool) {
        self.lanes[child.0 as usize].push(task, by_owner);
        self.list(child);
    }

    /// Puts a task back at its position.
    pub(super) fn unpop(&self, task: Task, (child, place): From) {
        self.lanes[child.0 as usize].unpop(task, place);
        self.list(child);
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
            let (task, place) = lane.steal(eligible)?;
            Some((task, (victim, place)))
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
