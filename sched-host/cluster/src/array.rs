//! Arrays whose parts ranks own.

use crate::Cluster;
use crate::data::{Courier, Route};
use crate::error::{ClusterError, reason};
use crate::office::{Desk, Room};
use crate::parts::range;
use crate::traffic::Flight;
use crate::transport::{Arrived, Parcel, Tag};
use bytemuck::Pod;
use sched_runtime::{ArrayHandle, Data, DataError, Lease, Partition, Plan, Runtime, WriteLease};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// An [array](ArrayHandle) of the runtime on every rank, of which each rank owns some parts: a slice of the parts'
/// handles. Made with [`Cluster::register_array`].
pub struct RankArray<T> {
    whole: ArrayHandle<T>,
    parts: Partition<ArrayHandle<T>>,
    len: usize,
}

impl<T> fmt::Debug for RankArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankArray").field("parts", &self.parts.len()).field("len", &self.len).finish()
    }
}

impl<T> Deref for RankArray<T> {
    type Target = [ArrayHandle<T>];

    fn deref(&self) -> &[ArrayHandle<T>] {
        &self.parts
    }
}

impl<T> RankArray<T> {
    /// The whole array: tasks, and what is done with data, may name it as they name parts.
    #[must_use]
    pub fn whole(&self) -> &ArrayHandle<T> {
        &self.whole
    }

    /// The places of the array that a part has.
    #[must_use]
    pub fn range(&self, part: usize) -> Range<usize> {
        range(self.len, self.parts.len(), part)
    }
}

impl Cluster {
    /// Registers an array of `len` values in parts of nearly equal length, at least one: neighbouring parts on one
    /// rank, and on each rank nearly as many. `values` makes those of a range of places, on the rank that owns it. All
    /// ranks call it.
    ///
    /// Tasks may name parts, and the [whole](RankArray::whole), in any order, and see slices: as if they ran one after
    /// the other, in the order of submission. A task that names the whole gets all parts, and what it writes goes back
    /// to their owners. Each rank has memory for the whole, of which the system gives what is used.
    ///
    /// ```
    /// # use sched_cluster::{Cluster, ClusterError};
    /// # use sched_runtime::{ReadWrite, Runtime, StartError};
    /// # use std::sync::Arc;
    /// # fn start() -> Result<Runtime, StartError> {
    /// #     Runtime::builder().registry(Arc::new(sched_tree::plugin::Registry::compiled_in())).workers(1).bind(false).build()
    /// # }
    /// let found = Cluster::local(2, |_| start(), |cluster| {
    ///     let double = cluster.runtime().codelet::<(ReadWrite<[u64]>,), ()>("double");
    ///     let double = double.cpu("double", |_, (x,)| x.iter_mut().for_each(|x| *x *= 2)).build();
    ///     let array = cluster.register_array(10, 4, |places| places.map(|place| place as u64).collect())?;
    ///     for part in &*array {
    ///         cluster.submit(cluster.runtime().task(&double, (part,)))?;
    ///     }
    ///     cluster.submit(cluster.runtime().task(&double, (array.whole(),)))?;
    ///     cluster.gather_array(array, 1)
    /// })?;
    /// let found = found.into_iter().collect::<Result<Vec<_>, ClusterError>>()?;
    /// assert_eq!(found, [None, Some((0..40).step_by(4).collect::<Vec<u64>>())]);
    /// # Ok::<(), ClusterError>(())
    /// ```
    ///
    /// # Errors
    /// [`ClusterError::TooMany`]. [`ClusterError::Failed`] if this rank has no memory for the array, or `values` does
    /// not make as many as there are places: what the others wait for fails then, with the same word.
    pub fn register_array<T: Pod + Send + Sync>(
        &self,
        len: usize,
        parts: usize,
        values: impl Fn(Range<usize>) -> Vec<T>,
    ) -> Result<RankArray<T>, ClusterError> {
        let parts = parts.max(1);
        let owner = |part: usize| part * self.ranks() / parts;
        let mut all = self.zeros::<T>(len)?;
        for part in (0..parts).filter(|part| owner(*part) == self.rank()) {
            let places = range(len, parts, part);
            let values = values(places.clone());
            self.check_len(values.len(), places.len(), &format!("places {places:?} of an array of {len}"))?;
            all[places].copy_from_slice(&values);
        }
        let whole = self.runtime().array(all);
        let divided = whole.partition(&Plan::ranges(parts)).expect("an array is divided into any number of parts");
        let array = RankArray { whole, parts: divided, len };
        let mut places = Vec::with_capacity(parts);
        for (part, handle) in array.iter().enumerate() {
            let bytes = array.range(part).len() * size_of::<T>();
            places.push(self.add_datum(
                Data::header(handle).number(),
                owner(part),
                bytes,
                Arc::new(OfPart(handle.clone())),
            )?);
        }
        self.state.lock().data.group(Data::header(&array.whole).number(), places);
        Ok(array)
    }

