//! Registered data: the handle that tasks name, and the value behind it.
//!
//! Tasks that name the same data run in the order that [`AccessOrder`] keeps, and that alone separates them: see
//! [`plain`]. (Replicas are also copied ahead of their turn, so they have locks, which are waited for: see
//! [`replicas`].)

pub(crate) mod access;
pub(crate) mod array;
pub(crate) mod handle;
pub(crate) mod layout;
pub(crate) mod loan;
pub(crate) mod plain;
pub(crate) mod plan;
pub(crate) mod reduction;
pub(crate) mod replicas;
pub(crate) mod replicated;
pub(crate) mod storage;
pub(crate) mod tiles;
pub(crate) mod view;
pub(crate) mod whole;

pub use self::handle::Handle;
pub(crate) use self::handle::{Begun, InOrder, LastTurn, OfTask};
use self::loan::{LentValue, Loan};
use self::plain::Plain;
pub(crate) use self::plain::{Reading, Writing};
use self::reduction::Reduced;
use self::replicas::{Copies, Replicas};
use self::whole::{Part, Whole};
use super::core::Core;
use super::task::measure::footprint_of_bytes;
use super::task::record::TaskKey;
use parking_lot::Mutex;
use sched_core::{MemoryNode, WorkerId};
use sched_graph::AccessOrder;
use sched_sync::sole::InTurn;
use sched_tree::{Phase, Slot, SlotId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// Location of the value.
pub(crate) enum Value<T> {
    /// One place for all workers.
    One(Plain<T>),
    /// A replica on each memory node that needs it.
    Replicated(Arc<Replicas<T>>),
    /// With the program, which lent it for the time of a scope.
    Lent(LentValue<T>),
    /// In one place, with accumulators of the workers.
    Reduced(Box<Reduced<T>>),
}

const KEPT_APART: &str = "the order of accesses keeps them apart";

impl<T> Value<T> {
    /// The value for a worker that runs a task, for reading.
    #[inline(always)]
    pub(crate) fn read_by(&self, worker: WorkerId) -> Reading<'_, T> {
        match self {
            Value::One(value) => Reading::Plain(value.read()),
            _ => self.read_special(Some(worker)),
        }
    }

    /// The value for a worker that runs a task, for writing.
    #[inline(always)]
    pub(crate) fn write_by(&self, worker: WorkerId) -> Writing<'_, T> {
        match self {
            Value::One(value) => Writing::Plain(value.write()),
            _ => self.write_special(Some(worker)),
        }
    }

    /// [`write_by`](Self::write_by) for a task that replaces the value.
    #[inline(always)]
    pub(crate) fn overwrite_by(&self, worker: WorkerId) -> Writing<'_, T> {
        match self {
            Value::One(value) => Writing::Plain(value.write()),
            _ => self.overwrite_special(Some(worker)),
        }
    }

    /// The value for the application, for reading, wherever it is.
    pub(crate) fn read_in_place(&self) -> Reading<'_, T> {
        self.read_special(None)
    }

    /// The value for the application, for writing, wherever it is.
    pub(crate) fn write_in_place(&self) -> Writing<'_, T> {
        self.write_special(None)
    }

    /// The value for the application, which replaces it, wherever it is.
    pub(crate) fn overwrite_in_place(&self) -> Writing<'_, T> {
        self.overwrite_special(None)
    }

    /// A value of any kind, for a worker that runs a task, or for the application.
    #[cold]
    fn read_special(&self, worker: Option<WorkerId>) -> Reading<'_, T> {
        match self {
            Value::One(value) => Reading::Plain(value.read()),
            Value::Replicated(replicas) => {
                let node = worker.map_or_else(|| replicas.some_valid(), |worker| replicas.node_of(worker));
                Reading::Locked(replicas.read(node))
            }
            Value::Lent(value) => Reading::Locked(value.read()),
            Value::Reduced(reduced) => Reading::Locked(reduced.read()),
        }
    }

    /// [`read_special`](Self::read_special), for writing.
    #[cold]
    fn write_special(&self, worker: Option<WorkerId>) -> Writing<'_, T> {
        match self {
            Value::One(value) => Writing::Plain(value.write()),
            Value::Replicated(replicas) => {
                let node = worker.map_or_else(|| replicas.some_valid(), |worker| replicas.node_of(worker));
                Writing::Locked(replicas.write(node))
            }
            Value::Lent(value) => Writing::Locked(value.write()),
            Value::Reduced(reduced) => Writing::Locked(reduced.write()),
        }
    }

    /// [`write_special`](Self::write_special), for a task that replaces the value.
    #[cold]
    fn overwrite_special(&self, worker: Option<WorkerId>) -> Writing<'_, T> {
        match self {
            Value::Reduced(reduced) => Writing::Locked(reduced.overwrite()),
            _ => self.write_special(worker),
        }
    }

    /// The value of a reduction.
    fn reduced(&self) -> &Reduced<T> {
        match self {
            Value::Reduced(reduced) => reduced,
            _ => unreachable!("the handle of a reduction is made for one"),
        }
    }

    /// Whether tasks may reduce the value.
    pub(crate) fn is_reduced(&self) -> bool {
        matches!(self, Value::Reduced(_))
    }

    /// Takes the value, which has no other user; `None` if it was lent.
    pub(crate) fn into_value(self) -> Option<T> {
        match self {
            Value::One(value) => Some(value.into_inner()),
            // A prefetch may still hold the replicas.
            Value::Replicated(replicas) => Some(replicas.take()),
            Value::Lent(_) => None,
            Value::Reduced(reduced) => Some(reduced.into_value()),
        }
    }

    /// Ends the loan of a value, as soon as nobody uses it.
    pub(crate) fn end_loan(&self) {
        if let Value::Lent(value) = self {
            value.end();
        }
    }
}

