//! What all ranks do with data: they register it, bring it to others, give it away.

use crate::agree::Deed;
use crate::data::{Combine, Courier, Datum, Of};
use crate::error::ClusterError;
use crate::message::Message;
use crate::submission::not_urgent;
use crate::traffic::Traffic;
use crate::{Cluster, State};
use sched_graph::AccessMode;
use sched_graph::ranks::Holders;
use sched_runtime::{Data, Handle, Reduction};
use smallvec::SmallVec;
use std::sync::Arc;

impl Cluster {
    /// Registers data that a rank owns: `value` makes it there. Elsewhere the handle stands for a copy, which takes
    /// memory, made by `room`, from the first message on; until then, and after a [`flush`](Self::flush), it has the
    /// default value of its type. All ranks register the same data in the same order.
    ///
    /// # Errors
    /// [`ClusterError::NoRank`]; [`ClusterError::TooMany`].
    pub fn register_on<T: Message + Default>(
        &self,
        rank: usize,
        value: impl FnOnce() -> T,
        room: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<Handle<T>, ClusterError> {
        self.check_rank(rank)?;
        let (value, (bytes, shape)) = match rank == self.rank {
            true => {
                let value = value();
                let size = size_of(&value);
                (value, size)
            }
            false => (T::default(), size_of(&room())),
        };
        let handle = self.runtime.register_sized(value, bytes as u64);
        let pool = self.state.lock().pools.of::<T>();
        self.add(rank, bytes, Of { handle: handle.clone(), room, shape, bytes, pool, combine: None })?;
        Ok(handle)
    }

    /// Registers data that a rank owns, and to which tasks with [`Redux`](sched_runtime::Redux) access add wherever
    /// they run: on each rank to a part of its own, which begins with what `init` returns, and is added to the value by
    /// `combine` before a task, or a [`bring`](Self::bring), reads it. Parts are added along a tree, in an order that
    /// depends on the program and the number of ranks alone, and so does the result. All ranks register the same data
    /// in the same order.
    ///
    /// ```
    /// # use sched_cluster::{Cluster, ClusterError};
    /// # use sched_runtime::{Read, Redux, Runtime, StartError};
    /// # use std::sync::Arc;
    /// # fn start() -> Result<Runtime, StartError> {
    /// #     Runtime::builder().registry(Arc::new(sched_tree::plugin::Registry::compiled_in())).workers(1).bind(false).build()
    /// # }
    /// let sums = Cluster::local(3, |_| start(), |cluster| {
    ///     let add = cluster.runtime().codelet::<(Read<f64>, Redux<f64>), ()>("add").cpu("add", |_, (x, sum)| *sum += x);
    ///     let add = add.build();
    ///     let sum = cluster.reduction_on(0, || 0.0, || 0.0, |sum, part| *sum += part)?;
    ///     for number in 0..10_usize {
    ///         // Each is added where it is.
    ///         let x = cluster.register_on(number % cluster.ranks(), || number as f64, || 0.0)?;
    ///         cluster.submit(cluster.runtime().task(&add, (&x, &sum)))?;
    ///     }
    ///     cluster.bring_everywhere(&sum)?;
    ///     cluster.wait_all()?;
    ///     Ok::<f64, ClusterError>(*cluster.runtime().read(&sum)?)
    /// })?;
    /// assert_eq!(sums.into_iter().collect::<Result<Vec<f64>, _>>()?, [45.0; 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`register_on`](Self::register_on).
    pub fn reduction_on<T: Message + Default>(
        &self,
        rank: usize,
        value: impl FnOnce() -> T,
        init: impl Fn() -> T + Send + Sync + 'static,
        combine: impl Fn(&mut T, T) + Send + Sync + 'static,
    ) -> Result<Reduction<T>, ClusterError> {
        self.check_rank(rank)?;
        let init = Arc::new(init);
        let combine: Combine<T> = Arc::new(combine);
        let value = if rank == self.rank { value() } else { init() };
        let (bytes, shape) = size_of(&value);
        let (begin, add) = (Arc::clone(&init), Arc::clone(&combine));
        let reduction = self.runtime.reduction_in_order(value, move || begin(), move |sum, part| add(sum, part));
        let handle = Handle::clone(&reduction);
        let pool = self.state.lock().pools.of::<T>();
        self.add(rank, bytes, Of { handle, room: move || init(), shape, bytes, pool, combine: Some(combine) })?;
        Ok(reduction)
    }

    /// Adds data that a rank owns to that of the cluster.
    fn add<T: Message + Default, F: Fn() -> T + Send + Sync + 'static>(
        &self,
        rank: usize,
        bytes: usize,
        of: Of<T, F>,
    ) -> Result<(), ClusterError> {
        self.add_datum(of.handle.header().number(), rank, bytes, Arc::new(of)).map(drop)
    }

