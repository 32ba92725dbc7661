//! Registering data that may be copied.

use crate::data::{DataSize, Handle};
use crate::task::submit::Submitter;
use crate::worker::this_worker;
use sched_model::DataShape;

/// Data that may be copied, about to be handed over; see [`Submitter::replicated`].
///
/// Its handle is like any other. Where a runtime has several [memory nodes](crate::Runtime::memory_nodes), the value begins on that of
/// the worker which registers it, or on the first one, and:
///
/// - Before a task runs, the worker copies what the task reads to its own memory node, unless it is there. The first copy to
///   a node is made with [`Clone::clone`], further ones with [`Clone::clone_from`], which can use the memory that is there.
/// - After a task has written, only what it has written is worth anything. What writes and does not read
///   ([`Write`](crate::Write)) is given what lies on its memory node, however old; if nothing does, a copy.
/// - The application reads and writes a replica that holds the value.
///
/// A `Clone` that panics fails the task that needs the copy, and nothing else. There is no limit to the memory of replicas: they
/// stay until the data goes, or until nobody [will use](Submitter::wont_use) it.
///
/// Where there is one memory node, this is ordinary data: nothing is copied, and nothing costs more.
///
/// ```
/// use sched_runtime::{Read, ReadWrite, Runtime};
/// # use std::sync::Arc;
/// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
/// // Two groups of a worker each, as if each had a memory of its own.
/// let runtime = Runtime::builder().registry(components).workers(2).memory_nodes(2).build()?;
/// let x = runtime.replicated(vec![1.0; 1000]).bytes(8000).register();
/// let y = runtime.replicated(vec![0.0; 1000]).bytes(8000).register();
/// let add = runtime
///     .codelet::<(Read<Vec<f64>>, ReadWrite<Vec<f64>>), ()>("add")
///     .cpu("add", |_, (x, y)| x.iter().zip(y).for_each(|(x, y)| *y += x))
///     .build();
/// for _ in 0..10 {
///     runtime.task(&add, (&x, &y)).submit()?;
/// }
/// assert_eq!(runtime.read(&y)?[0], 10.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "data is handed over by `register`"]
pub struct ReplicatedData<'a, T> {
    submitter: &'a Submitter,
    value: T,
    size: DataSize,
}

impl<'a, T: Clone + Send + Sync + 'static> ReplicatedData<'a, T> {
    pub(crate) fn new(submitter: &'a Submitter, value: T) -> ReplicatedData<'a, T> {
        ReplicatedData { submitter, value, size: DataSize::of_bytes(size_of::<T>() as u64) }
    }

    /// Its size, if that is not the size of `T`: what models of tasks, and of transfers, go by.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.size = DataSize::of_bytes(bytes);
        self
    }

    /// Its size, and its shape for [performance models from StarPU](Submitter::register_shaped).
    pub fn shape(mut self, bytes: u64, shape: DataShape) -> Self {
        self.size = DataSize { bytes, footprint: shape.footprint() };
        self
    }

    /// Hands it over.
    pub fn register(self) -> Handle<T> {
        let core = &self.submitter.core;
        match &core.backend.memories {
            Some(memories) => {
                let node = this_worker(core).map_or(memories.first(), |worker| memories.node_of(worker));
                Handle::replicated(self.value, self.size, core.id, node, memories)
            }
            None => Handle::new(self.value, self.size, core.id),
        }
    }
}