/// Size of data, and its share in the footprint of a task with a model.
#[derive(Clone, Copy)]
pub(crate) struct DataSize {
    pub(crate) bytes: u64,
    pub(crate) footprint: u32,
}

impl DataSize {
    /// Size of data whose shape is unknown.
    pub(crate) fn of_bytes(bytes: u64) -> DataSize {
        DataSize { bytes, footprint: footprint_of_bytes(bytes) }
    }
}

/// Location of data, with its type erased.
pub(crate) enum Places {
    /// In one place for all workers.
    One(Home),
    /// In replicas on several memory nodes.
    Replicated(Arc<dyn Copies>),
    /// A part of data, or the whole of data that has parts.
    Part(Part),
    /// With the program, which lent it.
    Lent(Arc<Loan>),
}

impl Places {
    /// Memory nodes that hold the data, as bits; 0 if unknown.
    pub(crate) fn valid(&self) -> u64 {
        match self {
            Places::One(home) => home.node().map_or(0, |node| 1 << node.0),
            Places::Replicated(copies) => copies.coherence().valid(),
            Places::Part(part) => part.valid(),
            Places::Lent(_) => 0,
        }
    }
}

/// Memory node of data with one place: that of the first task that wrote it; unknown before.
pub(crate) struct Home(AtomicU32);

impl Default for Home {
    fn default() -> Home {
        Home(AtomicU32::new(u32::MAX))
    }
}

impl Home {
    fn node(&self) -> Option<MemoryNode> {
        Some(self.0.load(Relaxed)).filter(|node| *node != u32::MAX).map(MemoryNode)
    }

    /// Notes that a task writes it on `node`. Writers are serialized.
    pub(crate) fn settle(&self, node: MemoryNode) {
        if self.node().is_none() {
            self.0.store(node.0, Relaxed);
        }
    }
}

