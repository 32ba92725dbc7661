//! The simple scheduler: a component that decides, and flags that say what stands around it.

mod tree;
mod words;

use super::recipe::Recipe;
use crate::part::Component;

/// A scheduler around one component that decides, described by flags.
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
/// | `decide-always` | nothing: a decision is made even when there is one branch, as it always is here | |
/// | `perfmodel` | only tasks with a calibrated model reach the decision; others are measured, or shared out | [`perfmodel`](Self::perfmodel) |
/// | `fifo-above` | a queue without bound above, in order of arrival | [`above`](Self::above) |
/// | `fifo-above-prio` | the same, by priority | |
/// | `fifos-below` | a short queue at the top of each branch, in order of arrival | [`below`](Self::below) |
/// | `fifos-below-prio` | the same, by priority | |
/// | `ready` | in the queues below, of equal priorities the task whose data is near leaves first | [`QueuesBelow::ready`] |
/// | `ready-first` | the same among all priorities | |
/// | `exp` | the queues below are bounded by expected length too, and `exp-len-threshold=µs` says by which | [`QueuesBelow::limit`] |
/// | `ntasks-threshold=tasks` | the queues below hold so many tasks | |
/// | `no-limit` | the queues below are not bounded | |
/// | `ws-below` | a branch's workers steal from each other, instead of being served in turn | [`work_stealing_below`](Self::work_stealing_below) |
/// | `impl` | the best implementation is chosen above each worker | [`best_implementation`](Self::best_implementation) |
/// | `combined-workers` | the decision is among combined workers too | [`combined_workers`](Self::combined_workers) |
///
/// StarPU's own names of flags are understood as well: `STARPU_SCHED_SIMPLE_FIFOS_BELOW_PRIO`. Any other `name=value` is a
/// parameter of the decision.
///
/// Where there are
/// slots for tasks without a calibrated model, short queues stand above the workers there, so that no worker takes more of
/// them than it needs, and a queue without bound above, unless there is one at the top.
///
/// The decision's branches do not depend on the machine: one of a single branch is made nevertheless, and a branch of one
/// worker still has the component that shares out, which then passes tasks on. So the policy fits every machine.
///
/// ```
/// use sched_policy::{Catalogue, Queue, SimpleFlags, parse};
/// # use sched_core::{Family, Info};
/// # let eager = Info::new("eager", Family::ResourceMapping, "");
/// # let catalogue = Catalogue::new([(eager.describe(), "resource-mapping")]);
/// let flags = SimpleFlags::new("eager").above(Queue::Fifo);
/// let text = r#"policy "mine" { fifo { eager { each "worker" { worker } } } }"#;
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

/// Among what a simple scheduler decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Decide {
    /// Workers: each has its branch.
    Workers,
    /// Memory nodes that have workers.
    MemoryNodes,
    /// Architectures.
    Archs,
}

/// A queue by its order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Queue {
    /// In order of arrival.
    Fifo,
    /// By priority, then in order of arrival.
    Prio,
}

/// Whether the task whose data is near leaves a queue first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ready {
    /// It does not matter where data is.
    Off,
    /// Of tasks of equal priority.
    Equals,
    /// Whatever their priority is. Only in a [`Queue::Fifo`].
    First,
}

/// What a queue below holds at most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Limit {
    /// Anything. Expected lengths are counted nevertheless, for the decision.
    None,
    /// It is full at whichever of these comes first.
    Bounded {
        /// Tasks, at least 1; by default as many as the decision [wants to look ahead](sched_core::Info::lookahead).
        ntasks: Option<u32>,
        /// Expected length in µs, more than 0; by default there is no such bound.
        exp_len: Option<f64>,
    },
}

impl Limit {
    /// The expected length that the word `exp` bounds queues by: 10⁹ µs, about 17 minutes, so practically none.
    pub const EXP_LEN: f64 = 1e9;
}

/// The queues at the tops of the branches.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueuesBelow {
    /// Their order.
    pub queue: Queue,
    /// Whether the task whose data is near leaves first.
    pub ready: Ready,
    /// What they hold at most.
    pub limit: Limit,
}

impl QueuesBelow {
    /// Queues of this order that hold as many tasks as the decision looks ahead.
    #[must_use]
    pub fn new(queue: Queue) -> QueuesBelow {
        QueuesBelow { queue, ready: Ready::Off, limit: Limit::Bounded { ntasks: None, exp_len: None } }
    }
}

impl SimpleFlags {
    /// A scheduler in which this component decides among workers, and nothing else stands above them.
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

    /// The same, with this among which to decide.
    #[must_use]
    pub fn decide(self, decide: Decide) -> SimpleFlags {
        SimpleFlags { decide, ..self }
    }

    /// The same, with these components right above the decision. They have no word.
    #[must_use]
    pub fn before(self, before: impl Into<Recipe>) -> SimpleFlags {
        SimpleFlags { before: before.into(), ..self }
    }

    /// The same, where tasks without a calibrated model do not reach the decision.
    #[must_use]
    pub fn perfmodel(self) -> SimpleFlags {
        SimpleFlags { perfmodel: true, ..self }
    }

    /// The same, with a queue without bound at the top.
    #[must_use]
    pub fn above(self, queue: Queue) -> SimpleFlags {
        SimpleFlags { above: Some(queue), ..self }
    }

    /// The same, with queues at the tops of the branches.
    #[must_use]
    pub fn below(self, queues: QueuesBelow) -> SimpleFlags {
        SimpleFlags { below: Some(queues), ..self }
    }

    /// The same, where a branch's workers steal from each other. It makes no difference where a branch is a worker.
    #[must_use]
    pub fn work_stealing_below(self) -> SimpleFlags {
        SimpleFlags { work_stealing_below: true, ..self }
    }

    /// The same, with the best implementation chosen above each worker.
    #[must_use]
    pub fn best_implementation(self) -> SimpleFlags {
        SimpleFlags { best_implementation: true, ..self }
    }

    /// The same, with a branch for each combined worker beside those for workers.
    #[must_use]
    pub fn combined_workers(self) -> SimpleFlags {
        SimpleFlags { combined_workers: true, ..self }
    }
}
