//! The thread of a worker: look for tasks, execute them, sleep.

pub(crate) mod acting;
pub(crate) mod at_hand;
pub(crate) mod main_worker;
pub(crate) mod notes;
pub(crate) mod progression;
pub(crate) mod seat;
pub(crate) mod stats;
pub(crate) mod times;

use super::core::{Core, TaskPlace};
use super::memory::Memories;
use super::parallel::combined::Purpose;
use super::parallel::crew::Crew;
use super::task::cancel::cancelled;
use super::task::codelet::CodeletFacts;
use super::task::complete::{LATE, clear};
use super::task::failure::{Cause, Outcome, TaskFailure};
use super::task::job::Job;
use super::task::nest::NestedHere;
use super::task::record::Taken;
use super::task::scratch::WorkerScratch;
use super::task::submit::Submitter;
use super::task::verdict::KernelError;
use super::worker::stats::WorkerCounters;
use crate::context::{ContextCore, enter_task};
use crate::recording::Scheduled;
use crossbeam::utils::CachePadded;
use notes::KernelEnd;
use sched_core::{Arch, Time, WorkerId};
use sched_graph::{AccessMode, ContextId};
use sched_machine::topology::BindingPlan;
use sched_sync::looks::{LOOKS, pause_before};
use sched_sync::sleep::Sleep;
use sched_trace::Event;
use sched_tree::seat::{Seat, Seated, Work};
use sched_tree::{Services, Slot};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// Number of looks of an idle worker before it takes tasks that wait at home with others in the replay that it is at:
/// about 1 µs, which is more than such a worker takes to come.
const OWN_LOOKS: u32 = 4;

/// Begins the message of a task whose data could not be copied.
const COPYING: &str = "while its data was copied to the worker's memory node: ";

thread_local! {
    /// The runtime and the worker that this thread is.
    static THIS: Cell<Option<(u64, WorkerId)>> = const { Cell::new(None) };
}

/// The worker of `core` that this thread is. (A submitter does not tell: tasks pass theirs on to their own threads,
/// which may touch neither the counters of the worker nor its lane of the gate.)
#[inline]
pub(crate) fn this_worker(core: &Core) -> Option<WorkerId> {
    THIS.get().filter(|(runtime, _)| *runtime == core.id).map(|(_, worker)| worker)
}

/// The context of the task that this thread executes for `core`, or [acts](acting) for, by its number.
pub(crate) fn executed_here(core: &Core) -> Option<ContextId> {
    let worker = this_worker(core).or_else(|| main_worker::outer_worker(core));
    let executing = worker.and_then(|worker| core.counters[worker.index()].executing.get());
    executing.map(|slot| core.records.get(slot).context()).or_else(|| acting::context_here(core))
}

/// The stay of a thread as a worker.
pub(crate) trait Stay {
    /// Whether it is over.
    fn is_over(&self, core: &Core) -> bool;

    /// Parks until the worker is woken, or there is another reason to look whether the stay is over.
    fn sleep(&mut self, sleep: &Sleep, worker: usize);
}

/// The stay of a worker's own thread: until the runtime stops.
pub(crate) struct UntilEnd;

impl Stay for UntilEnd {
    fn is_over(&self, core: &Core) -> bool {
        core.stop.load(SeqCst)
    }

    fn sleep(&mut self, sleep: &Sleep, worker: usize) {
        sleep.sleep(worker);
    }
}

/// One worker at work.
pub(crate) struct Worker {
    pub(crate) core: Arc<Core>,
    pub(crate) id: WorkerId,
    pub(crate) arch: Arch,
    pub(super) seat: Seat<Arc<ContextCore>>,
    /// Those of this worker among the counters of `core`.
    pub(crate) counters: Arc<CachePadded<WorkerCounters>>,
    pub(crate) submitter: Submitter,
    pub(crate) scratch: WorkerScratch,
    /// When the kernel started that its device executes, if components hear of that.
    pub(crate) started: Cell<Time>,
    /// The same by the time of its processor, if that is captured.
    processor_began: Cell<Duration>,
    /// Where workers are bound, for threads of the program that are this worker.
    pub(crate) binding: Option<BindingPlan>,
}

impl Worker {
    pub(crate) fn new(core: Arc<Core>, id: WorkerId) -> Worker {
        let submitter = Submitter { core: Arc::clone(&core) };
        let arch = core.facts[id.index()].arch;
        let counters = Arc::clone(&core.counters[id.index()]);
        Worker {
            core,
            id,
            arch,
            seat: Seat::new(id),
            counters,
            submitter,
            scratch: WorkerScratch::of_worker(),
            started: Cell::new(Time::ZERO),
            processor_began: Cell::new(Duration::ZERO),
            binding: None,
        }
    }

