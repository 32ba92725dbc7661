//! The tasks of a recording, and how they run.

use super::draft::SinksLeft;
use super::job::RecordedJob;
use super::kept::Changing;
use super::planned::{Planned, RarelyPlanned, Replayed, Successor};
use super::{Recording, ReplayError, State};
use crate::capture::{Capture, Submission};
use crate::context::{ContextCore, current};
use crate::core::{Core, TaskPlace};
use crate::data::DataHeader;
use crate::task::complete::{WorkerScratch, aside};
use crate::task::failure::{Cause, Outcome, SubmitError};
use crate::task::job::Job;
use crate::task::record::{RareFields, TaskKey};
use crate::task::submit::{Submitter, TaskRef};
use crate::worker::executed_here;
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use sched_core::{WorkerId, fetch_ahead, fetch_to_write};
use sched_graph::{AccessMode, ContextId};
use sched_sync::in_flight::Refused;
use sched_sync::link::{Pending, end};
use sched_sync::unasked::Unasked;
use sched_tree::{Phase, Slot, SlotId};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};

/// The shared part of a recording.
pub(crate) struct Recorded {
    pub(super) core: Weak<Core>,
    /// The runtime that it belongs to.
    pub(super) runtime: u64,
    /// The recording, as tasks name it.
    pub(super) id: u64,
    pub(super) state: State,
    pub(super) tasks: Box<[Planned]>,
    /// What few tasks have, by their indices.
    rarely: BTreeMap<u32, RarelyPlanned>,
    /// What each task waits for in the replay in progress. Close together, and apart from the records: who ends a task
    /// counts down those of several others, which lie side by side where a program submits tasks row by row, and
    /// touches the record of none that has to wait longer.
    pending: Box<[Pending]>,
    /// The tasks that wait for others, in the order of those.
    successors: Box<[Successor]>,
    /// Indices of the tasks that wait for no other.
    roots: Box<[u32]>,
    /// Number of tasks that no other waits for.
    sinks: u32,
    accesses: Mutex<Arc<Accesses>>,
    /// Priorities that tasks ask for.
    priorities: Option<RangeInclusive<i32>>,
    /// Of the replay in progress: sequence of the first task, number of its context, priority of tasks that ask for
    /// none, tasks of `sinks` that have not ended, slot of its entry, and the first failure.
    first: AtomicU64,
    priority: AtomicU32,
    left: CachePadded<SinksLeft>,
    entry: AtomicU32,
    failed: Mutex<Option<Cause>>,
    /// Whether tasks of the replay in progress run without a look at their records: nobody follows submissions or moves
    /// data, no task has failed, and none was withdrawn.
    pub(super) unasked: Unasked,
    /// Whether the program has cancelled what had not begun.
    is_cancelled: AtomicBool,
    /// Number of the context that the records of the tasks name, if they name one.
    context: AtomicU32,
}

/// What [`Recorded::context`] is before the first replay.
const NO_CONTEXT: u32 = u32::MAX;

/// What the tasks of a recording access together.
struct Accesses {
    /// In the order of the ids of the data.
    list: Vec<(Arc<DataHeader>, AccessMode)>,
    /// Whether some of the data belongs to scopes.
    has_loans: bool,
}

impl Accesses {
    fn new(list: Vec<(Arc<DataHeader>, AccessMode)>) -> Accesses {
        let has_loans = list.iter().any(|(header, _)| header.loan().is_some());
        Accesses { list, has_loans }
    }
}

/// What was worked out about a recording.
pub(super) struct RecordedGraph {
    pub(super) tasks: Box<[Planned]>,
    pub(super) rarely: BTreeMap<u32, RarelyPlanned>,
    pub(super) successors: Box<[Successor]>,
    pub(super) accesses: Vec<(Arc<DataHeader>, AccessMode)>,
    pub(super) priorities: Option<RangeInclusive<i32>>,
}

