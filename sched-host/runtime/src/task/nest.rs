//! Nesting: a task ends when the tasks have ended that it submitted to be part of it.
//!
//! # Protocol
//!
//! A task of a codelet that [nests](crate::CodeletBuilder::nests) has a [`NestState`]. When it ends, and which nested
//! tasks wait for the return of its kernel, is the protocol of [`family`](sched_sync::family): its data is free for
//! later tasks only at its end, and until the kernel has returned, it holds its data itself.
//!
//! Data of the task is ordered among its nested tasks alone: to all others it is the task that uses the data, and they
//! are behind it. In the order of all tasks, a nested one would wait for the task that it is part of, or for what waits
//! for that: such tasks are refused. So nested tasks name data of the task, or data that no unfinished task outside
//! keeps from them.
//!
//! A task that commutes has the turn at the data until it ends. Those nested in it, however deep, take none there: it
//! would not come. Where they commute on that data too, they are ordered as if they read and wrote it.

mod outside;

use super::codelet::{Codelet, Context};
use super::failure::{Cause, Outcome, SubmitError};
use super::private_order::PrivateOrder;
use super::record::{Dependent, RareFields, Taken, TaskKey};
use super::scratch::WorkerScratch;
use super::submit::{Accessed, Entered, Request, Restriction, Submitter, TaskBuilder, TaskRef, admit};
use crate::core::{Core, TaskPlace};
use crate::data::DataHeader;
use crate::data::access::AccessList;
use outside::Outside;
use parking_lot::Mutex;
use sched_core::WorkerId;
use sched_graph::AccessMode;
use sched_sync::family::Family;
use sched_tree::{Phase, Slot, SlotId};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Arc, OnceLock};

/// Submits tasks that are part of the running one; see [`Context::nest`].
pub struct Nest<'a> {
    submitter: &'a Submitter,
    state: Arc<NestState>,
}

impl fmt::Debug for Nest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nest").field("runtime", &self.submitter.core.id).finish_non_exhaustive()
    }
}

/// See the [module](self).
pub(crate) struct NestState {
    /// Slot of the task.
    slot: AtomicU32,
    /// Its sequence, and the task that it is nested in itself.
    place: OnceLock<(u64, Option<Arc<NestState>>)>,
    /// Data of the task.
    named: Vec<(Arc<DataHeader>, AccessMode)>,
    /// The nested tasks that have not ended, and those that wait for the return of the kernel.
    family: Family<SlotId>,
    inner: Mutex<NestInner>,
}

#[derive(Default)]
struct NestInner {
    order: PrivateOrder<TaskKey>,
    /// Sequences of the nested tasks.
    tasks: HashSet<u64>,
    /// Outcome of the kernel, once it has returned.
    returned: Option<Outcome>,
    /// The first failure of a nested task.
    failed: Option<Cause>,
}

impl NestInner {
    /// Whether a task has ended, or is nested here.
    fn is_known(&self, core: &Core, task: TaskKey) -> bool {
        core.is_ended(task) || self.tasks.contains(&task.sequence)
    }
}

impl NestState {
    pub(crate) fn new(named: Vec<(Arc<DataHeader>, AccessMode)>) -> Arc<NestState> {
        Arc::new(NestState {
            slot: AtomicU32::new(0),
            place: OnceLock::new(),
            named,
            family: Family::default(),
            inner: Mutex::default(),
        })
    }

    /// Sequences of the tasks that the task is nested in, the outermost first, and its own.
    fn path(&self) -> SmallVec<[u64; 2]> {
        let mut path = SmallVec::new();
        let mut around = self.place.get();
        while let Some((sequence, outer)) = around {
            path.push(*sequence);
            around = outer.as_ref().and_then(|outer| outer.place.get());
        }
        path.reverse();
        path
    }

    /// Whether the kernel has returned.
    pub(crate) fn has_returned(&self) -> bool {
        self.inner.lock().returned.is_some()
    }

    /// Whether the task, or one that it is nested in, commutes on this data: it has the turn there until it ends.
    fn has_turn(&self, header: &DataHeader) -> bool {
        let commutes =
            |(named, mode): &(Arc<DataHeader>, AccessMode)| named.id == header.id && *mode == AccessMode::Commute;
        let mut around = Some(self);
        while let Some(state) = around {
            if state.named.iter().any(commutes) {
                return true;
            }
            around = state.place.get().and_then(|(_, outer)| outer.as_deref());
        }
        false
    }

