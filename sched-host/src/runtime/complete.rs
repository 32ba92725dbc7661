//! What happens when a task becomes ready, and when it ends.

use super::core::{Core, NO_CODELET};
use super::data::DataHeader;
use super::failure::{Cause, Outcome};
use super::record::{Dependent, Taken};
use crate::tree::Phase;
use sched_core::WorkerId;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// What a thread has in its hands while tasks end: kept from one end to the next, so that no memory is asked for.
#[derive(Default)]
pub(crate) struct Hands {
    dependents: Vec<Dependent>,
    /// Tasks that end without having run.
    cancelled: Vec<(u32, Cause)>,
    /// Tasks to schedule again, since a turn was given back.
    retry: Vec<u32>,
    /// Slots of tasks that this thread made ready since it last pulled, where it will pull itself.
    pub(crate) pushed: Vec<u32>,
    /// This thread will pull a task next.
    will_pull: bool,
    /// A worker to wake if the next pull gives another task than one of `pushed`.
    pub(crate) deferred: Cell<Option<WorkerId>>,
    /// Codelets, and slots to give back to them.
    freed: Vec<(u32, u32)>,
}

impl Hands {
    /// For a worker, which pulls by itself.
    pub(crate) fn of_worker() -> Hands {
        Hands { will_pull: true, ..Hands::default() }
    }
}

/// Slots are given back in batches of this size.
const FREED_BATCH: usize = 64;

impl Core {
    /// Everything that the task in `slot` waited for has ended. `requester` is the worker whose thread this is, here and
    /// everywhere below.
    pub(crate) fn make_ready(&self, slot: u32, requester: Option<WorkerId>, hands: &mut Hands) {
        self.schedule(slot, requester, hands);
        self.settle(requester, hands);
    }

    /// The task in `slot` ends, and so may others that are cancelled with it.
    pub(crate) fn end(
        &self,
        slot: u32,
        outcome: &Outcome,
        taken: Taken,
        requester: Option<WorkerId>,
        hands: &mut Hands,
    ) {
        self.end_one(slot, outcome, taken, requester, hands);
        self.settle(requester, hands);
    }

    /// Ends and schedules what earlier ends left to do, without recursion: a chain of cancelled tasks may be long.
    fn settle(&self, requester: Option<WorkerId>, hands: &mut Hands) {
        loop {
            if let Some((slot, cause)) = hands.cancelled.pop() {
                let taken = self.records.get(slot).body.lock().take();
                self.end_one(slot, &Outcome::Cancelled(cause), taken, requester, hands);
            } else if let Some(slot) = hands.retry.pop() {
                self.schedule(slot, requester, hands);
            } else {
                break;
            }
        }
    }

    /// Pushes a ready task into the tree, or notes that it ends without running.
    fn schedule(&self, slot: u32, requester: Option<WorkerId>, hands: &mut Hands) {
        let record = self.records.get(slot);
        if record.is_special() {
            let mut body = record.body.lock();
            let is_task = body.job.is_some();
            let extra = body.extra(record);
            if let Some(cause) = extra.cancelled.take() {
                // It has had no turn that it could give back.
                extra.turns.clear();
                hands.cancelled.push((slot, cause));
                return;
            }
            if !extra.turns.is_empty() && !take_turns(slot, &extra.turns, &mut hands.retry) {
                return;
            }
            if !is_task {
                // The application's own access: it is told that its turn has come, and ends the access itself.
                let ready = extra.callback.take();
                drop(body);
                if let Some(ready) = ready {
                    ready(&Outcome::Done);
                }
                return;
            }
        }
        let deferred = hands.will_pull.then_some(&hands.deferred);
        if hands.will_pull {
            hands.pushed.push(slot);
        }
        self.tree.push(self.ledger.slot(slot), requester, deferred);
    }

