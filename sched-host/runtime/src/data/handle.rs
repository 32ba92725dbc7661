//! The handle that programs name data by, and how long the data lives.
//!
//! Data is dropped with its last handle and the last task that names it. Counting what each task names would cost two
//! exchanges for each datum, a large part of what a small task costs. But the [order of accesses](super::DataHeader)
//! knows already which tasks name the data and have not ended, and what to wait for is what a task that writes would
//! wait for. So:
//!
//! - The program's handles are [counted](sched_sync::counted). While one is there, so is the data.
//! - A task that is in the order of its data has handles that are not counted. It drops them before it ends, and it
//!   ends after all tasks before it that it had to wait for, also if it is cancelled.
//! - When the last handle goes, no task can be submitted any more that names the data. If there may be tasks, the data
//!   enters its own order, as a writer that is no task, and is dropped in its turn. The thread that drops the handle
//!   does not wait for that.
//! - Tasks that are ordered elsewhere, those of recordings and those that are nested, have handles that are counted and
//!   outlive those of the program.

use super::loan::{LentValue, Loan};
use super::plain::Plain;
use super::reduction::Reduced;
use super::replicas::Replicas;
use super::{DataHeader, DataSize, Home, Places, Value};
use crate::core::Core;
use crate::memory::Memories;
use crate::task::record::RareFields;
use crate::task::submit::Submitter;
use sched_core::MemoryNode;
use sched_graph::AccessMode;
use sched_sync::counted::{Counted, Last, LetGo};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// Data of type `T` that the runtime manages. Handles are cheap to clone; the data is dropped with the last handle and
/// the last task that names it.
///
/// ```
/// use sched_runtime::{ReadWrite, Runtime};
/// # use std::sync::Arc;
/// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
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
    /// Handles of the program are owners. Tasks have loans: the order of accesses says when they have ended, and the
    /// value is [kept](keep) until then. Tasks that are in another order, those of recordings and nested ones, have
    /// uses.
    cell: Counted<Head<T>, Value<T>>,
}

/// What submissions look at.
struct Head<T> {
    header: Arc<DataHeader>,
    core: Weak<Core>,
    /// See [`keep`].
    keep: fn(Last<Head<T>, Value<T>>),
}

impl<T> LetGo<Value<T>> for Head<T> {
    fn let_go(last: Last<Head<T>, Value<T>>) {
        (last.head().keep)(last);
    }
}

/// Keeps a value that has no handle any more until all tasks that name it have ended: those that are in its order now,
/// since no other can be submitted.
fn keep<T: Send + Sync + 'static>(last: Last<Head<T>, Value<T>>) {
    // Without a runtime there are no tasks.
    let Some(core) = last.head().core.upgrade() else { return };
    if core.is_finished() {
        return;
    }
    let header = Arc::clone(&last.head().header);
    let data = header.id;
    // Nobody waits for the end of the value: a panic of its destructor can be given to nobody.
    let callback = Box::new(move |_: &_| {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(last))) {
            // The drop of a payload may panic in turn.
            std::mem::forget(payload);
            tracing::error!(data, "the destructor of a value panicked, after the last task that uses it");
        }
    });
    let rare = RareFields { callback: Some(callback), ends_with_callback: true, ..RareFields::default() };
    Submitter { core }.enter_turn(&header, AccessMode::ReadWrite, rare);
}

/// A witness that a handle is made for a task. Those of the program are owners, which lend; what a task is given is
/// none, and a program that got one could lend what nobody keeps.
///
/// ```compile_fail,E0061
/// # fn f(x: sched_runtime::Handle<u64>) {
/// use sched_runtime::{Access, ReadWrite};
/// let of_no_task = <ReadWrite<u64> as Access>::own(&x);
/// # }
/// ```
pub struct OfTask(pub(crate) ());

/// A witness that a task is in the order of the data that it names.
pub struct InOrder(pub(crate) ());

/// A witness that all tasks have ended that name data, and that nobody else can name it.
pub struct LastTurn(pub(crate) ());