    /// Whether the task names this data; an error if it does not allow the access.
    fn covers(&self, header: &DataHeader, mode: AccessMode) -> Result<bool, &'static str> {
        let is_inside = |(named, _): &&(Arc<DataHeader>, AccessMode)| match (named.part(), header.part()) {
            (Some(named), Some(part)) => named.whole.id == part.whole.id && named.region.contains(&part.region),
            _ => named.id == header.id,
        };
        let mut inside = self.named.iter().filter(is_inside).map(|(_, mode)| *mode).peekable();
        if inside.peek().is_none() {
            return Ok(false);
        }
        let allows = |named: AccessMode| match named {
            AccessMode::Read | AccessMode::Redux => mode == named,
            AccessMode::Commute => mode != AccessMode::Commute,
            AccessMode::Write | AccessMode::ReadWrite => true,
            AccessMode::Scratch => false,
        };
        match inside.any(allows) {
            true => Ok(true),
            false => Err("the task that it is nested in names the data with an access that does not allow this one"),
        }
    }
}

impl Drop for NestState {
    /// One after the other: where tasks are nested a hundred thousand deep, each drop within the next would take more
    /// stack than there is.
    fn drop(&mut self) {
        let mut outer = self.place.take().and_then(|(_, outer)| outer);
        while let Some(mut state) = outer.and_then(Arc::into_inner) {
            outer = state.place.take().and_then(|(_, outer)| outer);
        }
    }
}

/// A nested task that a thread executes: its runtime, its sequence, and the tasks that it is nested among.
type Nested = (u64, u64, Arc<NestState>);

thread_local! {
    static NESTED: RefCell<Option<Nested>> = const { RefCell::new(None) };
}

/// Notes until it is dropped that this thread executes a nested task.
pub(crate) struct NestedHere(Option<Nested>);

impl NestedHere {
    /// Does so if the task is nested.
    pub(crate) fn note(runtime: u64, slot: &Slot, rare: &RareFields) -> Option<NestedHere> {
        let among = rare.nested_in.as_ref()?;
        let sequence = slot.head().sequence.load(Relaxed);
        Some(NestedHere(NESTED.replace(Some((runtime, sequence, Arc::clone(among))))))
    }
}

impl Drop for NestedHere {
    fn drop(&mut self) {
        NESTED.replace(self.0.take());
    }
}

/// Place, in the order in which tasks run one after the other, of a task that this thread executes: its sequence,
/// behind those of the tasks that it is nested in.
pub(crate) fn place_of(runtime: u64, sequence: u64) -> SmallVec<[u64; 2]> {
    let mut place = SmallVec::new();
    // Within its kernel, the thread may be a worker of another runtime.
    NESTED.with_borrow(|nested| match nested {
        Some((of, task, among)) if (*of, *task) == (runtime, sequence) => place = among.path(),
        _ => {}
    });
    place.push(sequence);
    place
}

impl<P> Context<'_, P> {
    /// Submits tasks that are part of this one: it ends, and its data is complete, when they have ended. The kernel
    /// returns without waiting for them. Its codelet is one that [nests](crate::CodeletBuilder::nests).
    ///
    /// Nested tasks name data of this task, or parts of it, in any order among themselves; they begin after the return
    /// of the kernel, which has the data until then. They may also name data that no unfinished task outside uses, such
    /// as what the kernel registers. Nested tasks may nest.
    ///
    /// If a nested task fails, this task is [cancelled](crate::Outcome::Cancelled) with that failure, though its kernel
    /// has run.
    ///
    /// ```
    /// use sched_runtime::{ArrayHandle, Codelet, Plan, ReadWrite, Runtime};
    /// use std::sync::{Arc, OnceLock};
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
    /// // Doubles an array, by halves.
    /// type Double = Codelet<(ReadWrite<[u64]>,), ArrayHandle<u64>>;
    /// let itself: Arc<OnceLock<Double>> = Arc::default();
    /// let halves = Arc::clone(&itself);
    /// let double: Double = runtime
    ///     .codelet("double")
    ///     .cpu("double", move |context: &sched_runtime::Context<'_, ArrayHandle<u64>>, (x,): (&mut [u64],)| {
    ///         if x.len() <= 100 {
    ///             x.iter_mut().for_each(|x| *x *= 2);
    ///             return;
    ///         }
    ///         let nest = context.nest();
    ///         for half in &context.params.partition(&Plan::ranges(2)).expect("there are two halves") {
    ///             let itself = halves.get().expect("it is set");
    ///             nest.task_with(itself, half.clone(), (half,)).submit().expect("it is part of x");
    ///         }
    ///     })
    ///     .nests()
    ///     .build();
    /// let _ = itself.set(double.clone());
    /// let x = runtime.array((0..1000).collect());
    /// let task = runtime.task_with(&double, x.clone(), (&x,)).submit()?;
    /// runtime.wait(task)?;
    /// assert!(runtime.read(&x)?.iter().zip(0..).all(|(x, number)| *x == 2 * number));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the codelet does not nest, or a member of a team calls it that is not the first.
    #[must_use]
    pub fn nest(&self) -> Nest<'_> {
        let submitter = self.submitter();
        let core = &submitter.core;
        let slot = core.counters.get(self.worker.index()).and_then(|counters| counters.executing.get());
        let state = slot.and_then(|slot| core.nests.lock().get(&slot).cloned());
        Nest { submitter, state: state.expect("tasks nest if their codelet was built with `nests()`") }
    }
}

