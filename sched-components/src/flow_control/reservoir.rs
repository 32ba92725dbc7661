//! The reservoir, the common part of `fifo` and `prio`. It stores the tasks pushed to it, up to its thresholds, and
//! releases them in order: higher priorities first, where they count, and equal ones by arrival. It notifies its
//! parents when it has room, and its children when it has work.

mod ready;

use crate::LARGEST;
use crate::facts::Facts;
use crate::queue::{
    Change, Held, Looks, Place, SharedQueue, TaskQueue, arch_to_find, expected_addition, load_here, nanos,
};
use ready::Ready;
use sched_core::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A queue ordered by priority, then by arrival; bounded if a threshold is set.
///
/// An empty queue accepts one task of any length: a task longer than `exp-len-threshold` would otherwise never run.
#[derive(Debug)]
pub(super) struct Reservoir {
    queue: SharedQueue<Held>,
    /// Whether any threshold is set.
    is_bounded: bool,
    ntasks_threshold: Option<usize>,
    /// In nanoseconds.
    exp_len_threshold: Option<u64>,
    ready: Ready,
    /// The bits of a priority that count: all, or none where tasks keep the order of their arrival.
    priorities: i32,
    /// Expected length in nanoseconds of popped tasks that are not handed over yet: the components above decide where
    /// to send the next tasks meanwhile, and must not take the worker for idle.
    leaving: AtomicU64,
    /// Looks of workers, so that none is woken for a task that came back unless one has missed it.
    looks: Looks,
    facts: Facts,
}

const THRESHOLD: Param = Param::int(NTASKS, 0, "tasks held at most; 0 means no limit").at_least(0);
const LENGTH: Param = Param::float(EXP_LEN, 0.0, "expected length held at most; 0 means no limit")
    .at_least(0)
    .at_most(LARGEST)
    .unit("µs");

/// Parameters of every reservoir.
pub(super) const PARAMS: &[Param] = const { &[THRESHOLD, LENGTH, Ready::PARAM] };

const SORTED_PARAM: Param =
    Param::bool(SORTED, true, "higher priorities leave first; without, tasks leave as they came");

/// Parameters of a reservoir in which priorities may not count, or rank below readiness.
pub(super) const PARAMS_OF_FIFO: &[Param] =
    const { &[THRESHOLD, LENGTH, Ready::PARAM, Ready::FIRST_PARAM, SORTED_PARAM] };

const NTASKS: &str = "ntasks-threshold";
const EXP_LEN: &str = "exp-len-threshold";
const SORTED: &str = "sorted";

/// Description of a flow-control component with the parameters of a reservoir.
pub(super) const fn info(name: &'static str, doc: &'static str, params: &'static [Param]) -> Info {
    Info::new(name, Family::FlowControl, doc)
        .package(env!("CARGO_PKG_NAME"))
        .storage(Storage::BoundedBy(&[NTASKS, EXP_LEN]))
        .params(params)
        .end_is_noted()
}

/// Implements a component for a type whose only field is a [`Reservoir`].
macro_rules! reservoir {
    ($component:ty, $info:expr) => {
        impl sched_core::Build for $component {
            const INFO: sched_core::Info = $info;

            fn build(params: &sched_core::Params) -> Result<Self, sched_core::BuildError> {
                Ok(Self($crate::flow_control::reservoir::Reservoir::new(params)?))
            }
        }

        impl sched_core::Component for $component {
            #[inline(always)]
            fn push_task(&self, node: sched_core::Node<'_>, task: sched_core::Task) -> sched_core::Push {
                self.0.push_task(node, task)
            }

            #[inline(always)]
            fn pull_task(&self, node: sched_core::Node<'_>, to: sched_core::Child) -> Option<sched_core::Task> {
                self.0.pull_task(node, to)
            }

            fn can_push(&self, node: sched_core::Node<'_>, to: sched_core::Child) -> bool {
                self.0.can_push(node, to)
            }

            fn estimated_end(&self, node: sched_core::Node<'_>) -> sched_core::Time {
                self.0.estimated_end(node)
            }

            fn estimated_load(&self, node: sched_core::Node<'_>) -> f64 {
                self.0.estimated_load(node)
            }

            fn notify_change_workers(&self, node: sched_core::Node<'_>) {
                self.0.notify_change_workers(node);
            }

            fn drain(&self) -> Vec<sched_core::Task> {
                self.0.drain()
            }

            fn describe(&self, report: &mut sched_core::Report) {
                self.0.describe(report);
            }
        }
    };
}
pub(super) use reservoir;