    /// Adds data of this number to that of the cluster. Returns its place.
    pub(crate) fn add_datum(
        &self,
        number: u64,
        rank: usize,
        bytes: usize,
        courier: Arc<dyn Courier>,
    ) -> Result<usize, ClusterError> {
        let mut state = self.state.lock();
        let index = state.data.next();
        state.log.note_deed(Deed::Register, rank, index);
        if index >= self.most_tag / 2 - 4 {
            return Err(ClusterError::TooMany { most: index });
        }
        if bytes as u64 <= self.most_bytes {
            self.office.desk().expect(bytes);
        }
        let (holders, bytes) = (Holders::owned_by(rank), bytes as u64);
        state.data.add(number, Datum { index, holders, pending: SmallVec::new(), bytes, courier });
        Ok(index as usize)
    }

    /// Does something with data, or with each of its parts.
    fn with_datum<D: Data>(
        &self,
        handle: &D,
        (deed, rank): (Deed, usize),
        mut body: impl FnMut(&mut Datum, &mut Traffic) -> Result<(), ClusterError>,
    ) -> Result<(), ClusterError> {
        let data = handle.header().number();
        let mut state = self.state.lock();
        let State { data: known, traffic, log, .. } = &mut *state;
        let places = known.places_of(data);
        if places.is_empty() {
            return Err(ClusterError::NotShared { codelet: String::new(), data });
        }
        places.into_iter().try_for_each(|place| {
            let datum = known.at_mut(place);
            log.note_deed(deed, rank, datum.index);
            body(datum, traffic)
        })
    }

    /// Brings a value to a rank, where the runtime [reads](sched_runtime::Runtime::read) it then. All ranks call it.
    ///
    /// # Errors
    /// [`ClusterError::NoRank`]; [`ClusterError::TooLong`]; if no rank owns the data.
    pub fn bring<D: Data>(&self, handle: &D, rank: usize) -> Result<(), ClusterError> {
        self.check_rank(rank)?;
        self.with_datum(handle, (Deed::Bring, rank), |datum, traffic| {
            self.prepare(datum, AccessMode::Read, rank, (traffic, &mut not_urgent))
        })
    }

    /// Brings a value to all ranks, along a tree: each of them passes it on to some others. All of them call it.
    ///
    /// # Errors
    /// As for [`bring`](Self::bring).
    pub fn bring_everywhere<D: Data>(&self, handle: &D) -> Result<(), ClusterError> {
        (0..self.ranks).try_for_each(|rank| self.bring(handle, rank))
    }

    /// Gives data to another rank, which owns it from now on. All ranks call it.
    ///
    /// # Errors
    /// As for [`bring`](Self::bring).
    pub fn give<D: Data>(&self, handle: &D, rank: usize) -> Result<(), ClusterError> {
        self.bring(handle, rank)?;
        self.with_datum(handle, (Deed::Give, rank), |datum, _| {
            datum.holders.give(rank);
            Ok(())
        })
    }

    /// Drops the copies of data outside its owner, after the tasks so far. Their memory is used for values of the same
    /// size that are received from then on, and given back beyond 64 MiB. All ranks call it.
    ///
    /// # Errors
    /// If no rank owns the data.
    pub fn flush<D: Data>(&self, handle: &D) -> Result<(), ClusterError> {
        self.with_datum(handle, (Deed::Flush, 0), |datum, traffic| {
            self.settle(datum, (traffic, &mut not_urgent))?;
            if datum.holders.has_copy(self.rank) {
                Arc::clone(&datum.courier).forget(&self.runtime)?;
            }
            datum.holders.flush();
            Ok(())
        })
    }

    /// Takes data out of the cluster, after the tasks so far. Its owner gets the value. All ranks call it.
    ///
    /// # Errors
    /// If no rank owns the data, or its value was not computed.
    pub fn unregister<T: Message + Default>(&self, handle: Handle<T>) -> Result<Option<T>, ClusterError> {
        if !self.take_out(handle.header().number())? {
            return Ok(None);
        }
        Ok(Some(std::mem::take(&mut *self.runtime.write(&handle)?)))
    }

    /// Takes data out of the cluster. Returns whether this rank owns it.
    pub(crate) fn take_out(&self, data: u64) -> Result<bool, ClusterError> {
        let mut state = self.state.lock();
        let State { data: known, traffic, log, .. } = &mut *state;
        let mut datum = known.remove(data)?;
        log.note_deed(Deed::Unregister, 0, datum.index);
        let has_part = datum.pending.contains(&(self.rank as u32));
        self.settle(&mut datum, (traffic, &mut not_urgent))?;
        drop(state);
        let is_owner = datum.holders.owner() == self.rank;
        if has_part && !is_owner {
            // It may be passed on here, and the rank may end.
            let _ = datum.courier.await_sent(&self.runtime);
        }
        Ok(is_owner)
    }
}

/// Number of bytes of a value, and its shape.
fn size_of<T: Message>(value: &T) -> (usize, u64) {
    (value.bytes().len(), value.shape())
}
