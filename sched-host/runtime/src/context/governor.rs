//! The hypervisor of a running runtime: a thread that lets it look at the contexts, once in each of its periods.

use super::{ContextError, SchedContext};
use crate::Submitter;
use crate::core::{Core, NO_CODELET};
use sched_core::{Time, WorkerId, WorkerSet};
use sched_trace::Event;
use sched_tree::hypervisor::{Goals, Governance, Governed, Hypervisor, Progress};
use sched_tree::{Phase, Services, Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A hypervisor at work, made by [`Submitter::govern`]. It ends when this is dropped, or with the runtime; contexts
/// keep the workers that they have then.
#[must_use = "the hypervisor ends when this is dropped"]
#[derive(Debug)]
pub struct Governor {
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Governance>>,
}

impl Submitter {
    /// Lets a [hypervisor](sched_tree::hypervisor) move workers between contexts, so that they attain these goals.
    /// Times begin now. One at a time should govern a context.
    ///
    /// ```
    /// use sched_runtime::Runtime;
    /// use sched_tree::hypervisor::{Goal, Goals, GovernedContext};
    /// # use std::sync::Arc;
    /// # let components = sched_tree::plugin::Registry::compiled_in();
    /// # let runtime = Runtime::builder().registry(Arc::new(components)).workers(4).bind(false).build()?;
    /// let (a, b) = (runtime.context("a").workers(0..2).build()?, runtime.context("b").workers(2..4).build()?);
    /// let goals = Goals::new()
    ///     .context(GovernedContext::new("a").goal(Goal::Share(0.75)))
    ///     .context(GovernedContext::new("b"));
    /// let governor = runtime.govern(goals)?;
    /// // Tasks are submitted to both, and waited for.
    /// a.wait_all()?;
    /// b.wait_all()?;
    /// for moved in governor.finish().moves {
    ///     println!("{:?}: worker {} to {}", moved.at, moved.worker.0, moved.to);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ContextError::Goals`] if the goals are wrong, name a context that does not exist or ask for more workers than
    /// the contexts have, and [`ContextError::Thread`] if no thread could be started.
    pub fn govern(&self, goals: Goals) -> Result<Governor, ContextError> {
        let contexts = self.contexts();
        let names: Vec<String> = contexts.iter().map(|context| context.name().to_owned()).collect();
        let governed = goals.resolve(&names, false).map_err(ContextError::Goals)?;
        let contexts: Vec<SchedContext> = governed.into_iter().map(|number| contexts[number].clone()).collect();
        let pool: BTreeSet<u32> = contexts.iter().flat_map(SchedContext::workers).collect();
        goals.check_minima(pool.len()).map_err(ContextError::Goals)?;
        let speeds = self.core.facts.iter().map(|facts| facts.relative_speedup).collect();
        let hypervisor = Hypervisor::new(goals, speeds);
        let (stop, stopped) = channel();
        let mut machine = Contexts { began: self.core.backend.now(), contexts };
        let body = move || machine.run(hypervisor, &stopped);
        let thread = std::thread::Builder::new().name("hypervisor".to_owned()).spawn(body);
        let thread = thread.map_err(|error| ContextError::Thread { error })?;
        Ok(Governor { stop: Some(stop), thread: Some(thread) })
    }
}

impl Governor {
    /// Ends the hypervisor, and returns what it did.
    #[must_use]
    pub fn finish(mut self) -> Governance {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Governance> {
        self.stop = None;
        self.thread.take()?.join().ok()
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        self.end();
    }
}

/// The governed contexts.
struct Contexts {
    began: Time,
    contexts: Vec<SchedContext>,
}

impl Contexts {
    /// Calls the hypervisor until it is stopped, or the runtime ends.
    fn run(&mut self, mut hypervisor: Hypervisor, stopped: &Receiver<()>) -> Governance {
        let mut wait = Duration::ZERO;
        while !self.has_ended() && stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            let now = self.now();
            hypervisor.step(now, self);
            wait = hypervisor.period();
        }
        let now = self.now();
        hypervisor.finish(now, self)
    }

    /// Time since the hypervisor began.
    fn now(&self) -> Duration {
        let Some(first) = self.contexts.first() else { return Duration::ZERO };
        first.submitter.core.backend.now().since(self.began)
    }

    fn has_ended(&self) -> bool {
        self.contexts.first().is_none_or(|first| first.submitter.core.stop.load(SeqCst))
    }

    /// The unfinished tasks of a context that are no accesses of the application itself.
    fn unfinished(&self, context: usize) -> impl Iterator<Item = &'static Slot> {
        let SchedContext { submitter, context, .. } = &self.contexts[context];
        let (core, number) = (&submitter.core, context.number);
        core.ledger.slots().filter(move |slot| {
            let head = slot.head();
            let sequence = head.sequence.load(Acquire);
            // The context is read between two reads of the sequence, so it belongs to that task.
            sequence != 0
                && core.records.get(slot.id()).context() == number
                && head.codelet.load(Relaxed) != NO_CODELET
                && head.sequence.load(Acquire) == sequence
        })
    }

    /// The workers that can execute the task in a slot.
    fn able(core: &Core, slot: &Slot) -> WorkerSet {
        let allows =
            |worker: &WorkerId| core.ledger.allows(slot.head(), core.facts[worker.index()].arch, *worker, None);
        (0..core.facts.len() as u32).map(WorkerId).filter(allows).collect()
    }
}