    /// Registers an array of `len` values that a rank owns, all of them: `values` makes them there. Elsewhere it stands
    /// for a copy. Tasks see slices, and devices may hold them. All ranks call it.
    ///
    /// # Errors
    /// [`ClusterError::NoRank`]; as for [`register_array`](Self::register_array).
    pub fn register_array_on<T: Pod + Send + Sync>(
        &self,
        rank: usize,
        len: usize,
        values: impl FnOnce() -> Vec<T>,
    ) -> Result<ArrayHandle<T>, ClusterError> {
        self.check_rank(rank)?;
        let values = if rank == self.rank() { values() } else { self.zeros(len)? };
        self.check_len(values.len(), len, &format!("an array of {len}"))?;
        let bytes = size_of_val(&*values);
        let array = self.runtime().array(values);
        self.add_datum(Data::header(&array).number(), rank, bytes, Arc::new(OfPart(array.clone())))?;
        Ok(array)
    }

    /// Takes an array that one rank owns out of the cluster, after the tasks so far. Its owner gets the values. All
    /// ranks call it.
    ///
    /// # Errors
    /// If no rank owns it, or its values were not computed. [`ClusterError::Divided`] for an array that was
    /// [registered in parts](Self::register_array), and for one of its parts.
    pub fn unregister_array<T: Pod + Send + Sync>(
        &self,
        array: ArrayHandle<T>,
    ) -> Result<Option<Vec<T>>, ClusterError> {
        if !self.take_out(Data::header(&array).number())? {
            return Ok(None);
        }
        Ok(Some(self.runtime().read(&array)?.to_vec()))
    }

    /// Ends all ranks if the program has made `found` values where there are `expected` places, those of `whose`.
    fn check_len(&self, found: usize, expected: usize, whose: &str) -> Result<(), ClusterError> {
        match found == expected {
            true => Ok(()),
            false => Err(self.end_all(format!(
                "rank {} has made {found} values for {whose}, expected {expected}: `values` makes one for each place",
                self.rank()
            ))),
        }
    }

    /// Memory for an array that comes from elsewhere.
    fn zeros<T: Pod>(&self, len: usize) -> Result<Vec<T>, ClusterError> {
        bytemuck::try_zeroed_vec(len).map_err(|()| {
            let bytes = len.saturating_mul(size_of::<T>());
            self.end_all(format!(
                "rank {} has no memory for an array of {bytes} bytes: take a smaller one, or allow it more (`ulimit -v`, \
                 control groups)",
                self.rank()
            ))
        })
    }

    /// [Gives](Self::give) each part of an array to the rank that `owner` says. All ranks call it.
    ///
    /// # Errors
    /// As for [`give`](Self::give).
    pub fn redistribute_array<T: Pod + Send + Sync>(
        &self,
        array: &RankArray<T>,
        owner: impl Fn(usize) -> usize,
    ) -> Result<(), ClusterError> {
        array.iter().enumerate().try_for_each(|(part, handle)| self.give(handle, owner(part)))
    }