/// State of data, with its type erased. First what each submission looks at.
#[repr(C)]
pub struct DataHeader {
    /// The runtime that it is registered with, and whether it is [special](Self::is_special): one comparison shows that
    /// the data is plain.
    registered: u64,
    pub(crate) id: u64,
    /// Size of the data.
    pub(crate) bytes: u64,
    /// Changed by submissions, with the right of the runtime.
    pub(crate) order: InTurn<AccessOrder<TaskKey>>,
    /// Share of its size and shape in the footprint of a task with a model.
    pub(crate) footprint: u32,
    pub(crate) places: Places,
    /// Sequence of the task that failed while it wrote this data; 0 while the data is good.
    failed: AtomicU64,
    commute: Mutex<CommuteTurn>,
}

/// Bit of a header's `registered` for data that submissions treat apart.
const SPECIAL: u64 = 1 << 63;

/// The turn among tasks that commute.
#[derive(Default)]
struct CommuteTurn {
    is_taken: bool,
    /// Tasks that a worker pulled while the turn was taken: the most urgent first, then in the order of submission.
    waiting: BinaryHeap<(i32, Reverse<u64>, SlotId)>,
}

impl CommuteTurn {
    fn next(&mut self) -> Option<SlotId> {
        self.waiting.pop().map(|(.., slot)| slot)
    }
}

impl DataHeader {
    /// Number of the data, which no other data of the process has.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.id
    }

    /// Header of new data; `places` creates its places for its id.
    fn new(size: DataSize, registered: u64, places: impl FnOnce(u64) -> Places) -> DataHeader {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Relaxed);
        DataHeader {
            id,
            registered,
            bytes: size.bytes,
            footprint: size.footprint,
            places: places(id),
            order: InTurn::new(registered & !SPECIAL, AccessOrder::default()),
            commute: Mutex::default(),
            failed: AtomicU64::new(0),
        }
    }

    /// Header of data that submissions treat apart.
    fn special(size: DataSize, runtime: u64, places: impl FnOnce(u64) -> Places) -> DataHeader {
        DataHeader::new(size, runtime | SPECIAL, places)
    }

    /// Whether this is plain data of a runtime: neither a part nor lent by a scope.
    #[inline(always)]
    pub(crate) fn is_plain_of(&self, runtime: u64) -> bool {
        self.registered == runtime
    }

    /// Whether submissions treat this data apart.
    pub(crate) fn is_special(&self) -> bool {
        self.registered & SPECIAL != 0
    }

    /// The runtime that it is registered with.
    pub(crate) fn runtime(&self) -> u64 {
        self.registered & !SPECIAL
    }

    /// The part that it is of other data, or the whole that has parts.
    pub(crate) fn part(&self) -> Option<&Part> {
        match &self.places {
            Places::Part(part) => Some(part),
            _ => None,
        }
    }

    /// The loan, if the values belong to a scope.
    pub(crate) fn loan(&self) -> Option<&Loan> {
        match &self.places {
            Places::Part(part) => part.whole.loan.as_deref(),
            Places::Lent(loan) => Some(loan),
            _ => None,
        }
    }

    /// The whole that it is the header of.
    ///
    /// # Panics
    /// If it has no parts.
    fn into_whole(self) -> Arc<Whole> {
        match self.part() {
            Some(part) => Arc::clone(&part.whole),
            None => unreachable!("arrays and matrices have parts"),
        }
    }

    /// Sequence of the task that failed while it wrote this data; 0 while the data is good.
    pub(crate) fn failed(&self) -> u64 {
        match self.part() {
            Some(part) => part.whole.failed(&part.region),
            None => self.failed.load(Acquire),
        }
    }

    /// Notes that a task failed, which should have written this data.
    pub(crate) fn note_bad(&self, task: u64) {
        match self.part() {
            Some(part) => part.whole.note_bad(&part.region, task),
            None => self.failed.store(task, Release),
        }
    }

    /// Notes that the data was written completely, so that it is good again.
    pub(crate) fn note_good(&self) {
        match self.part() {
            Some(part) => part.whole.note_good(&part.region),
            None => self.failed.store(0, Release),
        }
    }

    /// Takes the turn for a task that a worker is about to run. If it is taken, the task waits: it is nobody's then,
    /// and comes back by [`give_turn`](Self::give_turn).
    pub(crate) fn take_turn(&self, slot: &Slot) -> bool {
        let mut turn = self.commute.lock();
        if !turn.is_taken {
            turn.is_taken = true;
            return true;
        }
        let head = slot.head();
        slot.set_phase(Phase::Waiting);
        turn.waiting.push((head.priority.load(Relaxed), Reverse(head.sequence.load(Relaxed)), slot.id()));
        false
    }

    /// Gives the turn back. Returns the task to schedule again: the most urgent one that waits. It has not got the
    /// turn, so one that is more urgent and comes first takes it. If it does not come to take it, it
    /// [passes](Self::pass_turn) it on.
    pub(crate) fn give_turn(&self) -> Option<SlotId> {
        let mut turn = self.commute.lock();
        turn.is_taken = false;
        turn.next()
    }

    /// Returns the next task to schedule again, if nobody has the turn: a task that was scheduled to take it does not.
    pub(crate) fn pass_turn(&self) -> Option<SlotId> {
        let mut turn = self.commute.lock();
        if turn.is_taken { None } else { turn.next() }
    }
}

