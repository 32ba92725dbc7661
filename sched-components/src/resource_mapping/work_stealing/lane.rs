//! The queues of a work-stealing component, and who steals from whom.

use crate::queue::{Place, TaskQueue, nanos};
use sched_core::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Keeps what one worker writes off the cache lines of others: two lines, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

/// Where a task was taken from, for giving it back.
pub(super) type From = (Child, Place);

/// The queue of one child.
#[derive(Debug)]
pub(super) struct Lane {
    queue: Mutex<TaskQueue>,
    /// Number of tasks in `queue`, written under its lock: to see that it is empty takes no lock.
    pub(super) len: AtomicUsize,
    /// Expected length of `queue` in nanoseconds, written under its lock.
    pub(super) expected: AtomicU64,
    /// The other children, nearest first: made when the child steals for the first time.
    victims: OnceLock<Box<[Child]>>,
}

impl Lane {
    fn new() -> Lane {
        Lane {
            queue: Mutex::new(TaskQueue::new()),
            len: AtomicUsize::new(0),
            expected: AtomicU64::new(0),
            victims: OnceLock::new(),
        }
    }

    fn note(&self, queue: &TaskQueue) {
        self.len.store(queue.len(), Release);
        self.expected.store(queue.expected(), Relaxed);
    }

    pub(super) fn push(&self, task: Task) {
        let (priority, expected) = (task.priority(), task.predicted().map_or(0, nanos));
        let mut queue = self.queue.lock();
        queue.push(task, priority, expected);
        self.note(&queue);
    }

    /// For the owner: the last task of the highest priority.
    pub(super) fn pop(&self, eligible: impl FnMut(&Task) -> bool) -> Option<(Task, Place)> {
        self.taken(|queue| queue.pop_newest(eligible))
    }

    /// For a thief: the first task of the highest priority.
    pub(super) fn steal(&self, eligible: impl FnMut(&Task) -> bool) -> Option<(Task, Place)> {
        self.taken(|queue| queue.pop(eligible))
    }

    fn taken(&self, take: impl FnOnce(&mut TaskQueue) -> Option<(Task, Place)>) -> Option<(Task, Place)> {
        if self.len.load(Acquire) == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let taken = take(&mut queue)?;
        self.note(&queue);
        Some(taken)
    }

    pub(super) fn unpop(&self, task: Task, place: Place) {
        let mut queue = self.queue.lock();
        queue.unpop(task, place);
        self.note(&queue);
    }

    pub(super) fn drain(&self) -> Vec<Task> {
        let mut queue = self.queue.lock();
        let tasks = queue.drain();
        self.note(&queue);
        tasks
    }
}

/// A queue for each child.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Box<[Padded<Lane>]>,
    /// The child that each worker is below: the first, if there are several.
    homes: Box<[Option<Child>]>,
    /// The child whose turn it is to get a task that no worker made ready.
    next: Padded<AtomicU32>,
}

impl Lanes {
    pub(super) fn new(node: Node<'_>) -> Lanes {
        let workers = node.workers().iter().last().map_or(0, |last| last.0 + 1);
        let home = |worker| node.children().find(|child| node.child_has_worker(*child, WorkerId(worker)));
        Lanes {
            lanes: node.children().map(|_| Padded(Lane::new())).collect(),
            homes: (0..workers).map(home).collect(),
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
        let start = self.next.0.fetch_add(1, Relaxed);
        (0..count).map(move |turn| Child((start % count + turn) % count))
    }

    /// Whom `thief` steals from: children that share a memory node with it first, then the others, and each sort by how far
    /// they are on the ring of children.
    ///
    /// Children stand in the order of the topology, so neighbours on the ring share the most. A host that told distances
    /// (an extension of the interface, found by name) would be asked here.
    pub(super) fn victims(&self, node: Node<'_>, thief: Child) -> &[Child] {
        let Some(lane) = self.lane(thief) else { return &[] };
        lane.victims.get_or_init(|| {
            let memory_nodes = |child| -> Vec<MemoryNode> {
                node.child_workers(child).iter().filter_map(|worker| node.memory_node(worker)).collect()
            };
            let (near, count) = (memory_nodes(thief), self.lanes.len() as u32);
            let distance = |child: &Child| {
                let forward = (child.0 + count - thief.0) % count;
                let far = !memory_nodes(*child).iter().any(|memory_node| near.contains(memory_node));
                (far, forward.min(count - forward), forward)
            };
            let mut victims: Vec<Child> = node.children().filter(|child| *child != thief).collect();
            victims.sort_by_cached_key(distance);
            victims.into()
        })
    }
}
