//! A vector in parts, which ranks own.

use crate::Cluster;
use crate::error::ClusterError;
use crate::message::Message;
use sched_runtime::Handle;
use std::fmt;
use std::ops::{Deref, Range};

/// A vector in parts, each of which a rank owns: a slice of handles, one for each part. Made with
/// [`Cluster::register_in_parts`].
pub struct Parts<T: Send + Sync + 'static> {
    handles: Vec<Handle<Vec<T>>>,
    len: usize,
}

impl<T: Send + Sync + 'static> fmt::Debug for Parts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("parts", &self.handles.len()).field("len", &self.len).finish()
    }
}

impl<T: Send + Sync + 'static> Deref for Parts<T> {
    type Target = [Handle<Vec<T>>];

    fn deref(&self) -> &[Handle<Vec<T>>] {
        &self.handles
    }
}

impl<T: Send + Sync + 'static> Parts<T> {
    /// The places of the vector that a part has.
    #[must_use]
    pub fn range(&self, part: usize) -> Range<usize> {
        range(self.len, self.handles.len(), part)
    }
}

/// The places of a part, of which the first ones are one longer where they cannot all be equal.
pub(crate) fn range(len: usize, parts: usize, part: usize) -> Range<usize> {
    let (least, longer) = (len / parts, len % parts);
    let start = |part: usize| part * least + part.min(longer);
    start(part)..start(part + 1)
}

impl Cluster {
    /// Registers a vector of `len` values in parts of nearly equal length, at least one: neighbouring parts on one
    /// rank, and on each rank nearly as many. `values` makes those of a range of places, on the rank that owns it. All
    /// ranks call it.
    ///
    /// ```
    /// # use sched_cluster::{Cluster, ClusterError};
    /// # use sched_runtime::{ReadWrite, Runtime, StartError};
    /// # use std::sync::Arc;
    /// # fn start() -> Result<Runtime, StartError> {
    /// #     Runtime::builder().registry(Arc::new(sched_tree::plugin::Registry::compiled_in())).workers(1).bind(false).build()
    /// # }
    /// let found = Cluster::local(2, |_| start(), |cluster| {
    ///     let double = cluster.runtime().codelet::<(ReadWrite<Vec<u64>>,), ()>("double");
    ///     let double = double.cpu("double", |_, (x,)| x.iter_mut().for_each(|x| *x *= 2)).build();
    ///     let parts = cluster.register_in_parts(10, 4, |places| places.map(|place| place as u64).collect())?;
    ///     assert_eq!((parts.range(1), parts.range(3)), (3..6, 8..10));
    ///     for part in &*parts {
    ///         cluster.submit(cluster.runtime().task(&double, (part,)))?;
    ///     }
    ///     cluster.gather(parts, 1)
    /// })?;
    /// let found = found.into_iter().collect::<Result<Vec<_>, ClusterError>>()?;
    /// assert_eq!(found, [None, Some((0..20).step_by(2).collect::<Vec<u64>>())]);
    /// # Ok::<(), ClusterError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`register_on`](Self::register_on).
    pub fn register_in_parts<T>(
        &self,
        len: usize,
        parts: usize,
        values: impl Fn(Range<usize>) -> Vec<T>,
    ) -> Result<Parts<T>, ClusterError>
    where
        T: Clone + Default + Send + Sync + 'static,
        Vec<T>: Message,
    {
        let parts = parts.max(1);
        let register = |part: usize| {
            let range = range(len, parts, part);
            let length = range.len();
            self.register_on(part * self.ranks() / parts, || values(range), move || vec![T::default(); length])
        };
        Ok(Parts { handles: (0..parts).map(register).collect::<Result<_, _>>()?, len })
    }

    /// [Gives](Self::give) each part to the rank that `owner` says. All ranks call it.
    ///
    /// # Errors
    /// As for [`give`](Self::give).
    pub fn redistribute<T>(&self, parts: &Parts<T>, owner: impl Fn(usize) -> usize) -> Result<(), ClusterError>
    where
        T: Send + Sync + 'static,
        Vec<T>: Message + Default,
    {
        parts.iter().enumerate().try_for_each(|(part, handle)| self.give(handle, owner(part)))
    }

    /// Waits for all tasks, and takes a vector out of the cluster: a rank gets it whole. All ranks call it.
    ///
    /// # Errors
    /// As for [`give`](Self::give) and [`wait_all`](Self::wait_all).
    pub fn gather<T>(&self, parts: Parts<T>, rank: usize) -> Result<Option<Vec<T>>, ClusterError>
    where
        T: Send + Sync + 'static,
        Vec<T>: Message + Default,
    {
        self.redistribute(&parts, |_| rank)?;
        self.wait_all()?;
        // All of them everywhere, also where there is none to get.
        let taken = parts.handles.into_iter().map(|part| self.unregister(part));
        let taken = taken.collect::<Result<Vec<Option<Vec<T>>>, _>>()?;
        Ok((rank == self.rank()).then(|| taken.into_iter().flatten().flatten().collect()))
    }
}
