//! What a hypervisor did, and what the contexts attained.

use super::{Goal, GovernedContext, Progress};
use sched_core::WorkerId;
use std::time::Duration;

/// Report of a hypervisor.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Governance {
    /// The moves, in order.
    pub moves: Vec<Move>,
    /// Changes of contexts that failed.
    pub refusals: Vec<Refusal>,
    /// What each governed context attained, in the order of the goals; empty until the end.
    pub attained: Vec<Attained>,
}

/// A worker that was moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// Time.
    pub at: Duration,
    /// The worker.
    pub worker: WorkerId,
    /// The context that it left; `None` if it serves its earlier contexts as well.
    pub from: Option<String>,
    /// The context that it serves from then on.
    pub to: String,
}

/// A change of a context that failed; the context goes on as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Time.
    pub at: Duration,
    /// The context.
    pub context: String,
    /// Workers that it was to get or lose.
    pub workers: Vec<WorkerId>,
    /// The reason.
    pub why: String,
}

/// What a context attained.
#[derive(Clone, PartialEq, Debug)]
pub struct Attained {
    /// The context.
    pub context: String,
    /// Its goal.
    pub goal: Option<Goal>,
    /// Mean share of the governed workers, by speed, while it had tasks.
    pub share: f64,
    /// Tasks per second, while it had tasks.
    pub tasks_per_second: f64,
    /// 10⁹ floating-point operations per second, while it had tasks; 0 where they are not known.
    pub gflops: f64,
    /// Time of the end of its last task; `None` if some have not ended.
    pub end: Option<Duration>,
    /// Whether the goal was attained: a share, to within half a worker. `None` without a goal or tasks.
    pub met: Option<bool>,
}

/// Sums over the time in which a context had tasks.
#[derive(Default, Debug)]
pub(super) struct Account {
    seconds: f64,
    /// Integral of its share, in seconds.
    share_seconds: f64,
    end: Option<Duration>,
}

impl Account {
    /// Adds `passed` seconds until `now`, in which the context had this share.
    pub(super) fn note(&mut self, after: &Progress, now: Duration, passed: f64, share: f64) {
        let mut seconds = passed;
        self.end = None;
        if after.unfinished == 0 {
            let end = after.last_end.unwrap_or(now);
            self.end = Some(end);
            seconds = (passed - now.saturating_sub(end).as_secs_f64()).max(0.0);
        }
        self.seconds += seconds;
        self.share_seconds += seconds * share;
    }

    pub(super) fn attained(&self, context: &GovernedContext, now: &Progress, largest_weight: f64) -> Attained {
        let per = |sum: f64| if self.seconds > 0.0 { sum / self.seconds } else { 0.0 };
        let (share, tasks_per_second) = (per(self.share_seconds), per(now.ended as f64));
        let (gflops, end) = (per(now.flops) * 1e-9, self.end);
        let met = |goal| match goal {
            Goal::Share(goal) => share >= goal - 0.5 * largest_weight,
            Goal::Deadline(deadline) => end.is_some_and(|end| end <= deadline),
            Goal::TasksPerSecond(goal) => tasks_per_second >= goal,
            Goal::Gflops(goal) => gflops >= goal,
        };
        let met = context.goal.filter(|_| now.ended + now.unfinished > 0).map(met);
        Attained { context: context.name.clone(), goal: context.goal, share, tasks_per_second, gflops, end, met }
    }
}
