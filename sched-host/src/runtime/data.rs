//! Registered data: the handle that tasks name, and the order of accesses to it.
//!
//! Tasks that name the same data run as if one after the other in the order of their submission (*sequential
//! consistency*): a task that reads waits for the last one before it that writes; a task that writes waits for every one
//! before it that reads or writes. The value stands behind a lock that is never waited for: the order of the tasks alone
//! keeps them apart, and a lock that is found taken is a defect of the runtime, not a race.

use super::measure::footprint_of_bytes;
use super::record::TaskKey;
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// How a task uses data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Reads.
    Read,
    /// Writes without reading what was there.
    Write,
    /// Reads and writes.
    ReadWrite,
    /// Reads and writes; such tasks may run in any order, one at a time.
    Commute,
}

impl Mode {
    /// Whether what was there before matters.
    pub(crate) fn reads(self) -> bool {
        self != Mode::Write
    }

    /// Whether the value may change.
    pub(crate) fn writes(self) -> bool {
        self != Mode::Read
    }
}

/// Data of type `T` that the runtime looks after. Handles are cheap to clone; the data goes when the last handle and the
/// last task that names it are gone.
///
/// ```
/// use sched_host::runtime::{ReadWrite, Runtime};
/// # use sched_components::{flow_control::Fifo, resource_mapping::Eager, worker::Simple};
/// # use std::sync::Arc;
/// # let mut components = sched_host::plugin::Registry::empty();
/// # let stock = [sched_core::Offer::of::<Fifo>(), sched_core::Offer::of::<Eager>(), sched_core::Offer::of::<Simple>()];
/// # components.add_builtin("stock", stock.into()).expect("stock components are sound");
/// # let components = Arc::new(components);
/// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
/// let handle = runtime.register(vec![3, 1, 2]);
/// let sort = runtime.codelet::<(ReadWrite<Vec<i32>>,), ()>("sort").cpu("sort", |_, (values,)| values.sort()).build();
/// runtime.task(&sort, (&handle,)).submit()?;
/// // The application reads in its turn: after the tasks submitted so far.
/// assert_eq!(*runtime.read(&handle)?, [1, 2, 3]);
/// assert_eq!(runtime.unregister(handle)?.expect("it is the only handle"), [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Handle<T> {
    pub(crate) cell: Arc<DataCell<T>>,
}

/// The value and its access order.
pub(crate) struct DataCell<T> {
    pub(crate) header: Arc<DataHeader>,
    pub(crate) value: RwLock<T>,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        Handle { cell: Arc::clone(&self.cell) }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.cell.header.id)
    }
}

impl<T> Handle<T> {
    pub(crate) fn new(value: T, bytes: u64, runtime: u64) -> Handle<T> {
        Handle::with_footprint(value, bytes, footprint_of_bytes(bytes), runtime)
    }

    pub(crate) fn with_footprint(value: T, bytes: u64, footprint: u32, runtime: u64) -> Handle<T> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let header = DataHeader {
            id: NEXT.fetch_add(1, Relaxed),
            runtime,
            bytes,
            footprint,
            order: Mutex::default(),
            commute: Mutex::default(),
            failed: AtomicU64::new(0),
        };
        Handle { cell: Arc::new(DataCell { header: Arc::new(header), value: RwLock::new(value) }) }
    }
}

/// What the runtime knows of data of any type.
pub struct DataHeader {
    pub(crate) id: u64,
    /// The runtime that it is registered with.
    pub(crate) runtime: u64,
    /// Size of the data.
    pub(crate) bytes: u64,
    /// What its size and shape add to the footprint of a task with a model.
    pub(crate) footprint: u32,
    pub(crate) order: Mutex<AccessOrder>,
    commute: Mutex<CommuteTurn>,
    /// The task that failed while it wrote this data, as [`TaskKey::sequence`]; 0 when the data is good.
    pub(crate) failed: AtomicU64,
}

/// The tasks that a new one may have to wait for.
#[derive(Default)]
pub(crate) struct AccessOrder {
    /// The last task that writes; or several that commute.
    writers: Tasks,
    commuting: bool,
    /// What each of the commuting tasks waits for.
    before: Tasks,
    /// Tasks that read since.
    readers: Tasks,
    /// Finished readers, or commuting tasks, are forgotten when there are so many.
    forget_at: usize,
}

type Tasks = SmallVec<[TaskKey; 2]>;

impl AccessOrder {
    /// Notes the access of a new task; `wait_for` is told which tasks it has to wait for. `finished` tells which need no
    /// longer be remembered.
    pub(crate) fn access(
        &mut self,
        task: TaskKey,
        mode: Mode,
        mut wait_for: impl FnMut(TaskKey),
        finished: impl Fn(TaskKey) -> bool,
    ) {
        match mode {
            Mode::Read => {
                self.writers.iter().copied().for_each(wait_for);
                self.readers.push(task);
                if self.readers.len() >= self.forget_at.max(16) {
                    self.readers.retain(|reader| !finished(*reader));
                    self.forget_at = 2 * self.readers.len();
                }
            }
            Mode::Commute if self.commuting && self.readers.is_empty() => {
                self.before.iter().copied().for_each(wait_for);
                self.writers.push(task);
                if self.writers.len() >= self.forget_at.max(16) {
                    self.writers.retain(|writer| !finished(*writer));
                    self.forget_at = 2 * self.writers.len();
                }
            }
            Mode::Write | Mode::ReadWrite | Mode::Commute => {
                // Every reader waits for the writers, so there is no need to wait for both.
                let before = if self.readers.is_empty() { &self.writers } else { &self.readers };
                before.iter().copied().for_each(&mut wait_for);
                self.commuting = mode == Mode::Commute;
                if self.commuting {
                    self.before.clone_from(before);
                }
                self.readers.clear();
                self.writers.clear();
                self.writers.push(task);
            }
        }
    }
}

/// Whose turn it is among tasks that commute.
#[derive(Default)]
struct CommuteTurn {
    taken: bool,
    /// Ready tasks that wait for their turn, by slot.
    waiting: VecDeque<u32>,
}

impl DataHeader {
    /// Takes the turn for the task in `slot`, or lets it wait for the next.
    pub(crate) fn take_turn(&self, slot: u32) -> bool {
        let mut turn = self.commute.lock();
        if turn.taken {
            turn.waiting.push_back(slot);
        } else {
            turn.taken = true;
            return true;
        }
        false
    }

    /// Gives the turn back; the tasks that wait for it may try again.
    pub(crate) fn give_turn(&self, retry: &mut Vec<u32>) {
        let mut turn = self.commute.lock();
        turn.taken = false;
        retry.extend(turn.waiting.drain(..));
    }
}

/// Memory for the time of a task: each worker has its own, made when it first needs it, and nothing is ordered by it.
/// What a task finds in it is what the worker's last task left.
pub struct Scratchpad<T> {
    pub(crate) pads: Arc<Pads<T>>,
}

pub(crate) struct Pads<T> {
    pub(crate) make: Box<dyn Fn() -> T + Send + Sync>,
    pub(crate) of_worker: Box<[Mutex<Option<T>>]>,
}

impl<T> Scratchpad<T> {
    pub(crate) fn new(workers: usize, make: impl Fn() -> T + Send + Sync + 'static) -> Scratchpad<T> {
        let of_worker = (0..workers).map(|_| Mutex::new(None)).collect();
        Scratchpad { pads: Arc::new(Pads { make: Box::new(make), of_worker }) }
    }
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