impl Nest<'_> {
    /// Starts to build a nested task.
    pub fn task<'a, L: AccessList>(
        &'a self,
        codelet: &'a Codelet<L, ()>,
        data: L::Passed<'a>,
    ) -> TaskBuilder<'a, L, ()> {
        self.task_with(codelet, (), data)
    }

    /// Starts to build a nested task with parameters.
    pub fn task_with<'a, L: AccessList, P: Send + 'static>(
        &'a self,
        codelet: &'a Codelet<L, P>,
        params: P,
        data: L::Passed<'a>,
    ) -> TaskBuilder<'a, L, P> {
        self.submitter.task_with(codelet, params, data).nested_in(&self.state)
    }
}

/// Accesses of a task to data.
type Accesses<'h> = Vec<Accessed<'h>>;

impl Request<'_> {
    /// Checks that a nested task cannot wait for the task that it is nested in, unless for [other](Outside) data than that
    /// names. Returns its accesses to data that this task names, and those to other data, in the order of the ids.
    fn check_nested<'h>(
        &'h self,
        nest: &NestState,
        inner: &NestInner,
    ) -> Result<(Accesses<'h>, Accesses<'h>), SubmitError> {
        let core = &*self.submitter.core;
        let refused = |why| SubmitError::Nested { codelet: self.job.facts().name.clone(), why };
        let (mut accesses, mut own, mut others) = (Accesses::new(), Accesses::new(), Accesses::new());
        self.job.visit(&mut |header, mode| accesses.push((header, mode)));
        accesses.sort_by_key(|(header, _)| header.id);
        accesses.dedup_by_key(|(header, _)| header.id);
        for (header, mode) in accesses {
            let list = if nest.covers(header, mode).map_err(refused)? { &mut own } else { &mut others };
            list.push((header, mode));
        }
        if !self.after.iter().all(|task| inner.is_known(core, task.key())) {
            return Err(refused("it waits for a task outside, which may wait for the one that it is nested in"));
        }
        if nest.family.has_ended() {
            return Err(refused("the task that it is nested in has ended"));
        }
        Ok((own, others))
    }

    /// Submits a nested task.
    #[cold]
    pub(super) fn submit_nested(
        mut self,
        nest: &Arc<NestState>,
        footprint: u64,
        restriction: Option<Restriction>,
    ) -> Result<TaskRef, SubmitError> {
        let core = &*self.submitter.core;
        let facts = self.job.facts();
        let mut inner = nest.inner.lock();
        let (mut own, others) = self.check_nested(nest, &inner)?;
        // A task around may have a turn that this one would wait for.
        let mut had: SmallVec<[u64; 2]> = SmallVec::new();
        for (header, mode) in own.iter_mut().filter(|(_, mode)| *mode == AccessMode::Commute) {
            if nest.has_turn(header) {
                *mode = AccessMode::ReadWrite;
                had.push(header.id);
            }
        }
        let (context, priority) = admit(core, facts, self.context, self.priority, true)?;
        let mut right = core.sole.enter();
        let mut outside = Outside::lock(&others, &right);
        if !outside.is_free(&mut right, |task| inner.is_known(core, task)) {
            drop((outside, right));
            core.give_up_reserved(1, context);
            let why = "tasks outside use data that the task which it is nested in does not name";
            return Err(SubmitError::Nested { codelet: facts.name.clone(), why });
        }
        let Some(sequence) = core.number_tasks(1, context, &right) else { return Err(facts.ended()) };
        let place = core.take_slot(facts, &mut right);
        let entry = self.entry((place, sequence), context, priority, footprint, &[]);
        let (key, mut links) = core.enter(entry, &mut right);
        links += outside.enter(core, key, &mut right);
        drop((outside, right));
        place.slot.set_phase(Phase::Waiting);
        for (header, mode) in &own {
            inner.order.access(key, header, *mode, |before| {
                links += u32::from(before != key && core.link(before, Dependent::new(key.slot, false)));
            });
        }
        inner.tasks.insert(key.sequence);
        links += u32::from(nest.family.enter((!own.is_empty()).then_some(key.slot)));
        drop((inner, own, others));
        let rare = self.rare.get_or_insert_default();
        rare.turns.retain(|turn| !had.contains(&turn.id));
        rare.nested_in = Some(Arc::clone(nest));
        Ok(self.complete(Entered { context, place, key, links }, restriction))
    }
}

