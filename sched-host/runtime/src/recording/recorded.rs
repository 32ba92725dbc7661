//! A recorded graph: its tasks, what waits for what, and the state of the replay in progress.

use super::draft::SinksLeft;
use super::homes::Homes;
use super::job::RecordedJob;
use super::kept::Changing;
use super::planned::{Planned, RarelyPlanned, Replayed, Successor};
use super::standing::Standing;
use super::{ReplayError, State};
use crate::capture::{Capture, Submission};
use crate::core::Core;
use crate::data::DataHeader;
use crate::task::complete::aside;
use crate::task::failure::Cause;
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use sched_core::{fetch_ahead, fetch_to_write};
use sched_graph::{AccessMode, ContextId};
use sched_sync::at_home::{Count, Round, Shelf, Whereabouts};
use sched_sync::unasked::Unasked;
use sched_tree::{Phase, Slot};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};

/// The slot of the entry of a recording that waits for its turn, or does not run.
pub(super) const NOT_LAUNCHED: u32 = u32::MAX;

/// Numbers of tasks of a replay in progress that have not entered a tree.
#[derive(Clone, Copy, Default)]
pub(crate) struct NotEntered {
    /// Those that wait for others.
    pub(crate) waiting: u64,
    /// Those that wait at home.
    pub(crate) at_home: u64,
}

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
    pub(super) rarely: BTreeMap<u32, RarelyPlanned>,
    /// What each task waits for in the replay in progress, and whether it has begun. Close together, and apart from the
    /// records: who ends a task counts down those of several others, which lie side by side where a program submits
    /// tasks row by row, and touches the record of none that has to wait longer.
    pub(super) counts: Box<[Count]>,
    /// The tasks that wait for others, in the order of those.
    pub(super) successors: Box<[Successor]>,
    /// Indices of the tasks that wait for no other.
    pub(super) roots: Box<[u32]>,
    /// Number of tasks that no other waits for.
    pub(super) sinks: u32,
    pub(super) accesses: Mutex<Arc<Accesses>>,
    pub(super) standing: Standing,
    /// Where they are at home.
    pub(super) homes: Homes,
    /// Where each worker is among the tasks at home with it.
    pub(super) shelves: Box<[Shelf]>,
    /// Number of replays so far.
    pub(super) round: AtomicU32,
    /// Whether tasks of the replay in progress [wait at home](super::at_home).
    pub(super) waits_at_home: AtomicBool,
    /// Whether more of them are left there.
    pub(super) leaves: AtomicBool,
    /// Priorities that tasks ask for.
    pub(super) priorities: Option<RangeInclusive<i32>>,
    /// Of the replay in progress: sequence of the first task, number of its context, priority of tasks that ask for
    /// none, tasks of `sinks` that have not ended, slot of its entry, and the first failure.
    pub(super) first: AtomicU64,
    pub(super) priority: AtomicU32,
    pub(super) left: CachePadded<SinksLeft>,
    pub(super) entry: AtomicU32,
    pub(super) failed: Mutex<Option<Cause>>,
    /// Whether tasks of the replay in progress run without a look at their records: nobody follows submissions or moves
    /// data, no task has failed, and none was withdrawn.
    pub(super) unasked: Unasked,
    /// Whether the program has cancelled what had not begun.
    pub(super) is_cancelled: AtomicBool,
    /// Number of the context that the records of the tasks name, if they name one.
    pub(super) context: AtomicU32,
}

/// What [`Recorded::context`] is before the first replay.
const NO_CONTEXT: u32 = u32::MAX;

/// What the tasks of a recording access together.
pub(super) struct Accesses {
    /// In the order of the ids of the data.
    pub(super) list: Vec<(Arc<DataHeader>, AccessMode)>,
    /// Whether some of the data belongs to scopes.
    pub(super) has_loans: bool,
    /// Whether submissions treat some of the data [apart](DataHeader::is_special).
    pub(super) has_special: bool,
}

