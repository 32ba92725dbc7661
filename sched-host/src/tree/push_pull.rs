//! A tree with nobody at work in it: what a push and a pull cost by themselves.

use super::{Ledger, Part, Phase, Services, Tree, WorkerFacts};
use sched_core::{Arch, ArchSet, LogLevel, Time, WorkerId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A tree whose single worker is whoever calls.
pub struct PushPull {
    tree: Tree,
    ledger: Arc<Ledger>,
}

/// Nobody sleeps, and time stands still.
struct Still(Box<[AtomicU64]>);

impl Services for Still {
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn sleeping(&self) -> &[AtomicU64] {
        &self.0
    }

    fn wake(&self, _worker: WorkerId) -> bool {
        false
    }

    fn log(&self, _node: &str, _level: LogLevel, _line: &str) {}
}

impl PushPull {
    /// The tree of these parts.
    pub(crate) fn new(parts: Vec<Part>, workers: &[WorkerFacts]) -> PushPull {
        let ledger = Arc::new(Ledger::new());
        let first = ledger.grow().start;
        ledger.slot(first).head().archs.store(ArchSet::EMPTY.with(Arch::CPU).bits(), Relaxed);
        let still = Arc::new(Still((0..workers.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect()));
        PushPull { tree: Tree::assemble(parts, workers, still, Arc::clone(&ledger), 0), ledger }
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
}