/// What decides which workers can execute a task: its architectures and the number of its restriction.
fn places_of(slot: &Slot) -> (u32, u64) {
    (slot.head().archs.load(Relaxed), slot.head().restriction())
}

impl Governed for Contexts {
    fn workers(&self, context: usize) -> WorkerSet {
        self.contexts[context].context.config().workers
    }

    fn progress(&mut self, context: usize) -> Progress {
        let SchedContext { submitter, context, serial, .. } = &self.contexts[context];
        if !context.in_flight.is_there(*serial) {
            return Progress::default();
        }
        let counts = submitter.core.task_counts(context);
        let before = context.before.load(SeqCst);
        let unfinished = counts.submitted.saturating_sub(counts.finished);
        Progress { unfinished, ended: counts.finished.saturating_sub(before), ..Progress::default() }
    }

    fn able(&mut self, context: usize) -> Vec<WorkerSet> {
        let core = &self.contexts[context].submitter.core;
        let mut able = BTreeMap::new();
        for slot in self.unfinished(context).filter(|slot| slot.phase() != Phase::Running) {
            able.entry(places_of(slot)).or_insert_with(|| Contexts::able(core, slot));
        }
        able.into_values().filter(|able| !able.is_empty()).collect()
    }

    fn remaining(&mut self, context: usize, pool: &WorkerSet) -> Option<f64> {
        let core = &self.contexts[context].submitter.core;
        // Seconds of each kind of task on the whole pool.
        let mut kinds: BTreeMap<_, Option<f64>> = BTreeMap::new();
        let (mut known, mut seconds, mut tasks) = (0u64, 0.0, 0u64);
        for slot in self.unfinished(context) {
            let head = slot.head();
            let kind = (places_of(slot), head.codelet.load(Relaxed), head.footprint.load(Relaxed));
            let length = *kinds.entry(kind).or_insert_with(|| {
                let able = Contexts::able(core, slot);
                let length = |worker| core.backend.expected_length(worker, head, None).known();
                let lengths = pool.iter().filter(|worker| able.contains(*worker)).filter_map(length);
                let rate: f64 = lengths.map(|length| 1.0 / length.as_secs_f64().max(1e-9)).sum();
                (rate > 0.0).then(|| 1.0 / rate)
            });
            tasks += 1;
            known += u64::from(length.is_some());
            seconds += length.unwrap_or(0.0);
        }
        // Tasks without a known length count as the mean of the others.
        (known > 0).then(|| seconds * tasks as f64 / known as f64)
    }

    fn change(&mut self, context: usize, added: &WorkerSet, removed: &WorkerSet) -> Result<(), ContextError> {
        self.contexts[context].exchange_workers(added, removed)
    }

    fn moved(&mut self, worker: WorkerId, from: Option<usize>, to: usize) {
        let id = |context: usize| self.contexts[context].context.number;
        let backend = &self.contexts[to].submitter.core.backend;
        backend.record(None, || Event::Moved { worker, from: from.map(id), to: id(to) });
    }
}
