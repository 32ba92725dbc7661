//! Turns at data that are kept without a thread that waits: for transfers to other processes, and for devices of the
//! program's own.

use super::data::Data;
use super::{DataError, Turn};
use crate::Runtime;
use crate::core::Core;
use crate::task::submit::Submitter;
use parking_lot::Mutex;
use sched_graph::AccessMode;
use sched_tree::SlotId;
use std::fmt;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Wake, Waker};

/// A turn to read data that has come. It may be moved to another thread, and ends when it is dropped. Others may read
/// meanwhile, so it does not write:
///
/// ```compile_fail,E0599
/// # fn f(mut lease: sched_runtime::Lease<sched_runtime::Handle<u64>>) {
/// *lease.writing() += 1;
/// # }
/// ```
///
/// While there are leases, a run without progress does not count as stalled, since it depends on what the runtime does
/// not see, unless the program [says](Runtime::quiet_hook) that nothing will come. A lease that has not come yet
/// depends on the tasks before it, and they may be stalled.
pub struct Lease<D: Data> {
    handle: D,
    submitter: Submitter,
    slot: SlotId,
    _outside: Outside,
}

impl<D: Data> fmt::Debug for Lease<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("data", &self.handle.header().number()).finish_non_exhaustive()
    }
}

impl<D: Data> Lease<D> {
    /// The data, to read.
    ///
    /// # Errors
    /// [`DataError::Bad`] if it was not computed.
    pub fn reading(&self) -> Result<D::Reading<'_>, DataError> {
        let turn = Turn::of_callback(&self.submitter);
        turn.check(self.handle.header()).map(|()| self.handle.reading(turn))
    }
}

/// A turn to write data that has come: a [`Lease`] for which nobody else uses the data. Data that is not written keeps
/// its value.
#[derive(Debug)]
pub struct WriteLease<D: Data>(Lease<D>);

impl<D: Data> WriteLease<D> {
    /// The data, to read what it was.
    ///
    /// # Errors
    /// [`DataError::Bad`] if it was not computed.
    pub fn reading(&self) -> Result<D::Reading<'_>, DataError> {
        self.0.reading()
    }

    /// The data, to write. What failed to be computed before is not looked at: the writer replaces it, and the data is
    /// good from then on.
    pub fn writing(&mut self) -> D::Writing<'_> {
        self.0.handle.header().note_good();
        let turn = Turn::of_callback(&self.0.submitter);
        self.0.handle.replacing(turn)
    }

    /// Ends the turn without a value: tasks that read the data are cancelled, until one writes it completely, and
    /// reading it is an error that gives this reason.
    pub fn fail(self, why: &str) {
        let core = &self.0.submitter.core;
        core.note_invalid(core.place(self.0.slot), self.0.handle.header(), why);
    }
}

impl<D: Data> Drop for Lease<D> {
    fn drop(&mut self) {
        self.submitter.core.end_access(self.slot);
    }
}

/// Counts, while it lives, as work that the runtime does not see.
struct Outside(Arc<Core>);

impl Outside {
    fn new(core: &Arc<Core>) -> Outside {
        core.outside.fetch_add(1, SeqCst);
        Outside(Arc::clone(core))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.0.outside.fetch_sub(1, SeqCst);
    }
}

/// Asks the program whether something will still come from outside; set once.
#[derive(Default)]
pub(crate) struct QuietHook(OnceLock<Box<dyn Fn(u64) -> bool + Send + Sync>>);

impl QuietHook {
    /// Whether the program knows that nothing will come, where `tasks` are done.
    pub(crate) fn ends(&self, tasks: u64) -> bool {
        self.0.get().is_some_and(|hook| hook(tasks))
    }
}

/// A lease that has not come, with what to do then. The turn refers to it, so it refers neither to that nor to what
/// keeps the turn: a runtime may end without it.
struct Coming<D: Data, F> {
    core: Weak<Core>,
    turn: Mutex<Option<(D, SlotId, F)>>,
}

