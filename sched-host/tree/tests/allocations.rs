//! A tree that compares the ends of workers which serve other contexts too asks for no memory.
//!
//! A file of its own, with one test: it counts the allocations of the whole process.

use sched_core::*;
use sched_tree::{Claims, Ledger, NodeId, Part, Phase, Services, Tree, Unplaced, WorkerFacts};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The system's allocator, which counts.
struct Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Awake workers that execute nothing.
struct Idle(Arc<SharedSet>);

impl Services for Idle {
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn sleeping(&self) -> Arc<SharedSet> {
        Arc::clone(&self.0)
    }

    fn wake(&self, _worker: WorkerId) -> bool {
        false
    }

    fn busy_until(&self, _worker: WorkerId) -> Option<Time> {
        Some(Time::ZERO)
    }
}

/// Pushes each task, of a second, to the worker that is free first.
struct FreeFirst;

impl Component for FreeFirst {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        let mut best: Option<(Time, Child)> = None;
        node.ends_below(|child, end| best = best.into_iter().chain([(end, child)]).min());
        task.set_predicted(Some(Duration::from_secs(1)));
        match best {
            Some((_, child)) => node.push_to(child, task),
            None => Err(Refused::new(task, Refusal::NoWorker)),
        }
    }
}

/// The queue of a worker.
#[derive(Default)]
struct Queue(Mutex<VecDeque<Task>>);

impl Queue {
    fn note(node: Node<'_>, tasks: &VecDeque<Task>) {
        node.note_queued(Duration::from_secs(tasks.len() as u64));
    }
}

impl Component for Queue {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let mut tasks = self.0.lock();
        tasks.push_back(task);
        Self::note(node, &tasks);
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let mut tasks = self.0.lock();
        let task = tasks.pop_front();
        Self::note(node, &tasks);
        task
    }

    fn drain(&self) -> Vec<Task> {
        self.0.lock().drain(..).collect()
    }
}

const WORKERS: u32 = 4;

fn part(component: abi::ComponentObject, workers: WorkerSet, worker: Option<WorkerId>) -> Part {
    let children = if worker.is_some() { 0..0 } else { 1..WORKERS + 1 };
    Part {
        component: Unplaced::new(component, None),
        name: "component".to_owned(),
        plugin: "test".to_owned(),
        params: Params::default(),
        path: worker.map_or_else(|| "root".to_owned(), |worker| worker.to_string()),
        object: String::new(),
        children: children.map(|child| (NodeId(child), String::new())).collect(),
        workers_in_context: workers.clone(),
        workers,
        sharing: None,
        worker,
        claims: Claims { end_is_noted: worker.is_some(), ..Claims::default() },
        attended: false,
    }
}

fn tree(ledger: &Arc<Ledger>) -> Tree {
    let leaf = |worker| {
        let worker = WorkerId(worker);
        part(adapt(Queue::default()), [worker].into_iter().collect(), Some(worker))
    };
    let root = part(adapt(FreeFirst), WorkerSet::first(WORKERS), None);
    let parts = std::iter::once(root).chain((0..WORKERS).map(leaf)).collect();
    let idle = Arc::new(Idle(Arc::new(SharedSet::new(WORKERS as usize))));
    Tree::assemble(parts, &[WorkerFacts::CPU; WORKERS as usize], idle, Arc::clone(ledger), 0)
}

#[test]
fn a_push_above_workers_of_several_contexts_asks_for_no_memory() {
    let ledger = Arc::new(Ledger::new());
    let contexts = [tree(&ledger), tree(&ledger)];
    let slots = ledger.grow();
    for slot in slots {
        slot.head().archs.store(1 << Arch::CPU.number(), Relaxed);
    }
    let mut asked = Vec::new();
    // At first the queues grow.
    for _ in 0..3 {
        let before = ASKED.load(Relaxed);
        // What is queued for a worker in one context counts in the other: they share it evenly.
        for (slot, number) in slots.iter().zip(0..16) {
            contexts[number % 2].push(slot, None, None);
        }
        for worker in (0..WORKERS).map(WorkerId) {
            let pulled = contexts.each_ref().map(|tree| std::iter::from_fn(|| tree.pull(worker)).count());
            assert_eq!(pulled.iter().sum::<usize>(), 4, "{worker}: {pulled:?}");
        }
        asked.push(ASKED.load(Relaxed) - before);
        slots.iter().take(16).for_each(|slot| slot.set_phase(Phase::Waiting));
    }
    assert_eq!(asked[1..], [0, 0]);
}
