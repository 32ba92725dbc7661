//! What the simulation tells of tasks that are submitted, and how far each has come.

use super::backend::SimBackend;
use super::lengths::NEVER;
use sched_core::{DataAccess, Estimate, MemoryNode, Stage, WorkerId};
use sched_graph::TaskId;
use sched_tree::{Lookahead, Services};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// How far each task has come. Tasks are numbered from 0 here; their sequences begin with 1.
pub(super) struct Progress {
    stages: Box<[AtomicU8]>,
    submitted: AtomicU32,
    /// All before it have ended.
    first: AtomicU32,
}

impl Progress {
    pub(super) fn new(tasks: usize) -> Progress {
        let stages = (0..tasks).map(|_| AtomicU8::new(Stage::Waiting as u8)).collect();
        Progress { stages, submitted: AtomicU32::new(0), first: AtomicU32::new(0) }
    }

    /// The application has submitted the first so many.
    pub(super) fn submitted(&self, tasks: u32) {
        self.submitted.store(tasks, Relaxed);
    }

    pub(super) fn reach(&self, task: u32, stage: Stage) {
        self.stages[task as usize].store(stage as u8, Relaxed);
        let mut first = self.first.load(Relaxed);
        while self.stages.get(first as usize).is_some_and(|stage| stage.load(Relaxed) == Stage::Ended as u8) {
            first += 1;
        }
        self.first.store(first, Relaxed);
    }

    fn stage(&self, task: u32) -> Stage {
        match self.stages[task as usize].load(Relaxed) {
            0 => Stage::Waiting,
            1 => Stage::Ready,
            2 => Stage::Taken,
            _ => Stage::Ended,
        }
    }
}

impl SimBackend {
    /// A submitted task, by its sequence.
    fn submitted_task(&self, sequence: u64) -> Option<u32> {
        let task = u32::try_from(sequence.checked_sub(1)?).ok()?;
        (task < self.progress.submitted.load(Relaxed)).then_some(task)
    }

    /// Those of the tasks that wait for `task` which are submitted; they are in this order.
    fn waiting_for(&self, task: u32) -> &[TaskId] {
        let all = self.dependencies.successors(TaskId(task));
        let submitted = self.progress.submitted.load(Relaxed);
        &all[..all.partition_point(|successor| successor.0 < submitted)]
    }
}

impl Lookahead for SimBackend {
    fn range(&self) -> Range<u64> {
        let (first, submitted) = (self.progress.first.load(Relaxed), self.progress.submitted.load(Relaxed));
        u64::from(first) + 1..u64::from(submitted) + 1
    }

    fn task(&self, task: u64) -> Option<(Stage, bool, usize, usize)> {
        let task = self.submitted_task(task)?;
        let passes = !self.graph.kind_of(self.graph.task(TaskId(task))).runs;
        Some((self.progress.stage(task), passes, self.waiting_for(task).len(), self.accesses(task).len()))
    }

    fn successor(&self, task: u64, index: usize) -> Option<u64> {
        let task = self.submitted_task(task)?;
        Some(u64::from(self.waiting_for(task).get(index)?.0) + 1)
    }

    fn access(&self, task: u64, index: usize) -> Option<DataAccess> {
        let access = self.accesses(self.submitted_task(task)?).get(index)?;
        let bytes = self.graph.data[access.data.index()].bytes;
        let (reads, writes) = (access.mode.reads(), access.mode.writes());
        Some(DataAccess { data: u64::from(access.data.0), bytes, reads, writes })
    }

    fn length(&self, task: u64, worker: WorkerId) -> Estimate {
        let (Some(task), Some(worker)) = (self.submitted_task(task), self.platform.workers.get(worker.0 as usize))
        else {
            return Estimate::NoModel;
        };
        match self.lengths.nanos(self.lengths.row(task), worker.class) {
            NEVER => Estimate::NoModel,
            nanos => Estimate::Known(Duration::from_nanos(nanos)),
        }
    }

    fn copies(&self, data: u64) -> u64 {
        match (&self.replicas, u32::try_from(data)) {
            (Some(replicas), Ok(data)) if (data as usize) < self.graph.data.len() => replicas.lock().valid(data),
            _ => u64::MAX,
        }
    }

    fn transfer(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> u64 {
        let memories = self.platform.memories.len();
        let (from, to) = (from.0 as usize, to.0 as usize);
        if !self.transfers() || from == to || from >= memories || to >= memories {
            return 0;
        }
        self.platform.expected_transfer(from, to, bytes)
    }
}
