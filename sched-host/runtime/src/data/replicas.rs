//! Replicas of data on memory nodes, and how they are kept coherent.
//!
//! Data that may be copied has a place on each memory node, which is filled when a task there first needs it. Which places hold
//! the value is a [`Coherence`]. The protocol:
//!
//! 1. Before a task runs on a worker of node *n*, what it reads is *brought* to *n*: by the worker itself, so that memory which
//!    is touched first is its node's. A task that writes without reading needs any value in place, and takes what is there; where
//!    nothing is, it is a copy too.
//! 2. For the time of the kernel, the places on *n* are locked: shared for reading, alone for writing. Who has locked a place for
//!    writing says so at once: from then on only that place is valid, and its version is another.
//! 3. A queue below may have data brought to where its task will run (*prefetching*), by a thread that never waits: where a place
//!    is locked otherwise, it gives up.
//!
//! No value is read while it is written, and none that is out of date:
//!
//! - A task reads and writes in its turn (see [`data`](crate::data)): while it brings data and runs, no other task writes it, so
//!   that the place that it copies from stays valid, and so does the one that it reads.
//! - A prefetch may be late, when the task has long run and another one writes. It copies under the lock of the place that it reads,
//!   which a writer *there* does not have meanwhile; a writer on *another* place has changed the version by the time the copy
//!   arrives, which is then not valid. It looks at the version when it has the lock: if it has changed, the copy is not begun.
//! - Two that bring to the same place come one after the other, by a lock of that place that kernels do not take; the second
//!   finds it done.
//!
//! Nobody waits in a circle: a kernel waits for its places only while a prefetch copies from or to one of them, a task that brings
//! waits for the place that it fills and then for one that is valid, and a prefetch waits for nothing.

use crate::memory::Memories;
use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use sched_core::{MemoryNode, WorkerId};
use sched_graph::DataId;
use sched_memory::{Coherence, Reason};
use sched_trace::Transfer;
use std::sync::Arc;

/// Replicas of a value of any type.
pub(crate) trait Copies: Send + Sync {
    /// Where the value is now.
    fn coherence(&self) -> Coherence;

    /// Copies the value to a memory node, unless it is there. Unwinds when the copying does, and the data is as before then.
    fn bring(&self, node: MemoryNode, errand: Errand);

    /// Gives back the memory of all replicas but one that is valid. The caller has the turn of one who writes.
    fn let_go(&self);
}

/// Why data is brought somewhere.
#[derive(Clone, Copy)]
pub(crate) enum Errand {
    /// For a task whose turn it is, which this worker is about to run. It is there afterwards.
    Demand(WorkerId),
    /// For a task that will be run there, and that the data has waited for since this version. Where it would have to wait, it
    /// gives up.
    Prefetch(u32),
}

/// The place of a replica on one memory node.
struct Place<T> {
    value: RwLock<Option<T>>,
    /// Who fills the place has this. Kernels do not take it, so that none of them keeps the next from seeing that it is done.
    filling: Mutex<()>,
}

