//! Replicas of data on memory nodes, and how they are kept coherent.
//!
//! Replicated data has a place on each memory node, which is filled when a task there first needs it. A [`Coherence`]
//! tells which places hold the value. The protocol:
//!
//! 1. Before a task runs on a worker of node *n*, its inputs are *brought* to *n* by the worker itself, so that memory
//!    touched first belongs to its node. A task that writes without reading needs any value in place, and takes the
//!    present one; without one, a copy is made too.
//! 2. During the kernel, the places on *n* are locked: shared for reading, exclusively for writing. A thread that has
//!    locked a place for writing notes that at once: from then on only that place is valid, and its version is new.
//! 3. A queue above the worker may request that data is brought to where its task will run (*prefetching*), by a thread
//!    that never waits: if a place is locked, it gives up.
//!
//! No value is read while it is written, and no stale value is read:
//!
//! - A task reads and writes in its turn (see [`data`](crate::data)): while it brings data and runs, no other task
//!   writes it, so the source of the copy stays valid, and so does the place that it reads.
//! - A prefetch may be late: its task has run long ago, and another one writes. It copies under the lock of its source,
//!   which excludes a writer *there*; a writer on *another* place has changed the version by the time the copy arrives,
//!   which is then invalid. The prefetch checks the version under the lock, and does not start a stale copy.
//! - Two threads that bring data to the same place are serialized by a lock of that place that kernels do not take; the
//!   second one finds the work done.
//!
//! There is no deadlock: a kernel waits for its places only while a prefetch copies from or to one of them, a task that
//! brings data waits for the place that it fills and then for a valid one, and a prefetch never waits.

use crate::memory::Memories;
use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use sched_core::{MemoryNode, WorkerId};
use sched_graph::DataId;
use sched_memory::{Coherence, Reason};
use sched_trace::Transfer;
use std::sync::Arc;

/// Replicas of a value, with its type erased.
pub(crate) trait Copies: Send + Sync {
    /// Location of the value.
    fn coherence(&self) -> Coherence;

    /// Copies the value to a memory node, unless it is there. Unwinds if the copy does; the data is then unchanged.
    fn bring(&self, node: MemoryNode, errand: Errand);

    /// Gives back the memory of all replicas but a valid one. The caller has a writer's turn.
    fn let_go(&self);
}

/// Why data is brought somewhere.
#[derive(Clone, Copy)]
pub(crate) enum Errand {
    /// For a task whose turn it is, which this worker is about to run. The data is there afterwards.
    Demand(WorkerId),
    /// For the program, in a reader's turn, by a thread of the node. The data is there afterwards.
    Ahead,
    /// For a task that will run there, if the data still has this version. Gives up rather than wait.
    Prefetch(u32),
}

/// The place of a replica on one memory node.
struct Place<T> {
    value: RwLock<Option<T>>,
    /// Held by the thread that fills the place. Kernels do not take it, so a running kernel does not keep the next
    /// thread from seeing that the place is filled.
    filling: Mutex<()>,
}

/// Replicas of one piece of data.
pub(crate) struct Replicas<T> {
    /// Id of the data.
    data: u64,
    bytes: u64,
    state: Mutex<Coherence>,
    /// One for each memory node.
    places: Box<[Place<T>]>,
    memories: Arc<Memories>,
}

const IN_PLACE: &str = "what a task uses is brought to its memory node before";

impl<T> Replicas<T> {
    /// A value that is on `node`.
    pub(crate) fn new(value: T, node: MemoryNode, data: u64, bytes: u64, memories: &Arc<Memories>) -> Replicas<T> {
        let mut value = Some(value);
        let place = |at: usize| {
            let value = if at == node.index() { value.take() } else { None };
            Place { value: RwLock::new(value), filling: Mutex::default() }
        };
        let places = (0..memories.nodes()).map(place).collect();
        memories.note_allocated(node, bytes);
        Replicas { data, bytes, state: Mutex::new(Coherence::at(node)), places, memories: Arc::clone(memories) }
    }

    /// The node of a worker.
    #[cold]
    pub(crate) fn node_of(&self, worker: WorkerId) -> MemoryNode {
        self.memories.node_of(worker)
    }

