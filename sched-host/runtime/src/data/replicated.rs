//! Registration of replicated data.

use crate::data::{DataSize, Handle};
use crate::task::submit::Submitter;
use crate::worker::this_worker;
use sched_model::DataShape;

/// Settings of replicated data before registration; see [`Submitter::replicated`].
///
/// Its handle is an ordinary one. If the runtime has several [memory nodes](crate::Runtime::memory_nodes), the value
/// starts on the node of the worker that registers it, or on the first node, and:
///
/// - Before a task runs, the worker copies the inputs of the task to its own memory node, unless they are there. The
///   first copy to a node uses [`Clone::clone`], later ones [`Clone::clone_from`], which can reuse memory.
/// - After a write, only the written replica is valid. A task that writes without reading ([`Write`](crate::Write))
///   receives the replica of its memory node, which may be stale; if there is none, a copy.
/// - The application reads and writes a valid replica.
///
/// A `Clone` that panics fails the task that needs the copy, and nothing else. The memory of replicas is not limited:
/// they stay until the data is dropped, or until it is [declared unused](Submitter::wont_use).
///
/// With one memory node, this is ordinary data: nothing is copied, and there is no extra cost.
///
/// ```
/// use sched_runtime::{Read, ReadWrite, Runtime};
/// # use std::sync::Arc;
/// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
/// // Two groups of one worker, as if each had its own memory.
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

    /// Sets the size in bytes, which models of tasks and of transfers use; the default is the size of `T`.
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.size = DataSize::of_bytes(bytes);
        self
    }

    /// Sets the size in bytes and the shape, for [performance models from StarPU](Submitter::register_shaped).
    pub fn shape(mut self, bytes: u64, shape: DataShape) -> Self {
        self.size = DataSize { bytes, footprint: shape.footprint() };
        self
    }

    /// Registers the data.
    pub fn register(self) -> Handle<T> {
        let core = &self.submitter.core;
        match &core.backend.memories {
            Some(memories) => {
                let node = memories.of_new_data(this_worker(core));
                Handle::replicated(self.value, self.size, core, node, memories)
            }
            None => Handle::new(self.value, self.size, core),
        }
    }
}