impl Recorded {
    pub(super) fn new(core: &Arc<Core>, id: u64, graph: RecordedGraph) -> Arc<Recorded> {
        let RecordedGraph { tasks, rarely, successors, accesses, priorities } = graph;
        let pending = tasks.iter().map(|task| Pending::armed(task.waits)).collect();
        let roots = (0..).zip(&tasks).filter(|(_, task)| task.waits == 0).map(|(index, _)| index).collect();
        let sinks = tasks.iter().filter(|task| task.is_sink()).count() as u32;
        Arc::new(Recorded {
            core: Arc::downgrade(core),
            runtime: core.id,
            id,
            state: State::default(),
            tasks,
            rarely,
            pending,
            successors,
            roots,
            sinks,
            accesses: Mutex::new(Arc::new(Accesses::new(accesses))),
            priorities,
            first: AtomicU64::new(0),
            context: AtomicU32::new(NO_CONTEXT),
            priority: AtomicU32::new(0),
            left: CachePadded::new(SinksLeft::new(0)),
            entry: AtomicU32::new(0),
            failed: Mutex::default(),
            unasked: Unasked::default(),
            is_cancelled: AtomicBool::new(false),
        })
    }

    /// The job of a task.
    #[inline]
    pub(crate) fn job(&self, index: usize) -> &dyn RecordedJob {
        &*self.tasks[index].job
    }

    /// Whether two data can be exchanged without a change of what waits for what.
    pub(super) fn check_swap(&self, one: &DataHeader, other: &DataHeader) -> Result<(), ReplayError> {
        let refused = |why| Err(ReplayError::Swap { why });
        if one.bytes != other.bytes || one.footprint != other.footprint {
            return refused("they differ in size or shape");
        }
        let (mut names_one, mut others) = (false, false);
        let whole = |header: &DataHeader| header.part().map(|part| part.whole.id);
        let (of_one, of_other) = (whole(one), whole(other));
        if of_one.is_some() && of_one == of_other {
            return refused("they are parts of the same array or matrix");
        }
        for task in &self.tasks {
            task.job.visit(&mut |header, _| {
                let is_given = header.id == one.id || header.id == other.id;
                names_one |= is_given;
                others |= !is_given
                    && header
                        .part()
                        .is_some_and(|part| Some(part.whole.id) == of_one || Some(part.whole.id) == of_other);
            });
        }
        match (names_one, others) {
            (false, _) => refused("the recording names neither"),
            (_, true) => refused("the recording names other parts of one of them"),
            _ => Ok(()),
        }
    }

    /// Exchanges two data among the accesses of the recording as a whole.
    pub(super) fn swap_accesses(&self, one: &Arc<DataHeader>, other: &Arc<DataHeader>) {
        let named = |header: &Arc<DataHeader>| match header.part() {
            Some(part) => crate::data::whole::Whole::header(Arc::clone(&part.whole)),
            None => Arc::clone(header),
        };
        let key = |header: &Arc<DataHeader>| header.part().map_or(header.id, |part| part.whole.id);
        let mut accesses = self.accesses.lock();
        let mut list = accesses.list.clone();
        for (header, _) in &mut list {
            if key(header) == key(one) {
                *header = named(other);
            } else if key(header) == key(other) {
                *header = named(one);
            }
        }
        list.sort_by_key(|(header, _)| header.id);
        *accesses = Arc::new(Accesses::new(list));
    }

    /// Exchanges two data among those that a task commutes on.
    pub(super) fn swap_turns(&self, core: &Core, index: usize, one: &Arc<DataHeader>, other: &Arc<DataHeader>) {
        let Some(rare) = self.rarely.get(&(index as u32)).filter(|_| self.tasks[index].has_turns) else { return };
        let mut turns = rare.turns.lock();
        for turn in turns.iter_mut() {
            if turn.id == one.id {
                *turn = Arc::clone(other);
            } else if turn.id == other.id {
                *turn = Arc::clone(one);
            }
        }
        turns.sort_by_key(|turn| turn.id);
        debug_assert_eq!(core.id, self.runtime, "the core of the recording is passed");
        if let Some(rare) = &mut core.records.get(self.tasks[index].slot.id()).body.lock().rare {
            rare.turns.clone_from(&turns);
        }
    }

