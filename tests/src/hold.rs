//! Workers kept busy until a test releases them.

use sched_core::{Arch, WorkerId};
use sched_host::context::SchedContext;
use sched_host::runtime::{Codelet, CodeletBuilder, Runtime, TaskBuilder, Where};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Signals that it has begun, and waits until it is released.
type Wait = (Sender<WorkerId>, Receiver<()>);

type Waiting<'t> = TaskBuilder<'t, (), Wait>;

/// Keeps workers of a runtime busy.
pub struct Hold<'a> {
    runtime: &'a Runtime,
    wait: Codelet<(), Wait>,
}

/// A worker that is busy until this is dropped.
#[must_use = "the worker is let go when this is dropped"]
pub struct Held {
    /// The worker.
    pub worker: WorkerId,
    _go_on: Sender<()>,
}

impl<'a> Hold<'a> {
    /// The tasks have no expected duration.
    #[must_use]
    pub fn new(runtime: &'a Runtime) -> Hold<'a> {
        Hold { runtime, wait: waiting(runtime).build() }
    }

    /// The tasks have this expected duration.
    #[must_use]
    pub fn lasting(runtime: &'a Runtime, length: Duration) -> Hold<'a> {
        Hold { runtime, wait: waiting(runtime).estimate(Arch::CPU, length).build() }
    }

    /// Keeps a worker of the current context busy. It has begun when this returns, so one must be free.
    pub fn worker(&self) -> Held {
        self.begin(|task| task)
    }

    /// Keeps a worker busy that a component chooses by this number.
    pub fn worker_given(&self, sched_data: u64) -> Held {
        self.begin(|task| task.sched_data(sched_data))
    }

    /// Keeps a worker of `context` busy.
    pub fn worker_of(&self, context: &'a SchedContext) -> Held {
        self.begin(|task| task.context(context))
    }

    /// Keeps this worker of `context` busy.
    pub fn worker_at(&self, context: &'a SchedContext, worker: WorkerId) -> Held {
        self.begin(|task| task.context(context).only_on(Where::worker(worker.0)))
    }

    fn begin<'t>(&'t self, with: impl FnOnce(Waiting<'t>) -> Waiting<'t>) -> Held {
        let ((begins, begun), (go_on, goes_on)) = (channel(), channel());
        let task = self.runtime.task_with(&self.wait, (begins, goes_on), ());
        with(task).submit().expect("the task is sound");
        let worker = begun.recv().expect("a worker begins");
        Held { worker, _go_on: go_on }
    }
}

fn waiting(runtime: &Runtime) -> CodeletBuilder<(), Wait> {
    runtime.codelet::<(), Wait>("hold").cpu("hold", |call, ()| {
        call.params.0.send(call.worker).expect("the test listens");
        let _ = call.params.1.recv();
    })
}