/// Proof that the task has begun which names data, so that it is its turn there. No program can make one, nor implement
/// what asks for one.
///
/// ```compile_fail,E0061
/// # fn f(x: sched_runtime::Handle<u64>, worker: sched_core::WorkerId) {
/// use sched_runtime::{Access, ReadWrite};
/// let both = [(); 2].map(|()| <ReadWrite<u64> as Access>::guard(&x, worker));
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Begun(pub(crate) ());

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        Handle { cell: self.cell.clone() }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.header().id)
    }
}

impl<T> Handle<T> {
    #[inline(always)]
    pub(crate) fn header(&self) -> &Arc<DataHeader> {
        &self.cell.head().header
    }

    #[inline(always)]
    pub(crate) fn value(&self) -> &Value<T> {
        self.cell.value()
    }

    /// The handle of a task in an order of its own.
    pub(crate) fn to_use(&self, _of_task: &OfTask) -> Handle<T> {
        Handle { cell: self.cell.to_use() }
    }

    /// The handle of a task that is in the order of the data.
    #[inline(always)]
    pub(crate) fn lend(&self, _in_order: &InOrder) -> Handle<T> {
        // SAFETY: programs have owners. The value is kept until all tasks in its order have ended, and a task drops its
        // handles before it ends.
        Handle { cell: unsafe { self.cell.lend() } }
    }

    /// Whether there is no other handle of the program: so no task can be submitted any more that names the data.
    pub(crate) fn is_only(&self) -> bool {
        self.cell.is_only()
    }

    /// Takes the value if it is the only handle; else gives the handle back.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn try_take(self, _turn: &LastTurn) -> Result<Value<T>, Handle<T>> {
        // SAFETY: the tasks have ended that were in its order.
        unsafe { self.cell.try_take() }.map_err(|cell| Handle { cell })
    }
}

impl<T: Send + Sync + 'static> Handle<T> {
    fn of(header: DataHeader, core: &Arc<Core>, value: Value<T>) -> Handle<T> {
        let head = Head { header: Arc::new(header), core: Arc::downgrade(core), keep };
        Handle { cell: Counted::new(head, value) }
    }

    /// Data in one place.
    pub(crate) fn new(value: T, size: DataSize, core: &Arc<Core>) -> Handle<T> {
        let header = DataHeader::new(size, core.id, |_| Places::One(Home::default()));
        Handle::of(header, core, Value::One(Plain::new(value)))
    }

    /// Data that tasks add to.
    pub(crate) fn reduced(value: Reduced<T>, size: DataSize, core: &Arc<Core>) -> Handle<T> {
        let header = DataHeader::new(size, core.id, |_| Places::One(Home::default()));
        Handle::of(header, core, Value::Reduced(Box::new(value)))
    }

    /// Data that a scope lent.
    pub(crate) fn lent(value: LentValue<T>, core: &Arc<Core>, loan: Arc<Loan>) -> Handle<T> {
        let size = DataSize::of_bytes(size_of::<T>() as u64);
        let header = DataHeader::special(size, core.id, |_| Places::Lent(loan));
        Handle::of(header, core, Value::Lent(value))
    }
}

impl<T: Clone + Send + Sync + 'static> Handle<T> {
    /// Data with replicas; the first one is on `node`.
    pub(crate) fn replicated(
        value: T,
        size: DataSize,
        core: &Arc<Core>,
        node: MemoryNode,
        memories: &Arc<Memories>,
    ) -> Handle<T> {
        let replicas = |id| Arc::new(Replicas::new(value, node, id, size.bytes, memories));
        let mut typed = None;
        let header = DataHeader::new(size, core.id, |id| {
            let replicas = typed.insert(replicas(id));
            Places::Replicated(Arc::<Replicas<T>>::clone(replicas))
        });
        let replicas = typed.expect("the places of data are made once");
        Handle::of(header, core, Value::Replicated(replicas))
    }
}
