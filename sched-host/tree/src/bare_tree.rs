//! A tree with nobody at work in it: what a push and a pull cost by themselves.

use super::{Ledger, Part, Phase, Services, Slot, Tree, WorkerFacts};
use sched_core::abi::TaskHead;
use sched_core::{Arch, ArchSet, Estimate, LogLevel, SharedSet, Time, WorkerId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A tree whose workers are whoever calls.
pub struct BareTree {
    tree: Tree,
    ledger: Arc<Ledger>,
    idle: Arc<Idle>,
    workers: u32,
}

/// Nobody sleeps, and nobody executes anything.
struct Idle {
    began: Instant,
    sleeping: Arc<SharedSet>,
    combined: Box<[Box<[WorkerId]>]>,
    /// How long every task is expected to take everywhere, as estimates are passed to components.
    expected: AtomicU64,
}

impl Services for Idle {
    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn expected_length(&self, _worker: WorkerId, _task: &TaskHead, _implementation: Option<u32>) -> Estimate {
        Estimate::from_wire(self.expected.load(Relaxed))
    }

    fn speed_class(&self, _worker: WorkerId) -> u32 {
        0
    }

    fn sleeping(&self) -> Arc<SharedSet> {
        Arc::clone(&self.sleeping)
    }

    fn combined(&self) -> &[Box<[WorkerId]>] {
        &self.combined
    }

    fn busy_until(&self, _worker: WorkerId) -> Option<Time> {
        Some(Time::ZERO)
    }

    fn wake(&self, _worker: WorkerId) -> bool {
        false
    }

    fn log(&self, _node: &str, _level: LogLevel, _line: &str) {}
}

impl BareTree {
    /// The tree of these parts.
    pub fn new(parts: Vec<Part>, workers: &[WorkerFacts], combined: Vec<Box<[WorkerId]>>) -> BareTree {
        let ledger = Arc::new(Ledger::new());
        for index in ledger.grow() {
            ledger.slot(index).head().archs.store(ArchSet::EMPTY.with(Arch::CPU).bits(), Relaxed);
        }
        let idle = Arc::new(Idle {
            began: Instant::now(),
            sleeping: Arc::new(SharedSet::new(workers.len())),
            combined: combined.into(),
            expected: AtomicU64::new(Estimate::NoModel.to_wire()),
        });
        let services: Arc<dyn Services> = Arc::clone(&idle) as _;
        let tree = Tree::assemble(parts, workers, services, Arc::clone(&ledger), 0);
        BareTree { tree, ledger, idle, workers: workers.len() as u32 }
    }

    /// From now on every task is expected to take so long on every worker. Before, nobody knows.
    pub fn expect(&self, length: Duration) {
        self.idle.expected.store(Estimate::Known(length).to_wire(), Relaxed);
    }

    /// Pushes a task into the root and pulls it for worker 0, so many times.
    ///
    /// # Panics
    /// When the tree does not give the task back: then the figure would be worthless.
    pub fn pairs(&self, pairs: u32) {
        let slot = self.ledger.slot(0);
        for _ in 0..pairs {
            self.tree.push(slot, Some(WorkerId(0)), None);
            let pulled = self.tree.pull(WorkerId(0)).expect("the tree gives back what it was given");
            pulled.set_phase(Phase::Waiting);
        }
    }

    /// Pushes some tasks and pulls what the tree gives, for each worker in turn; what it keeps is drained. Whether the tree
    /// gives tasks back does not matter. There are at most as many tasks as a new ledger has slots.
    pub(crate) fn attempt(&self, tasks: u32) {
        let slots = || self.ledger.slots().take(tasks as usize);
        for slot in slots() {
            self.tree.push(slot, None, None);
            if slot.index() % 2 == 0 {
                self.tree
                    .pull(WorkerId(slot.index() % self.workers))
                    .into_iter()
                    .for_each(|slot| slot.set_phase(Phase::Waiting));
            }
        }
        for worker in (0..tasks * self.workers).map(|turn| WorkerId(turn % self.workers)) {
            self.tree.pull(worker).into_iter().for_each(|slot| slot.set_phase(Phase::Waiting));
        }
        _ = self.tree.survey();
    }

    /// How long it takes to push so many tasks into the root, one after the other, each as the application submits it.
    /// They are pulled out again afterwards, which does not count. There are at most as many tasks as a new ledger has
    /// slots.
    ///
    /// # Panics
    /// When the tree does not give every task back: then the figure would be worthless.
    #[must_use]
    pub fn pushes(&self, tasks: u32) -> Duration {
        let slots: Vec<&Slot> = self.ledger.slots().take(tasks as usize).collect();
        let began = Instant::now();
        for slot in &slots {
            self.tree.push(slot, None, None);
        }
        let took = began.elapsed();
        let of_worker = |worker| std::iter::from_fn(move || self.tree.pull(worker));
        let pulled = (0..self.workers).map(WorkerId).flat_map(of_worker);
        let given_back = pulled.map(|slot| slot.set_phase(Phase::Waiting)).count();
        assert_eq!(given_back, slots.len(), "the tree gives back what it was given");
        took
    }
}
