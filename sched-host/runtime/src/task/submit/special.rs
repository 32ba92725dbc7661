//! The parts of a submission that only tasks with rare fields or of special codelets have. The usual tasks pass them by.

use super::super::codelet::TypedJob;
use super::super::failure::SubmitError;
use super::super::record::TaskKey;
use super::{Restriction, TaskBuilder, TaskRef};
use crate::capture::{Capture, Submission};
use crate::core::TaskPlace;
use crate::data::access::AccessList;
use crate::recording::{DraftTask, RecordedJob};
use sched_core::WorkerId;
use sched_graph::{ContextId, Where};
use sched_tree::SlotId;
use std::sync::Arc;

impl<L: AccessList, P: Send + 'static> TaskBuilder<'_, L, P> {
    /// [Submits](Self::submit) a task with rare fields, or of a special codelet. Out of line, so that other submissions
    /// are not longer for it.
    #[cold]
    #[inline(never)]
    pub(super) fn submit_special(self) -> Result<TaskRef, SubmitError> {
        self.submit_as::<true>()
    }

    /// Notes the submission in the captured graph of the program.
    #[cold]
    pub(in crate::task) fn note_in(&self, capture: &Capture, context: ContextId, place: TaskPlace, sequence: u64) {
        let rare = self.rare.as_deref();
        let submission = Submission {
            sequence,
            context,
            head: place.slot.head(),
            facts: &self.codelet.inner.facts,
            name: rare.and_then(|rare| rare.name.as_deref()),
            only: rare.and_then(|rare| rare.only.as_ref()).or(self.codelet.inner.facts.only.first()),
            after: &mut self.after.iter().map(TaskRef::sequence),
        };
        capture.note_submitted(submission, |visit| L::visit(&self.handles, visit));
    }

    /// Whether a recording captures the task.
    #[cold]
    pub(super) fn is_captured(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.draft.is_some())
    }

    /// Adds the task to the recording that captures it.
    #[cold]
    pub(super) fn capture(self, footprint: u64, restriction: Option<Restriction>) -> Result<TaskRef, SubmitError> {
        let codelet = || self.codelet.inner.facts.name.clone();
        let mut rare = self.rare.unwrap_or_default();
        let Some(draft) = rare.draft.take() else { return Err(SubmitError::Ended { codelet: codelet() }) };
        let once = [
            (self.context.is_some(), "a context"),
            (rare.callback.is_some(), "a callback"),
            (rare.deadline.is_some(), "a deadline"),
            (self.codelet.inner.facts.nests, "nested tasks"),
        ];
        if let Some((_, what)) = once.into_iter().find(|(is_set, _)| *is_set) {
            return Err(SubmitError::Recorded { codelet: codelet(), what });
        }
        if self.after.iter().any(|task| task.runtime != draft.id) {
            return Err(SubmitError::Foreign { codelet: codelet(), what: "a task to wait for" });
        }
        let after = self.after.iter().map(|task| task.key.sequence as u32 - 1).collect();
        let codelet = Arc::clone(&self.codelet.inner);
        let job = Box::new(RecordedJob(TypedJob { codelet, arguments: Some((self.handles, self.params)) }));
        let (priority, sched_data) = (self.priority, self.sched_data);
        let id = draft.id;
        let place = draft.add(DraftTask { job, rare, priority, sched_data, footprint, restriction, after });
        Ok(TaskRef { key: TaskKey { slot: SlotId(0), sequence: place }, runtime: id })
    }

    /// The places that the codelet and the task are restricted to; `None` if there is no restriction.
    #[cold]
    pub(super) fn restriction(&self) -> Result<Option<Restriction>, SubmitError> {
        let (core, facts) = (&*self.submitter.core, &self.codelet.inner.facts);
        let only = facts.only.iter().chain(self.rare.as_ref().and_then(|rare| rare.only.as_ref()));
        if only.clone().next().is_none() {
            return Ok(None);
        }
        let machine = (0..).map(WorkerId).zip(core.facts.iter().map(|worker| worker.arch));
        match Where::remaining(only.clone(), facts.archs, machine) {
            Some((archs, workers)) => Ok(Some(Restriction { archs, workers })),
            None => {
                let places: Vec<String> = only.map(Where::to_string).collect();
                Err(SubmitError::Nowhere { codelet: facts.name.clone(), places: places.join(" and ") })
            }
        }
    }
}