/// The replicas of one piece of data.
pub(crate) struct Replicas<T> {
    /// The number of the data.
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
        Replicas { data, bytes, state: Mutex::new(Coherence::at(node.0)), places, memories: Arc::clone(memories) }
    }

    /// The node of a worker.
    #[cold]
    pub(crate) fn node_of(&self, worker: WorkerId) -> MemoryNode {
        self.memories.node_of(worker)
    }

    /// A node where the value is.
    pub(crate) fn some_valid(&self) -> MemoryNode {
        MemoryNode(self.state.lock().valid().trailing_zeros())
    }

    /// The value on `node`, to read: it is valid there, and it is the caller's turn.
    #[cold]
    pub(crate) fn read(&self, node: MemoryNode) -> MappedRwLockReadGuard<'_, T> {
        // Recursive, since a task may name the same data twice, while a prefetch waits to see that there is nothing to do.
        let value = self.places[node.index()].value.read_recursive();
        debug_assert!(self.state.lock().is_valid(node.0), "{IN_PLACE}");
        RwLockReadGuard::map(value, |value| value.as_ref().expect(IN_PLACE))
    }

    /// The value on `node`, to change: there is one, and it is the caller's turn.
    #[cold]
    pub(crate) fn write(&self, node: MemoryNode) -> MappedRwLockWriteGuard<'_, T> {
        let value = self.places[node.index()].value.write();
        // Under the lock, so that nobody who sees the new version sees the old value.
        self.state.lock().write(node.0);
        RwLockWriteGuard::map(value, |value| value.as_mut().expect(IN_PLACE))
    }

    /// Takes the value away; the other replicas go. The caller has the turn of one who writes, and nobody comes after.
    pub(crate) fn take(&self) -> T {
        let node = self.keep_one();
        let mut value = self.places[node.index()].value.write();
        self.free(node);
        value.take().expect(IN_PLACE)
    }

    /// Gives back the memory of all replicas but one that is valid, which stays on the node that is returned. The caller has the
    /// turn of one who writes.
    fn keep_one(&self) -> MemoryNode {
        let kept = self.some_valid();
        // A prefetch that is still on its way does not arrive.
        self.state.lock().write(kept.0);
        for (node, place) in self.places.iter().enumerate().filter(|(node, _)| *node != kept.index()) {
            let mut value = place.value.write();
            if value.is_some() {
                self.free(MemoryNode(node as u32));
            }
            let gone = value.take();
            drop(value);
            // Its drop is the application's code.
            drop(gone);
        }
        kept
    }

    /// The memory on `node` is given back. The caller has locked the place.
    fn free(&self, node: MemoryNode) {
        self.state.lock().free(node.0);
        self.memories.note_freed(node, self.bytes);
    }
}

impl<T: Clone> Replicas<T> {
    /// Fills the place on `node`, which `target` has locked, and `state` says how things were then.
    fn copy(&self, state: Coherence, node: MemoryNode, target: &mut Option<T>, errand: Errand) -> Option<()> {
        let from = self.memories.nearest(state.valid(), node, self.bytes)?;
        let place = &self.places[from.index()].value;
        let (source, why, by) = match errand {
            Errand::Demand(worker) => (place.read_recursive(), Reason::Demand, Some(worker)),
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
        if now.arrive(node.0, state.version()) {
            if now.allocate(node.0) {
                self.memories.note_allocated(node, self.bytes);
            }
        } else if is_new {
            // A write has overtaken it, or its memory was to go. What was there before stays: somebody may count on it who
            // writes without reading.
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
            Errand::Demand(_) => state.is_valid(node.0),
            Errand::Prefetch(version) => state.is_valid(node.0) || state.version() != version,
        };
        if is_done(self.coherence()) {
            return;
        }
        let place = &self.places[node.index()];
        let filling = match errand {
            Errand::Demand(_) => Some(place.filling.lock()),
            Errand::Prefetch(_) => place.filling.try_lock(),
        };
        // Somebody else may have brought it meanwhile, and a kernel may be reading it.
        if filling.is_none() || is_done(self.coherence()) {
            return;
        }
        let target = match errand {
            Errand::Demand(_) => Some(place.value.write()),
            Errand::Prefetch(_) => place.value.try_write(),
        };
        let Some(mut target) = target else { return };
        let state = self.coherence();
        if !is_done(state) {
            // A prefetch that comes to nothing is no loss.
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
        let there = (0..self.places.len() as u32).filter(|node| state.is_allocated(*node));
        there.for_each(|node| self.memories.note_freed(MemoryNode(node), self.bytes));
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
        Arc::new(Memories::new(&workers, bus, None, Instant::now()))
    }

    /// Numbers that are copied in two halves, with time for others between them.
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

    /// Lets the others go when the test fails, too.
    struct Over<'a>(&'a AtomicBool);

    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    /// Tasks that come one after the other, while others prefetch whatever they can, however late.
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
                if what > 1 || !replicas.coherence().is_allocated(node.0) {
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
