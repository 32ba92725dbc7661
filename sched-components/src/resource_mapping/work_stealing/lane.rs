//! The queues of a work-stealing component.

use super::victims::{self, Neighbourhoods, Victims};
use crate::queue::{Held, Padded, Place, TaskQueue, nanos};
use sched_core::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Where a task was taken from, for giving it back.
pub(super) type From = (Child, Place);

/// The queue of one child.
#[derive(Debug)]
pub(super) struct Lane {
    queue: Mutex<Listed>,
    /// Number of tasks in `queue`, written under its lock: to see that it is empty takes no lock.
    pub(super) len: AtomicUsize,
    /// Expected length of `queue` in nanoseconds, written under its lock.
    pub(super) expected: AtomicU64,
    /// Whom the child steals from: made when it does so for the first time.
    victims: OnceLock<Victims>,
}

#[derive(Debug)]
struct Listed {
    tasks: TaskQueue<Held>,
    /// It is listed as one that may hold tasks.
    listed: bool,
}

impl Lane {
    fn new() -> Lane {
        Lane {
            queue: Mutex::new(Listed { tasks: TaskQueue::new(), listed: false }),
            len: AtomicUsize::new(0),
            expected: AtomicU64::new(0),
            victims: OnceLock::new(),
        }
    }

    fn note(&self, queue: &TaskQueue<Held>) {
        self.len.store(queue.len(), Release);
        self.expected.store(queue.expected(), Relaxed);
    }

    /// Changes the queue, and has it listed afterwards.
    fn fill(&self, list: impl FnOnce(), change: impl FnOnce(&mut TaskQueue<Held>)) {
        let mut queue = self.queue.lock();
        change(&mut queue.tasks);
        self.note(&queue.tasks);
        if !queue.listed {
            queue.listed = true;
            list();
        }
    }

    /// For the owner: the last task of the highest priority.
    pub(super) fn pop(&self, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, Place)> {
        self.taken(|queue| queue.pop_newest(eligible))
    }

    /// For a thief: the first task of the highest priority.
    fn steal(&self, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, Place)> {
        self.taken(|queue| queue.pop(eligible))
    }

    fn is_empty(&self) -> bool {
        self.len.load(Acquire) == 0
    }

    fn taken(&self, take: impl FnOnce(&mut TaskQueue<Held>) -> Option<(Held, Place)>) -> Option<(Task, Place)> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.lock();
        let (held, place) = take(&mut queue.tasks)?;
        self.note(&queue.tasks);
        Some((held.task, place))
    }

    pub(super) fn drain(&self) -> Vec<Task> {
        let mut queue = self.queue.lock();
        let tasks = queue.tasks.drain();
        self.note(&queue.tasks);
        tasks.into_iter().map(|held| held.task).collect()
    }
}

/// A queue for each child, and a list of those that may hold tasks.
///
/// Who looks for something to steal goes by the list, so that it costs next to nothing to pass over any number of empty
/// queues. A queue comes onto the list when it is given its first task, and stays there when it becomes empty: while
/// each worker has work, nobody writes to the list, which all share. Thieves take empty queues off it, when they
/// come by more than [`PATIENCE`] of them. Both happen under the queue's lock, so one that is not listed is empty.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Box<[Padded<Lane>]>,
    /// Bit *n* of word *m* stands for lane 64·m + n.
    list: Box<[Padded<AtomicU64>]>,
    /// The child that each worker is below: the first, if there are several.
    homes: Box<[Option<Child>]>,
    neighbourhoods: Neighbourhoods,
    /// The child whose turn it is to get a task that no worker made ready.
    next: Padded<AtomicU32>,
}

/// How many empty queues a thief passes over before it takes them off the list. On a small machine, that is all of them.
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
            lanes: node.children().map(|_| Padded(Lane::new())).collect(),
            list: (0..node.children().len().div_ceil(64)).map(|_| Padded::default()).collect(),
            homes: homes.into(),
            neighbourhoods: Neighbourhoods::default(),
            next: Padded::default(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().map(|lane| &lane.0)
    }

    pub(super) fn lane(&self, child: Child) -> Option<&Lane> {
        self.lanes.get(child.0 as usize).map(|lane| &lane.0)
    }

    /// The child that `worker` is below.
    pub(super) fn home(&self, worker: WorkerId) -> Option<Child> {
        self.homes.get(worker.0 as usize).copied().flatten()
    }

    /// Every child once, beginning with the next in turn.
    pub(super) fn turn(&self) -> impl Iterator<Item = Child> + use<> {
        let count = self.lanes.len() as u32;
        let start = self.next.0.fetch_add(1, Relaxed).checked_rem(count).unwrap_or(0);
        (start..count).chain(0..start).map(Child)
    }

    /// Puts a task into the queue of a child.
    pub(super) fn push(&self, child: Child, task: Task) {
        let (priority, expected) = (task.priority(), task.predicted().map_or(0, nanos));
        let held = Held::new(task);
        self.fill(child, |queue| queue.push(held, priority, expected));
    }

    /// Puts a task back where it was.
    pub(super) fn unpop(&self, task: Task, (child, place): From) {
        let held = Held::new(task);
        self.fill(child, |queue| queue.unpop(held, place));
    }

    fn fill(&self, child: Child, change: impl FnOnce(&mut TaskQueue<Held>)) {
        let (word, bit) = victims::place(child);
        let list = || _ = self.list[word].0.fetch_or(bit, Release);
        self.lanes[child.0 as usize].0.fill(list, change);
    }

    /// A task from the queue of the nearest victim of `thief` that holds one which is eligible.
    pub(super) fn steal(
        &self,
        node: Node<'_>,
        thief: Child,
        eligible: &impl Fn(&Held) -> bool,
    ) -> Option<(Task, From)> {
        let victims = self.lane(thief)?.victims.get_or_init(|| self.neighbourhoods.victims(node, thief));
        let mut passed = 0;
        victims.find(
            |word| self.list[word].0.load(Acquire),
            |victim| {
                let lane = self.lane(victim)?;
                if lane.is_empty() {
                    passed += 1;
                    if passed > PATIENCE {
                        self.strike_off(victim);
                    }
                    return None;
                }
                let (task, place) = lane.steal(eligible)?;
                Some((task, (victim, place)))
            },
        )
    }

    /// Takes a queue off the list, if it is empty.
    fn strike_off(&self, child: Child) {
        let (word, bit) = victims::place(child);
        let mut queue = self.lanes[child.0 as usize].0.queue.lock();
        if queue.listed && queue.tasks.len() == 0 {
            queue.listed = false;
            self.list[word].0.fetch_and(!bit, Release);
        }
    }
}
