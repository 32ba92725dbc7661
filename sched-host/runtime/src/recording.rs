//! Recordings: a graph of tasks whose dependencies are worked out once, and which runs again and again.
//!
//! # Protocol
//!
//! A recording keeps a slot of the ledger for each of its tasks, with a job, and for each task the list of those that
//! wait for it. A replay is one entry of the application in the order of all data that its tasks name
//! (see [`Submitter::enter_turn`]). When the turn of that entry comes, the tasks without predecessors are pushed; the
//! end of a task counts down what its successors wait for, without a look at any data; the end of the last task ends
//! the entry. So a replay comes after the tasks submitted before it that use its data, and before those submitted
//! later, as if its tasks had been submitted one by one.
//!
//! Each task is reset when it starts: its count of predecessors is then no longer needed, and the next replay begins
//! after the end of this one. In a narrow graph, one that is ready may [wait at home](at_home) until it is looked for,
//! instead of being pushed. Only tasks without successors count for the end of a replay, since every other task ends
//! before one of these.
//!
//! As long as nothing happens that concerns single tasks, a task is run by its slot and its [plan](planned::Planned)
//! alone ([`unasked`](sched_sync::unasked)), and what it is given is read without a lock ([`kept::Kept`]): of the lines
//! that all workers share, a task changes that of its slot and the counts of those that wait for it. Otherwise it goes
//! the way of any other task, by its record, whose job stands for that of the plan.
//!
//! [`State`] keeps replays of one recording, its changes and its end apart. The slots are returned by the drop of the
//! recording or, if a replay is in progress, by the end of that.

mod at_home;
mod draft;
mod homes;
mod job;
mod kept;
mod planned;
mod recorded;
mod replay;
mod standing;

pub(crate) use at_home::{Scheduled, Visit};
pub(crate) use draft::{Draft, DraftTask};
pub(crate) use job::{RecordedJob, TypedRecordedJob};
pub(crate) use planned::Replayed;
pub(crate) use recorded::Recorded;

use self::kept::Changing;
use crate::data::access::AccessList;
use crate::task::codelet::Codelet;
use crate::task::failure::{Outcome, RunError, SubmitError, TaskFailure};
use crate::task::submit::{Submitter, TaskBuilder, TaskRef};
use crate::wait::data::Data;
use crate::{Runtime, core::Core};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};

/// Captures tasks; see [`Runtime::record`].
pub struct Recorder {
    submitter: Submitter,
    draft: Arc<Draft>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("tasks", &self.draft.len()).finish_non_exhaustive()
    }
}

/// Bit of the [numbers](new_number) of recordings and their standing entries, which runtimes and tasks do not have.
pub(crate) const OF_RECORDINGS: u64 = 1 << 63;

/// A number that nothing else has.
fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    OF_RECORDINGS | NEXT.fetch_add(1, Relaxed)
}

impl Recorder {
    /// Starts to build a task of the recording: a codelet with data. [`submit`](TaskBuilder::submit) captures it; the
    /// result names it for [`after`](TaskBuilder::after) within the recording, and for [`Recording::set_params`].
    pub fn task<'a, L: AccessList>(
        &'a self,
        codelet: &'a Codelet<L, ()>,
        data: L::Passed<'a>,
    ) -> TaskBuilder<'a, L, ()> {
        self.task_with(codelet, (), data)
    }

    /// Starts to build a task of the recording with parameters, which are those of each replay until they are
    /// [set](Recording::set_params) anew.
    pub fn task_with<'a, L: AccessList, P: Send + 'static>(
        &'a self,
        codelet: &'a Codelet<L, P>,
        params: P,
        data: L::Passed<'a>,
    ) -> TaskBuilder<'a, L, P> {
        self.submitter.task_with(codelet, params, data).captured_by(&self.draft)
    }
}

/// A graph of tasks that can be run again and again, at little cost; see [`Runtime::record`]. It keeps the data that
/// its tasks name.
pub struct Recording {
    shared: Arc<Recorded>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("tasks", &self.len()).finish_non_exhaustive()
    }
}