impl Core {
    /// Notes a task that nests, for its kernel.
    pub(super) fn note_nest(&self, key: TaskKey, rare: &RareFields) {
        if let Some(nest) = &rare.nests {
            nest.slot.store(key.slot.0, Relaxed);
            let _ = nest.place.set((key.sequence, rare.nested_in.clone()));
            self.nests.lock().insert(key.slot, Arc::clone(nest));
        }
    }

    /// The kernel of a task that nests has returned, or did not run: releases what waits for that. The task ends with
    /// the last of its nested tasks; or in the next step, if they have ended.
    #[cold]
    pub(super) fn nest_returned(
        &self,
        task: TaskPlace,
        outcome: &Outcome,
        taken: Taken,
        requester: Option<WorkerId>,
        scratch: &mut WorkerScratch,
    ) {
        let Some(nest) = taken.rare.as_ref().and_then(|rare| rare.nests.clone()) else { return };
        self.nests.lock().remove(&task.slot.id());
        let waiting = {
            let mut inner = nest.inner.lock();
            inner.returned = Some(outcome.clone());
            nest.family.returned()
        };
        // Whoever brings the count to 0 finds it there.
        let mut body = task.record.body.lock();
        (body.job, body.rare) = (taken.job, taken.rare);
        drop(body);
        for slot in waiting {
            let next = self.place(slot);
            if let Outcome::Failed(cause) | Outcome::Cancelled(cause) = outcome {
                let mut body = next.record.body.lock();
                body.rare(next.record).cancelled.get_or_insert_with(|| Arc::clone(cause));
            }
            if next.record.release() {
                self.schedule(next, requester, scratch);
            }
        }
        self.leave_nest(&nest, None, scratch);
    }

    /// A nested task has ended, or the kernel of the task that nests; `failed` if a nested task did.
    #[cold]
    pub(super) fn leave_nest(&self, nest: &NestState, failed: Option<&Cause>, scratch: &mut WorkerScratch) {
        if let Some(cause) = failed {
            nest.inner.lock().failed.get_or_insert_with(|| Arc::clone(cause));
        }
        if nest.family.leave() {
            scratch.end_later(SlotId(nest.slot.load(Relaxed)), nest.outcome());
        }
    }
}

impl NestState {
    /// Whether the kernel has returned, and did not fail.
    pub(crate) fn has_run(&self) -> bool {
        self.inner.lock().returned == Some(Outcome::Done)
    }

    /// Outcome of the task, when everything has ended. What it should have written is bad if a nested task failed.
    fn outcome(&self) -> Outcome {
        let inner = self.inner.lock();
        match (&inner.returned, &inner.failed) {
            (Some(Outcome::Done) | None, Some(cause)) => {
                let written = self.named.iter().filter(|(_, mode)| mode.writes());
                written.for_each(|(header, _)| header.note_bad(cause.task));
                Outcome::Cancelled(Arc::clone(cause))
            }
            (Some(outcome), _) => outcome.clone(),
            (None, None) => Outcome::Done,
        }
    }
}
