//! How the tasks of a recording run.

use super::planned::{Planned, Replayed};
use super::recorded::{NOT_LAUNCHED, Recorded};
use super::{Recording, ReplayError};
use crate::context::{ContextCore, current};
use crate::core::{Core, TaskPlace};
use crate::task::failure::{Cause, Outcome, SubmitError};
use crate::task::job::Job;
use crate::task::record::{RareFields, TaskKey};
use crate::task::scratch::WorkerScratch;
use crate::task::submit::{Submitter, TaskRef};
use crate::worker::executed_here;
use sched_core::WorkerId;
use sched_graph::ContextId;
use sched_sync::at_home::Round;
use sched_sync::in_flight::Refused;
use sched_sync::link::end;
use sched_tree::{Phase, SlotId};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

impl Submitter {
    /// Runs the tasks of a recording again, without waiting for them: after all tasks submitted so far that conflict
    /// with them, and before those that are submitted later. The result stands for the replay as a whole: it has ended
    /// when all of its tasks have, and has [failed](Outcome::Cancelled) if one of them has.
    ///
    /// Tasks run in the current context of this thread. Two replays that share data which one of them writes do not
    /// overlap.
    ///
    /// # Errors
    /// If nothing can run: see [`ReplayError`].
    pub fn replay(&self, recording: &Recording) -> Result<TaskRef, ReplayError> {
        let (core, shared) = (&*self.core, &recording.shared);
        if shared.runtime != core.id {
            return Err(ReplayError::ForeignRecording);
        }
        if !shared.state.begin_replay() {
            return Err(ReplayError::Running { tasks: shared.tasks.len() });
        }
        match self.begin_replay(shared) {
            Ok(task) => Ok(task),
            Err(refused) => {
                shared.state.end();
                Err(ReplayError::Refused(refused))
            }
        }
    }

    /// Enters a replay, whose state is set.
    fn begin_replay(&self, recorded: &Arc<Recorded>) -> Result<TaskRef, SubmitError> {
        let core = &*self.core;
        let accesses = Arc::clone(&recorded.accesses.lock());
        let lent = accesses
            .list
            .iter()
            .filter(|_| accesses.has_loans)
            .filter_map(|(header, mode)| Some((header.loan()?, mode)));
        for (loan, mode) in lent {
            loan.check(mode.writes()).map_err(|why| SubmitError::Loan { codelet: "a recording".to_owned(), why })?;
        }
        let (context, priority) = self.admit_replay(recorded)?;
        let count = recorded.tasks.len() as u64;
        let Some(first) = core.number_tasks(count, context, &core.sole.enter()) else {
            return Err(SubmitError::Ended { codelet: "a recording".to_owned() });
        };
        for _ in 0..if context.number == ContextId::DEFAULT { 0 } else { count } {
            context.in_flight.number();
        }
        recorded.first.store(first, Relaxed);
        if recorded.context.swap(context.number.0.into(), Relaxed) != u32::from(context.number.0) {
            recorded.tasks.iter().for_each(|task| core.records.get(task.slot.id()).move_to(context.number));
        }
        let arch = |worker: WorkerId| core.facts[worker.index()].arch;
        context.with_workers(|workers| recorded.homes.distribute(&recorded.tasks, workers, arch));
        recorded.round.store(recorded.round.load(Relaxed).wrapping_add(1), Release);
        recorded.priority.store(priority.cast_unsigned(), Relaxed);
        recorded.left.store(recorded.sinks, Relaxed);
        *recorded.failed.lock() = None;
        let is_followed = context.ahead.is_attended() || core.capture().is_some();
        recorded.is_cancelled.store(false, Relaxed);
        let is_unasked = core.backend.memories.is_none() && !is_followed;
        recorded.unasked.begin(is_unasked);
        let are_equal = priority == 0 && recorded.priorities.as_ref().is_none_or(|asked| *asked == (0..=0));
        {
            let mut replays = core.replays.lock();
            // Who changes a context afterwards finds this replay, and may end that.
            if is_unasked && are_equal && core.may_leave_tasks(context, recorded) {
                core.at_home.fetch_add(1, SeqCst);
                recorded.waits_at_home.store(true, Release);
                recorded.leaves.store(true, Release);
            }
            // From now on it may be cancelled.
            replays.push(Arc::clone(recorded));
        }
        if context.ahead.is_attended() {
            core.announce_replay(context, recorded);
        }
        let entry = RareFields { launches: Some(Arc::clone(recorded)), ..RareFields::default() };
        let key = self.enter_entry(entry, |core, place| recorded.enter(core, place, &accesses));
        Ok(TaskRef::new(key, core.id))
    }

