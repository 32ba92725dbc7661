//! The worker of a device: a pipeline of tasks.
//!
//! While a kernel runs, the worker pulls the next task, copies its inputs, and launches its kernel behind the first. So
//! copies overlap with kernels, and the device goes from one kernel to the next without the host. The worker waits in
//! the driver for the end of the first kernel, without using a core where the driver can do that.
//!
//! A task that the device has no room for waits until those before it have ended and their data can be evicted; then it
//! is handed to other workers, or fails. So is every task that a lost device pulls.

use super::scratch::Status;
use super::{Device, Launched};
use crate::context::enter_task;
use crate::core::TaskPlace;
use crate::data::Places;
use crate::parallel::crew::Crew;
use crate::task::complete::clear;
use crate::task::failure::Outcome;
use crate::task::job::Job;
use crate::task::record::Taken;
use crate::worker::notes::KernelEnd;
use crate::worker::{UntilEnd, Worker, failed, unwound};
use sched_core::driver::{DriverError, DriverErrorKind, Finished, Token};
use sched_core::{ArchSet, WorkerSet};
use sched_graph::AccessMode;
use sched_tree::seat::{Seated, Work};
use sched_tree::{Phase, Services, Slot};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Number of tasks in the pipeline: one that runs, and one whose inputs are copied.
const DEPTH: usize = 2;

/// A task that the worker has pulled.
struct Prepared {
    slot: &'static Slot,
    taken: Taken,
    implementation: usize,
    /// Whether some data may be bad.
    some_bad: bool,
}

/// A task whose kernel is on the device.
struct UnderWay {
    task: Prepared,
    token: Token,
    launched: Instant,
    is_measured: bool,
    status: Option<Status>,
}

impl UnderWay {
    /// Its end, with what is to be read then: `end` is what the driver says.
    fn conclude(
        self,
        device: &Device,
        end: Result<Finished, DriverError>,
    ) -> (Prepared, Result<Finished, DriverError>) {
        let concluded = end.and_then(|finished| {
            self.status.map_or(Ok(()), |status| device.conclude(status))?;
            Ok(Finished { nanos: finished.nanos.filter(|_| self.is_measured) })
        });
        (self.task, concluded)
    }
}

/// What became of a task that was to start.
enum Start {
    UnderWay(UnderWay),
    /// It waits for the end of those before it.
    NoRoom(Prepared, DriverError),
    /// It has ended, or others have it.
    Gone,
}

impl Worker {
    /// The device that this worker drives.
    pub(crate) fn device(&self) -> Option<Arc<Device>> {
        self.core.device_of(self.id).cloned()
    }

    /// Executes tasks on a device until the runtime stops.
    pub(crate) fn drive(&mut self, device: &Arc<Device>) {
        let mut pipeline: VecDeque<UnderWay> = VecDeque::with_capacity(DEPTH);
        let mut waiting: Option<(Prepared, DriverError)> = None;
        let mut last_end = Instant::now();
        loop {
            // A device without threads of its own has ended a kernel when it is launched. What waits for its end does
            // not wait for the next task as well.
            let first = pipeline.front().map(|first| device.note(device.driver.poll(device.number, first.token)));
            if let Some(end) = first.and_then(Result::transpose)
                && let Some(first) = pipeline.pop_front()
            {
                last_end = self.leave(device, first, end, last_end, &pipeline);
                continue;
            }
            let next = match waiting.take() {
                Some((task, error)) if pipeline.is_empty() => {
                    self.start_alone(device, task, error);
                    continue;
                }
                Some(wait) => {
                    waiting = Some(wait);
                    None
                }
                None if pipeline.is_empty() => match self.look().or_else(|| self.wait_for_task(&mut UntilEnd)) {
                    Some(work) => Some(work),
                    None => break,
                },
                None if pipeline.len() < DEPTH => self.look(),
                None => None,
            };
            match next {
                Some(Work::Alone(slot)) => {
                    let Some(task) = self.prepare(device, slot) else { continue };
                    match self.start(device, task, pipeline.is_empty()) {
                        Start::UnderWay(task) => pipeline.push_back(task),
                        Start::NoRoom(task, error) => waiting = Some((task, error)),
                        Start::Gone => {}
                    }
                }
                Some(Work::Together(gathering)) => self.attend(&gathering),
                None => {
                    let Some(first) = pipeline.pop_front() else { continue };
                    let end = device.note(device.driver.wait(device.number, first.token));
                    last_end = self.leave(device, first, end, last_end, &pipeline);
                }
            }
        }
    }

