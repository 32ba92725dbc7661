//! Which ranks have the value of a datum.

use smallvec::{SmallVec, smallvec};

/// The ranks that have the value of a datum, in the order in which they get it. The owner is the first of them.
///
/// Rank number *k* in this order gets the value from number *k* without its highest bit: the owner sends it to the
/// first, second, fourth and so on, and the others pass it on, which is a binomial tree. Nobody has to know beforehand
/// how many will need the value: all ranks see the same tasks in the same order, so all of them know who has asked so
/// far. Of *n* messages the owner sends log₂ *n*, and each has passed at most that many ranks.
///
/// ```
/// use sched_graph::ranks::Holders;
/// let mut holders = Holders::owned_by(5);
/// let senders: Vec<_> = (0..4).map(|rank| holders.bring(rank)).collect();
/// assert_eq!(senders, [Some(5), Some(5), Some(0), Some(5)]);
/// assert_eq!(holders.bring(2), None, "it is there");
/// // Rank 1 writes the value, and the owner gets it.
/// assert_eq!(holders.write(1), Some(5));
/// assert!(holders.has(1) && !holders.has(0));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holders {
    ranks: SmallVec<[u32; 4]>,
}

impl Holders {
    /// Data that nobody but its owner has.
    #[must_use]
    pub fn owned_by(owner: usize) -> Holders {
        Holders { ranks: smallvec![owner as u32] }
    }

    /// The owner.
    #[inline]
    #[must_use]
    pub fn owner(&self) -> usize {
        self.ranks[0] as usize
    }

    /// Whether a rank has the value.
    #[inline]
    #[must_use]
    pub fn has(&self, rank: usize) -> bool {
        self.ranks.contains(&(rank as u32))
    }

    /// Whether a rank has a copy, which it does not own.
    #[must_use]
    pub fn has_copy(&self, rank: usize) -> bool {
        self.ranks[1..].contains(&(rank as u32))
    }

    /// Brings the value to a rank. Returns the one that sends it; `None` if it is there.
    #[inline]
    pub fn bring(&mut self, rank: usize) -> Option<usize> {
        if self.has(rank) {
            return None;
        }
        let place = self.ranks.len();
        self.ranks.push(rank as u32);
        Some(self.ranks[place & !(1 << place.ilog2())] as usize)
    }

    /// Notes that a rank writes the value: nobody else has it. Returns the owner, if it is another, which gets the
    /// value.
    #[inline]
    pub fn write(&mut self, rank: usize) -> Option<usize> {
        self.ranks.truncate(1);
        let owner = self.owner();
        if owner == rank {
            return None;
        }
        self.ranks.push(rank as u32);
        Some(owner)
    }

    /// Forgets all copies.
    pub fn flush(&mut self) {
        self.ranks.truncate(1);
    }

    /// Makes a rank that [has](Self::has) the value its owner; the earlier owner has a copy.
    ///
    /// # Panics
    /// If it does not have the value.
    pub fn give(&mut self, rank: usize) {
        let place = self.ranks.iter().position(|holder| *holder == rank as u32);
        self.ranks.swap(0, place.expect("the new owner has the value"));
    }
}
