//! A component's place in the tree, as it sees it during one call.

mod prospect;
mod submitted;

pub use prospect::Prospect;
pub use submitted::{DataAccess, Stage, Submitted, SubmittedTask};

use crate::abi::extension::{HostEnds, HostLog, HostTeams, HostTimes, NO_TIME, WorkerDistance, offered};
use crate::abi::wire::{NO_ID, REQUESTER, RawNode, RawPlace, place};
use crate::component::{Push, Refusal, Refused};
use crate::estimate::{Estimate, Time};
use crate::mutex::assert_none_held;
use crate::task::Task;
use crate::workers::{Arch, MemoryNode, WorkerId, WorkerSet, members};
use std::time::Duration;

/// A child of a component, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Child(pub u32);

/// A parent of a component, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Parent(pub u32);

/// How much a line in the host's log matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum LogLevel {
    /// Something is wrong.
    Error = 1,
    /// Something may be wrong.
    Warn = 2,
    /// Worth knowing.
    Info = 3,
    /// For who looks for a fault.
    Debug = 4,
}

/// A component's place in the tree during one call: its neighbours, and the host's services.
///
/// Methods marked *hop* reach other components, which may call back: hold no lock then. All others are services of the
/// host and may be used while a lock is held.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    raw: &'a RawNode,
}

impl<'a> Node<'a> {
    pub(crate) fn new(raw: &'a RawNode) -> Node<'a> {
        Node { raw }
    }

    fn place(&self) -> &RawPlace<'_> {
        self.raw.host().place()
    }

    // --- neighbours

