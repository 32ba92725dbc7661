//! The worker without a thread of its own: a thread of the program is it while it waits.
//!
//! Who is it, and how the next one learns that it is vacant, is the protocol of [`waiters`](sched_sync::waiters). Here
//! is what the thread does meanwhile: the same as the threads of other workers, and it leaves when what it waits for
//! has happened. Nobody counts on it then: it does the wake that it deferred, and passes on the one that it got.

use super::{Stay, THIS, Worker};
use crate::context::RestoreCurrent;
use crate::core::Core;
use crate::parallel::combined::Purpose;
use sched_core::WorkerId;
use sched_sync::pace::Pace;
use sched_sync::sleep::Sleep;
use sched_trace::Event;
use sched_tree::Services;
use sched_tree::seat::{Seated, Work};
use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

thread_local! {
    /// The workers of other runtimes that this thread is, and which wait in one of their tasks.
    static OUTER: RefCell<Vec<(u64, WorkerId)>> = const { RefCell::new(Vec::new()) };
}

/// The worker of `core` that this thread is, where one of its tasks waits for another runtime.
#[cold]
pub(super) fn outer_worker(core: &Core) -> Option<WorkerId> {
    let find = |outer: &RefCell<Vec<(u64, WorkerId)>>| {
        outer.borrow().iter().find(|(runtime, _)| *runtime == core.id).map(|(_, worker)| *worker)
    };
    // At the end of a thread, which drops what it keeps for itself, it is none.
    OUTER.try_with(find).unwrap_or_default()
}

/// How often a thread looks whether what it waits for has happened, while there are tasks to execute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// After each task.
    Often,
    /// Now and then: the look takes what other workers write.
    Seldom,
}

/// Number of tasks between two [seldom](Looks::Seldom) looks.
const SELDOM: u32 = 32;

/// The stay of a thread that waits.
pub(crate) struct UntilDone<'a> {
    done: &'a dyn Fn() -> bool,
    looks: Looks,
    /// When `go_on` decides whether to continue.
    pace: Pace,
    go_on: &'a mut dyn FnMut() -> bool,
    has_stalled: bool,
}

impl<'a> UntilDone<'a> {
    pub(crate) fn new(
        done: &'a dyn Fn() -> bool,
        looks: Looks,
        period: Duration,
        go_on: &'a mut dyn FnMut() -> bool,
    ) -> UntilDone<'a> {
        UntilDone { done, looks, pace: Pace::new(period), go_on, has_stalled: false }
    }

    /// Decides whether to continue, if that is due.
    fn look_on(&mut self) {
        if self.pace.is_due() {
            self.has_stalled = !(self.done)() && !(self.go_on)();
        }
    }
}

impl Stay for UntilDone<'_> {
    fn is_over(&self, _core: &Core) -> bool {
        self.has_stalled || (self.done)()
    }

    fn sleep(&mut self, sleep: &Sleep, worker: usize) {
        sleep.sleep_for(worker, self.pace.left());
        self.look_on();
    }
}

impl Worker {
    /// Executes tasks on this thread until the `stay` is over.
    pub(crate) fn serve(&mut self, mut stay: UntilDone<'_>) {
        let _is_worker = IsWorker::begin(self);
        let counters = &self.counters;
        let idle = self.core.backend.now().as_nanos().saturating_sub(counters.idle_since.load(Relaxed) - 1);
        counters.idle.store(counters.idle.load(Relaxed) + idle, Relaxed);
        counters.idle_since.store(0, Relaxed);
        self.leave_others();
        let mut executed = 0;
        while let Some(work) = self.look().or_else(|| self.look_at_hands()).or_else(|| self.wait_here(&mut stay)) {
            match work {
                Work::Alone(slot) => self.execute(slot),
                Work::Together(gathering) => self.attend(&gathering),
            }
            executed += 1;
            if executed % SELDOM == 0 {
                // What it waits for may be stuck, whatever else there is to execute.
                stay.look_on();
            }
            if (stay.looks == Looks::Often || executed % SELDOM == 0) && stay.is_over(&self.core) {
                self.lay_down();
                self.wake_deferred();
                break;
            }
        }
        self.core.give_back(&mut self.scratch);
        self.core.backend.record(Some(self.id), || Event::Idle { worker: self.id });
        self.rest();
    }

    fn wait_here(&mut self, stay: &mut UntilDone<'_>) -> Option<Work<Purpose>> {
        let found = self.wait_for_task(stay);
        // Who woke it may have had it moved.
        self.leave_others();
        found
    }

    /// Moves this thread away from the processing units of other workers.
    fn leave_others(&self) {
        if let Some(plan) = &self.binding {
            plan.step_aside(Some(self.id.index()));
        }
    }

    /// Notes that the worker has no task, and no thread.
    pub(crate) fn rest(&self) {
        let since = self.core.backend.now().as_nanos() + 1;
        self.counters.idle_since.store(since, Relaxed);
    }
}

/// Makes this thread a worker until it is dropped.
struct IsWorker {
    outer: Option<(u64, WorkerId)>,
    _current: RestoreCurrent,
}

impl IsWorker {
    fn begin(worker: &Worker) -> IsWorker {
        let outer = THIS.replace(Some((worker.core.id, worker.id)));
        if outer.is_some() {
            OUTER.with_borrow_mut(|list| list.extend(outer));
        }
        IsWorker { outer, _current: RestoreCurrent::after_tasks_of(worker.core.id) }
    }
}

impl Drop for IsWorker {
    fn drop(&mut self) {
        THIS.set(self.outer);
        if self.outer.is_some() {
            OUTER.with_borrow_mut(|list| list.pop());
        }
    }
}
