//! Data for a callback of the program, in its turn.

use super::data::Data;
use super::{DataError, Turn};
use crate::Runtime;
use crate::core::Core;
use crate::task::record::RareFields;
use crate::task::submit::Submitter;
use crate::wait::held::Asked;
use sched_graph::AccessMode;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// The runtime whose data a callback on this thread has.
    static CALLBACK: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether a callback on this thread has data of `core`.
pub(crate) fn is_in_callback(core: &Core) -> bool {
    CALLBACK.get() == Some(core.id)
}

/// Notes until it is dropped that a callback runs.
struct InCallback(Option<u64>);

impl Drop for InCallback {
    fn drop(&mut self) {
        CALLBACK.set(self.0);
    }
}

impl Runtime {
    /// [Reads](Self::read) data in its turn, without waiting for it: `then` gets the guard when the tasks submitted so
    /// far that write the data have ended, and later tasks that write it wait until `then` returns. It is called by the
    /// thread that ends the last of those tasks, or by this one if there is none; it must be short, and wait for
    /// nothing of this runtime.
    ///
    /// [`wait_all`](Self::wait_all) waits for it as for a task. Tasks may call this.
    ///
    /// ```
    /// use sched_runtime::{ReadWrite, Runtime};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
    /// let count = runtime.codelet::<(ReadWrite<u64>,), ()>("count").cpu("count", |_, (x,)| *x += 1).build();
    /// let x = runtime.register(0);
    /// let (send, receive) = std::sync::mpsc::channel();
    /// runtime.task(&count, (&x,)).submit()?;
    /// runtime.acquire_read(&x, move |x| send.send(x.map(|x| *x)).expect("it is received"))?;
    /// runtime.task(&count, (&x,)).submit()?;
    /// assert_eq!(receive.recv()??, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Foreign`] if the handle belongs to another runtime, [`DataError::Loan`] if the scope that lent the
    /// data has ended, or lent it for reading only. Whether the data was computed is what `then` gets.
    #[track_caller]
    pub fn acquire_read<D: Data + Clone + Send>(
        &self,
        handle: &D,
        then: impl for<'a> FnOnce(Result<D::Reading<'a>, DataError>) + Send + 'static,
    ) -> Result<(), DataError> {
        self.acquire(handle, AccessMode::Read, |handle, turn| {
            then(turn.check(handle.header()).map(|()| handle.reading(turn)));
        })
    }

    /// [`acquire_read`](Self::acquire_read) for [writing](Self::write): `then` gets the guard after every task
    /// submitted so far that uses the data, and all later ones wait for it.
    ///
    /// # Errors
    /// [`DataError::Foreign`] if the handle belongs to another runtime, [`DataError::Loan`] if the scope that lent the
    /// data has ended, or lent it for reading only. Whether the data was computed is what `then` gets.
    #[track_caller]
    pub fn acquire_write<D: Data + Clone + Send>(
        &self,
        handle: &D,
        then: impl for<'a> FnOnce(Result<D::Writing<'a>, DataError>) + Send + 'static,
    ) -> Result<(), DataError> {
        self.acquire(handle, AccessMode::ReadWrite, |handle, turn| {
            then(turn.check(handle.header()).map(|()| handle.writing(turn)));
        })
    }

    #[track_caller]
    fn acquire<D: Data + Clone + Send>(
        &self,
        handle: &D,
        mode: AccessMode,
        then: impl for<'a> FnOnce(&'a D, Turn<'a>) + Send + 'static,
    ) -> Result<(), DataError> {
        self.core.check_use(handle.header(), mode)?;
        let asked = Asked::here(handle.header().id, mode);
        let (owned, of) = (handle.clone(), Arc::downgrade(&self.core));
        let callback = move |_: &_| {
            if let Some(core) = of.upgrade() {
                let _in_callback = InCallback(CALLBACK.replace(Some(core.id)));
                let submitter = Submitter { core };
                then(&owned, Turn::of_callback(&submitter));
            }
        };
        let rare = RareFields {
            callback: Some(Box::new(callback)),
            ends_with_callback: true,
            asked: Some(asked),
            ..RareFields::default()
        };
        self.enter_turn(handle.header(), mode, rare);
        Ok(())
    }
}
