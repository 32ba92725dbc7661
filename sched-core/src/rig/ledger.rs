//! The holder of each task, and the component's faults.

use crate::abi::fake::Head;
use crate::abi::task::RawTask;
use crate::node::{Child, Parent};
use crate::task::{Task, TaskId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// The holder of a task of a rig.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Holder {
    /// The test: it was made, refused or pulled, and can be pushed.
    Test,
    /// The component under test.
    Component,
    /// A fake child that accepted it.
    Child(Child),
    /// A fake parent that will send it down.
    Parent(Parent),
    /// Nobody: the component dropped it.
    Lost,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Test => f.write_str("the test"),
            Holder::Component => f.write_str("the component"),
            Holder::Child(child) => write!(f, "child {}", child.0),
            Holder::Parent(parent) => write!(f, "parent {}", parent.0),
            Holder::Lost => f.write_str("nobody: it was dropped"),
        }
    }
}

/// What the component did wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Breach {
    /// It dropped a task.
    Dropped,
    /// It gave a task that it does not hold.
    NotHeld,
    /// It handed back another task than the one that it was given.
    OtherRefused,
    /// It took a task after it had reported that it has no room.
    HadRoom,
    /// It named a child or a parent that does not exist.
    NoNeighbour,
    /// It gave a worker a task that the worker cannot execute.
    Unable,
    /// It kept a task when it was drained.
    Kept,
    /// It panicked.
    Panicked,
}

#[derive(Default)]
struct Books {
    entries: Vec<(Head, Holder)>,
    by_address: HashMap<usize, usize>,
    faults: Vec<(Breach, String)>,
    lost: Vec<TaskId>,
    closed: bool,
}

/// The rig's records.
#[derive(Default)]
pub(super) struct Ledger {
    books: Mutex<Books>,
}

impl Ledger {
    /// Makes a task that the test holds; `write` sets the fields of its head.
    pub(super) fn make(self: &Arc<Self>, write: impl FnOnce(&Head)) -> TaskId {
        let ledger: Weak<Ledger> = Arc::downgrade(self);
        let head = Head::new(Arc::new(move |task| {
            if let Some(ledger) = ledger.upgrade() {
                ledger.dropped(task);
            }
        }));
        write(&head);
        let mut books = self.books.lock();
        let index = books.entries.len();
        head.fields().sequence.store(index as u64, Relaxed);
        books.by_address.insert(head.handle().head.addr(), index);
        books.entries.push((head, Holder::Test));
        TaskId::new(index as u64)
    }

    /// Transfers a task from `from` to `to`; returns its handle, or the actual holder on failure.
    pub(super) fn give(&self, task: TaskId, from: Holder, to: Holder) -> Result<RawTask, Holder> {
        let mut books = self.books.lock();
        let (head, holder) = &mut books.entries[task.sequence() as usize];
        if *holder != from {
            return Err(*holder);
        }
        *holder = to;
        Ok(head.handle())
    }

    /// Records that the component gave a handle away, to `to`. `None` if the handle is stale or not the component's to
    /// give, which is a fault.
    pub(super) fn receive(&self, raw: RawTask, to: Holder, what: &str) -> Option<TaskId> {
        let mut books = self.books.lock();
        let Some(index) = books.by_address.get(&raw.head.addr()).copied() else {
            books.faults.push((Breach::NotHeld, format!("{what}: the component gave a task that this rig never made")));
            return None;
        };
        let id = TaskId::new(index as u64);
        let (head, holder) = &mut books.entries[index];
        if head.handle() != raw {
            return None;
        }
        if *holder == Holder::Component {
            *holder = to;
            return Some(id);
        }
        let fault = format!("{what}: the component gave {id}, which it does not hold; its holder is {holder}");
        books.faults.push((Breach::NotHeld, fault));
        None
    }

    /// Reads the task behind a handle that a service received.
    pub(super) fn read<T>(&self, raw: RawTask, look: impl FnOnce(&Task) -> T) -> Option<T> {
        let books = self.books.lock();
        let index = books.by_address.get(&raw.head.addr())?;
        Some(books.entries[*index].0.read(look))
    }

    /// Reads the task of this id.
    pub(super) fn look<T>(&self, task: TaskId, look: impl FnOnce(&Task) -> T) -> T {
        self.books.lock().entries[task.sequence() as usize].0.read(look)
    }

    fn dropped(&self, raw: RawTask) {
        let mut books = self.books.lock();
        let Some(index) = books.by_address.get(&raw.head.addr()).copied() else { return };
        let (head, holder) = &mut books.entries[index];
        if head.handle() != raw || *holder != Holder::Component {
            return;
        }
        *holder = Holder::Lost;
        if !books.closed {
            let id = TaskId::new(index as u64);
            books.lost.push(id);
            let fault = format!("the component dropped {id}: it must keep a task, hand it on or hand it back");
            books.faults.push((Breach::Dropped, fault));
        }
    }

    /// Takes a task from the component by force: its handles become stale.
    pub(super) fn revoke(&self, task: TaskId) {
        let mut books = self.books.lock();
        let (head, holder) = &mut books.entries[task.sequence() as usize];
        head.revoke();
        *holder = Holder::Test;
    }

    /// Number of tasks made.
    pub(super) fn len(&self) -> u64 {
        self.books.lock().entries.len() as u64
    }

    pub(super) fn holder(&self, task: TaskId) -> Holder {
        self.books.lock().entries[task.sequence() as usize].1
    }

    pub(super) fn held_by(&self, holder: Holder) -> Vec<TaskId> {
        let books = self.books.lock();
        let held = books.entries.iter().enumerate().filter(|(_, (_, by))| *by == holder);
        held.map(|(index, _)| TaskId::new(index as u64)).collect()
    }

    pub(super) fn fault(&self, breach: Breach, fault: String) {
        self.books.lock().faults.push((breach, fault));
    }

    pub(super) fn faults(&self) -> Vec<String> {
        self.books.lock().faults.iter().map(|(_, fault)| fault.clone()).collect()
    }

    /// The faults from this number on.
    pub(super) fn faults_from(&self, first: usize) -> Vec<(Breach, String)> {
        self.books.lock().faults.get(first..).unwrap_or_default().to_vec()
    }

    pub(super) fn lost(&self) -> Vec<TaskId> {
        self.books.lock().lost.clone()
    }

    /// Stops recording dropped tasks as faults: the component itself is about to be dropped.
    pub(super) fn close(&self) {
        self.books.lock().closed = true;
    }
}
