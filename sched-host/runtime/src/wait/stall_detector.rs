//! Detects that a run makes no progress, and reports where every task is.
//!
//! There is no cost until a thread has waited for half a quiet period; then it looks once each half. Two looks, one
//! period apart, must agree that no task ended and none is being executed. If a thread waits for one context without
//! workers, two looks must agree that no task of that context ended: its tasks stay where they are, whatever other
//! contexts do.

use super::held::guards;
use crate::context::ContextCore;
use crate::core::Core;
use crate::task::failure::{ContextState, StallReport, WorkerDoing, WorkerState};
use crate::worker_name;
use sched_core::WorkerId;
use sched_graph::ContextId;
use sched_sync::in_flight::Counts;
use sched_tree::attendance::{OverdueCall, Watch};
use sched_tree::{Phase, Slot};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// What two looks are compared by.
#[derive(Clone, Copy, PartialEq)]
struct Progress {
    /// Of all contexts.
    all: Counts,
    /// Of the context that a thread waits for.
    context: Counts,
}

/// Observes a runtime while a thread waits for it, or for one of its contexts.
#[derive(Default)]
pub(crate) struct StallDetector {
    last: Option<Progress>,
    quiet: Duration,
    calls: Watch,
}

impl StallDetector {
    /// Looks once more, a period after the last look. Returns a report if the run has stalled.
    pub(crate) fn look(
        &mut self,
        core: &Core,
        context: Option<&ContextCore>,
        period: Duration,
    ) -> Option<Box<StallReport>> {
        // Looked at each time, so that it is known since when a call has not come back.
        let overdue = self.calls.overdue(period);
        // Tasks wait at the gate while a tree is exchanged. A component that holds that up is left behind in time.
        if core.roster.contexts().any(|context| context.changing.is_locked()) {
            self.last = None;
            return None;
        }
        let progress = Progress {
            all: Counts { finished: core.finished(), submitted: core.submitted() },
            context: context.map_or(Counts::default(), |context| core.counts(context)),
        };
        let is_abandoned =
            |context: &ContextCore| context.config().workers.is_empty() && context.tree.fallen_back() > 0;
        let abandoned = context.is_some_and(is_abandoned);
        let is_in_tree = |call: &OverdueCall| core.roster.contexts().any(|context| context.tree.is_called_by(call));
        // A worker that is stuck in a component executes nothing: before or after a kernel, or in a push out of one. A
        // call of a driver may be the kernel, or wait behind it.
        let (stuck, others): (Vec<OverdueCall>, Vec<_>) = overdue.into_iter().partition(is_in_tree);
        let is_stuck = |worker: usize| stuck.iter().any(|call| call.thread == worker_name(worker));
        let mut workers = core.counters.iter().enumerate();
        let executing = workers.any(|(worker, counters)| counters.is_busy() && !is_stuck(worker));
        // Tasks may wait for a worker that is there only while a thread of the program waits.
        let is_vacant = core.outcomes.vacant_worker().is_some();
        // What comes from outside helps no task of a context without workers.
        let waits_outside =
            core.outside.load(SeqCst) > 0 && !core.roster.contexts().any(|context| is_abandoned(context));
        let moved = match (self.last, abandoned) {
            _ if is_vacant => true,
            (None, _) => true,
            (Some(last), true) => last.context != progress.context,
            (Some(last), false) => executing || last != progress,
        };
        self.last = Some(progress);
        if moved || waits_outside && !core.quiet_hook.ends(progress.all.finished) {
            self.quiet = period;
            return None;
        }
        self.quiet += period;
        let in_driver = others.into_iter().filter(|call| core.uses(&call.post));
        Some(Box::new(report(core, self.quiet, stuck.into_iter().chain(in_driver).collect())))
    }
}

fn report(core: &Core, quiet: Duration, overdue: Vec<OverdueCall>) -> StallReport {
    let (mut waiting, mut fallback) = (0, 0);
    let mut in_trees: BTreeMap<ContextId, Vec<&Slot>> = BTreeMap::new();
    for slot in core.ledger.slots() {
        match slot.phase() {
            Phase::Waiting => waiting += 1,
            Phase::Fallback => fallback += 1,
            Phase::InTree(_) => {
                in_trees.entry(core.records.get(slot.id()).context()).or_default().push(slot);
            }
            Phase::Free | Phase::Running => {}
        }
    }
    let mut at_home = 0;
    for replayed in core.replays.lock().iter().map(|recorded| recorded.not_entered()) {
        waiting += replayed.waiting;
        at_home += replayed.at_home;
    }
    let workers = core.counters.iter().zip(&core.facts).enumerate().map(|(id, (counters, facts))| {
        let asleep = core.backend.sleep.sleeping().contains(id as u32);
        let doing = match (asleep, counters.executing.get()) {
            (_, Some(_)) if counters.is_busy() => WorkerDoing::Executing,
            (_, Some(_)) => WorkerDoing::Waiting,
            (true, _) => WorkerDoing::Sleeping,
            (false, _) if counters.in_team.get().is_some() => WorkerDoing::Gathering,
            (false, _) => WorkerDoing::Scheduling,
        };
        let served = in_trees.iter().filter(|(number, _)| core.roster.get(**number).tree.serves(WorkerId(id as u32)));
        let allows = |slot: &Slot| core.ledger.allows(slot.head(), facts.arch, WorkerId(id as u32), None);
        let eligible = served.flat_map(|(_, tasks)| tasks).filter(|slot| allows(slot)).count() as u64;
        WorkerState { worker: id as u32, doing, eligible }
    });
    let contexts = core.roster.contexts().map(|context| {
        let config = context.config();
        let Counts { finished, submitted } = core.counts(context);
        ContextState {
            name: config.name,
            policy: config.policy.name.clone(),
            workers: config.workers.iter().map(|worker| worker.0).collect(),
            unfinished: submitted.saturating_sub(finished),
        }
    });
    let guards = guards(core);
    let leases = core.outside.load(SeqCst);
    let waiting = u64::saturating_sub(waiting, guards.len() as u64 + leases);
    StallReport {
        quiet_s: quiet.as_secs_f64(),
        unfinished: core.submitted().saturating_sub(core.finished()),
        waiting,
        at_home,
        guards,
        leases,
        fallback,
        workers: workers.collect(),
        contexts: contexts.collect(),
        nodes: core.survey(),
        overdue,
        faults: core.faults(),
    }
}

#[cfg(test)]
mod tests;