/// Memory for the duration of a task: each worker has its own, created on first use; it orders no tasks. Its content is
/// that of the worker's last task.
pub struct Scratchpad<T> {
    pub(crate) pads: Arc<Pads<T>>,
}

pub(crate) struct Pads<T> {
    /// The runtime that has them.
    runtime: u64,
    pub(crate) make: Box<dyn Fn() -> T + Send + Sync>,
    pub(crate) of_worker: Box<[Mutex<Option<T>>]>,
}

impl<T> Scratchpad<T> {
    pub(crate) fn new(core: &Core, make: impl Fn() -> T + Send + Sync + 'static) -> Scratchpad<T> {
        let of_worker = core.facts.iter().map(|_| Mutex::new(None)).collect();
        Scratchpad { pads: Arc::new(Pads { runtime: core.id, make: Box::new(make), of_worker }) }
    }

    pub(crate) fn id(&self) -> PadId {
        PadId { runtime: self.pads.runtime, address: Arc::as_ptr(&self.pads).addr() }
    }
}

/// Tells scratchpads apart.
#[derive(Clone, Copy, PartialEq)]
pub struct PadId {
    pub(crate) runtime: u64,
    address: usize,
}

impl<T> Clone for Scratchpad<T> {
    fn clone(&self) -> Scratchpad<T> {
        Scratchpad { pads: Arc::clone(&self.pads) }
    }
}

impl<T> fmt::Debug for Scratchpad<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scratchpad")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_tree::Ledger;

    /// With any number of tasks that wait, an end schedules one: so the work is that of the tasks, not of their pairs.
    #[test]
    fn the_end_of_a_turn_schedules_the_most_urgent_task_alone() {
        let ledger = Ledger::new();
        let mut slots: Vec<&Slot> = Vec::new();
        while slots.len() < 16_000 {
            slots.extend(ledger.grow());
        }
        let header = DataHeader::new(DataSize::of_bytes(8), 1, |_| Places::One(Home::default()));
        for (number, slot) in (1..).zip(&slots) {
            slot.head().sequence.store(number, Relaxed);
            slot.head().priority.store((number % 3) as i32, Relaxed);
        }
        assert!(header.take_turn(slots[0]), "nobody has the turn");
        assert!(slots[1..].iter().all(|slot| !header.take_turn(slot)));
        let (mut scheduled, mut last) = (0, (i32::MAX, 0));
        while let Some(next) = header.give_turn() {
            let slot = ledger.slot(next);
            let rank = (slot.head().priority.load(Relaxed), slot.head().sequence.load(Relaxed));
            assert!(rank.0 < last.0 || (rank.0 == last.0 && rank.1 > last.1), "{rank:?} comes after {last:?}");
            (scheduled, last) = (scheduled + 1, rank);
            assert!(header.take_turn(slot), "the turn is free");
        }
        assert_eq!(scheduled, slots.len() - 1);
    }
}