/// Why a recording is not replayed or changed. Nothing has run then, and nothing is changed.
#[derive(Clone, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum ReplayError {
    /// A replay of the recording is in progress.
    #[error("a replay of this recording of {tasks} tasks is in progress")]
    #[diagnostic(help("wait for it first, or record the graph twice to have two replays at once"))]
    Running {
        /// Number of tasks of the recording.
        tasks: usize,
    },
    /// A task or a handle belongs to another recording or runtime.
    #[error("{what} of another {of} was passed to a recording")]
    #[diagnostic(help("pass tasks that this recording captured, and handles of its runtime"))]
    Foreign {
        /// `a task` or `a handle`.
        what: &'static str,
        /// `recording` or `runtime`.
        of: &'static str,
    },
    /// The recording is of another runtime.
    #[error("a recording is replayed by the runtime that recorded it, and this is another one")]
    #[diagnostic(help("record the tasks with each runtime that is to run them"))]
    ForeignRecording,
    /// The replay is not accepted by the context, or not any more.
    #[error("{0}")]
    #[diagnostic(transparent)]
    Refused(SubmitError),
    /// A task has parameters of another type.
    #[error("task {task} of the recording has parameters of another type than `{given}`")]
    #[diagnostic(help("pass a value of the type that the codelet of the task was made with"))]
    Params {
        /// Place of the task in the recording, from 1.
        task: u64,
        /// The type that was passed.
        given: &'static str,
    },
    /// Handles cannot be swapped.
    #[error("these handles cannot be swapped: {why}")]
    #[diagnostic(help(
        "swap data of the same type, size and shape, of which the recording names the whole, or one part, and nothing else"
    ))]
    Swap {
        /// The reason.
        why: &'static str,
    },
    /// A task of the replay failed.
    #[error("{0}")]
    Failed(Arc<TaskFailure>),
    /// The run makes no progress.
    #[error("{0}")]
    Stalled(RunError),
}

sched_text::debug_as_text!(ReplayError);

impl Runtime {
    /// Captures the tasks that `body` submits to the [`Recorder`], without running them. The result can be run again
    /// and again with [`run`](Self::run) or [`replay`](Submitter::replay): what waits for what is worked out here, and
    /// not again.
    ///
    /// ```
    /// use sched_runtime::{Read, ReadWrite, Runtime};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
    /// let add = runtime
    ///     .codelet::<(Read<f64>, ReadWrite<f64>), f64>("add")
    ///     .cpu("add", |context, (from, to)| *to += context.params * from)
    ///     .build();
    /// let (x, y) = (runtime.register(1.0), runtime.register(0.0));
    /// let mut first = None;
    /// let step = runtime.record(|recorder| {
    ///     first = Some(recorder.task_with(&add, 2.0, (&x, &y)).submit()?); // y += 2·x
    ///     recorder.task_with(&add, 1.0, (&y, &x)).submit().map(|_| ()) // x += y
    /// })?;
    /// runtime.run(&step)?;
    /// assert_eq!((*runtime.read(&x)?, *runtime.read(&y)?), (3.0, 2.0));
    ///
    /// // The same graph with another parameter, and with other data in the place of x.
    /// step.set_params(first.expect("it was captured"), 10.0)?;
    /// let z = runtime.register(1.0);
    /// step.swap(&x, &z)?;
    /// runtime.run(&step)?;
    /// assert_eq!((*runtime.read(&z)?, *runtime.read(&y)?), (13.0, 12.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// That of `body`.
    pub fn record<E>(&self, body: impl FnOnce(&Recorder) -> Result<(), E>) -> Result<Recording, E> {
        let draft = Arc::new(Draft::default());
        let recorder = Recorder { submitter: Submitter { core: Arc::clone(&self.core) }, draft };
        body(&recorder)?;
        Ok(Recording { shared: recorder.draft.finish(&self.core) })
    }

    /// [Replays](Submitter::replay) a recording and waits for it.
    ///
    /// # Errors
    /// As `replay`; [`ReplayError::Failed`] if a task failed, which [`wait_all`](Self::wait_all) also reports;
    /// [`ReplayError::Stalled`] if the run makes no progress.
    ///
    /// # Panics
    /// If a task of this runtime calls it, which might wait for itself.
    pub fn run(&self, recording: &Recording) -> Result<(), ReplayError> {
        self.core.refuse_inside("a replay is waited for");
        let replay = self.replay(recording)?;
        match self.wait(replay).map_err(ReplayError::Stalled)? {
            Outcome::Done => Ok(()),
            Outcome::Failed(cause) | Outcome::Cancelled(cause) => Err(ReplayError::Failed(cause)),
        }
    }
}