impl Reservoir {
    pub(super) fn new(params: &Params) -> Result<Reservoir, BuildError> {
        let ntasks = usize::try_from(params.int(NTASKS)?).unwrap_or(0);
        let ntasks_threshold = (ntasks > 0).then_some(ntasks);
        let exp_len_threshold = params.micros(EXP_LEN)?.map(nanos);
        Ok(Reservoir {
            queue: SharedQueue::with_limit((), ntasks_threshold.unwrap_or(usize::MAX)),
            is_bounded: ntasks_threshold.is_some() || exp_len_threshold.is_some(),
            ntasks_threshold,
            exp_len_threshold,
            ready: Ready::read(params)?,
            priorities: if params.get(SORTED) == Some(&Value::Bool(false)) { 0 } else { -1 },
            leaving: AtomicU64::new(0),
            looks: Looks::new(),
            facts: Facts::default(),
        })
    }

    /// The priority by which a task is sorted.
    #[inline(always)]
    fn priority(&self, task: &Task) -> i32 {
        task.priority() & self.priorities
    }

    fn is_full(&self, queue: &TaskQueue<Held>, task: &Task) -> bool {
        let longer = || queue.expected().saturating_add(task.predicted().map_or(0, nanos));
        queue.len() > 0
            && (self.ntasks_threshold.is_some_and(|limit| queue.len() >= limit)
                || self.exp_len_threshold.is_some_and(|limit| longer() >= limit))
    }

    /// Expected length of the tasks here, including those that are about to leave.
    fn expected(&self) -> Duration {
        Duration::from_nanos(self.queue.expected().saturating_add(self.leaving.load(Relaxed)))
    }

    /// Reports the total expected length to the node.
    fn note(&self, node: Node<'_>, queued: u64) {
        node.note_queued(Duration::from_nanos(queued.saturating_add(self.leaving.load(Relaxed))));
    }

    /// Reports each change to the node.
    fn noted(&self, node: Node<'_>) -> impl Fn(Change) + Copy {
        move |change| {
            self.note(node, change.after);
            note_room(node, change);
        }
    }

    #[inline(always)]
    fn pop(&self, eligible: impl FnMut(&Held) -> bool, changed: impl FnOnce(Change)) -> Option<(Task, Place)> {
        self.queue.pop(eligible, changed).map(|(held, place)| (held.task, place))
    }

    fn unpop(&self, task: Task, place: Place, changed: impl FnOnce(Change)) {
        let held = Held::new(task);
        self.queue.change(|queue| queue.unpop(held, place), changed);
    }

    /// The first task that the requesting worker can execute. `changed` receives each change of the expected length.
    #[inline(always)]
    fn first_for_requester(&self, node: Node<'_>, changed: impl Fn(Change) + Copy) -> Option<Task> {
        let facts = self.facts.of(node);
        let archs = facts.archs();
        if archs.is_empty() || (self.ready != Ready::Off && facts.has_transfers()) {
            return self.find_for_requester(node, changed);
        }
        self.queue.pop_for_good(|held| held.is_for(node, archs), changed).map(|held| held.task)
    }

    /// [`first_for_requester`](Self::first_for_requester), where workers below differ in what they can execute, or
    /// where the location of data decides.
    #[inline(never)]
    fn find_for_requester(&self, node: Node<'_>, changed: impl Fn(Change) + Copy) -> Option<Task> {
        if self.queue.is_empty() {
            return None;
        }
        if let Some(memory_node) = self.ready.pulled_to(node) {
            let able = |held: &Held| node.requester_can_execute(&held.task);
            return self.pop_ready(node, memory_node, able, &changed).map(|(task, _)| task);
        }
        let arch = arch_to_find(node);
        let (task, place) = self.pop(|held| held.suits(node, arch), changed)?;
        if node.requester_can_execute(&task) {
            return Some(task);
        }
        // A worker that wants the first task may have found the queue empty while the host was asked about each task.
        self.unpop(task, place, changed);
        let found = self.pop(|held| node.requester_can_execute(&held.task), changed).map(|(task, _)| task);
        node.children_can_pull();
        found
    }

    /// A pull from a bounded queue.
    #[inline(never)]
    fn pull_bounded(&self, node: Node<'_>) -> Option<Task> {
        if let Some(task) = self.replace_first(node) {
            return Some(task);
        }
        self.last_look(node)
    }

    /// Takes the first task for the requesting worker out of a bounded queue, and lets the components above send others
    /// into its place. Until they are done, the task counts here: the host learns of it when it is handed over.
    fn replace_first(&self, node: Node<'_>) -> Option<Task> {
        let taken = Cell::new(0_u64);
        let task = self.first_for_requester(node, |change| {
            let more = change.before.wrapping_sub(change.after);
            taken.set(taken.get().wrapping_add(more));
            self.leaving.fetch_add(more, Relaxed);
            note_room(node, change);
        });
        if task.is_some() {
            let _ = node.parents_can_push();
        }
        if taken.get() != 0 {
            self.leaving.fetch_sub(taken.get(), Relaxed);
            self.queue.with_expected(|queued| self.note(node, queued));
        }
        task
    }