impl<D: Data + Clone + Send, F: FnOnce(Lease<D>) + Send> Coming<D, F> {
    fn come(&self) {
        let Some((handle, slot, then)) = self.turn.lock().take() else { return };
        let Some(core) = self.core.upgrade() else { return };
        let outside = Outside::new(&core);
        then(Lease { handle, submitter: Submitter { core }, slot, _outside: outside });
    }
}

impl<D: Data + Clone + Send, F: FnOnce(Lease<D>) + Send> Wake for Coming<D, F> {
    fn wake(self: Arc<Self>) {
        self.come();
    }
}

impl Runtime {
    /// Leases data in its turn, to read it: `then` gets the lease when the tasks submitted so far that write the data
    /// have ended, and later tasks that write it wait until the lease is dropped. It is called by the thread that ends
    /// the last of those tasks, or by this one if there is none; it must be short, and wait for nothing.
    ///
    /// ```
    /// use sched_runtime::{ReadWrite, Runtime};
    /// # use std::sync::{Arc, OnceLock};
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(1).build()?;
    /// let count = runtime.codelet::<(ReadWrite<u64>,), ()>("count").cpu("count", |_, (x,)| *x += 1).build();
    /// let x = runtime.register(0);
    /// let (give, take) = std::sync::mpsc::channel();
    /// runtime.task(&count, (&x,)).submit()?;
    /// runtime.lease_read(&x, move |lease| give.send(lease).expect("it is taken"))?;
    /// runtime.task(&count, (&x,)).submit()?;
    /// let sender = std::thread::spawn(move || {
    ///     let lease = take.recv().expect("it is given");
    ///     *lease.reading().expect("it was computed")
    /// });
    /// assert_eq!(sender.join().expect("it does not panic"), 1);
    /// assert_eq!(*runtime.read(&x)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Foreign`] if the handle belongs to another runtime, [`DataError::Loan`] if the scope that lent the
    /// data has ended, or lent it for reading only.
    ///
    /// # Panics
    /// If a task of this runtime calls it.
    pub fn lease_read<D: Data + Clone + Send>(
        &self,
        handle: &D,
        then: impl FnOnce(Lease<D>) + Send + 'static,
    ) -> Result<(), DataError> {
        self.lease(handle, AccessMode::Read, then)
    }

    /// [`lease_read`](Self::lease_read) for writing: after every task submitted so far that uses the data, and before
    /// all later ones.
    ///
    /// # Errors
    /// [`DataError::Foreign`] if the handle belongs to another runtime, [`DataError::Loan`] if the scope that lent the
    /// data has ended, or lent it for reading only.
    ///
    /// # Panics
    /// If a task of this runtime calls it.
    pub fn lease_write<D: Data + Clone + Send>(
        &self,
        handle: &D,
        then: impl FnOnce(WriteLease<D>) + Send + 'static,
    ) -> Result<(), DataError> {
        self.lease(handle, AccessMode::Write, |lease| then(WriteLease(lease)))
    }

    /// Has a thread that waits for tasks call `hook` with the number of tasks so far, each quiet period in which
    /// nothing moves while there are [leases](Lease). If it returns true, what the leases are held for will not come:
    /// the run has stalled. Without a hook, it never has while there are leases. It must be short, and wait for
    /// nothing.
    ///
    /// Returns whether the hook is set: a runtime has at most one.
    pub fn quiet_hook(&self, hook: impl Fn(u64) -> bool + Send + Sync + 'static) -> bool {
        self.core.quiet_hook.0.set(Box::new(hook)).is_ok()
    }

    fn lease<D: Data + Clone + Send>(
        &self,
        handle: &D,
        mode: AccessMode,
        then: impl FnOnce(Lease<D>) + Send + 'static,
    ) -> Result<(), DataError> {
        self.core.check_use(handle.header(), mode)?;
        let entered = Turn::enter_for(self, (handle.header(), mode), None)?;
        let (turn, core) = ((handle.clone(), entered.key.slot, then), Arc::downgrade(&self.core));
        let coming = Arc::new(Coming { core, turn: Mutex::new(Some(turn)) });
        // The thread that lets go of the data may find the waker as well: one of both takes what is to be done.
        if entered.shared.has_come_or_wakes(Waker::from(Arc::clone(&coming))) {
            coming.come();
        }
        Ok(())
    }
}