    /// Executes tasks until the runtime stops.
    pub(crate) fn run(mut self) {
        THIS.set(Some((self.core.id, self.id)));
        if let Some(device) = self.device() {
            self.drive(&device);
        }
        while let Some(work) =
            self.look().or_else(|| self.look_at_hands()).or_else(|| self.wait_for_task(&mut UntilEnd))
        {
            match work {
                Work::Alone(slot) => self.execute(slot),
                Work::Together(gathering) => self.attend(&gathering),
            }
        }
        self.core.give_back(&mut self.scratch);
    }

    /// Looks for a task for a while, then sleeps until there is one; `None` when the `stay` of this thread is over.
    pub(crate) fn wait_for_task(&mut self, stay: &mut impl Stay) -> Option<Work<Purpose>> {
        let core = Arc::clone(&self.core);
        let (me, sleep) = (self.id.index(), &core.backend.sleep);
        let counters = &core.counters[me];
        let since = core.backend.now().as_nanos();
        counters.idle_since.store(since + 1, Relaxed);
        core.backend.record(Some(self.id), || Event::Idle { worker: self.id });
        core.note_if_finished(Some(self.id));
        core.give_back(&mut self.scratch);
        let mut found = None;
        let mut is_expecting = false;
        for look in 0_u32.. {
            if stay.is_over(&core) || (look >= LOOKS && !is_expecting) {
                break;
            }
            pause_before(look);
            is_expecting = core.progress();
            found = self.look();
            if found.is_none() && (look >= OWN_LOOKS || !self.scratch.visits_a_replay()) {
                found = self.look_elsewhere();
            }
            if found.is_some() {
                break;
            }
        }
        while found.is_none() && !stay.is_over(&core) {
            sleep.announce(me);
            found = self.look().or_else(|| self.look_elsewhere());
            if found.is_some() || stay.is_over(&core) {
                if sleep.retract(me) {
                    self.seat.expect();
                    self.pass_wake_on();
                }
                break;
            }
            // Not earlier: the last task may have ended on another worker meanwhile.
            core.note_if_finished(Some(self.id));
            counters.sleeps.store(counters.sleeps.load(Relaxed) + 1, Relaxed);
            stay.sleep(sleep, me);
            if !sleep.retract(me) {
                // A late notice, or one that is no wake.
                continue;
            }
            core.backend.record(Some(self.id), || Event::Woken { worker: self.id });
            self.seat.expect();
            found = self.look().or_else(|| self.look_elsewhere());
            // The end of the runtime wakes every worker, without a task.
            if found.is_some() || !core.stop.load(SeqCst) {
                counters.count_wake(found.is_none());
            }
            self.answer_wake(found.as_ref());
        }
        let idle = core.backend.now().as_nanos().saturating_sub(since);
        counters.idle.store(counters.idle.load(Relaxed) + idle, Relaxed);
        counters.idle_since.store(0, Relaxed);
        found
    }

    /// Looks for a task that another worker has at hand, or that waits at home with one.
    fn look_elsewhere(&mut self) -> Option<Work<Purpose>> {
        let found = self.look_at_hands();
        if found.is_some() {
            return found;
        }
        match self.core.find_elsewhere(self.id, self.arch, &mut self.scratch) {
            Ok(found) => found.map(Work::Alone),
            Err(Scheduled) => self.look(),
        }
    }

    // Inlined into both loops that execute tasks: what it gets from `look` stays in registers.
    #[inline(always)]
    fn execute(&mut self, slot: &'static Slot) {
        let watch = self.core.outcomes.watch();
        if watch.for_turns() && !self.core.take_turns(self.core.place(slot.id()), self.id, &mut self.scratch) {
            return;
        }
        self.counters.executing.set(Some(slot.id()));
        if self.scratch.has_recording() && self.execute_unasked(slot, watch.for_bad_data()) {
            return;
        }
        let task = TaskPlace { slot, record: self.core.records.get(slot.id()) };
        enter_task(self.core.id, task.record.context());
        let mut taken = task.record.body.lock().take();
        if taken.rare.is_some() {
            self.execute_special(task, taken, watch.for_bad_data());
            return;
        }
        match self.run_taken(slot, &mut taken, watch.for_bad_data()) {
            Outcome::Done => self.core.end_here(task, &Outcome::Done, taken, Some(self.id), &mut self.scratch),
            otherwise => self.core.end(task, &otherwise, taken, Some(self.id), &mut self.scratch),
        }
    }

