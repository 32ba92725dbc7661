//! The simple scheduler: one component that decides, and flags for the components around it.

mod tree;
mod words;

use super::recipe::Recipe;
use crate::element::Component;

/// A scheduler built around one component that decides, described by flags.
///
/// From the top:
///
/// ```text
/// queue above ─ perfmodel-select ─ components before ─ decision ─ each branch:
///     queue below ─ what shares out among the branch's workers ─ each worker: best-implementation ─ worker
/// ```
///
/// | word | what it asks for | as a method |
/// |---|---|---|
/// | `decide-workers` | a branch for each worker | [`decide`](Self::decide) |
/// | `decide-memory-nodes` | a branch for each memory node that has workers | |
/// | `decide-archs` | a branch for each architecture | |
/// | `decide-always` | no effect; a decision is made even with one branch, as it always is here | |
/// | `perfmodel` | only tasks with a calibrated model reach the decision; others are measured or distributed eagerly | [`perfmodel`](Self::perfmodel) |
/// | `fifo-above` | an unbounded queue above, in order of arrival | [`above`](Self::above) |
/// | `fifo-above-prio` | an unbounded queue above, by priority | |
/// | `fifos-below` | a short queue at the top of each branch, in order of arrival | [`below`](Self::below) |
/// | `fifos-below-prio` | a short queue at the top of each branch, by priority | |
/// | `ready` | in the queues below, of equal priorities the task whose data is near leaves first | [`QueuesBelow::ready`] |
/// | `ready-first` | in the queues below, the task whose data is near leaves first, whatever its priority | |
/// | `exp` | the queues below are bounded by expected length too, and `exp-len-threshold=µs` says by which | [`QueuesBelow::limit`] |
/// | `ntasks-threshold=tasks` | maximum number of tasks in each queue below | |
/// | `no-limit` | the queues below are not bounded | |
/// | `ws-below` | workers of a branch steal from each other instead of being served in turn | [`work_stealing_below`](Self::work_stealing_below) |
/// | `impl` | the best implementation is chosen above each worker | [`best_implementation`](Self::best_implementation) |
/// | `combined-workers` | the decision is among combined workers too | [`combined_workers`](Self::combined_workers) |
///
/// StarPU's own flag names are accepted too: `STARPU_SCHED_SIMPLE_FIFOS_BELOW_PRIO`. Any other `name=value` is a
/// parameter of the decision.
///
/// Where there are slots for tasks without a calibrated model, each worker has a short queue there, so that it takes no
/// more of them than it needs. An unbounded queue is put above these queues, unless there is one at the top.
///
/// The structure does not depend on the machine: a decision among one branch remains a decision, and a branch of one
/// worker keeps its component that distributes tasks. The policy therefore fits every machine.
///
/// ```
/// use sched_policy::{Catalogue, Queue, SimpleFlags, parse};
/// # use sched_core::{Family, Info};
/// # let eager = Info::new("eager", Family::ResourceMapping, "");
/// # let catalogue = Catalogue::new([(eager.describe(), "resource-mapping")]);
/// let flags = SimpleFlags::new("eager").above(Queue::Fifo);
/// let text = r#"policy "mine" { fifo sorted=#false { eager { each "worker" { worker } } } }"#;
/// assert_eq!(flags.policy("mine", &catalogue)?, parse("mine.kdl", text)?[0].clone().doc(flags.summary()));
/// assert_eq!(SimpleFlags::from_names(["eager", "decide-workers", "fifo-above"])?, flags);
/// assert_eq!(flags.to_string(), "eager decide-workers fifo-above");
/// # Ok::<(), sched_text::Findings>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct SimpleFlags {
    decision: Component,
    before: Recipe,
    decide: Decide,
    perfmodel: bool,
    above: Option<Queue>,
    below: Option<QueuesBelow>,
    work_stealing_below: bool,
    best_implementation: bool,
    combined_workers: bool,
}

