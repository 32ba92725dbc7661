//! The queues of a work-stealing component, and who steals from whom.

use crate::queue::{Held, Place, TaskQueue, nanos};
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
    queue: Mutex<TaskQueue<Held>>,
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

    fn note(&self, queue: &TaskQueue<Held>) {
        self.len.store(queue.len(), Release);
        self.expected.store(queue.expected(), Relaxed);
    }

    pub(super) fn push(&self, task: Task) {
        let (priority, expected) = (task.priority(), task.predicted().map_or(0, nanos));
        let held = Held::new(task);
        let mut queue = self.queue.lock();
        queue.push(held, priority, expected);
        self.note(&queue);
    }

    /// For the owner: the last task of the highest priority.
    pub(super) fn pop(&self, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, Place)> {
        self.taken(|queue| queue.pop_newest(eligible))
    }

    /// For a thief: the first task of the highest priority.
    pub(super) fn steal(&self, eligible: impl FnMut(&Held) -> bool) -> Option<(Task, Place)> {
        self.taken(|queue| queue.pop(eligible))
    }

    fn taken(&self, take: impl FnOnce(&mut TaskQueue<Held>) -> Option<(Held, Place)>) -> Option<(Task, Place)> {
        if self.len.load(Acquire) == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let (held, place) = take(&mut queue)?;
        self.note(&queue);
        Some((held.task, place))
    }

    pub(super) fn unpop(&self, task: Task, place: Place) {
        let held = Held::new(task);
        let mut queue = self.queue.lock();
        queue.unpop(held, place);
        self.note(&queue);
    }

    pub(super) fn drain(&self) -> Vec<Task> {
        let mut queue = self.queue.lock();
        let tasks = queue.drain();
        self.note(&queue);
        tasks.into_iter().map(|held| held.task).collect()
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
        let start = self.next.0.fetch_add(1, Relaxed).checked_rem(count).unwrap_or(0);
        (start..count).chain(0..start).map(Child)
    }

    /// Whom `thief` steals from: the nearest first, by the distances of workers that the host tells.
    ///
    /// Of those that are equally near each thief begins with another one, so that thieves do not crowd at one victim. Under
    /// a host that tells no distances, those that share a memory node with the thief come first, and then neighbours:
    /// children stand in the order of the topology.
    pub(super) fn victims(&self, node: Node<'_>, thief: Child) -> &[Child] {
        let Some(lane) = self.lane(thief) else { return &[] };
        lane.victims.get_or_init(|| {
            let others: Vec<Child> = node.children().filter(|child| *child != thief).collect();
            let distances: Vec<Option<u32>> = others.iter().map(|child| distance(node, thief, *child)).collect();
            if distances.iter().all(Option::is_none) {
                return by_memory_node(node, thief, others).into();
            }
            // What has no place in the topology, as an accelerator may, is the farthest.
            let distances = distances.into_iter().map(|distance| distance.unwrap_or(u32::MAX));
            let mut victims: Vec<(u32, Child)> = distances.zip(others).collect();
            // Stable: equally distant children keep their order, so that a rotation gives each thief another first.
            victims.sort_by_key(|(distance, _)| *distance);
            for alike in victims.chunk_by_mut(|one, other| one.0 == other.0) {
                alike.rotate_left(thief.0 as usize % alike.len());
            }
            victims.into_iter().map(|(_, child)| child).collect()
        })
    }
}

/// How far the nearest workers of two children are apart, if the host tells.
fn distance(node: Node<'_>, one: Child, other: Child) -> Option<u32> {
    let (ones, others) = (node.child_workers(one), node.child_workers(other));
    let pairs = ones.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.filter_map(|(one, other)| node.worker_distance(one, other)).min()
}

/// Children that share a memory node with `thief` first, then the others, and each sort by how far they are on the ring of
/// children.
fn by_memory_node(node: Node<'_>, thief: Child, mut others: Vec<Child>) -> Vec<Child> {
    let memory_nodes = |child| -> Vec<MemoryNode> {
        node.child_workers(child).iter().filter_map(|worker| node.memory_node(worker)).collect()
    };
    let (near, count) = (memory_nodes(thief), others.len() as u32 + 1);
    others.sort_by_cached_key(|child| {
        let forward = (child.0 + count - thief.0) % count;
        let far = !memory_nodes(*child).iter().any(|memory_node| near.contains(memory_node));
        (far, forward.min(count - forward), forward)
    });
    others
}