    /// Executes a task without a look at its record, if it belongs to the last replay, nobody follows that, and all
    /// data is good. Returns whether it did.
    // A function of its own, so that other tasks pay for one comparison only.
    #[inline(never)]
    fn execute_unasked(&mut self, slot: &'static Slot, some_bad: bool) -> bool {
        if some_bad || self.core.backend.is_followed.load(Relaxed) {
            return false;
        }
        let Some((recorded, index)) = self.scratch.take_unasked(slot) else { return false };
        recorded.fetch_successors(index);
        enter_task(self.core.id, recorded.context_now());
        let job = recorded.job(index);
        let is_predicted = self.note_begin(slot);
        let crew = Crew::alone(&self.id, &self.submitter);
        let (implementation, measures) = self.selected(slot, job.facts(), crew.members.len());
        let began = measures.then(Instant::now);
        let ran = catch_unwind(AssertUnwindSafe(|| job.run(implementation, &crew)));
        if let Some(began) = began.filter(|_| ran.is_ok()) {
            let (took, footprint) = (began.elapsed(), slot.head().footprint.load(Relaxed));
            job.facts().record((self.arch, 1), implementation, footprint, job, took);
        }
        self.count(is_predicted);
        let (core, worker) = (&*self.core, Some(self.id));
        match ran {
            Ok(()) => {
                core.end_unasked(&recorded, index, worker, &mut self.scratch);
                core.settle(worker, &mut self.scratch);
            }
            Err(payload) => {
                let task = TaskPlace { slot, record: core.records.get(slot.id()) };
                let taken = task.record.body.lock().take();
                let outcome = unwound(slot, &taken, implementation, self.id, payload);
                core.end(task, &outcome, taken, worker, &mut self.scratch);
            }
        }
        self.scratch.keep_recording(recorded);
        true
    }

    /// The rest of [`execute`](Self::execute) for a task with rare fields.
    #[inline(never)]
    fn execute_special(&mut self, task: TaskPlace, mut taken: Taken, some_bad: bool) {
        let nested = taken.rare.as_ref().and_then(|rare| {
            rare.fetch_ahead();
            NestedHere::note(self.core.id, task.slot, rare)
        });
        let outcome = self.run_taken(task.slot, &mut taken, some_bad);
        drop(nested);
        let (core, worker) = (&*self.core, Some(self.id));
        match (outcome, taken) {
            (Outcome::Done, Taken { job, rare: Some(rare) }) if rare.is_only_replayed() => {
                core.end_replayed(task, None, job, rare, worker, &mut self.scratch);
                core.settle(worker, &mut self.scratch);
            }
            (outcome, taken) => core.end(task, &outcome, taken, worker, &mut self.scratch),
        }
    }

    /// Runs the kernel of a task that this worker executes by itself.
    #[inline(always)]
    fn run_taken(&self, slot: &Slot, taken: &mut Taken, some_bad: bool) -> Outcome {
        let crew = Crew::alone(&self.id, &self.submitter);
        let is_predicted = self.note_begin(slot);
        let outcome = self.outcome(slot, taken, &crew, self.id, some_bad);
        self.count(is_predicted);
        outcome
    }

    /// Notes when a kernel on this worker alone should end, if that is predicted. Returns whether it is.
    // No function that takes what is between this and `count`: a closure would be a call.
    #[inline(always)]
    fn note_begin(&self, slot: &Slot) -> bool {
        let predicted = slot.head().predicted.load(Relaxed);
        let is_predicted = predicted != u64::MAX;
        if is_predicted {
            self.core.backend.times.pre_exec(self.id, self.core.backend.now(), predicted);
        }
        is_predicted
    }

    /// Counts a kernel that this worker alone has run.
    #[inline(always)]
    fn count(&self, is_predicted: bool) {
        if is_predicted {
            self.core.backend.times.post_exec(self.id);
        }
        self.counters.executing.set(None);
        self.counters.executed.store(self.counters.executed.load(Relaxed) + 1, Relaxed);
    }

    /// The implementation that a crew of this many runs, and whether it is measured.
    #[inline(always)]
    fn selected(&self, slot: &Slot, facts: &CodeletFacts, size: usize) -> (usize, bool) {
        let chosen = Some(slot.head().implementation.load(Relaxed)).filter(|chosen| *chosen != u16::MAX).map(u32::from);
        let implementation = facts.select(self.arch, size as u16, chosen);
        (implementation.expect("the tree gives workers tasks that they can execute"), facts.model.is_some())
    }

