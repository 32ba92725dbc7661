//! Submitted tasks as components see them before they are ready, and the stage of each.

use super::backend::SimBackend;
use super::lengths::NEVER;
use sched_core::{DataAccess, Estimate, MemoryNode, Stage, WorkerId};
use sched_graph::{DataId, TaskId};
use sched_tree::{Lookahead, Services};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Stages of all tasks.
pub(super) struct Progress {
    stages: Box<[AtomicU8]>,
    /// Number of submitted tasks.
    submitted: AtomicU32,
    /// Number of tasks at the beginning that have all ended.
    ended: AtomicU32,
    /// Whether a component was told that more tasks will be submitted.
    awaited: AtomicBool,
}

impl Progress {
    pub(super) fn new(tasks: usize) -> Progress {
        let stages = (0..tasks).map(|_| AtomicU8::new(Stage::Waiting as u8)).collect();
        Progress { stages, submitted: AtomicU32::new(0), ended: AtomicU32::new(0), awaited: AtomicBool::new(false) }
    }

    /// Whether a component was told that more tasks will be submitted, and not yet that all are. Asked once.
    pub(super) fn take_awaited(&self) -> bool {
        self.awaited.swap(false, Relaxed)
    }

    /// Records the submission of a task, the last one so far.
    pub(super) fn submitted(&self, task: TaskId) {
        self.submitted.store(task.0 + 1, Relaxed);
    }

    /// Records that a task is in this stage now.
    pub(super) fn reach(&self, task: TaskId, stage: Stage) {
        self.stages[task.index()].store(stage as u8, Relaxed);
        let mut first = TaskId(self.ended.load(Relaxed));
        if task != first {
            return;
        }
        while self.stages.get(first.index()).is_some_and(|stage| stage.load(Relaxed) == Stage::Ended as u8) {
            first = TaskId(first.0 + 1);
        }
        self.ended.store(first.0, Relaxed);
    }

    fn stage(&self, task: TaskId) -> Stage {
        match self.stages[task.index()].load(Relaxed) {
            0 => Stage::Waiting,
            1 => Stage::Ready,
            2 => Stage::Taken,
            _ => Stage::Ended,
        }
    }
}

impl SimBackend {
    /// The task with this sequence number, if it is submitted.
    fn submitted_task(&self, sequence: u64) -> Option<TaskId> {
        let task = TaskId(u32::try_from(sequence.checked_sub(1)?).ok()?);
        (task.0 < self.progress.submitted.load(Relaxed)).then_some(task)
    }

    /// The submitted tasks that wait for `task`, in the order of submission.
    fn waiting_for(&self, task: TaskId) -> &[TaskId] {
        let all = self.dependencies.successors(task);
        let submitted = self.progress.submitted.load(Relaxed);
        &all[..all.partition_point(|successor| successor.0 < submitted)]
    }
}

impl Lookahead for SimBackend {
    fn goes_on(&self) -> Option<bool> {
        let goes_on = (self.progress.submitted.load(Relaxed) as usize) < self.graph.tasks.len();
        self.progress.awaited.store(goes_on, Relaxed);
        Some(goes_on)
    }

    fn range(&self) -> Range<u64> {
        let (ended, submitted) = (self.progress.ended.load(Relaxed), self.progress.submitted.load(Relaxed));
        u64::from(ended) + 1..u64::from(submitted) + 1
    }

    fn task(&self, task: u64) -> Option<(Stage, bool, usize, usize)> {
        let task = self.submitted_task(task)?;
        let passes = !self.spec(task).runs();
        Some((self.progress.stage(task), passes, self.waiting_for(task).len(), self.accesses(task).len()))
    }

    fn successor(&self, task: u64, index: usize) -> Option<u64> {
        let task = self.submitted_task(task)?;
        Some(self.waiting_for(task).get(index)?.submitted().sequence())
    }

    fn access(&self, task: u64, index: usize) -> Option<DataAccess> {
        let access = self.accesses(self.submitted_task(task)?).get(index)?;
        let bytes = self.graph.data[access.data.index()].bytes;
        let (reads, writes) = (access.mode.reads(), access.mode.writes());
        Some(DataAccess { data: u64::from(access.data.0), bytes, reads, writes })
    }

    fn length(&self, task: u64, worker: WorkerId) -> Estimate {
        let (Some(task), Some(facts)) = (self.submitted_task(task), self.platform.workers.get(worker.index())) else {
            return Estimate::NoModel;
        };
        if !self.is_allowed_on(task, worker) {
            return Estimate::NoModel;
        }
        match self.lengths.nanos(self.lengths.row(task), facts.class) {
            NEVER => Estimate::NoModel,
            nanos => Estimate::Known(Duration::from_nanos(nanos)),
        }
    }

    fn copies(&self, data: u64) -> u64 {
        match (&self.copies, u32::try_from(data)) {
            (Some(copies), Ok(data)) if DataId(data).index() < self.graph.data.len() => copies.valid(DataId(data)),
            _ => u64::MAX,
        }
    }

    fn transfer(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> u64 {
        let memories = self.platform.memories.len();
        if !self.transfers() || from == to || from.index() >= memories || to.index() >= memories {
            return 0;
        }
        self.platform.expected_transfer(from, to, bytes)
    }
}
