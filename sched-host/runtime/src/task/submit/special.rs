//! The parts of a submission that only tasks with rare fields or of special codelets have. The usual tasks pass them
//! by.

use super::steps::{Accessed, Accesses, Restriction, admit};
use super::{Submitter, TaskBuilder, TaskRef};
use crate::capture::Submission;
use crate::context::{ContextCore, SchedContext};
use crate::core::{Core, TaskPlace};
use crate::data::OfTask;
use crate::data::access::{AccessList, Visitor};
use crate::recording::DraftTask;
use crate::task::after::AfterTasks;
use crate::task::codelet::CodeletFacts;
use crate::task::entry::Entry;
use crate::task::failure::SubmitError;
use crate::task::job::{Job, TypedJob};
use crate::task::nest::NestState;
use crate::task::record::{RareFields, TaskKey};
use crate::worker::this_worker;
use sched_core::WorkerId;
use sched_graph::Where;
use sched_tree::SlotId;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl<'a, L: AccessList, P: Send + 'static> TaskBuilder<'a, L, P> {
    /// [Submits](Self::submit) a task with rare fields, or of a special codelet: what follows is compiled once for all
    /// types of codelets. Out of line, so that other submissions are not longer for it.
    #[cold]
    #[inline(never)]
    pub(super) fn submit_special(self) -> Result<TaskRef, SubmitError> {
        let TaskBuilder { submitter, codelet, params, data, context, priority, sched_data, after, rare } = self;
        let job =
            TypedJob { codelet: Arc::clone(&codelet.inner), arguments: Some((L::own(data, &OfTask(())), params)) };
        Request { submitter, job: Box::new(job), context, priority, sched_data, after, rare }.submit()
    }
}

fn restriction(core: &Core, facts: &CodeletFacts, of_task: Option<&Where>) -> Result<Option<Restriction>, SubmitError> {
    let only = facts.only.iter().chain(of_task);
    if only.clone().next().is_none() {
        return Ok(None);
    }
    let machine = (0..).map(WorkerId).zip(core.facts.iter().map(|worker| worker.arch));
    match Where::remaining(only.clone(), facts.archs, machine) {
        Some((archs, workers)) => Ok(Some(Restriction { archs, workers })),
        None => {
            if let Some(why) = &facts.unable {
                return Err(SubmitError::Unable { codelet: facts.name.clone(), why: why.clone() });
            }
            let places: Vec<String> = only.map(Where::to_string).collect();
            Err(SubmitError::Nowhere { codelet: facts.name.clone(), places: places.join(" and ") })
        }
    }
}

/// A task whose submission takes a way of its own, with the types of the codelet erased: what it takes is compiled
/// once, not once for each type of codelet.
pub(in crate::task) struct Request<'a> {
    pub(in crate::task) submitter: &'a Submitter,
    pub(in crate::task) job: Box<dyn Job>,
    pub(in crate::task) context: Option<&'a SchedContext>,
    pub(in crate::task) priority: Option<i32>,
    pub(in crate::task) sched_data: u64,
    pub(in crate::task) after: AfterTasks,
    pub(in crate::task) rare: Option<Box<RareFields>>,
}

impl Core {
    /// Announces a submission to those who follow submissions, and notes it in the captured graph of the program.
    /// `visit` visits the accesses of the task.
    #[cold]
    pub(in crate::task) fn announce_with<'h>(
        &self,
        facts: &CodeletFacts,
        rare: Option<&RareFields>,
        after: &[TaskRef],
        context: &ContextCore,
        place: TaskPlace,
        visit: &mut dyn FnMut(&mut Visitor<'_, 'h>),
    ) {
        let head = place.slot.head();
        let sequence = head.sequence.load(Relaxed);
        self.announce(context, place, sequence);
        let Some(capture) = self.capture() else { return };
        let submission = Submission {
            sequence,
            context: context.number,
            head,
            facts,
            name: rare.and_then(|rare| rare.name.as_deref()),
            only: rare.and_then(|rare| rare.only.as_ref()).or(facts.only.first()),
            after: &mut after.iter().map(TaskRef::sequence),
        };
        capture.note_submitted(submission, visit);
    }
}

/// Where a task has been entered: its place and key, and what it waits for so far.
pub(in crate::task) struct Entered<'c> {
    pub(in crate::task) context: &'c ContextCore,
    pub(in crate::task) place: TaskPlace,
    pub(in crate::task) key: TaskKey,
    pub(in crate::task) links: u32,
}