    /// A node that holds the value.
    pub(crate) fn some_valid(&self) -> MemoryNode {
        MemoryNode(self.state.lock().valid().trailing_zeros())
    }

    /// The value on `node`, for reading: it is valid there, and it is the caller's turn.
    #[cold]
    pub(crate) fn read(&self, node: MemoryNode) -> MappedRwLockReadGuard<'_, T> {
        // Recursive, since a task may name the same data twice while a prefetch waits for the write lock.
        let value = self.places[node.index()].value.read_recursive();
        debug_assert!(self.state.lock().is_valid(node), "{IN_PLACE}");
        RwLockReadGuard::map(value, |value| value.as_ref().expect(IN_PLACE))
    }

    /// The value on `node`, for writing: there is one, and it is the caller's turn.
    #[cold]
    pub(crate) fn write(&self, node: MemoryNode) -> MappedRwLockWriteGuard<'_, T> {
        let value = self.places[node.index()].value.write();
        // Under the lock, so that no thread that sees the new version sees the old value.
        self.state.lock().write(node);
        RwLockWriteGuard::map(value, |value| value.as_mut().expect(IN_PLACE))
    }

    /// Takes the value and drops the other replicas. The caller has a writer's turn, the last one.
    pub(crate) fn take(&self) -> T {
        let node = self.keep_one();
        let mut value = self.places[node.index()].value.write();
        self.free(node);
        value.take().expect(IN_PLACE)
    }

    /// Gives back the memory of all replicas but a valid one, whose node is returned. The caller has a writer's turn.
    fn keep_one(&self) -> MemoryNode {
        let kept = self.some_valid();
        // A prefetch in progress is invalidated.
        self.state.lock().write(kept);
        for (node, place) in self.places.iter().enumerate().filter(|(node, _)| *node != kept.index()) {
            let mut value = place.value.write();
            if value.is_some() {
                self.free(MemoryNode(node as u32));
            }
            let gone = value.take();
            drop(value);
            // Its drop is the application's code: outside the lock.
            drop(gone);
        }
        kept
    }

    /// Notes that the memory on `node` is given back. The caller has locked the place.
    fn free(&self, node: MemoryNode) {
        self.state.lock().free(node);
        self.memories.note_freed(node, self.bytes);
    }
}

impl<T: Clone> Replicas<T> {
    /// Fills the locked place `target` on `node`; `state` is the coherence at that time.
    fn copy(&self, state: Coherence, node: MemoryNode, target: &mut Option<T>, errand: Errand) -> Option<()> {
        let from = self.memories.nearest(state.valid(), node, self.bytes)?;
        let place = &self.places[from.index()].value;
        let (source, why, by) = match errand {
            Errand::Demand(worker) => (place.read_recursive(), Reason::Demand, Some(worker)),
            Errand::Ahead => (place.read_recursive(), Reason::Prefetch, None),
            Errand::Prefetch(_) => (place.try_read_recursive()?, Reason::Prefetch, None),
        };
        if self.state.lock().version() != state.version() {
            return None;
        }
        let value = source.as_ref()?;
        let transfer = Transfer { data: DataId(self.data as u32), from, to: node, bytes: self.bytes, why };
        let underway = self.memories.note_transfer(transfer, by);
        let is_new = target.is_none();
        match target {
            Some(there) => there.clone_from(value),
            None => *target = Some(value.clone()),
        }
        underway.arrived();
        let mut now = self.state.lock();
        if now.arrive(node, state.version()) {
            if now.allocate(node) {
                self.memories.note_allocated(node, self.bytes);
            }
        } else if is_new {
            // A write came first, or the memory was to be given back. An older value stays: a task that writes without
            // reading may rely on it.
            drop(now);
            *target = None;
        }
        Some(())
    }
}