impl Recording {
    /// Number of tasks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.tasks.len()
    }

    /// Whether there are no tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.tasks.is_empty()
    }

    /// Whether a replay is in progress.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.shared.state.is_running()
    }

    /// Sets the parameters of a task for later replays.
    ///
    /// # Errors
    /// [`ReplayError::Running`], [`ReplayError::Foreign`] for a task that this recording did not capture, and
    /// [`ReplayError::Params`] for another type.
    pub fn set_params<P: Send + 'static>(&self, task: TaskRef, mut params: P) -> Result<(), ReplayError> {
        let shared = &self.shared;
        if !task.is_of(shared.id) {
            return Err(ReplayError::Foreign { what: "a task", of: "recording" });
        }
        let found = shared.changing(|_, right| {
            let mut is_of_type = false;
            let job = shared.job(task.sequence() as usize - 1);
            job.change_params(right, &mut |place| {
                if let Some(place) = place.downcast_mut::<P>() {
                    std::mem::swap(place, &mut params);
                    is_of_type = true;
                }
            });
            Ok(is_of_type)
        });
        // The old value is dropped when the change has ended.
        match found? {
            true => Ok(()),
            false => Err(ReplayError::Params { task: task.sequence(), given: std::any::type_name::<P>() }),
        }
    }

    /// Exchanges two handles in all tasks for later replays: what named one names the other. If the recording names
    /// only one of them, it is replaced by the other.
    ///
    /// # Errors
    /// [`ReplayError::Running`], [`ReplayError::Foreign`] for a handle of another runtime, and [`ReplayError::Swap`] if
    /// the data differ in size or shape, if the recording names neither, or names other parts of the same array.
    pub fn swap<D: Data>(&self, one: &D, other: &D) -> Result<(), ReplayError> {
        let shared = &self.shared;
        if [one, other].iter().any(|data| data.header().runtime() != shared.runtime) {
            return Err(ReplayError::Foreign { what: "a handle", of: "runtime" });
        }
        shared.changing(|core, right| {
            shared.check_swap(one.header(), other.header())?;
            if one.is_reduced() != other.is_reduced() {
                return Err(ReplayError::Swap { why: "one of them is a reduction" });
            }
            shared.swap_accesses(one.header(), other.header());
            for index in 0..shared.tasks.len() {
                shared.job(index).change_handles(right, &mut |place| one.exchange(other, place));
                shared.swap_turns(core, index, one.header(), other.header());
            }
            Ok(())
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.shared.state.retire() {
            self.shared.dismantle();
        }
    }
}

/// Who may use a recording: at most one of a replay, a change, and the end.
#[derive(Default)]
pub(crate) struct State(AtomicU8);

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const CHANGING: u8 = 2;
const RETIRED: u8 = 4;

impl State {
    fn begin(&self, what: u8) -> bool {
        self.0.compare_exchange(IDLE, what, Acquire, Relaxed).is_ok()
    }

    /// Begins a replay, unless one is in progress.
    fn begin_replay(&self) -> bool {
        self.begin(RUNNING)
    }

    fn is_running(&self) -> bool {
        self.0.load(Acquire) & RUNNING != 0
    }

    /// Ends a replay or a change. Returns whether the recording has gone meanwhile.
    fn end(&self) -> bool {
        self.0.fetch_and(RETIRED, AcqRel) & RETIRED != 0
    }

    /// The recording goes. Returns whether it is not in use.
    fn retire(&self) -> bool {
        self.0.fetch_or(RETIRED, AcqRel) == IDLE
    }
}

impl Recorded {
    /// Changes the recording, if no replay is in progress.
    fn changing<R>(
        &self,
        change: impl FnOnce(&Core, &mut Changing<'_>) -> Result<R, ReplayError>,
    ) -> Result<R, ReplayError> {
        let Some(core) = self.core.upgrade() else {
            return Err(ReplayError::Refused(SubmitError::Ended { codelet: "a recording".to_owned() }));
        };
        let Some(mut right) = Changing::begin(&self.state) else {
            return Err(ReplayError::Running { tasks: self.tasks.len() });
        };
        change(&core, &mut right)
    }
}
