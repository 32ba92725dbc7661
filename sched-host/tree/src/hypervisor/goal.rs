//! Goals of contexts, as values.

use sched_text::{Finding, Findings, did_you_mean};
use std::fmt;
use std::time::Duration;

/// What a context shall attain. Times begin with the hypervisor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// This fraction of the speed of all governed workers, while the context has tasks: more than 0, at most 1.
    Share(f64),
    /// The end of all tasks at this time.
    Deadline(Duration),
    /// This number of tasks per second, while the context has tasks.
    TasksPerSecond(f64),
    /// 10⁹ floating-point operations per second, while the context has tasks.
    Gflops(f64),
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Share(share) => write!(f, "share {}", short(*share)),
            Goal::Deadline(time) => write!(f, "deadline {time:?}"),
            Goal::TasksPerSecond(rate) => write!(f, "{} tasks/s", short(*rate)),
            Goal::Gflops(rate) => write!(f, "{} GFlop/s", short(*rate)),
        }
    }
}

/// A number, without hundreds of zeros.
fn short(number: f64) -> String {
    if (1e-6..1e16).contains(&number) { number.to_string() } else { format!("{number:e}") }
}

/// Largest number of tasks or operations in a goal: products and sums of them are still numbers.
const MOST: f64 = 1e30;

/// A context that the hypervisor governs, with its goal and the bounds of its workers.
#[derive(Clone, PartialEq, Debug)]
pub struct GovernedContext {
    /// Name of the context.
    pub name: String,
    /// `None` for a context that gets what the others leave.
    pub goal: Option<Goal>,
    /// Minimum number of workers, shared ones included.
    pub min: usize,
    /// Maximum number of workers; there are more only where its tasks need them, or no other context has room.
    pub max: usize,
    /// Mean number of floating-point operations of a task, where the back end does not know it.
    pub task_flops: Option<f64>,
}

impl GovernedContext {
    /// A context that gets what the others leave, but at least one worker.
    #[must_use]
    pub fn new(name: impl Into<String>) -> GovernedContext {
        GovernedContext { name: name.into(), goal: None, min: 1, max: usize::MAX, task_flops: None }
    }

    /// Sets its goal.
    #[must_use]
    pub fn goal(mut self, goal: Goal) -> GovernedContext {
        self.goal = Some(goal);
        self
    }

    /// Sets the bounds of its number of workers.
    #[must_use]
    pub fn bounds(mut self, min: usize, max: usize) -> GovernedContext {
        (self.min, self.max) = (min, max);
        self
    }

    /// Sets the mean number of floating-point operations of a task, for back ends that do not know it.
    #[must_use]
    pub fn task_flops(mut self, flops: f64) -> GovernedContext {
        self.task_flops = Some(flops);
        self
    }

    /// All that is wrong with it.
    fn problems(&self) -> Vec<String> {
        let rate = |rate: f64| rate > 0.0 && rate <= MOST;
        let goal = match self.goal {
            Some(Goal::Share(share)) if !(share > 0.0 && share <= 1.0) => {
                Some(format!("has the share {}; it is more than 0, and at most 1", short(share)))
            }
            Some(Goal::Deadline(Duration::ZERO)) => Some("has the deadline 0, which is over at the start".to_owned()),
            Some(Goal::TasksPerSecond(goal) | Goal::Gflops(goal)) if !rate(goal) => {
                Some(format!("has the throughput {}; it is more than 0, and at most {MOST:e}", short(goal)))
            }
            _ => None,
        };
        let bounds = match (self.min, self.max) {
            (min, max) if min > max => Some(format!("has at least {min} and at most {max} workers")),
            (_, 0) => Some("has no workers at most; its tasks would never run".to_owned()),
            _ => None,
        };
        let flops = self.task_flops.filter(|flops| !rate(*flops));
        let flops = flops
            .map(|flops| format!("has tasks of {} operations; it is more than 0, and at most {MOST:e}", short(flops)));
        [goal, bounds, flops].into_iter().flatten().map(|wrong| format!("context `{}` {wrong}", self.name)).collect()
    }
}

/// Goals of the contexts that a hypervisor governs.
///
/// ```
/// use sched_tree::hypervisor::{Goal, Goals, GovernedContext};
/// use std::time::Duration;
///
/// let goals = Goals::new()
///     .context(GovernedContext::new("solver").goal(Goal::Share(0.75)))
///     .context(GovernedContext::new("report").goal(Goal::Deadline(Duration::from_secs(2))).bounds(1, 3))
///     .context(GovernedContext::new("rest"));
/// assert!(goals.check().is_ok());
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Goals {
    /// The governed contexts.
    pub contexts: Vec<GovernedContext>,
    /// Time between two looks at the contexts.
    pub period: Duration,
    /// Number of periods for which a worker stays where it was moved to.
    pub patience: u32,
}

