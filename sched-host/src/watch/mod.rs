//! Why is nothing running? Notices that a run makes no progress, and says where every task sits.
//!
//! It costs nothing until somebody has waited for a whole quiet period without any task ending: then two looks a period
//! apart must agree that no task ended and none is being executed.

use crate::runtime::core::Core;
use crate::runtime::failure::{StallReport, WorkerDoing, WorkerState};
use crate::tree::Phase;
use sched_core::ArchSet;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

/// Looks at a runtime while somebody waits for it.
#[derive(Default)]
pub(crate) struct Watch {
    last: Option<(u64, u64)>,
    quiet: Duration,
}

impl Watch {
    /// Looks once more, a period after the last look. A report when the run has stalled.
    pub(crate) fn look(&mut self, core: &Core, period: Duration) -> Option<Box<StallReport>> {
        let progress = (core.finished(), core.submitted());
        let executing = core.counters.iter().any(|counters| counters.executing.load(Relaxed) != 0);
        if executing || self.last != Some(progress) {
            self.last = Some(progress);
            self.quiet = period;
            return None;
        }
        self.quiet += period;
        Some(Box::new(report(core, self.quiet)))
    }
}

fn report(core: &Core, quiet: Duration) -> StallReport {
    let (mut waiting, mut fallback) = (0, 0);
    let mut in_tree = Vec::new();
    for slot in core.ledger.slots() {
        match slot.phase() {
            Phase::Waiting => waiting += 1,
            Phase::Fallback => fallback += 1,
            Phase::InTree(_) => in_tree.push(ArchSet::from_bits(slot.head().archs.load(Relaxed))),
            Phase::Free | Phase::Running => {}
        }
    }
    let workers = core.counters.iter().zip(&core.facts).enumerate().map(|(id, (counters, facts))| {
        let asleep = core.clock.sleep.sleeping()[id / 64].load(SeqCst) & 1 << (id % 64) != 0;
        let doing = match (asleep, counters.executing.load(Relaxed)) {
            (_, executing) if executing != 0 => WorkerDoing::Executing,
            (true, _) => WorkerDoing::Sleeping,
            (false, _) => WorkerDoing::Scheduling,
        };
        let eligible = in_tree.iter().filter(|archs| archs.contains(facts.arch)).count() as u64;
        WorkerState { worker: id as u32, doing, eligible }
    });
    StallReport {
        quiet_s: quiet.as_secs_f64(),
        unfinished: core.submitted() - core.finished(),
        waiting,
        fallback,
        workers: workers.collect(),
        nodes: core.tree.survey(),
        faults: core.tree.faults(),
    }
}