    /// Number of this node in its tree.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.place().id
    }

    /// Name of this node, unique in its tree: `fifo/eager/worker 3/fifo`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.place().path.as_str()
    }

    /// The children, in order.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = Child> + ExactSizeIterator + use<> {
        (0..self.place().children).map(Child)
    }

    /// The parents, in order; none at the root.
    pub fn parents(&self) -> impl DoubleEndedIterator<Item = Parent> + ExactSizeIterator + use<> {
        (0..self.place().parents).map(Parent)
    }

    /// The child that fills a slot, where the component's [`Info`](crate::Info) declares slots.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<Child> {
        self.children().find(|child| self.child_place(*child).is_some_and(|place| place.slot.as_str() == name))
    }

    fn child_place(&self, child: Child) -> Option<&RawPlace<'_>> {
        self.raw.host().child_place(child.0).into_option()
    }

    // --- workers

    /// All workers below.
    #[must_use]
    pub fn workers(&self) -> WorkerSet {
        WorkerSet::from_words(&self.place().workers)
    }

    /// The workers below that the scheduling context has now.
    #[must_use]
    pub fn workers_in_context(&self) -> WorkerSet {
        WorkerSet::from_words(&self.place().workers_in_context)
    }

    /// The members of [`workers_in_context`](Self::workers_in_context), in order. Does not allocate.
    pub fn each_worker_in_context(&self) -> impl Iterator<Item = WorkerId> {
        members(&self.place().workers_in_context)
    }

    /// Number of workers below that the scheduling context has now. Does not allocate.
    #[must_use]
    pub fn count_in_context(&self) -> u32 {
        self.place().workers_in_context.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether `worker` is below and in the scheduling context now. Does not allocate.
    #[must_use]
    pub fn has_in_context(&self, worker: WorkerId) -> bool {
        contains(&self.place().workers_in_context, worker)
    }

    /// All workers below a child.
    #[must_use]
    pub fn child_workers(&self, child: Child) -> WorkerSet {
        self.child_place(child).map_or_else(WorkerSet::new, |place| WorkerSet::from_words(&place.workers))
    }

    /// The workers below a child that the scheduling context has now, in order. Does not allocate.
    pub fn each_child_worker_in_context(&self, child: Child) -> impl Iterator<Item = WorkerId> {
        members(self.child_place(child).map_or(&[], |place| &place.workers_in_context))
    }

    /// Whether `worker` is below a child. Does not allocate.
    #[must_use]
    pub fn child_has_worker(&self, child: Child, worker: WorkerId) -> bool {
        self.child_place(child).is_some_and(|place| contains(&place.workers, worker))
    }

    /// The worker that a child stands for, if the child is a worker.
    #[must_use]
    pub fn child_worker(&self, child: Child) -> Option<WorkerId> {
        some_id(self.child_place(child)?.worker).map(WorkerId)
    }

    /// The worker that this node stands for, if it is a leaf.
    #[must_use]
    pub fn worker(&self) -> Option<WorkerId> {
        some_id(self.place().worker).map(WorkerId)
    }

    /// How far apart two workers are on the machine: 0 on the same processing unit, and the more the less they share (core,
    /// caches, package, memory node). Only the order means something: numbers differ from one machine to another, so they
    /// are compared, and nothing is computed with them. Between three workers, the two larger of the three distances are
    /// equal.
    ///
    /// `None` where the host does not know, for one or for both: for workers that stand nowhere in its topology, and in
    /// hosts of before 1.1.
    #[must_use]
    pub fn worker_distance(&self, one: WorkerId, other: WorkerId) -> Option<u32> {
        let table = offered::<WorkerDistance>(self.raw.host())?;
        some_id((table.between)(self.raw.call(), self.id(), one.0, other.0))
    }

    /// Whether all workers below have one architecture.
    #[must_use]
    pub fn is_homogeneous(&self) -> bool {
        self.place().flags & place::HOMOGENEOUS != 0
    }

    /// The memory node of all workers below, if they share one.
    #[must_use]
    pub fn single_memory_node(&self) -> Option<MemoryNode> {
        some_id(self.place().memory_node).map(MemoryNode)
    }

    /// Whether data is ever moved between memory nodes. Where it is not, [`expected_transfer`](Self::expected_transfer) is
    /// none for every task, and need not be asked. (Since 1.1: an older host says that it is.)
    #[must_use]
    pub fn has_transfers(&self) -> bool {
        self.place().flags & place::NO_TRANSFERS == 0
    }

    /// What this node stands for in the topology: `numa 1`, `worker 3`; empty when it stands for nothing in particular.
    #[must_use]
    pub fn topology_object(&self) -> &str {
        self.place().object.as_str()
    }

    /// The architecture of a worker, if there is such a worker.
    #[must_use]
    pub fn arch(&self, worker: WorkerId) -> Option<Arch> {
        let worker = self.raw.host().worker(worker.0).into_option()?;
        Arch::new(u8::try_from(worker.arch).ok()?)
    }

    /// The memory node of a worker, if there is such a worker.
    #[must_use]
    pub fn memory_node(&self, worker: WorkerId) -> Option<MemoryNode> {
        Some(MemoryNode(self.raw.host().worker(worker.0).into_option()?.memory_node))
    }

    /// The simple workers that a combined worker is made of, in order of their ranks; for a simple worker, itself. None for
    /// a worker that does not exist. (Since 1.1: with an older host every worker is a simple one.)
    pub fn members(&self, worker: WorkerId) -> impl Iterator<Item = WorkerId> {
        let table = offered::<HostTeams>(self.raw.host());
        let call = self.raw.call();
        let size = table.map_or(1, |table| (table.size)(call, worker.0));
        (0..size).filter_map(move |rank| match table {
            Some(table) => some_id((table.member)(call, worker.0, rank)).map(WorkerId),
            None => Some(worker),
        })
    }

    /// Sum of the relative speeds of the workers below that the context has now; a CPU core counts 1. A combined worker
    /// counts as its members, and each of these once, whatever stands for it.
    #[must_use]
    pub fn relative_speedup(&self) -> f64 {
        self.place().relative_speedup
    }

    /// The same below a child.
    #[must_use]
    pub fn child_relative_speedup(&self, child: Child) -> f64 {
        self.child_place(child).map_or(0.0, |place| place.relative_speedup)
    }

    /// The worker on whose behalf the call happens: the one that pulls, or that made a task ready. `None` when the
    /// application submits.
    #[must_use]
    pub fn requester(&self) -> Option<WorkerId> {
        some_id(self.raw.host().requester(self.raw.call())).map(WorkerId)
    }

    // --- hops

    /// *Hop.* Pushes `task` to a child.
    ///
    /// # Errors
    /// The child's refusal, with the task.
    pub fn push_to(&self, child: Child, task: Task) -> Push {
        assert_none_held("push_to");
        let answer = self.raw.host().push_to(self.raw.call(), child.0, task.into_raw());
        match Task::received(answer.refused) {
            None => Ok(()),
            Some(task) => Err(Refused::new(task, Refusal::from_code(answer.why))),
        }
    }

    /// *Hop.* Pulls a task from a parent.
    #[must_use]
    pub fn pull_from(&self, parent: Parent) -> Option<Task> {
        assert_none_held("pull_from");
        Task::received(self.raw.host().pull_from(self.raw.call(), parent.0))
    }

    /// *Hop.* Pulls a task from each parent in order until one gives one.
    #[must_use]
    pub fn pull_from_parents(&self) -> Option<Task> {
        assert_none_held("pull_from_parents");
        Task::received(self.raw.host().pull_from(self.raw.call(), NO_ID))
    }

    /// *Hop.* Tells each parent in order that there is room here, until one sends something. Whether one did.
    #[must_use = "whether something was sent"]
    pub fn parents_can_push(&self) -> bool {
        assert_none_held("parents_can_push");
        self.raw.host().parents_can_push(self.raw.call())
    }

    /// *Hop.* Tells a child that there is work here. Whether a worker was woken.
    pub fn child_can_pull(&self, child: Child) -> bool {
        assert_none_held("child_can_pull");
        self.raw.host().child_can_pull(self.raw.call(), child.0)
    }

    /// *Hop.* Tells each child in order that there is work here, until a worker was woken. Costs next to nothing while no
    /// worker sleeps.
    pub fn children_can_pull(&self) -> bool {
        assert_none_held("children_can_pull");
        self.raw.host().child_can_pull(self.raw.call(), NO_ID)
    }

    /// *Hop.* Wakes one sleeping worker below that can use what was pushed. Whether there was one.
    pub fn wake_one(&self) -> bool {
        assert_none_held("wake_one");
        self.raw.host().wake(self.raw.call(), false)
    }

    /// *Hop.* Wakes all sleeping workers below. Whether there was one.
    pub fn wake_all(&self) -> bool {
        assert_none_held("wake_all");
        self.raw.host().wake(self.raw.call(), true)
    }

    /// *Hop.* The handbook's pump: takes tasks with `pop` and pushes them to `child` until there are none or one is
    /// refused, which `unpop` puts back in its place. Whether any was moved.
    pub fn pump(&self, child: Child, mut pop: impl FnMut() -> Option<Task>, unpop: impl FnOnce(Task)) -> bool {
        let mut moved = false;
        while let Some(task) = pop() {
            match self.push_to(child, task) {
                Ok(()) => moved = true,
                Err(refused) => {
                    unpop(refused.task);
                    break;
                }
            }
        }
        moved
    }

    /// *Hop.* When the workers below a child will have nothing left to do.
    #[must_use]
    pub fn child_estimated_end(&self, child: Child) -> Time {
        assert_none_held("child_estimated_end");
        Time::from_nanos(self.raw.host().child_estimated_end(self.raw.call(), child.0))
    }

    /// *Hop.* Tells `each` when the workers below each child will have nothing left to do, in order. It costs less than to ask
    /// for one after the other. (A host older than 1.1 is asked so.)
    pub fn ends_below(&self, mut each: impl FnMut(Child, Time)) {
        let Some(table) = offered::<HostEnds>(self.raw.host()) else {
            return self.children().for_each(|child| each(child, self.child_estimated_end(child)));
        };
        let place = self.place();
        let ask = |first, ends: &mut [u64]| {
            assert_none_held("ends_below");
            (table.below)(self.raw.call(), place.id, first, ends.into());
        };
        in_chunks(place.children, 0, ask, |child, end| each(child, Time::from_nanos(end)));
    }

    /// *Hop.* The earliest end of a child; now where there is none.
    #[must_use]
    pub fn earliest_end_below(&self) -> Time {
        self.end_below_with_queued(Duration::ZERO)
    }

    /// *Hop.* The average end of the children; now where there is none.
    #[must_use]
    pub fn average_end_below(&self) -> Time {
        let count = self.children().len() as u128;
        if count == 0 {
            return self.now();
        }
        let mut sum = 0_u128;
        self.ends_below(|_, end| sum += u128::from(end.as_nanos()));
        Time::from_nanos((sum / count) as u64)
    }

    /// *Hop.* When the workers below would be done with what is `queued` here as well, if it filled them up evenly: what
    /// they have to do beyond the earliest end of a child, and the queue, shared by all workers below. Where nothing is
    /// queued, it is [`earliest_end_below`](Self::earliest_end_below).
    #[must_use]
    pub fn end_below_with_queued(&self, queued: Duration) -> Time {
        let (mut first, mut sum, mut count) = (Time::FAR, Duration::ZERO, 0);
        self.ends_below(|_, end| {
            first = first.min(end);
            sum = sum.saturating_add(end.since(Time::ZERO));
            count += 1;
        });
        if count == 0 {
            first = self.now();
        }
        if queued.is_zero() {
            return first;
        }
        let later = sum.saturating_sub(first.since(Time::ZERO).saturating_mul(count));
        first + queued.saturating_add(later) / self.count_in_context().max(1)
    }

    /// *Hop.* The load of a child.
    #[must_use]
    pub fn child_load(&self, child: Child) -> f64 {
        assert_none_held("child_load");
        self.raw.host().child_estimated_load(self.raw.call(), child.0)
    }

    /// *Hop.* The sum of the loads of the children.
    #[must_use]
    pub fn load_below(&self) -> f64 {
        self.children().map(|child| self.child_load(child)).sum()
    }

    /// *Hop.* The sum of the loads of the members of a combined worker, each in its own leaf; 0 for a simple worker, and with
    /// a host older than 1.1.
    #[must_use]
    pub fn members_load(&self, worker: WorkerId) -> f64 {
        assert_none_held("members_load");
        offered::<HostTeams>(self.raw.host()).map_or(0.0, |table| (table.load)(self.raw.call(), worker.0))
    }

    // --- services

    /// The time of the run.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::from_nanos(self.raw.host().now(self.raw.call()))
    }

    /// A random number, all 64 bits of it: from the seed of the run and this node, so that a run can be repeated.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.raw.host().random(self.raw.call())
    }

    /// A random number from 0 up to, not including, 1.
    #[must_use]
    pub fn random_unit(&self) -> f64 {
        (self.random() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether some worker below in the context can execute `task`.
    #[must_use]
    pub fn can_execute(&self, task: &Task) -> bool {
        self.raw.host().can_execute(self.raw.call(), NO_ID, task.raw())
    }

    /// Whether `worker` can execute `task`.
    #[must_use]
    pub fn worker_can_execute(&self, worker: WorkerId, task: &Task) -> bool {
        self.raw.host().can_execute(self.raw.call(), worker.0, task.raw())
    }

    /// Whether the worker on whose behalf the call happens can execute `task`; where there is none, whether some worker
    /// below in the context can.
    #[must_use]
    pub fn requester_can_execute(&self, task: &Task) -> bool {
        self.raw.host().can_execute(self.raw.call(), REQUESTER, task.raw())
    }

    /// Whether some worker below a child can execute `task`.
    #[must_use]
    pub fn child_can_execute(&self, child: Child, task: &Task) -> bool {
        self.raw.host().child_can_execute(self.raw.call(), child.0, task.raw())
    }

    /// Number of implementations of `task` for `worker`, numbered from 0.
    #[must_use]
    pub fn implementations(&self, worker: WorkerId, task: &Task) -> u32 {
        self.raw.host().implementations(self.raw.call(), worker.0, task.raw())
    }

    /// Expected duration of `task` on `worker`, with the best implementation.
    #[must_use]
    pub fn expected_length(&self, worker: WorkerId, task: &Task) -> Estimate {
        Estimate::from_wire(self.raw.host().expected_length(self.raw.call(), worker.0, task.raw(), NO_ID))
    }

    /// Expected duration of `task` on `worker`, with implementation number `implementation`.
    #[must_use]
    pub fn expected_length_with(&self, worker: WorkerId, task: &Task, implementation: u32) -> Estimate {
        Estimate::from_wire(self.raw.host().expected_length(self.raw.call(), worker.0, task.raw(), implementation))
    }

    /// Expected duration of bringing the data of `task` to a memory node.
    #[must_use]
    pub fn expected_transfer(&self, memory_node: MemoryNode, task: &Task) -> Duration {
        Duration::from_nanos(self.raw.host().expected_transfer(self.raw.call(), memory_node.0, task.raw()))
    }

    /// Expected energy in joules of `task` on `worker`, with the best implementation; `None` when no model knows.
    #[must_use]
    pub fn expected_energy(&self, worker: WorkerId, task: &Task) -> Option<f64> {
        let joules = self.raw.host().expected_energy(self.raw.call(), worker.0, task.raw(), NO_ID);
        (!joules.is_nan()).then_some(joules)
    }

    /// When `worker` should be done with what it executes now; past when it is idle, or executes a task of which nobody
    /// knows how long it takes. The host notes the start of each task that has an [expected length](Task::predicted) just
    /// before it runs, and forgets it when it has ended. A combined worker is done when the last of its members is.
    ///
    /// `None` when no such books are kept. (Since 1.1: by an older host they are not.)
    #[must_use]
    pub fn worker_busy_until(&self, worker: WorkerId) -> Option<Time> {
        let table = offered::<HostTimes>(self.raw.host())?;
        some_time((table.busy_until)(self.raw.call(), worker.0))
    }

    /// When `worker` should have done what it executes now and all that waits for it: in its own leaf, and in those of the
    /// combined workers that it is a member of, as the leaves [note](Self::note_queued) it. Now, at the earliest.
    ///
    /// `None` when no such books are kept. (Since 1.1: by an older host they are not.)
    #[must_use]
    pub fn worker_free_at(&self, worker: WorkerId) -> Option<Time> {
        let table = offered::<HostTimes>(self.raw.host())?;
        some_time((table.free_at)(self.raw.call(), worker.0))
    }

    /// What waits here should take so long together, which replaces what was noted before: at a leaf, for
    /// [`worker_free_at`](Self::worker_free_at); elsewhere, for a component whose
    /// [`end_is_noted`](crate::Info::end_is_noted). With a host older than 1.1, it does nothing.
    pub fn note_queued(&self, expected: Duration) {
        if let Some(table) = offered::<HostTimes>(self.raw.host()) {
            (table.note_queued)(self.raw.call(), self.id(), crate::estimate::nanos(expected));
        }
    }

    /// Begins to bring the data of `task` to the memory node of the workers below; does nothing where they have several.
    pub fn prefetch(&self, task: &Task) {
        let place = self.place();
        if self.has_transfers() && place.memory_node != NO_ID {
            self.raw.host().prefetch(self.raw.call(), place.memory_node, task.raw());
        }
    }

    /// Begins to bring the data of `task` to a memory node.
    pub fn prefetch_to(&self, memory_node: MemoryNode, task: &Task) {
        if self.has_transfers() {
            self.raw.host().prefetch(self.raw.call(), memory_node.0, task.raw());
        }
    }

    /// Notes a line in the host's log. (Since 1.1: an older host says nothing.)
    pub fn log(&self, level: LogLevel, line: &str) {
        if let Some(table) = offered::<HostLog>(self.raw.host()) {
            (table.log)(self.raw.call(), self.id(), level as u32, line.into());
        }
    }
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("id", &self.id()).field("path", &self.path()).finish_non_exhaustive()
    }
}

/// How many children the host is asked about at once.
const AT_ONCE: usize = 16;

/// Has `ask` fill in what there is to say of the next children, from a child on, and tells it to `each`.
#[inline]
fn in_chunks<T: Copy>(children: u32, unasked: T, ask: impl Fn(u32, &mut [T]), mut each: impl FnMut(Child, T)) {
    let mut answers = [unasked; AT_ONCE];
    let mut first = 0;
    while first < children {
        let count = ((children - first) as usize).min(AT_ONCE);
        let answers = &mut answers[..count];
        ask(first, answers);
        for (child, answer) in (first..).zip(&*answers) {
            each(Child(child), *answer);
        }
        first += count as u32;
    }
}

fn some_id(id: u32) -> Option<u32> {
    (id != NO_ID).then_some(id)
}

fn some_time(nanos: u64) -> Option<Time> {
    (nanos != NO_TIME).then(|| Time::from_nanos(nanos))
}

fn contains(words: &[u64], worker: WorkerId) -> bool {
    words.get((worker.0 / 64) as usize).is_some_and(|word| word & (1 << (worker.0 % 64)) != 0)
}