/// Branches among which a simple scheduler decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Decide {
    /// A branch for each worker.
    Workers,
    /// A branch for each memory node that has workers.
    MemoryNodes,
    /// Architectures.
    Archs,
}

/// Order of a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Queue {
    /// In order of arrival.
    Fifo,
    /// By priority, then in order of arrival.
    Prio,
}

/// Whether the task with the most local data leaves a queue first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ready {
    /// Data locality is ignored.
    Off,
    /// Among tasks of equal priority.
    Equals,
    /// Among tasks of all priorities. Only in a [`Queue::Fifo`].
    First,
}

/// Bound of a queue below.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Limit {
    /// Unbounded. Expected lengths are still summed for the decision.
    None,
    /// Full as soon as one of these bounds is reached.
    Bounded {
        /// Maximum number of tasks, at least 1; the decision's [lookahead](sched_core::Info::lookahead) by default.
        ntasks: Option<u32>,
        /// Maximum expected length in µs, more than 0; unbounded by default.
        exp_len: Option<f64>,
    },
}

impl Limit {
    /// The expected length that the word `exp` bounds queues by: 10⁹ µs, about 17 minutes, so practically none.
    pub const EXP_LEN: f64 = 1e9;
}

/// The queues at the top of each branch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueuesBelow {
    /// Their order.
    pub queue: Queue,
    /// Whether the task with the most local data leaves first.
    pub ready: Ready,
    /// Their bound.
    pub limit: Limit,
}

impl QueuesBelow {
    /// Queues of this order, bounded by the decision's lookahead.
    #[must_use]
    pub fn new(queue: Queue) -> QueuesBelow {
        QueuesBelow { queue, ready: Ready::Off, limit: Limit::Bounded { ntasks: None, exp_len: None } }
    }
}

impl SimpleFlags {
    /// A scheduler in which this component decides among workers, with no other component above them.
    pub fn new(decision: impl Into<Component>) -> SimpleFlags {
        SimpleFlags {
            decision: decision.into(),
            before: Recipe::new(),
            decide: Decide::Workers,
            perfmodel: false,
            above: None,
            below: None,
            work_stealing_below: false,
            best_implementation: false,
            combined_workers: false,
        }
    }

    /// Sets the kind of branches that the decision is among.
    #[must_use]
    pub fn decide(self, decide: Decide) -> SimpleFlags {
        SimpleFlags { decide, ..self }
    }

    /// Puts these components right above the decision. There is no flag for them.
    #[must_use]
    pub fn before(self, before: impl Into<Recipe>) -> SimpleFlags {
        SimpleFlags { before: before.into(), ..self }
    }

    /// Keeps tasks without a calibrated model away from the decision.
    #[must_use]
    pub fn perfmodel(self) -> SimpleFlags {
        SimpleFlags { perfmodel: true, ..self }
    }

    /// Adds an unbounded queue at the top.
    #[must_use]
    pub fn above(self, queue: Queue) -> SimpleFlags {
        SimpleFlags { above: Some(queue), ..self }
    }

    /// Adds a queue at the top of each branch.
    #[must_use]
    pub fn below(self, queues: QueuesBelow) -> SimpleFlags {
        SimpleFlags { below: Some(queues), ..self }
    }

    /// Lets the workers of a branch steal from each other. No effect where a branch is one worker.
    #[must_use]
    pub fn work_stealing_below(self) -> SimpleFlags {
        SimpleFlags { work_stealing_below: true, ..self }
    }

    /// Adds a component above each worker that chooses the best implementation.
    #[must_use]
    pub fn best_implementation(self) -> SimpleFlags {
        SimpleFlags { best_implementation: true, ..self }
    }

    /// Adds a branch for each combined worker beside those for workers.
    #[must_use]
    pub fn combined_workers(self) -> SimpleFlags {
        SimpleFlags { combined_workers: true, ..self }
    }
}
