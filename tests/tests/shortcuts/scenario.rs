//! Random workers, codelets and their expectations.

use super::{CLASSES, CODELETS, MEMORIES, WORKERS};
use proptest::prelude::*;
use sched_core::abi::TaskHead;
use sched_core::*;
use sched_tests::fake_services::Expectations;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Workers and codelets with their expectations.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// Of each worker.
    pub(super) workers: Vec<(bool, u32, u32)>,
    /// Of each codelet in each class: microseconds; 0 stands for a model to be calibrated, and 1 for none.
    pub(super) lengths: Vec<Vec<u64>>,
    /// Of each codelet to each memory, in nanoseconds.
    pub(super) transfers: Option<Vec<Vec<u64>>>,
    /// Of each codelet in each class.
    pub(super) joules: Vec<Vec<Option<u32>>>,
    /// Members of each combined worker.
    pub(super) teams: Vec<Box<[WorkerId]>>,
}

pub(super) fn scenario() -> impl Strategy<Value = Scenario> {
    fn of_each<T: std::fmt::Debug>(
        columns: usize,
        value: impl Strategy<Value = T>,
    ) -> impl Strategy<Value = Vec<Vec<T>>> {
        prop::collection::vec(prop::collection::vec(value, columns), CODELETS)
    }
    // Few kinds, so that some workers are equal.
    let kinds = prop::collection::vec((any::<bool>(), 0..CLASSES as u32, 0..MEMORIES as u32), 1..4);
    let of_kinds = prop::collection::vec(any::<prop::sample::Index>(), WORKERS as usize);
    let workers = (kinds, of_kinds).prop_map(|(kinds, of)| of.iter().map(|index| *index.get(&kinds)).collect());
    let transfers = prop::option::of(of_each(MEMORIES, 0..50_000_u64));
    (workers, of_each(CLASSES, 0..12_u64), transfers, of_each(CLASSES, prop::option::of(1..9_u32))).prop_map(
        |(workers, lengths, transfers, joules)| Scenario { workers, lengths, transfers, joules, teams: Vec::new() },
    )
}

impl Scenario {
    pub(super) fn arch(&self, worker: usize) -> Arch {
        if self.workers[worker].0 { Arch::CUDA } else { Arch::CPU }
    }

    /// Those of the first member, for a combined worker.
    fn simple(&self, worker: WorkerId) -> usize {
        let number = worker.0 as usize;
        number.checked_sub(WORKERS as usize).map_or(number, |team| self.teams[team][0].0 as usize)
    }
}

impl Expectations for Scenario {
    fn length(&self, worker: WorkerId, task: &TaskHead) -> Estimate {
        match self.lengths[task.codelet.load(Relaxed) as usize][self.speed_class(worker) as usize] {
            0 => Estimate::Uncalibrated,
            1 => Estimate::NoModel,
            micros => Estimate::Known(Duration::from_micros(micros)),
        }
    }

    fn speed_class(&self, worker: WorkerId) -> u32 {
        self.workers[self.simple(worker)].1
    }

    fn energy(&self, worker: WorkerId, task: &TaskHead) -> Option<f64> {
        let of_class = &self.joules[task.codelet.load(Relaxed) as usize];
        of_class[self.speed_class(worker) as usize].map(f64::from)
    }

    fn transfers(&self) -> bool {
        self.transfers.is_some()
    }

    fn transfer(&self, memory_node: MemoryNode, task: &TaskHead) -> Duration {
        let Some(transfers) = &self.transfers else { return Duration::ZERO };
        Duration::from_nanos(transfers[task.codelet.load(Relaxed) as usize][memory_node.0 as usize])
    }
}