    /// The context of a replay, which counts its tasks from now on, and the priority of tasks that ask for none.
    fn admit_replay(&self, recorded: &Recorded) -> Result<(&ContextCore, i32), SubmitError> {
        let core = &*self.core;
        let codelet = || "a recording".to_owned();
        let (number, serial) = current(core);
        let context = core.roster.get(number);
        let (mut min, mut max) = (context.least.load(Relaxed), context.greatest.load(Relaxed));
        if min > max {
            (min, max) = core.look_closer(context, &codelet(), false)?.into_inner();
        }
        if let Some(asked) = &recorded.priorities
            && let Some(priority) =
                [*asked.start(), *asked.end()].into_iter().find(|asked| !(min..=max).contains(asked))
        {
            return Err(SubmitError::Priority { codelet: codelet(), context: context.name(), priority, min, max });
        }
        if number != ContextId::DEFAULT && !recorded.tasks.is_empty() {
            let inside = executed_here(core) == Some(number);
            if let Err(Refused { tell }) = context.in_flight.reserve(serial.filter(|_| !inside)) {
                if tell {
                    core.outcomes.tell();
                }
                return Err(SubmitError::Deleted { codelet: codelet(), context: context.name() });
            }
            // The context does not go while the first one is counted.
            for _ in 1..recorded.tasks.len() {
                let _ = context.in_flight.reserve(None);
            }
        }
        Ok((context, 0.clamp(min, max)))
    }
}

impl Core {
    /// Announces the tasks of a replay to those who follow submissions.
    #[cold]
    fn announce_replay(&self, context: &ContextCore, recorded: &Recorded) {
        let first = recorded.first.load(Relaxed);
        if let Some(capture) = self.capture() {
            recorded.note_in(self, capture, context.number);
        }
        for (sequence, task) in (first..).zip(&recorded.tasks) {
            task.slot.head().sequence.store(sequence, Release);
            task.slot.set_phase(Phase::Waiting);
            self.announce(context, self.place(task.slot.id()), sequence);
        }
    }

    /// Starts the replay whose turn has come.
    #[cold]
    pub(crate) fn launch(
        &self,
        entry: SlotId,
        recorded: &Arc<Recorded>,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        recorded.entry.store(entry.0, Relaxed);
        if recorded.tasks.is_empty() {
            self.finish_replay(recorded, scratch);
        }
        for root in &recorded.roots {
            self.start_planned(recorded, *root, requester, scratch);
        }
    }

    /// Starts a task that waits for nothing any more.
    #[inline]
    pub(super) fn start_planned(
        &self,
        recorded: &Recorded,
        index: u32,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        let planned = &recorded.tasks[index as usize];
        planned.fetch();
        recorded.set_up(index, planned);
        planned.slot.head().sequence.store(recorded.first.load(Relaxed) + u64::from(index), Release);
        // Who cancels all tasks ends this before it looks at their numbers, and so finds this one's, or is seen here.
        if planned.is_rare || !recorded.unasked.is_still() {
            return self.start_rarely_planned(recorded, index, requester, scratch);
        }
        let context = recorded.context_now();
        self.schedule_plain(&self.roster.get(context).tree, context, planned.slot, requester, scratch);
    }

    /// The rest of [`start_planned`](Self::start_planned) for a task of which its record has to be asked.
    #[cold]
    pub(super) fn start_rarely_planned(
        &self,
        recorded: &Recorded,
        index: u32,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        let planned = &recorded.tasks[index as usize];
        let place = self.place(planned.slot.id());
        if let Some(restriction) = recorded.rarely.get(&index).and_then(|rare| rare.restriction.as_ref()) {
            self.restrict(place, restriction);
        }
        if planned.has_turns {
            place.record.mark_special();
        }
        if recorded.is_cancelled.load(Acquire) {
            self.withdraw(TaskKey { slot: place.slot.id(), sequence: place.slot.head().sequence.load(Relaxed) }, None);
        }
        self.schedule(place, requester, scratch);
    }

