//! What a worker's thread does.

use super::complete::{Hands, clear};
use super::core::Core;
use super::data::Mode;
use super::failure::{Cause, Outcome, TaskFailure};
use super::record::Taken;
use super::submit::Submitter;
use crate::tree::{Services, Slot};
use sched_core::WorkerId;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// How often an idle worker looks for a task before it goes to sleep: first in quick succession, then letting others on
/// its processing unit. Together some 20 µs, three times what waking it would cost.
const QUICK_LOOKS: u32 = 32;
const POLITE_LOOKS: u32 = 40;

thread_local! {
    /// The runtime and the worker whose thread this is.
    static THIS: Cell<Option<(u64, WorkerId)>> = const { Cell::new(None) };
}

/// The worker of `core` whose thread this is. (What a submitter was lent to says nothing: tasks hand it on to threads of
/// their own, which may touch neither the worker's counters nor its lane of the gate.)
pub(crate) fn this_worker(core: &Core) -> Option<WorkerId> {
    THIS.get().filter(|(runtime, _)| *runtime == core.id).map(|(_, worker)| worker)
}

/// One worker at work.
pub(crate) struct Worker {
    core: Arc<Core>,
    id: WorkerId,
    submitter: Submitter,
    hands: Hands,
}

impl Worker {
    pub(crate) fn new(core: Arc<Core>, id: WorkerId) -> Worker {
        let submitter = Submitter { core: Arc::clone(&core) };
        Worker { core, id, submitter, hands: Hands::of_worker() }
    }

    /// Executes tasks until the runtime stops.
    pub(crate) fn run(mut self) {
        THIS.set(Some((self.core.id, self.id)));
        while let Some(slot) = self.pull().or_else(|| self.wait_for_task()) {
            self.execute(slot);
        }
        self.core.give_back(&mut self.hands);
    }

    fn pull(&mut self) -> Option<&'static Slot> {
        let slot = self.core.tree.pull(self.id);
        if let Some(other) = self.hands.deferred.take() {
            // The wake was put off for a task that this pull was expected to give. It gave another; or there were several,
            // and the other worker may be the only one that comes by the others.
            if slot.is_none_or(|slot| self.hands.pushed != [slot.index()]) {
                self.core.clock.sleep.wake(other.0 as usize);
            }
        }
        self.hands.pushed.clear();
        slot
    }

    /// Looks for a task for a while, then sleeps until there is one; `None` when the runtime stops.
    fn wait_for_task(&mut self) -> Option<&'static Slot> {
        let core = Arc::clone(&self.core);
        let (me, sleep) = (self.id.0 as usize, &core.clock.sleep);
        let counters = &core.counters[me];
        let since = core.clock.now().as_nanos();
        counters.idle_since.store(since + 1, Relaxed);
        core.note_if_finished();
        core.give_back(&mut self.hands);
        let mut found = None;
        for look in 0..QUICK_LOOKS + POLITE_LOOKS {
            if look < QUICK_LOOKS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
            found = self.pull();
            if found.is_some() {
                break;
            }
        }
        while found.is_none() && !core.stop.load(SeqCst) {
            sleep.announce(me);
            found = self.pull();
            if found.is_some() || core.stop.load(SeqCst) {
                if sleep.retract(me) {
                    // Somebody counted on this worker for another task, which one like it can run.
                    let arch = core.facts[me].arch;
                    sleep.wake_any(|other| core.facts[other].arch == arch);
                }
                break;
            }
            // Here rather than earlier: a last task may have ended on another worker meanwhile.
            core.note_if_finished();
            counters.sleeps.store(counters.sleeps.load(Relaxed) + 1, Relaxed);
            sleep.sleep(me);
            sleep.retract(me);
            found = self.pull();
        }
        let idle = core.clock.now().as_nanos().saturating_sub(since);
        counters.idle.store(counters.idle.load(Relaxed) + idle, Relaxed);
        counters.idle_since.store(0, Relaxed);
        found
    }

    fn execute(&mut self, slot: &Slot) {
        let counters = &self.core.counters[self.id.0 as usize];
        counters.executing.store(slot.index() + 1, Relaxed);
        let mut taken = self.core.records.get(slot.index()).body.lock().take();
        let outcome = self.outcome(slot, &taken);
        if let (Outcome::Done, Some(job)) = (&outcome, &mut taken.job) {
            clear(&mut **job, &slot.head().sequence);
        }
        counters.executing.store(0, Relaxed);
        counters.executed.store(counters.executed.load(Relaxed) + 1, Relaxed);
        self.core.end(slot.index(), &outcome, taken, Some(self.id), &mut self.hands);
    }

    /// Runs the kernel, unless its input is bad.
    fn outcome(&self, slot: &Slot, taken: &Taken) -> Outcome {
        let Some(job) = &taken.job else { return Outcome::Done };
        let some_bad = self.core.ends.any_bad();
        if some_bad && let Some(cause) = self.bad_input(taken) {
            return Outcome::Cancelled(cause);
        }
        let arch = self.core.facts[self.id.0 as usize].arch;
        let chosen = Some(slot.head().implementation.load(Relaxed)).filter(|chosen| *chosen != u16::MAX).map(u32::from);
        let implementation =
            job.facts().select(arch, chosen).expect("the tree gives workers tasks that they can execute");
        match catch_unwind(AssertUnwindSafe(|| job.run(implementation, self.id, &self.submitter))) {
            Ok(()) => {
                if some_bad {
                    // What is written whole is good again. (What commutes may have become bad meanwhile, and stays so.)
                    job.visit(&mut |header, mode| {
                        if mode == Mode::Write {
                            header.failed.store(0, Release);
                        }
                    });
                }
                Outcome::Done
            }
            Err(payload) => {
                let facts = job.facts();
                let failure = TaskFailure {
                    task: slot.head().sequence.load(Relaxed),
                    codelet: facts.name.clone(),
                    implementation: facts.implementations[implementation].1.clone(),
                    name: taken.extra.as_ref().and_then(|extra| extra.name.as_deref().map(str::to_owned)),
                    worker: self.id.0,
                    message: message_of(&*payload),
                };
                // The drop of a payload may panic in its turn.
                std::mem::forget(payload);
                Outcome::Failed(Arc::new(failure))
            }
        }
    }

    fn bad_input(&self, taken: &Taken) -> Option<Cause> {
        let mut bad = 0;
        taken.job.as_ref()?.visit(&mut |header, mode| {
            let failed = header.failed.load(Acquire);
            if failed != 0 && mode.reads() {
                bad = failed;
            }
        });
        (bad != 0).then(|| self.core.ends.cause(bad)).flatten()
    }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
