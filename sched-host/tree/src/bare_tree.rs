//! A tree without running workers, to measure the cost of a push and a pull.

use super::services::LogLine;
use super::{Ledger, Part, Phase, Services, Slot, SlotId, Tree, WorkerFacts};
use sched_core::abi::TaskHead;
use sched_core::{Arch, ArchSet, Estimate, SharedSet, Time, WorkerId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A tree did not give back what was pushed into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", not_given_text(*.pushed, *.given))]
pub struct NotGivenBack {
    /// Number of tasks that were pushed.
    pub pushed: u32,
    /// Number of tasks that it gave.
    pub given: u32,
}

fn not_given_text(pushed: u32, given: u32) -> String {
    match pushed {
        1 => "the tree did not give back the task that was pushed into it".to_owned(),
        _ => format!("the tree gave back {given} of the {pushed} tasks that were pushed into it"),
    }
}

/// A tree in which the caller acts as every worker.
pub struct BareTree {
    tree: Tree,
    ledger: Arc<Ledger>,
    idle: Arc<Idle>,
    workers: u32,
}

/// A back end whose workers neither sleep nor execute.
struct Idle {
    began: Instant,
    sleeping: Arc<SharedSet>,
    combined: Box<[Box<[WorkerId]>]>,
    /// Expected length of every task on every worker, encoded as for components.
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

    fn log(&self, _line: &LogLine<'_>) {}
}

impl BareTree {
    /// Assembles a tree of these parts.
    pub fn new(parts: Vec<Part>, workers: &[WorkerFacts], combined: Vec<Box<[WorkerId]>>) -> BareTree {
        let ledger = Arc::new(Ledger::new());
        for slot in ledger.grow() {
            slot.head().archs.store(ArchSet::EMPTY.with(Arch::CPU).bits(), Relaxed);
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

    /// Sets the expected length of every task on every worker; unknown before.
    pub fn expect(&self, length: Duration) {
        self.idle.expected.store(Estimate::Known(length).to_wire(), Relaxed);
    }

    /// Pushes a task into the root and pulls it for worker 0, `pairs` times.
    ///
    /// # Errors
    /// If the tree does not return the task, so that the measurement would be invalid.
    pub fn pairs(&self, pairs: u32) -> Result<(), NotGivenBack> {
        let slot = self.ledger.slot(SlotId(0));
        for _ in 0..pairs {
            self.tree.push(slot, Some(WorkerId(0)), None);
            let pulled = self.tree.pull(WorkerId(0)).ok_or(NotGivenBack { pushed: 1, given: 0 })?;
            pulled.set_phase(Phase::Waiting);
        }
        Ok(())
    }

    /// Pushes tasks and pulls what the tree gives, for each worker in turn, whether the tree gives tasks back or not.
    /// Their number is limited to the slots of a new ledger.
    pub(crate) fn attempt(&self, tasks: u32) {
        let pull = |worker: u32| {
            if let Some(slot) = self.tree.pull(WorkerId(worker % self.workers)) {
                slot.set_phase(Phase::Waiting);
            }
        };
        for slot in self.ledger.slots().take(tasks as usize) {
            if !matches!(slot.phase(), Phase::InTree(_) | Phase::Fallback) {
                self.tree.push(slot, None, None);
            }
            if slot.id().0 % 2 == 0 {
                pull(slot.id().0);
            }
        }
        (0..tasks * self.workers).for_each(pull);
        _ = self.tree.survey();
    }

    /// Drains every component, and drops it.
    pub(crate) fn take_down(&self) {
        _ = self.tree.swap(Vec::new(), &|| ());
    }

    /// Time to push `tasks` tasks into the root, one after the other, as an application submits them. The time to pull
    /// them out again is not counted. Their number is limited to the slots of a new ledger.
    ///
    /// # Errors
    /// If the tree does not return every task, so that the measurement would be invalid.
    pub fn pushes(&self, tasks: u32) -> Result<Duration, NotGivenBack> {
        let slots: Vec<&Slot> = self.ledger.slots().take(tasks as usize).collect();
        let began = Instant::now();
        for slot in &slots {
            self.tree.push(slot, None, None);
        }
        let took = began.elapsed();
        let of_worker = |worker| std::iter::from_fn(move || self.tree.pull(worker));
        let pulled = (0..self.workers).map(WorkerId).flat_map(of_worker);
        let given_back = pulled.map(|slot| slot.set_phase(Phase::Waiting)).count();
        let [pushed, given] = [slots.len(), given_back].map(|count| count as u32);
        if pushed == given { Ok(took) } else { Err(NotGivenBack { pushed, given }) }
    }
}