impl<T: Clone + Send + Sync + 'static> Copies for Replicas<T> {
    fn coherence(&self) -> Coherence {
        *self.state.lock()
    }

    fn bring(&self, node: MemoryNode, errand: Errand) {
        let is_done = |state: Coherence| match errand {
            Errand::Demand(_) | Errand::Ahead => state.is_valid(node),
            Errand::Prefetch(version) => state.is_valid(node) || state.version() != version,
        };
        if is_done(self.coherence()) {
            return;
        }
        let place = &self.places[node.index()];
        let filling = match errand {
            Errand::Demand(_) | Errand::Ahead => Some(place.filling.lock()),
            Errand::Prefetch(_) => place.filling.try_lock(),
        };
        // Another thread may have brought it meanwhile, and a kernel may be reading it.
        if filling.is_none() || is_done(self.coherence()) {
            return;
        }
        let target = match errand {
            Errand::Demand(_) | Errand::Ahead => Some(place.value.write()),
            Errand::Prefetch(_) => place.value.try_write(),
        };
        let Some(mut target) = target else { return };
        let state = self.coherence();
        if !is_done(state) {
            // A prefetch that fails is harmless.
            let _ = self.copy(state, node, &mut target, errand);
        }
    }

    fn let_go(&self) {
        self.keep_one();
    }
}

impl<T> Drop for Replicas<T> {
    fn drop(&mut self) {
        let state = *self.state.get_mut();
        let there = (0..self.places.len() as u32).map(MemoryNode).filter(|node| state.is_allocated(*node));
        there.for_each(|node| self.memories.note_freed(node, self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_model::{Bus, NodeMatrix};
    use sched_tree::WorkerFacts;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;
    use std::time::Instant;

    const NODES: u32 = 3;

    fn memories() -> Arc<Memories> {
        let worker = |node| WorkerFacts { memory_node: MemoryNode(node), ..WorkerFacts::CPU };
        let workers: Vec<WorkerFacts> = (0..NODES).map(worker).collect();
        let all = || NodeMatrix::new(NODES as usize, vec![1.0; (NODES * NODES) as usize]);
        let bus = Bus { bandwidth: all(), latency: all(), ..Bus::default() };
        Arc::new(Memories::new(&workers, Box::default(), bus, None, Instant::now()))
    }

    /// Numbers that are copied in two halves, yielding to other threads in between.
    struct Halves([u64; 16]);

    impl Clone for Halves {
        fn clone(&self) -> Halves {
            let mut copy = Halves([0; 16]);
            copy.clone_from(self);
            copy
        }

        fn clone_from(&mut self, source: &Halves) {
            self.0[..8].copy_from_slice(&source.0[..8]);
            thread::yield_now();
            self.0[8..].copy_from_slice(&source.0[8..]);
        }
    }

    /// Stops the other threads, also when the test fails.
    struct Over<'a>(&'a AtomicBool);

    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    /// Tasks run one after the other, while other threads prefetch at any time.
    #[test]
    fn no_prefetch_disturbs_a_task_or_brings_what_is_old() {
        let memories = memories();
        let replicas = Replicas::new(Halves([0; 16]), MemoryNode(0), 1, 128, &memories);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for node in (0..NODES).map(MemoryNode) {
                let (replicas, over) = (&replicas, &over);
                scope.spawn(move || {
                    while !over.load(Relaxed) {
                        replicas.bring(node, Errand::Prefetch(replicas.coherence().version()));
                    }
                });
            }
            let _ends = Over(&over);
            let mut written = 0;
            let mut random = 1u32;
            for _ in 0..4000 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (node, what) = (MemoryNode((random >> 16) % NODES), (random >> 24) % 8);
                // As `Memories::bring` does it.
                if what > 1 || !replicas.coherence().is_allocated(node) {
                    replicas.bring(node, Errand::Demand(WorkerId(node.0)));
                }
                match what {
                    0..=3 => {
                        written += 1;
                        replicas.write(node).0.iter_mut().for_each(|value| *value = written);
                    }
                    4 => {
                        replicas.let_go();
                    }
                    _ => assert!(replicas.read(node).0.iter().all(|value| *value == written)),
                }
            }
            assert_eq!(replicas.read(replicas.some_valid()).0[0], written);
        });
        let resident = || memories.stats().iter().map(|node| node.replica_bytes).collect::<Vec<u64>>();
        replicas.let_go();
        assert_eq!(resident().iter().sum::<u64>(), 128, "{:?}", resident());
        drop(replicas);
        assert_eq!(resident(), [0; NODES as usize]);
    }
}
