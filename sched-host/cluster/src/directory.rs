//! The data of a cluster, by its number in this process.

use crate::data::Datum;
use crate::error::ClusterError;
use sched_graph::AccessMode;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// See the [module](self). A look costs little: each rank looks at the data of all tasks, of which most concern others.
#[derive(Default)]
pub(crate) struct Directory {
    places: HashMap<u64, usize, BuildHasherDefault<Spread>>,
    /// The parts of data that ranks own in parts.
    groups: HashMap<u64, Vec<usize>>,
    /// In the order of registration; `None` once it is taken out.
    data: Vec<Option<Datum>>,
}

/// The accesses of a task: places of data, with modes.
pub(crate) type Accesses = SmallVec<[(usize, AccessMode); 8]>;

impl Directory {
    /// The accesses of a task of this codelet, which `visit` passes to a visitor with the numbers of data.
    ///
    /// # Errors
    /// If data is not the cluster's.
    #[inline]
    pub(crate) fn accesses(
        &self,
        codelet: &str,
        visit: impl FnOnce(&mut dyn FnMut(u64, AccessMode)),
    ) -> Result<Accesses, ClusterError> {
        let mut accesses = Accesses::new();
        let mut refused = None;
        visit(&mut |number, mode| match self.place(number) {
            Some(place) => accesses.push((place, mode)),
            None => match self.groups.get(&number) {
                Some(parts) => accesses.extend(parts.iter().map(|part| (*part, mode))),
                None => _ = refused.get_or_insert(number),
            },
        });
        match refused {
            None => Ok(accesses),
            Some(data) => Err(ClusterError::NotShared { codelet: codelet.to_owned(), data }),
        }
    }

    /// Number of the next datum among those of the cluster.
    pub(crate) fn next(&self) -> u32 {
        u32::try_from(self.data.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn add(&mut self, number: u64, datum: Datum) {
        self.places.insert(number, self.data.len());
        self.data.push(Some(datum));
    }

    /// Notes that data is the parts at these places.
    pub(crate) fn group(&mut self, number: u64, parts: Vec<usize>) {
        self.groups.insert(number, parts);
    }

    /// Removes data with its parts.
    pub(crate) fn remove_group(&mut self, number: u64) {
        let parts = self.groups.remove(&number).unwrap_or_default();
        parts.iter().for_each(|part| self.data[*part] = None);
        self.places.retain(|_, place| !parts.contains(place));
    }

    /// The places of a datum, or of its parts; none if it is unknown.
    pub(crate) fn places_of(&self, number: u64) -> SmallVec<[usize; 4]> {
        let parts = || self.groups.get(&number).map(|parts| SmallVec::from_slice(parts)).unwrap_or_default();
        self.place(number).map_or_else(parts, |place| SmallVec::from_slice(&[place]))
    }

    /// The place of a datum.
    #[inline]
    pub(crate) fn place(&self, number: u64) -> Option<usize> {
        self.places.get(&number).copied()
    }

    /// The datum at a [place](Self::place).
    #[inline]
    pub(crate) fn at(&self, place: usize) -> &Datum {
        self.data[place].as_ref().expect("places are those of data that is there")
    }

    /// The datum at a [place](Self::place).
    #[inline]
    pub(crate) fn at_mut(&mut self, place: usize) -> &mut Datum {
        self.data[place].as_mut().expect("places are those of data that is there")
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Datum> {
        let place = self.places.remove(&number)?;
        self.data[place].take()
    }
}

/// Spreads numbers that count upwards.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