impl Default for Goals {
    fn default() -> Goals {
        Goals { contexts: Vec::new(), period: Duration::from_millis(10), patience: 5 }
    }
}

impl Goals {
    /// No contexts, a period of 10 ms, and a patience of 5 periods.
    #[must_use]
    pub fn new() -> Goals {
        Goals::default()
    }

    /// Adds a context.
    #[must_use]
    pub fn context(mut self, context: GovernedContext) -> Goals {
        self.contexts.push(context);
        self
    }

    /// Sets the time between two looks at the contexts.
    #[must_use]
    pub fn period(mut self, period: Duration) -> Goals {
        self.period = period;
        self
    }

    /// Sets the number of periods for which a worker stays where it was moved to.
    #[must_use]
    pub fn patience(mut self, periods: u32) -> Goals {
        self.patience = periods;
        self
    }

    /// Checks each goal, and that they do not contradict each other.
    ///
    /// # Errors
    /// All problems.
    pub fn check(&self) -> Result<(), Findings> {
        found(self.problems().into_iter().map(|problem| problem.finding()).collect())
    }

    /// See [`check`](Self::check).
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = Vec::new();
        for (number, context) in self.contexts.iter().enumerate() {
            let twice = self.contexts[..number].iter().any(|other| other.name == context.name);
            let twice = twice.then(|| format!("context `{}` has goals twice", context.name));
            let wrong = context.problems().into_iter().chain(twice);
            problems.extend(wrong.map(|text| Problem { context: Some(number), text }));
        }
        let shares: Vec<(usize, f64)> = self.contexts.iter().enumerate().filter_map(share_of).collect();
        let total: f64 = shares.iter().map(|(_, share)| share).sum();
        if total > 1.0 + 1e-9 {
            let text = format!("the shares of all contexts together are {total:.3}, and there is 1 to share");
            problems.push(Problem { context: shares.last().map(|(number, _)| *number), text });
        }
        if self.period.is_zero() {
            problems.push(Problem { context: None, text: "the period is 0".to_owned() });
        }
        problems
    }

    /// For each governed context, its place in `known`; `knows_flops` says whether the back end knows the operations of
    /// tasks.
    ///
    /// # Errors
    /// All problems of the goals, and contexts that do not exist.
    pub fn resolve(&self, known: &[String], knows_flops: bool) -> Result<Vec<usize>, Findings> {
        self.check()?;
        let (mut places, mut findings) = (Vec::new(), Vec::new());
        for context in &self.contexts {
            match known.iter().position(|known| *known == context.name) {
                Some(place) => places.push(place),
                None => {
                    let help = did_you_mean(&context.name, known.iter().map(String::as_str), "contexts");
                    let finding = Finding::error(format!("there is no context `{}`", context.name));
                    findings.push(finding.help(help).code("goals::context"));
                }
            }
            if matches!(context.goal, Some(Goal::Gflops(_))) && context.task_flops.is_none() && !knows_flops {
                let problem = format!("the operations of a task of context `{}` are not known", context.name);
                let help = "state them with `flops-per-task`, or set a goal in tasks per second";
                findings.push(Finding::error(problem).help(help).code("goals::flops"));
            }
        }
        found(findings).map(|()| places)
    }

    /// Checks the minima against the number of workers that the governed contexts have together. Without any there is
    /// no check: an application may add them later.
    ///
    /// # Errors
    /// All minima that are larger.
    pub fn check_minima(&self, workers: usize) -> Result<(), Findings> {
        let wrong = self.contexts.iter().filter(|context| workers > 0 && context.min > workers);
        let finding = |GovernedContext { name, min, .. }: &GovernedContext| {
            let text = format!("context `{name}` has at least {min} workers, and all governed contexts have {workers}");
            Finding::error(text).help("lower `min`, or give the contexts more workers").code("goals::value")
        };
        found(wrong.map(finding).collect())
    }
}

/// What is wrong with goals.
pub(super) struct Problem {
    /// Number of the context, if it is about one.
    pub(super) context: Option<usize>,
    text: String,
}

impl Problem {
    pub(super) fn finding(self) -> Finding {
        Finding::error(self.text).code("goals::value")
    }
}

/// The share that a context is to have, if it is possible, with its number.
fn share_of((number, context): (usize, &GovernedContext)) -> Option<(usize, f64)> {
    match context.goal {
        Some(Goal::Share(share)) if share <= 1.0 => Some((number, share)),
        _ => None,
    }
}

fn found(findings: Vec<Finding>) -> Result<(), Findings> {
    if findings.is_empty() { Ok(()) } else { Err(Findings::new("goals of contexts", findings)) }
}