    /// Ends the task that was the first of the pipeline, after the one that ended at `last_end`; returns when it ended.
    fn leave(
        &mut self,
        device: &Device,
        first: UnderWay,
        end: Result<Finished, DriverError>,
        last_end: Instant,
        others: &VecDeque<UnderWay>,
    ) -> Instant {
        let (length, now) = (first.launched.max(last_end).elapsed(), Instant::now());
        let (task, end) = first.conclude(device, end);
        self.finish(device, task, end, length);
        if let Some(next) = others.front() {
            self.present(&next.task);
        }
        now
    }

    /// Starts a task that had no room beside others, and waits for its end. Where others use what stands in the way, it
    /// waits until they do not; where nothing does and there is no room, it gives up.
    fn start_alone(&mut self, device: &Arc<Device>, mut task: Prepared, error: DriverError) {
        let started = loop {
            let seen = device.arena.changes();
            match self.start(device, task, true) {
                Start::NoRoom(again, _) if device.arena.wait_for_change(seen) => task = again,
                other => break other,
            }
        };
        match started {
            Start::UnderWay(started) => {
                let end = device.note(device.driver.wait(device.number, started.token));
                let length = started.launched.elapsed();
                let (task, end) = started.conclude(device, end);
                self.finish(device, task, end, length);
            }
            Start::NoRoom(task, _) => self.hand_on(task, &error),
            Start::Gone => {}
        }
    }

    /// Takes a task that was pulled; `None` if it ends or waits without being executed.
    fn prepare(&mut self, device: &Device, slot: &'static Slot) -> Option<Prepared> {
        let watch = self.core.outcomes.watch();
        if watch.for_turns() && !self.core.take_turns(self.core.place(slot.id()), self.id, &mut self.scratch) {
            return None;
        }
        let record = self.core.records.get(slot.id());
        enter_task(self.core.id, record.context());
        let mut taken = record.body.lock().take();
        let some_bad = watch.for_bad_data();
        let cause = if some_bad { self.bad_input(slot, &taken) } else { None };
        if let Some(cause) = cause {
            self.end(slot, taken, &Outcome::Cancelled(cause));
            return None;
        }
        let Some(job) = &taken.job else {
            let outcome = taken.withdrawn();
            self.end(slot, taken, &outcome);
            return None;
        };
        let chosen = Some(slot.head().implementation.load(Relaxed)).filter(|chosen| *chosen != u16::MAX).map(u32::from);
        let implementation = job.facts().select(self.arch, 1, chosen);
        let implementation = implementation.expect("the tree gives workers tasks that they can execute");
        let task = Prepared { slot, taken, implementation, some_bad };
        if device.is_lost() {
            self.hand_on(task, &DriverError::new(DriverErrorKind::Lost, device.name()));
            return None;
        }
        Some(task)
    }