    /// Ends a task of a replay that ran without a look at its record, and starts those that waited for it alone.
    #[inline]
    pub(crate) fn end_unasked(
        &self,
        recorded: &Recorded,
        index: usize,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        let planned = &recorded.tasks[index];
        end(&planned.slot.head().sequence);
        planned.slot.renew(Phase::Free);
        self.release_successors(recorded, planned, None, requester, scratch);
    }

    /// Ends a task of a replay, and starts those that waited for it alone.
    #[inline(never)]
    pub(crate) fn end_replayed(
        &self,
        task: TaskPlace,
        failed: Option<&Cause>,
        job: Option<Box<dyn Job>>,
        mut rare: Box<RareFields>,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        let TaskPlace { slot, record } = task;
        let Some(Replayed { recorded, index }) = &rare.replayed else { return };
        let (recorded, index) = (scratch.take_recording(recorded), *index as usize);
        let planned = &recorded.tasks[index];
        if let Some(planned) = recorded.rarely.get(&(index as u32)).filter(|_| planned.has_turns) {
            scratch.give_turns(&rare.turns);
            rare.turns.clone_from(&planned.turns.lock());
        }
        if let Some(cause) = failed {
            recorded.failed.lock().get_or_insert_with(|| Arc::clone(cause));
            recorded.unasked.end();
        }
        // Before its successors: the last of them may end the replay, and the next one starts this task again.
        {
            let mut body = record.body.lock();
            (body.job, body.rare) = (job, Some(rare));
            record.close(&slot.head().sequence);
        }
        slot.renew(Phase::Free);
        self.release_successors(&recorded, planned, failed, requester, scratch);
        scratch.keep_recording(recorded);
    }

    /// Starts the tasks that waited for one alone, which has ended, and counts it.
    #[inline]
    fn release_successors(
        &self,
        recorded: &Recorded,
        planned: &Planned,
        failed: Option<&Cause>,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        // The last successor may end the replay, and the next one may be in another context.
        let (context, round) = (recorded.context_now(), Round(recorded.round.load(Relaxed)));
        let leaves = recorded.leaves.load(Acquire) && self.roster.get(context).tree.waits_at_home();
        for successor in recorded.successors_of(planned) {
            let index = successor.task();
            if let Some(cause) = failed.filter(|_| successor.is_explicit()) {
                let waiting = self.records.get(recorded.tasks[index].slot.id());
                waiting.body.lock().rare(waiting).cancelled.get_or_insert_with(|| Arc::clone(cause));
            }
            let (next, count) = (&recorded.tasks[index], &recorded.counts[index]);
            if leaves
                && let Some((home, place)) = next.place_at_home()
                && let Some(worker) = requester
                // A worker goes on with one that is at home with it.
                && (home != worker.0 || scratch.deferred.keeps_one_at_home())
                && recorded.shelves[home as usize].has_room(round, place)
            {
                if count.release() {
                    self.note_left(context, home);
                }
                continue;
            }
            if count.release_and_take(round, next.waits) {
                self.start_planned(recorded, index as u32, requester, scratch);
            }
        }
        self.count_finished(context, requester);
        if planned.is_sink() && recorded.left.fetch_sub(1, AcqRel) == 1 {
            self.finish_replay(recorded, scratch);
        }
    }

    /// Ends a replay, whose tasks have all ended.
    #[cold]
    fn finish_replay(&self, recorded: &Recorded, scratch: &mut WorkerScratch) {
        let entry = SlotId(recorded.entry.load(Relaxed));
        recorded.leaves.store(false, Relaxed);
        if recorded.waits_at_home.swap(false, AcqRel) {
            self.at_home.fetch_sub(1, SeqCst);
        }
        self.replays.lock().retain(|other| !std::ptr::eq(&**other, recorded));
        recorded.entry.store(NOT_LAUNCHED, Relaxed);
        let outcome = recorded.failed.lock().take().map_or(Outcome::Done, Outcome::Cancelled);
        recorded.close_standing(self, scratch);
        // Before the entry ends: whoever waits for it may replay again.
        if recorded.state.end() {
            recorded.dismantle();
        }
        self.own_accesses.ended.fetch_add(1, SeqCst);
        scratch.end_later(entry, outcome);
    }
}