    /// Waits for all tasks, and takes an array out of the cluster: a rank gets its values. All ranks call it.
    ///
    /// # Errors
    /// As for [`give`](Self::give) and [`wait_all`](Self::wait_all).
    pub fn gather_array<T: Pod + Send + Sync>(
        &self,
        array: RankArray<T>,
        rank: usize,
    ) -> Result<Option<Vec<T>>, ClusterError> {
        self.bring(&array.whole, rank)?;
        self.wait_all()?;
        self.state.lock().data.remove_group(Data::header(&array.whole).number());
        if rank != self.rank() {
            return Ok(None);
        }
        let values = self.runtime().read(&array.whole)?;
        Ok(Some(values.to_vec()))
    }
}

/// Sends and receives a part of an array.
struct OfPart<T>(ArrayHandle<T>);

impl<T: Pod + Send + Sync> Courier for OfPart<T> {
    fn send(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, route: Route) -> Result<(), DataError> {
        let desk = Arc::clone(desk);
        runtime.lease_read(&self.0, move |lease| {
            let error = lease.reading().err().map(|error| reason(&error));
            match error {
                None => desk.send_value((route.peer, route.tag), route.urgency, Box::new(Values(lease, route.flight))),
                Some(why) => desk.send(route.peer, route.tag.of_failure(), Box::new(why.into_bytes())),
            }
        })
    }

    fn receive(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, route: Route) -> Result<(), DataError> {
        let desk = Arc::clone(desk);
        let then = move |lease| desk.receive(route.peer, route.tag, Box::new(Places(lease, route.flight)));
        runtime.lease_write(&self.0, then)
    }

    /// Nothing is added to parts of arrays: they are no reductions.
    fn add(self: Arc<Self>, runtime: &Runtime, desk: &Arc<Desk>, route: Route) -> Result<(), DataError> {
        self.receive(runtime, desk, route)
    }

    fn make_room(self: Arc<Self>, _runtime: &Runtime, _desk: &Arc<Desk>, _tag: Tag) -> Result<(), DataError> {
        Ok(())
    }

    /// The array has its memory as long as it lives.
    fn forget(self: Arc<Self>, _runtime: &Runtime) -> Result<(), DataError> {
        Ok(())
    }

    fn fail(self: Arc<Self>, runtime: &Runtime, why: String) -> Result<(), DataError> {
        runtime.lease_write(&self.0, move |lease| lease.fail(&why))
    }

    fn await_sent(&self, runtime: &Runtime) -> Result<(), DataError> {
        runtime.write(&self.0).map(drop)
    }

    fn await_received(&self, runtime: &Runtime) -> Result<(), DataError> {
        runtime.read(&self.0).map(drop)
    }
}

/// Values that are sent from where they are.
struct Values<T: Pod + Send + Sync>(Lease<ArrayHandle<T>>, #[allow(dead_code, reason = "its end matters")] Flight);

impl<T: Pod + Send + Sync> Parcel for Values<T> {
    fn with(&self, with: &mut dyn FnMut(&[u8])) {
        // They were good when the lease came, and nobody writes them while it lasts.
        if let Ok(values) = self.0.reading() {
            with(bytemuck::cast_slice(&values));
        }
    }
}

/// Where values are received.
struct Places<T: Pod + Send + Sync>(WriteLease<ArrayHandle<T>>, #[allow(dead_code, reason = "its end matters")] Flight);

impl<T: Pod + Send + Sync> Room for Places<T> {
    fn fill(mut self: Box<Self>, arrived: &mut dyn Arrived) {
        let taken = {
            let mut values = self.0.writing();
            crate::data::take_bytes(arrived, bytemuck::cast_slice_mut(&mut values))
        };
        if let Err(why) = taken {
            let Places(lease, _flight) = *self;
            lease.fail(&why);
        }
    }

    fn fail(self: Box<Self>, why: &str) {
        let Places(lease, _flight) = *self;
        lease.fail(why);
    }
}