impl Accesses {
    fn new(list: Vec<(Arc<DataHeader>, AccessMode)>) -> Accesses {
        let has_loans = list.iter().any(|(header, _)| header.loan().is_some());
        let has_special = list.iter().any(|(header, _)| header.is_special());
        Accesses { list, has_loans, has_special }
    }
}

/// What was worked out about a recording.
pub(super) struct RecordedGraph {
    pub(super) tasks: Box<[Planned]>,
    pub(super) rarely: BTreeMap<u32, RarelyPlanned>,
    pub(super) successors: Box<[Successor]>,
    pub(super) accesses: Vec<(Arc<DataHeader>, AccessMode)>,
    pub(super) homes: Homes,
    pub(super) priorities: Option<RangeInclusive<i32>>,
}

impl Recorded {
    pub(super) fn new(core: &Arc<Core>, id: u64, graph: RecordedGraph) -> Arc<Recorded> {
        let RecordedGraph { tasks, rarely, successors, accesses, homes, priorities } = graph;
        let counts = tasks.iter().map(|task| Count::new(task.waits)).collect();
        let roots = (0..).zip(&tasks).filter(|(_, task)| task.waits == 0).map(|(index, _)| index).collect();
        let sinks = tasks.iter().filter(|task| task.is_sink()).count() as u32;
        Arc::new(Recorded {
            core: Arc::downgrade(core),
            runtime: core.id,
            id,
            state: State::default(),
            tasks,
            rarely,
            counts,
            successors,
            roots,
            sinks,
            accesses: Mutex::new(Arc::new(Accesses::new(accesses))),
            standing: Standing::default(),
            homes,
            shelves: core.facts.iter().map(|_| Shelf::default()).collect(),
            round: AtomicU32::new(0),
            waits_at_home: AtomicBool::new(false),
            leaves: AtomicBool::new(false),
            priorities,
            first: AtomicU64::new(0),
            context: AtomicU32::new(NO_CONTEXT),
            priority: AtomicU32::new(0),
            left: CachePadded::new(SinksLeft::new(0)),
            entry: AtomicU32::new(NOT_LAUNCHED),
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
        self.standing.leave();
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
    pub(super) fn note_in(&self, core: &Core, capture: &Capture, context: ContextId) {
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
            let Some(rare) = &body.rare else { continue };
            let job = &task.job;
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

    /// Counts the tasks that have not entered a tree, for a report.
    pub(crate) fn not_entered(&self) -> NotEntered {
        let (round, launched) = (Round(self.round.load(Acquire)), self.entry.load(Relaxed) != NOT_LAUNCHED);
        let mut counted = NotEntered::default();
        // Others are counted by their phases, also those that wait where the program follows all tasks.
        for (task, count) in self.tasks.iter().zip(&self.counts).filter(|(task, _)| task.slot.phase() == Phase::Free) {
            match (task.waits, count.whereabouts(round)) {
                (0, _) => counted.waiting += u64::from(!launched),
                (_, Whereabouts::Waits) => counted.waiting += 1,
                (_, Whereabouts::Left) => counted.at_home += 1,
                (_, Whereabouts::Taken) => {}
            }
        }
        counted
    }

    /// Sets up what components see of a task.
    #[inline]
    pub(super) fn set_up(&self, index: u32, planned: &Planned) {
        let head = planned.slot.head();
        match planned.has_priority {
            // A component may have changed it in the last replay.
            true => head.restore_priority(),
            false => head.priority.store(self.priority.load(Relaxed).cast_signed(), Relaxed),
        }
        head.reset();
        if let Some(home) = planned.home() {
            head.set_home(home);
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
    pub(super) fn successors_of(&self, planned: &Planned) -> &[Successor] {
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
        self.rarely.values().for_each(|rarely| drop(std::mem::take(&mut *rarely.turns.lock())));
        let accesses = std::mem::replace(&mut *self.accesses.lock(), Arc::new(Accesses::new(Vec::new())));
        drop(accesses);
        let places = self.tasks.iter().map(|task| core.place(task.slot.id()));
        core.keep_fresh_places(places.chain(self.standing.dismantle(&core)));
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
            fetch_to_write(&self.counts[successor.task()]);
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