    /// Copies the inputs of a task and launches its kernel, which the device executes at once if it `is_first`.
    fn start(&mut self, device: &Device, mut task: Prepared, is_first: bool) -> Start {
        let core = Arc::clone(&self.core);
        let (Some(job), Some(memories)) = (&task.taken.job, &core.backend.memories) else { return Start::Gone };
        pin(&**job, device, true);
        self.note_pulled(task.slot);
        let brought = catch_unwind(AssertUnwindSafe(|| memories.bring(&**job, self.id)));
        let error = match brought {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(payload) => {
                pin(&**job, device, false);
                let outcome = unwound(task.slot, &task.taken, task.implementation, self.id, payload);
                self.end(task.slot, task.taken, &outcome);
                return Start::Gone;
            }
        };
        if let Some(error) = error {
            pin(&**job, device, false);
            match error.kind {
                DriverErrorKind::OutOfMemory => return Start::NoRoom(task, error),
                DriverErrorKind::Lost if device.is_lost() => self.hand_on(task, &error),
                _ => {
                    let why = (false, format!("while its data was copied to {}: {error}", device.name()));
                    let outcome = failed(task.slot, &task.taken, task.implementation, self.id, why);
                    self.end(task.slot, task.taken, &outcome);
                }
            }
            return Start::Gone;
        }
        let (submitter, me) = (self.submitter.clone(), self.id);
        let crew = Crew::alone(&me, &submitter);
        if is_first {
            self.present(&task);
        }
        // A closure of the program asks which task it belongs to, also while the device executes the kernel of another.
        let executing = &core.counters[self.id.index()].executing;
        let before = executing.get();
        executing.set(Some(task.slot.id()));
        let launched = Instant::now();
        let ran = catch_unwind(AssertUnwindSafe(|| job.run(task.implementation, &crew)));
        executing.set(before);
        match (ran, device.take_launched()) {
            (Ok(()), Launched { token: Some(token), is_measured, status }) => {
                Start::UnderWay(UnderWay { task, token, launched, is_measured, status })
            }
            // An implementation for this architecture that is a closure has run here.
            (Ok(()), Launched { token: None, .. }) => {
                if !is_first {
                    self.present(&task);
                }
                self.finish(device, task, Ok(Finished::default()), launched.elapsed());
                if !is_first {
                    executing.set(before);
                }
                Start::Gone
            }
            (Err(payload), _) => {
                // A closure that fails or panics may have put work on the device before, which uses the buffers.
                let _ = device.finish(device.driver.mark(device.number, 0));
                pin(&**job, device, false);
                let outcome = unwound(task.slot, &task.taken, task.implementation, self.id, payload);
                task.some_bad = false;
                if is_first {
                    self.withdraw(&task, true, None);
                }
                self.end(task.slot, task.taken, &outcome);
                Start::Gone
            }
        }
    }

    /// Notes that the kernel of a task is the one that the device executes.
    fn present(&mut self, task: &Prepared) {
        let core = &self.core;
        self.counters.executing.set(Some(task.slot.id()));
        let predicted = task.slot.head().predicted.load(Relaxed);
        if predicted != u64::MAX {
            core.backend.times.pre_exec(self.id, core.backend.now(), predicted);
        }
        if core.backend.is_followed.load(Relaxed) {
            self.note_start(task.slot, task.taken.rare.as_deref(), &Crew::alone(&self.id, &self.submitter), self.id);
            self.started.set(core.backend.now());
        }
    }

    /// Notes that the device does not execute the kernel of a task any more, for which it has `measured` this time.
    fn withdraw(&mut self, task: &Prepared, has_failed: bool, measured: Option<Duration>) {
        let core = &self.core;
        if core.backend.is_followed.load(Relaxed) {
            let length = measured.unwrap_or_else(|| core.backend.now().since(self.started.get()));
            let facts = task.taken.job.as_ref().map(|job| &**job.facts());
            let end = KernelEnd { failed: has_failed, length, by_device: measured.is_some() };
            self.note_end(task.slot, facts, &Crew::alone(&self.id, &self.submitter), self.id, end);
        }
        core.backend.times.post_exec(self.id);
        self.counters.executing.set(None);
    }

