//! What became of each context.

use super::Run;
use crate::simulate::swap::Swap as WantedSwap;
use crate::table::table;
use sched_sim::ContextStats;
use sched_text::ranges;
use serde::Serialize;

/// The workload in one context.
#[derive(Serialize)]
pub(super) struct Ran {
    context: String,
    /// The policy at the start.
    policy: String,
    /// The policy swapped in, with the time and number of ended tasks.
    swap: Option<Swap>,
    workers: Vec<u32>,
    tasks: u64,
    makespan_s: f64,
}

#[derive(Serialize)]
struct Swap {
    policy: String,
    at_s: f64,
    after_tasks: u64,
}

impl Ran {
    pub(super) fn of(context: &ContextStats) -> Ran {
        let swap = context.swaps.last().map(|swap| Swap {
            policy: swap.policy.clone(),
            at_s: swap.at.as_secs_f64(),
            after_tasks: swap.after_tasks,
        });
        let (name, policy, workers) =
            (context.name.clone(), context.policy.clone(), context.workers.iter().map(|worker| worker.0).collect());
        let makespan_s = context.makespan.as_secs_f64();
        Ran { context: name, policy, swap, workers, tasks: context.tasks, makespan_s }
    }
}

impl Run {
    /// A warning for each context that ended before the swap.
    pub(in crate::simulate) fn missed(&self, swap: &WantedSwap) -> Vec<String> {
        let missed = |ran: &Ran| {
            let (at, end) = (swap.at?, ran.makespan_s);
            ran.swap.is_none().then(|| {
                let Ran { context, policy, .. } = ran;
                let to = &swap.policy;
                format!(
                    "warning: context `{context}` stayed with {policy}: its tasks took {end:.6} s, and the swap to {to} \
                     would be at {at:?}"
                )
            })
        };
        self.contexts.iter().filter_map(missed).collect()
    }

    /// A row for each context; none without contexts.
    pub(super) fn context_table(&self) -> Option<String> {
        let rows = self.contexts.iter().map(|ran| {
            let policy = match &ran.swap {
                Some(Swap { policy, at_s, after_tasks }) => {
                    format!("{} → {policy} at {at_s:.6} s, after {after_tasks} tasks", ran.policy)
                }
                None => ran.policy.clone(),
            };
            let workers = ranges(ran.workers.iter().copied());
            [ran.context.clone(), policy, workers, ran.tasks.to_string(), format!("{:.6}", ran.makespan_s)]
        });
        let header = ["CONTEXT", "POLICY", "WORKERS", "TASKS", "MAKESPAN (S)"];
        (!self.contexts.is_empty()).then(|| table(header, rows, 3..header.len()))
    }
}