    /// Runs the kernel on `crew`, unless an input of it is bad. `worker` is this worker, or the combined one that it
    /// leads. `some_bad`: whether some data may be bad. Drops the arguments of a task that succeeded.
    #[inline(always)]
    pub(super) fn outcome(
        &self,
        slot: &Slot,
        taken: &mut Taken,
        crew: &Crew<'_>,
        worker: WorkerId,
        some_bad: bool,
    ) -> Outcome {
        let core = &*self.core;
        if some_bad && let Some(cause) = self.bad_input(slot, taken) {
            return Outcome::Cancelled(cause);
        }
        let Some(job) = &mut taken.job else { return taken.withdrawn() };
        let facts = job.facts();
        let size = crew.members.len();
        let (implementation, has_model) = self.selected(slot, facts, size);
        let keeps_nothing = facts.keeps_nothing;
        let is_followed = core.backend.is_followed.load(Relaxed);
        // Before the time of the kernel starts.
        if let Some(memories) = &core.backend.memories
            && let Err(why) = self.bring(memories, slot, &**job, crew)
        {
            return failed(slot, taken, implementation, worker, why);
        }
        if is_followed {
            self.note_start(slot, taken.rare.as_deref(), crew, worker);
        }
        let began = (has_model || is_followed).then(Instant::now);
        let ran = catch_unwind(AssertUnwindSafe(|| job.run(implementation, crew)));
        let took = began.map_or(Duration::ZERO, |began| began.elapsed());
        if is_followed {
            let end = KernelEnd { failed: ran.is_err(), length: took, by_device: false };
            self.note_end(slot, Some(job.facts()), crew, worker, end);
        }
        if let Err(payload) = ran {
            return unwound(slot, taken, implementation, worker, payload);
        }
        if has_model {
            let footprint = slot.head().footprint.load(Relaxed);
            job.facts().record((self.arch, size as u16), implementation, footprint, &**job, took);
        }
        if some_bad {
            // Data that is completely overwritten is good again. (Data accessed with commute may have become bad
            // meanwhile, and stays bad.)
            job.visit(&mut |header, mode| {
                if mode == AccessMode::Write {
                    header.note_good();
                }
            });
        }
        if !keeps_nothing {
            clear(&mut **job, &slot.head().sequence);
        }
        Outcome::Done
    }

    /// Brings the data of a task to the memory node of the first member of the crew. Returns on failure whether it was
    /// a panic, and the message.
    #[cold]
    #[inline(never)]
    fn bring(&self, memories: &Memories, slot: &Slot, job: &dyn Job, crew: &Crew<'_>) -> Result<(), (bool, String)> {
        self.note_pulled(slot);
        let brought = catch_unwind(AssertUnwindSafe(|| memories.bring(job, crew.first())));
        match brought {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err((false, format!("{COPYING}{error}"))),
            Err(payload) => Err((true, message_of(payload, COPYING))),
        }
    }

    #[cold]
    pub(crate) fn bad_input(&self, slot: &Slot, taken: &Taken) -> Option<Cause> {
        if let (Some(rare), Some(job)) = (&taken.rare, &taken.job)
            && rare.deadline.is_some_and(|deadline| deadline <= Instant::now())
        {
            return Some(cancelled(slot, job.facts().name.clone(), rare.name.as_deref(), LATE));
        }
        let mut bad = 0;
        taken.job.as_ref()?.visit(&mut |header, mode| {
            let failed = header.failed();
            if failed != 0 && mode.reads() {
                bad = failed;
            }
        });
        (bad != 0).then(|| self.core.outcomes.cause(bad)).flatten()
    }
}

/// The failure of a task whose kernel ended with this payload.
#[cold]
#[inline(never)]
pub(crate) fn unwound(
    slot: &Slot,
    taken: &Taken,
    implementation: usize,
    worker: WorkerId,
    payload: Box<dyn Any + Send>,
) -> Outcome {
    match payload.downcast::<KernelError>() {
        Ok(error) => failed(slot, taken, implementation, worker, (false, error.0)),
        Err(payload) => failed(slot, taken, implementation, worker, (true, message_of(payload, ""))),
    }
}

/// The failure of a task whose kernel failed, or did not start: whether by a panic, and the message.
#[cold]
#[inline(never)]
pub(crate) fn failed(
    slot: &Slot,
    taken: &Taken,
    implementation: usize,
    worker: WorkerId,
    why: (bool, String),
) -> Outcome {
    let facts = taken.job.as_ref().map(|job| job.facts());
    let (panicked, message) = why;
    Outcome::Failed(Arc::new(TaskFailure {
        task: slot.head().sequence.load(Relaxed),
        codelet: facts.map_or_else(String::new, |facts| facts.name.clone()),
        implementation: facts.map_or_else(String::new, |facts| facts.implementations[implementation].name.clone()),
        name: taken.rare.as_ref().and_then(|rare| rare.name.as_deref().map(str::to_owned)),
        worker: worker.0,
        panicked,
        cancelled: false,
        message,
    }))
}

/// Message of a panic, after a description of the activity.
#[cold]
#[inline(never)]
fn message_of(payload: Box<dyn Any + Send>, doing: &str) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    // The drop of a payload may panic in turn.
    std::mem::forget(payload);
    format!("{doing}{}", text.unwrap_or_else(|| "a panic without a message".to_owned()))
}