    /// Ends a task whose kernel has ended, after this time on the device.
    fn finish(&mut self, device: &Device, mut task: Prepared, end: Result<Finished, DriverError>, length: Duration) {
        let core = Arc::clone(&self.core);
        let (slot, record) = (task.slot, core.records.get(task.slot.id()));
        enter_task(core.id, record.context());
        let measured = end.as_ref().ok().and_then(|end| end.nanos).map(Duration::from_nanos);
        self.withdraw(&task, end.is_err(), measured);
        let outcome = match (&mut task.taken.job, end) {
            (Some(job), Ok(Finished { nanos })) => {
                pin(&**job, device, false);
                let took = nanos.map_or(length, Duration::from_nanos);
                let footprint = slot.head().footprint.load(Relaxed);
                job.facts().record((self.arch, 1), task.implementation, footprint, &**job, took);
                if task.some_bad {
                    // Data that is completely overwritten is good again.
                    job.visit(&mut |header, mode| {
                        if mode == AccessMode::Write {
                            header.note_good();
                        }
                    });
                }
                if !job.facts().keeps_nothing {
                    clear(&mut **job, &slot.head().sequence);
                }
                Outcome::Done
            }
            (Some(job), Err(error)) => {
                pin(&**job, device, false);
                failed(slot, &task.taken, task.implementation, self.id, (false, error.to_string()))
            }
            (None, _) => Outcome::Done,
        };
        let counters = &self.counters;
        counters.executed.store(counters.executed.load(Relaxed) + 1, Relaxed);
        self.end(slot, task.taken, &outcome);
    }

    fn end(&mut self, slot: &'static Slot, taken: Taken, outcome: &Outcome) {
        let core = Arc::clone(&self.core);
        let task = TaskPlace { slot, record: core.records.get(slot.id()) };
        core.end(task, outcome, taken, Some(self.id), &mut self.scratch);
    }

    /// Schedules a task again, for workers other than this one; it fails if there are none.
    fn hand_on(&mut self, task: Prepared, why: &DriverError) {
        let core = Arc::clone(&self.core);
        let Prepared { slot, taken, implementation, .. } = task;
        let head = slot.head();
        let place = TaskPlace { slot, record: core.records.get(slot.id()) };
        let archs: ArchSet = taken.job.as_ref().map_or(ArchSet::EMPTY, |job| job.facts().archs);
        let tree = core.tree_of(place.record);
        let is_lost = |worker| core.device_of(worker).is_some_and(|device| device.is_lost());
        let others: WorkerSet = WorkerSet::first(core.facts.len() as u32)
            .iter()
            .filter(|other| *other != self.id && !is_lost(*other) && tree.serves(*other))
            .filter(|other| {
                let arch = core.facts[other.index()].arch;
                archs.contains(arch) && core.ledger.allows(head, arch, *other, None)
            })
            .collect();
        if others.is_empty() {
            let why = (false, format!("{why}; no other worker can execute the task"));
            let outcome = failed(slot, &taken, implementation, self.id, why);
            return self.end(slot, taken, &outcome);
        }
        if let Some(rare) = &taken.rare {
            self.scratch.give_turns(&rare.turns);
        }
        {
            let mut body = place.record.body.lock();
            body.job = taken.job;
            body.rare = taken.rare;
        }
        // What a component decided about it is out of date.
        head.restore_priority();
        head.predicted.store(u64::MAX, Relaxed);
        head.implementation.store(u16::MAX, Relaxed);
        core.ledger.restrict(head, &others);
        slot.set_phase(Phase::Waiting);
        core.schedule(place, Some(self.id), &mut self.scratch);
        core.settle(Some(self.id), &mut self.scratch);
    }
}

/// Keeps the data of a task on the device, or ends that.
fn pin(job: &dyn Job, device: &Device, keeps: bool) {
    job.visit(&mut |header, _| match &header.places {
        Places::Part(part) if keeps => part.pin(device.node),
        Places::Part(part) => part.unpin(device.node),
        _ => {}
    });
}