    /// Notes the tasks of a replay, none of which has begun, in the captured graph of the program.
    fn note_in(&self, core: &Core, capture: &Capture, context: ContextId) {
        let first = self.first.load(Relaxed);
        let mut after: Vec<Vec<u64>> = vec![Vec::new(); self.tasks.len()];
        for (sequence, task) in (first..).zip(&self.tasks) {
            let explicit = self.successors_of(task).iter().filter(|successor| successor.is_explicit());
            explicit.for_each(|successor| after[successor.task()].push(sequence));
        }
        for (((sequence, index), task), after) in (first..).zip(0..).zip(&self.tasks).zip(after) {
            self.set_up(index, task);
            let (slot, record) = (task.slot, core.records.get(task.slot.id()));
            let body = record.body.lock();
            let (job, Some(rare)) = (&task.job, &body.rare) else { continue };
            let submission = Submission {
                sequence,
                context,
                head: slot.head(),
                facts: job.facts(),
                name: rare.name.as_deref(),
                only: rare.only.as_ref().or(job.facts().only.first()),
                after: &mut after.into_iter(),
            };
            capture.note_submitted(submission, &mut |visitor| job.visit(visitor));
        }
    }

    /// Sets up what components see of a task.
    #[inline]
    fn set_up(&self, index: u32, planned: &Planned) {
        let head = planned.slot.head();
        head.reset();
        if !planned.has_priority {
            head.priority.store(self.priority.load(Relaxed).cast_signed(), Relaxed);
        }
        head.archs.store(planned.archs, Relaxed);
        if planned.width > 1 {
            head.width.store(planned.width, Relaxed);
        }
        if planned.is_rare
            && let Some(rare) = self.rarely.get(&index)
            && rare.sched_data != 0
        {
            head.set_sched_data(rare.sched_data);
        }
    }

    /// The tasks that wait for one.
    #[inline]
    fn successors_of(&self, planned: &Planned) -> &[Successor] {
        let [first, end] = planned.successors;
        &self.successors[first as usize..end as usize]
    }

    /// Returns the slots of the tasks, when neither the program nor a replay uses the recording any more.
    pub(super) fn dismantle(&self) {
        // The records of a runtime that has ended belong to another one.
        let Some(core) = self.core.upgrade() else { return };
        let right = &mut Changing::at_the_end(&self.state);
        for task in &self.tasks {
            // Workers may still keep the recording.
            aside(&task.slot.head().sequence, "the drop of a task's arguments", || task.job.let_go(right));
            let taken = core.records.get(task.slot.id()).body.lock().take();
            drop(taken);
        }
        core.keep_fresh_places(self.tasks.iter().map(|task| core.place(task.slot.id())));
    }
}

/// Running a task of a replay.
impl Recorded {
    /// The index of the task in this slot, if it belongs to the replay in progress.
    #[inline]
    pub(crate) fn index_of(&self, slot: &Slot) -> Option<usize> {
        // The numbers of a replay are those of no other task.
        let index = slot.head().sequence.load(Relaxed).wrapping_sub(self.first.load(Relaxed));
        (index < self.tasks.len() as u64).then_some(index as usize)
    }

    /// Whether a task, which is marked as running, is run without a look at its record.
    #[inline]
    pub(crate) fn is_unasked(&self, index: usize) -> bool {
        !self.tasks[index].is_rare && self.unasked.is_still()
    }

    /// Cancels the tasks of the replay in progress that become ready from now on.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Release);
        self.unasked.end();
    }

    /// The context of the replay in progress.
    #[inline]
    pub(crate) fn context_now(&self) -> ContextId {
        ContextId(self.context.load(Relaxed) as u16)
    }

    /// Begins to bring near what the end of a task counts down.
    #[inline]
    pub(crate) fn fetch_successors(&self, index: usize) {
        let few = self.successors_of(&self.tasks[index]).iter().take(4);
        few.for_each(|successor| {
            fetch_to_write(&self.pending[successor.task()]);
            fetch_ahead(&self.tasks[successor.task()]);
        });
    }
}

