//! The data of a cluster, by its number in this process.

use crate::data::Datum;
use crate::error::ClusterError;
use sched_graph::AccessMode;
use smallvec::SmallVec;
use std::collections::HashMap;

/// See the [module](self). A look costs little: each rank looks at the data of all tasks, of which most concern others.
#[derive(Default)]
pub(crate) struct Directory {
    places: Places,
    /// The parts of data that ranks own in parts.
    groups: HashMap<u64, Vec<usize>>,
    /// In the order of registration; `None` once it is taken out.
    data: Vec<Option<Datum>>,
}

/// The accesses of a task: places of data, with modes.
pub(crate) type Accesses = SmallVec<[(usize, AccessMode); 8]>;

impl Directory {
    /// Adds the accesses of a task of this codelet, which `visit` passes to a visitor with the numbers of data.
    ///
    /// # Errors
    /// If data is not the cluster's.
    #[inline]
    pub(crate) fn find(
        &self,
        accesses: &mut Accesses,
        codelet: &str,
        visit: impl FnOnce(&mut dyn FnMut(u64, AccessMode)),
    ) -> Result<(), ClusterError> {
        let mut refused = None;
        visit(&mut |number, mode| match self.place(number) {
            Some(place) => accesses.push((place, mode)),
            None => match self.groups.get(&number) {
                Some(parts) => accesses.extend(parts.iter().map(|part| (*part, mode))),
                None => _ = refused.get_or_insert(number),
            },
        });
        match refused {
            None => Ok(()),
            Some(data) => Err(ClusterError::NotShared { codelet: codelet.to_owned(), data }),
        }
    }

    /// Number of the next datum among those of the cluster.
    pub(crate) fn next(&self) -> u32 {
        u32::try_from(self.data.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn add(&mut self, number: u64, datum: Datum) {
        self.places.set(number, Some(self.data.len()));
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
        self.places.forget(&parts);
    }

    /// The places of a datum, or of its parts; none if it is unknown.
    pub(crate) fn places_of(&self, number: u64) -> SmallVec<[usize; 4]> {
        let parts = || self.groups.get(&number).map(|parts| SmallVec::from_slice(parts)).unwrap_or_default();
        self.place(number).map_or_else(parts, |place| SmallVec::from_slice(&[place]))
    }

    /// The place of a datum.
    #[inline]
    pub(crate) fn place(&self, number: u64) -> Option<usize> {
        self.places.get(number)
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

    /// Removes a datum.
    ///
    /// # Errors
    /// If it is not the cluster's; if it has [parts](Self::group), or is one.
    pub(crate) fn remove(&mut self, number: u64) -> Result<Datum, ClusterError> {
        let place = self.place(number);
        let is_part = |parts: &Vec<usize>| place.is_some_and(|place| parts.contains(&place));
        if self.groups.contains_key(&number) || self.groups.values().any(is_part) {
            return Err(ClusterError::Divided { data: number });
        }
        let datum = place.and_then(|place| self.data[place].take());
        let datum = datum.ok_or(ClusterError::NotShared { codelet: String::new(), data: number })?;
        self.places.set(number, None);
        Ok(datum)
    }
}

/// Places by number. Numbers count upwards, so pages of a table hold them: a look takes two loads, and no hash.
#[derive(Default)]
struct Places {
    /// For each number the place plus one, or 0.
    pages: Vec<Option<Box<[u32; PAGE]>>>,
}

const PAGE: usize = 1024;

impl Places {
    #[inline]
    fn get(&self, number: u64) -> Option<usize> {
        let number = usize::try_from(number).ok()?;
        let place = self.pages.get(number / PAGE)?.as_ref()?[number % PAGE];
        (place as usize).checked_sub(1)
    }

    fn set(&mut self, number: u64, place: Option<usize>) {
        let number = usize::try_from(number).expect("numbers of data count upwards from 0");
        if self.pages.len() <= number / PAGE {
            self.pages.resize_with(number / PAGE + 1, || None);
        }
        let page = self.pages[number / PAGE].get_or_insert_with(|| Box::new([0; PAGE]));
        page[number % PAGE] = place.map_or(0, |place| u32::try_from(place + 1).expect("tags have 32 bits"));
    }

    /// Forgets the numbers of these places.
    fn forget(&mut self, places: &[usize]) {
        let all = self.pages.iter_mut().flatten().flat_map(|page| page.iter_mut());
        all.filter(|place| (**place as usize).checked_sub(1).is_some_and(|place| places.contains(&place)))
            .for_each(|place| *place = 0);
    }
}
