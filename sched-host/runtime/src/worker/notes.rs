//! What a worker notes of the tasks that it executes, for the trace, for a captured graph, and for components that
//! follow tasks.

use super::Worker;
use crate::capture::Capture;
use crate::parallel::crew::Crew;
use crate::task::codelet::CodeletFacts;
use crate::task::record::RareFields;
use sched_core::{TaskId, WorkerId};
use sched_trace::{CodeletId, Event};
use sched_tree::{Services, Slot, TaskEnd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How a kernel ended.
#[derive(Clone, Copy)]
pub(crate) struct KernelEnd {
    pub(crate) failed: bool,
    /// How long it took.
    pub(crate) length: Duration,
    /// Whether the device has measured that.
    pub(crate) by_device: bool,
}

impl Worker {
    /// Records that the worker has a task, whose data it brings.
    pub(crate) fn note_pulled(&self, slot: &Slot) {
        if self.core.backend.recorder.is_some() {
            let task = TaskId::new(slot.head().sequence.load(Relaxed));
            self.core.backend.record(Some(self.id), || Event::Pulled { task, worker: self.id });
        }
    }

    /// Notes the end of a kernel, for the trace and for components that follow it.
    #[cold]
    pub(crate) fn note_end(
        &self,
        slot: &Slot,
        facts: Option<&CodeletFacts>,
        crew: &Crew<'_>,
        worker: WorkerId,
        end: KernelEnd,
    ) {
        let core = &*self.core;
        let KernelEnd { failed, length, by_device } = end;
        let task = TaskId::new(slot.head().sequence.load(Relaxed));
        if core.backend.recorder.is_some() {
            let now = core.backend.now().as_nanos();
            // The worker of a device may have been busy with the next task when this one ended.
            let ended = match by_device {
                true => now.min(self.started.get().as_nanos().saturating_add(length.as_nanos() as u64)),
                false => now,
            };
            for member in crew.members {
                core.backend.record_at(ended, Some(self.id), || Event::Ended { task, worker: *member });
            }
        }
        if let Some(capture) = core.capture() {
            let worked = capture.processor_time().filter(|_| !by_device);
            let length = worked.map_or(length, |time| time.saturating_sub(self.processor_began.get()));
            capture.note_length(self.id, self.arch, task.sequence(), length);
        }
        if core.backend.is_heard.load(Relaxed) {
            let footprint = slot.head().footprint.load(Relaxed);
            let size = crew.members.len() as u16;
            let energy = facts.and_then(|facts| facts.expected_energy(self.arch, size, None, footprint));
            let tree = core.tree_of(core.records.get(slot.id()));
            tree.note_execution(slot, worker, self.id, Some(TaskEnd { length, energy, failed }));
        }
    }

    /// Notes the start of a kernel, for components that follow it and for the trace.
    #[cold]
    pub(crate) fn note_start(&self, slot: &Slot, rare: Option<&RareFields>, crew: &Crew<'_>, worker: WorkerId) {
        let core = &*self.core;
        if core.backend.is_heard.load(Relaxed) {
            core.tree_of(core.records.get(slot.id())).note_execution(slot, worker, self.id, None);
        }
        self.record_start(slot, rare, crew);
        if let Some(time) = core.capture().and_then(Capture::processor_time) {
            self.processor_began.set(time);
        }
    }

    /// Records the start of a kernel.
    fn record_start(&self, slot: &Slot, rare: Option<&RareFields>, crew: &Crew<'_>) {
        let Some(recorder) = &self.core.backend.recorder else { return };
        let head = slot.head();
        let (task, codelet) = (TaskId::new(head.sequence.load(Relaxed)), CodeletId(head.codelet.load(Relaxed)));
        if let Some(name) = rare.and_then(|rare| rare.name.as_ref()) {
            recorder.name(task, name);
        }
        for member in crew.members {
            self.core.backend.record(Some(self.id), || Event::Started { task, worker: *member, codelet });
        }
    }
}