impl Replayed {
    /// See [`Recorded::fetch_successors`].
    #[inline]
    pub(crate) fn fetch_successors(&self) {
        self.recorded.fetch_successors(self.index as usize);
    }
}

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
            return Err(ReplayError::Foreign { what: "a recording", of: "runtime" });
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
        let first = core.number_tasks(count, &core.sole.enter());
        for _ in 0..if context.number == ContextId::DEFAULT { 0 } else { count } {
            context.in_flight.number();
        }
        recorded.first.store(first, Relaxed);
        if recorded.context.swap(context.number.0.into(), Relaxed) != u32::from(context.number.0) {
            recorded.tasks.iter().for_each(|task| core.records.get(task.slot.id()).move_to(context.number));
        }
        recorded.priority.store(priority.cast_unsigned(), Relaxed);
        recorded.left.store(recorded.sinks, Relaxed);
        *recorded.failed.lock() = None;
        let is_followed = context.ahead.is_attended() || core.capture().is_some();
        recorded.is_cancelled.store(false, Relaxed);
        core.replays.lock().push(Arc::clone(recorded));
        recorded.unasked.begin(core.backend.memories.is_none() && !is_followed);
        if context.ahead.is_attended() {
            core.announce_replay(context, recorded);
        }
        let entry = RareFields { launches: Some(Arc::clone(recorded)), ..RareFields::default() };
        let accesses: Vec<(&Arc<DataHeader>, AccessMode)> =
            accesses.list.iter().map(|(header, mode)| (header, *mode)).collect();
        let key = self.enter_turns(&accesses, entry);
        Ok(TaskRef { key, runtime: core.id })
    }

    /// The context of a replay, which counts its tasks from now on, and the priority of tasks that ask for none.
    fn admit_replay(&self, recorded: &Recorded) -> Result<(&ContextCore, i32), SubmitError> {
        let core = &*self.core;
        let codelet = || "a recording".to_owned();
        let (number, serial) = current(core.id);
        let context = core.roster.get(number);
        let (mut min, mut max) = (context.least.load(Relaxed), context.greatest.load(Relaxed));
        if min > max {
            (min, max) = core.look_closer(context, &codelet())?.into_inner();
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
    fn start_planned(&self, recorded: &Recorded, index: u32, requester: Option<WorkerId>, scratch: &mut WorkerScratch) {
        let planned = &recorded.tasks[index as usize];
        planned.fetch();
        recorded.set_up(index, planned);
        // Its predecessors have ended, and begin again in the next replay only.
        recorded.pending[index as usize].arm(planned.waits);
        planned.slot.head().sequence.store(recorded.first.load(Relaxed) + u64::from(index), Release);
        if planned.is_rare || !recorded.unasked.holds() {
            return self.start_rarely_planned(recorded, index, requester, scratch);
        }
        let context = recorded.context_now();
        self.schedule_plain(&self.roster.get(context).tree, context, planned.slot, requester, scratch);
    }

    /// The rest of [`start_planned`](Self::start_planned) for a task of which its record has to be asked.
    #[cold]
    fn start_rarely_planned(
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
        let context = recorded.context_now();
        for successor in recorded.successors_of(planned) {
            let index = successor.task();
            if let Some(cause) = failed.filter(|_| successor.is_explicit()) {
                let waiting = self.records.get(recorded.tasks[index].slot.id());
                waiting.body.lock().rare(waiting).cancelled.get_or_insert_with(|| Arc::clone(cause));
            }
            if recorded.pending[index].release() {
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
        self.replays.lock().retain(|other| !std::ptr::eq(&**other, recorded));
        let outcome = recorded.failed.lock().take().map_or(Outcome::Done, Outcome::Cancelled);
        // Before the entry ends: whoever waits for it may replay again.
        if recorded.state.end() {
            recorded.dismantle();
        }
        self.own_accesses.ended.fetch_add(1, SeqCst);
        scratch.end_later(entry, outcome);
    }
}