    fn end_one(&self, slot: u32, outcome: &Outcome, taken: Taken, requester: Option<WorkerId>, hands: &mut Hands) {
        let (record, current) = (self.records.get(slot), &self.ledger.slot(slot).head().sequence);
        let Taken { mut job, mut extra } = taken;
        let failed = match outcome {
            Outcome::Done => None,
            Outcome::Failed(cause) | Outcome::Cancelled(cause) => Some(cause),
        };
        if let Some(cause) = failed {
            self.ends.note_bad(current.load(Relaxed), outcome, cause);
            if let Some(job) = &job {
                job.visit(&mut |header, mode| {
                    if mode.writes() {
                        header.failed.store(cause.task, Release);
                    }
                });
            }
        }
        let task = current.load(Relaxed);
        // The drop of arguments, and the callback, are the application's code: no lock is held while they run, and
        // however long they take is no stall.
        let executing = requester.map(|worker| &self.counters[worker.0 as usize].executing);
        let before = executing.map(|executing| {
            // Only the worker itself writes it.
            let before = executing.load(Relaxed);
            executing.store(slot + 1, Relaxed);
            before
        });
        if let Some(job) = &mut job {
            aside(task, "the drop of a task's arguments", || job.clear());
        }
        if let Some(callback) = extra.as_mut().and_then(|extra| extra.callback.take()) {
            aside(task, "a callback", || callback(outcome));
        }
        executing.inspect(|executing| executing.store(before.unwrap_or(0), Relaxed));
        for header in extra.iter().flat_map(|extra| &extra.turns) {
            header.give_turn(&mut hands.retry);
        }
        let codelet = job.as_ref().map_or(NO_CODELET, |job| job.facts().number);
        let watched = {
            let mut body = record.body.lock();
            body.job = job;
            hands.dependents.extend(body.dependents.drain(..));
            record.close(current);
            let watched = record.watched.load(Relaxed);
            if watched {
                record.watched.store(false, Relaxed);
            }
            watched
        };
        self.ledger.slot(slot).renew(Phase::Free);
        hands.freed.push((codelet, slot));
        if hands.freed.len() >= FREED_BATCH {
            self.give_back(hands);
        }
        let mut dependents = std::mem::take(&mut hands.dependents);
        for dependent in dependents.drain(..) {
            let waiting = self.records.get(dependent.slot());
            if let Some(cause) = failed.filter(|_| dependent.is_explicit()) {
                let mut body = waiting.body.lock();
                body.extra(waiting).cancelled.get_or_insert_with(|| Arc::clone(cause));
            }
            if waiting.release() {
                self.schedule(dependent.slot(), requester, hands);
            }
        }
        hands.dependents = dependents;
        self.count_finished(requester);
        if watched {
            self.ends.tell();
        }
    }

    fn count_finished(&self, requester: Option<WorkerId>) {
        match requester {
            Some(worker) => {
                // Only the worker itself writes its counter.
                let finished = &self.counters[worker.0 as usize].finished;
                finished.store(finished.load(Relaxed) + 1, Release);
            }
            None => {
                self.finished_outside.fetch_add(1, SeqCst);
                self.note_if_finished();
            }
        }
    }

    /// Gives free slots back to the codelets whose jobs they hold.
    pub(crate) fn give_back(&self, hands: &mut Hands) {
        hands.freed.sort_unstable();
        for of_codelet in hands.freed.chunk_by(|a, b| a.0 == b.0) {
            let slots = of_codelet.iter().map(|(_, slot)| *slot);
            match self.codelets.read().get(of_codelet[0].0 as usize) {
                Some(facts) => facts.slots.put_back(slots),
                None => self.keep_fresh(slots),
            }
        }
        hands.freed.clear();
    }
}

/// Runs the application's code beside a kernel. A panic is logged.
fn aside(task: u64, what: &str, body: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        // The drop of a payload may panic in its turn.
        std::mem::forget(payload);
        tracing::error!(task, "{what} panicked");
    }
}

/// Takes the turn at each data, or none: then the task waits for the first that is taken.
fn take_turns(slot: u32, turns: &[Arc<DataHeader>], retry: &mut Vec<u32>) -> bool {
    for (number, header) in turns.iter().enumerate() {
        if !header.take_turn(slot) {
            turns[..number].iter().for_each(|taken| taken.give_turn(retry));
            return false;
        }
    }
    true
}