impl Request<'_> {
    /// Submits the task.
    fn submit(mut self) -> Result<TaskRef, SubmitError> {
        let core = &*self.submitter.core;
        let facts = Arc::clone(self.job.facts());
        let is_captured = self.rare.as_ref().is_some_and(|rare| rare.draft.is_some());
        core.check_origin(&facts, if is_captured { &[] } else { &self.after })?;
        let mut accesses = Accesses::new();
        self.job.visit(&mut |header, mode| accesses.push((header, mode)));
        let seen = core.check_accesses(&facts, &mut accesses, |accesses| self.job.footprint(accesses))?;
        let restriction = restriction(core, &facts, self.rare.as_ref().and_then(|rare| rare.only.as_ref()))?;
        // Captured ones take turns too.
        if seen.commutes {
            core.note_turns(&accesses, &mut self.rare);
        }
        if is_captured {
            drop(accesses);
            return self.capture(seen.footprint, restriction);
        }
        if facts.nests {
            let named = accesses.iter().map(|(header, mode)| (Arc::clone(header), *mode)).collect();
            self.rare.get_or_insert_default().nests = Some(NestState::new(named));
        }
        if let Some(nest) = self.rare.as_mut().and_then(|rare| rare.nested_in.take()) {
            drop(accesses);
            return self.submit_nested(&nest, seen.footprint, restriction);
        }
        // From here on the context counts the task.
        let (context, priority) = admit(core, &facts, self.context, self.priority, false)?;
        let mut right = core.sole.enter();
        let Some(sequence) = core.number_tasks(1, context, &right) else { return Err(facts.ended()) };
        let place = core.take_slot(&facts, &mut right);
        let entry = self.entry((place, sequence), context, priority, seen.footprint, &accesses);
        let (key, links) = match seen.has_special {
            true => core.enter_with_parts(entry, &mut right),
            false => core.enter(entry, &mut right),
        };
        drop(right);
        drop(accesses);
        Ok(self.complete(Entered { context, place, key, links }, restriction))
    }

    /// The task as the ledger enters it.
    pub(in crate::task) fn entry<'e>(
        &'e self,
        (place, sequence): (TaskPlace, u64),
        context: &ContextCore,
        priority: i32,
        footprint: u64,
        accesses: &'e [Accessed<'e>],
    ) -> Entry<'e> {
        let facts = self.job.facts();
        Entry {
            place,
            sequence,
            context: context.number,
            priority,
            archs: facts.archs,
            codelet: facts.number,
            width: facts.width,
            sched_data: self.sched_data,
            footprint,
            after: &self.after,
            accesses,
            standing: None,
        }
    }

    /// The last steps of a submission: the record of an entered task is filled, and the task is ready if it waits for
    /// nothing.
    pub(in crate::task) fn complete(self, entered: Entered<'_>, restriction: Option<Restriction>) -> TaskRef {
        let core = &*self.submitter.core;
        let Entered { context, place, key, links } = entered;
        if let Some(restriction) = restriction {
            core.restrict(place, &restriction);
        }
        if context.ahead.is_attended() {
            let (facts, rare) = (self.job.facts(), self.rare.as_deref());
            core.announce_with(facts, rare, &self.after, context, place, &mut |visitor| self.job.visit(visitor));
        }
        {
            let mut body = place.record.body.lock();
            body.job = Some(self.job);
            if let Some(rare) = self.rare {
                core.note_nest(key, &rare);
                body.add_rare(place.record, rare);
            }
        }
        if place.record.submitted(links) {
            core.make_ready(context, place, this_worker(core));
        }
        TaskRef::new(key, core.id)
    }

    /// Adds the task to the recording that captures it.
    fn capture(self, footprint: u64, restriction: Option<Restriction>) -> Result<TaskRef, SubmitError> {
        let facts = Arc::clone(self.job.facts());
        let codelet = || facts.name.clone();
        // Made anew for the graph as a whole: jobs of tasks that run one after the other are close together then.
        let RareFields { draft, name, only, turns, callback, deadline, .. } = *self.rare.unwrap_or_default();
        let Some(draft) = draft else { return Err(SubmitError::Ended { codelet: codelet() }) };
        let once = [
            (self.context.is_some(), "a context"),
            (callback.is_some(), "a callback"),
            (deadline.is_some(), "a deadline"),
            (facts.nests, "nested tasks"),
        ];
        if let Some((_, what)) = once.into_iter().find(|(is_set, _)| *is_set) {
            return Err(SubmitError::Recorded { codelet: codelet(), what });
        }
        if self.after.iter().any(|task| !task.is_of(draft.id)) {
            return Err(SubmitError::ForeignTask { codelet: codelet() });
        }
        let after = self.after.iter().map(|task| task.sequence() as u32 - 1).collect();
        let job = self.job.recorded().expect("a task that is submitted has its arguments");
        let (priority, sched_data) = (self.priority, self.sched_data);
        let id = draft.id;
        let place =
            draft.add(DraftTask { job, name, only, turns, priority, sched_data, footprint, restriction, after });
        Ok(TaskRef::new(TaskKey { slot: SlotId(0), sequence: place }, id))
    }
}