    /// Stores a task, unless a threshold forbids it, and counts its expected length.
    #[inline(never)]
    fn push_with_length(&self, node: Node<'_>, task: Task, prefetches: bool) -> Push {
        let (priority, has_length) = (self.priority(&task), task.predicted().is_some());
        let push = |queue: &mut TaskQueue<Held>| {
            if self.is_bounded {
                if self.is_full(queue, &task) {
                    return Err(Refused::new(task, Refusal::Full));
                }
                if prefetches {
                    node.prefetch(&task);
                }
            }
            // Without a memory node to prefetch to, no transfer is hidden.
            let ahead = || if node.single_memory_node().is_some() { queue.expected() } else { 0 };
            let expected = if has_length { expected_addition(&task, ahead) } else { 0 };
            queue.push(Held::new(task), priority, expected);
            Ok(())
        };
        self.queue.change(push, self.noted(node))?;
        node.children_can_pull();
        Ok(())
    }

    /// [`first_for_requester`](Self::first_for_requester), after components above have sent tasks. Counted where a task
    /// that is sent on by somebody else may be out at the moment.
    #[inline(never)]
    fn last_look(&self, node: Node<'_>) -> Option<Task> {
        let (has_more, is_counted) = (node.parents_can_push(), self.looks.are_counted());
        let first = || self.first_for_requester(node, self.noted(node));
        if !is_counted {
            return if has_more { first() } else { None };
        }
        let look = self.looks.begin();
        let task = first();
        self.looks.end(look);
        task
    }

    /// Sends tasks down in order until one is refused. If the requesting worker could not have executed that one, the
    /// tasks that it can execute follow: it must not wait behind work for others.
    fn send(&self, node: Node<'_>, to: Child) -> bool {
        let look = self.looks.begin_to_send();
        let place = Cell::new(None);
        let stuck = Cell::new(false);
        let memory_node = self.ready.pushed_to(node);
        let pop = |eligible: &dyn Fn(&Held) -> bool| {
            let (task, at) = match memory_node {
                Some(memory_node) => self.pop_ready(node, memory_node, eligible, &self.noted(node))?,
                None => self.pop(eligible, self.noted(node))?,
            };
            place.set(Some(at));
            Some(task)
        };
        let put_back = Cell::new(false);
        let unpop = |task: Task| {
            put_back.set(true);
            stuck.set(!node.requester_can_execute(&task));
            if let Some(at) = place.take() {
                self.unpop(task, at, self.noted(node));
            }
        };
        let mut moved = node.pump(to, || pop(&|_| true), unpop);
        if stuck.get() {
            let arch = arch_to_find(node);
            let able = |held: &Held| held.suits(node, arch) && node.requester_can_execute(&held.task);
            moved |= node.pump(to, || pop(&able), unpop);
        }
        if put_back.get() && !self.looks.is_alone(&look) {
            // A worker that has room for the task may have found the queue empty meanwhile.
            node.children_can_pull();
        }
        self.looks.end(look);
        moved
    }
}

/// Reports to the node that there is room now, or none.
fn note_room(node: Node<'_>, change: Change) {
    if let Some(has_room) = change.has_room {
        node.note_room(has_room);
    }
}

impl Component for Reservoir {
    #[inline(always)]
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let prefetches = self.facts.of(node).prefetches();
        if prefetches && !self.is_bounded {
            node.prefetch(&task);
        }
        if self.is_bounded || task.predicted().is_some() {
            return self.push_with_length(node, task, prefetches);
        }
        let priority = self.priority(&task);
        self.queue.push(Held::new(task), priority);
        node.children_can_pull();
        Ok(())
    }

    #[inline(always)]
    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        if self.is_bounded {
            return self.pull_bounded(node);
        }
        // Tasks leave a queue without a bound as they are popped: nothing else is to be counted.
        let noted = |change: Change| node.note_queued(Duration::from_nanos(change.after));
        if let Some(task) = self.first_for_requester(node, noted) {
            return Some(task);
        }
        self.last_look(node)
    }

    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        if self.send(node, to) {
            return true;
        }
        // The tasks here were refused below; more of them would be too.
        self.queue.is_empty() && node.parents_can_push() && {
            self.send(node, to);
            true
        }
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        node.end_below_with_queued(self.expected())
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        node.load_below() + load_here(node, self.queue.len())
    }

    fn notify_change_workers(&self, _node: Node<'_>) {
        self.facts.forget();
    }

    fn drain(&self) -> Vec<Task> {
        self.queue.change(TaskQueue::drain, |_| ()).into_iter().map(|held| held.task).collect()
    }

    fn describe(&self, report: &mut Report) {
        let (tasks, expected) = (self.queue.len(), self.queue.expected());
        report.fact("tasks", tasks);
        if let Some(limit) = self.ntasks_threshold {
            report.fact("ntasks-threshold", limit);
        }
        report.fact("expected length", format_args!("{:?}", Duration::from_nanos(expected)));
        if let Some(limit) = self.exp_len_threshold {
            report.fact("exp-len-threshold", format_args!("{:?}", Duration::from_nanos(limit)));
        }
    }
}
