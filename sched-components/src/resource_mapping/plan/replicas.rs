//! Replicas in memories of limited capacity: which are there, and which the host evicts to make room.
//!
//! The host evicts the replica whose last use is longest ago, of those that nobody uses; what is invalid goes first. In
//! main memory all data is at home, and nothing is evicted.

/// Stands for the next replica of one that is not in the list.
const UNLISTED: u32 = u32::MAX;

/// The replica of a piece of data in a memory, or both ends of the list of a memory.
#[derive(Clone, Copy, Debug)]
struct Entry {
    next: u32,
    previous: u32,
    /// Number of tasks and transfers that use it.
    pins: u32,
}

/// See the [module](self). A place is numbered by data, then memory.
#[derive(Default, Debug)]
pub(super) struct Replicas {
    memories: usize,
    /// By memory: bytes for data, where not all of it fits. Empty if it fits everywhere.
    capacities: Vec<Option<u64>>,
    /// By memory.
    used: Vec<u64>,
    /// By place; then the ends of the list of each memory, in the order in which replicas are evicted.
    entries: Vec<Entry>,
}

impl Clone for Replicas {
    fn clone(&self) -> Replicas {
        let mut clone = Replicas::default();
        clone.clone_from(self);
        clone
    }

    fn clone_from(&mut self, other: &Replicas) {
        self.memories = other.memories;
        self.capacities.clone_from(&other.capacities);
        self.used.clone_from(&other.used);
        self.entries.clone_from(&other.entries);
    }
}

impl Replicas {
    /// No replicas, of this number of pieces of data, in memories of these capacities.
    pub(super) fn new(data: usize, capacities: Vec<Option<u64>>) -> Replicas {
        let memories = capacities.len();
        if capacities.iter().all(Option::is_none) {
            return Replicas::default();
        }
        let ends = (data * memories) as u32;
        let unlisted = Entry { next: UNLISTED, previous: UNLISTED, pins: 0 };
        let mut entries = vec![unlisted; data * memories];
        entries.extend((ends..).take(memories).map(|end| Entry { next: end, previous: end, pins: 0 }));
        Replicas { memories, used: vec![0; memories], capacities, entries }
    }

    /// From now on none.
    pub(super) fn forget_limits(&mut self) {
        self.capacities.clear();
    }

    /// Whether any memory is limited.
    pub(super) fn are_limited(&self) -> bool {
        !self.capacities.is_empty()
    }

    /// Whether not all data fits into a memory.
    pub(super) fn limits(&self, memory: usize) -> bool {
        self.capacities.get(memory).is_some_and(Option::is_some)
    }

    /// Whether there is room without evictions.
    pub(super) fn has_room(&self, memory: usize, bytes: u64) -> bool {
        self.capacities[memory].is_none_or(|capacity| self.used[memory].saturating_add(bytes) <= capacity)
    }

    /// Takes memory.
    pub(super) fn take(&mut self, memory: usize, bytes: u64) {
        self.used[memory] = self.used[memory].saturating_add(bytes);
    }

    /// The replica that is evicted next, if any is not in use.
    pub(super) fn victim(&mut self, memory: usize) -> Option<usize> {
        let end = self.end(memory);
        loop {
            let first = self.entries[end].next as usize;
            if first == end {
                return None;
            }
            if self.entries[first].pins == 0 {
                return Some(first);
            }
            // It comes back when it is not in use any more.
            self.unlist(first);
        }
    }

    /// Evicts a replica.
    pub(super) fn evict(&mut self, place: usize, bytes: u64) {
        self.unlist(place);
        let used = &mut self.used[place % self.memories];
        *used = used.saturating_sub(bytes);
    }

    /// Takes note that a replica is in use, until as many calls of [`unpin`](Self::unpin).
    pub(super) fn pin(&mut self, place: usize) {
        self.entries[place].pins += 1;
    }

    /// Ends a use of a replica. Returns whether it was the last one.
    pub(super) fn unpin(&mut self, place: usize) -> bool {
        self.entries[place].pins -= 1;
        self.entries[place].pins == 0
    }

    /// Lists a replica that nobody uses and that has memory, to be evicted last, or first.
    pub(super) fn list(&mut self, place: usize, goes_first: bool) {
        if !self.limits(place % self.memories) {
            return;
        }
        self.unlist(place);
        let end = self.end(place % self.memories);
        let before = if goes_first { end } else { self.entries[end].previous as usize };
        let after = std::mem::replace(&mut self.entries[before].next, place as u32);
        (self.entries[place].next, self.entries[place].previous) = (after, before as u32);
        self.entries[after as usize].previous = place as u32;
    }

    /// Takes note that a replica, if it is listed, is invalid.
    pub(super) fn invalidate(&mut self, place: usize) {
        if self.unlist(place) {
            self.list(place, true);
        }
    }

    /// Returns whether it was listed.
    fn unlist(&mut self, place: usize) -> bool {
        let Entry { next, previous, .. } = self.entries[place];
        if next == UNLISTED {
            return false;
        }
        self.entries[place].next = UNLISTED;
        self.entries[previous as usize].next = next;
        self.entries[next as usize].previous = previous;
        true
    }

    fn end(&self, memory: usize) -> usize {
        self.entries.len() - self.memories + memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three pieces of data of 10 bytes in memory 1 of two, which has 35 bytes, used in that order.
    fn three() -> Replicas {
        let mut replicas = Replicas::new(3, vec![None, Some(35)]);
        for place in [1, 3, 5] {
            replicas.take(1, 10);
            replicas.list(place, false);
        }
        replicas
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let mut replicas = three();
        assert!(replicas.limits(1) && !replicas.limits(0) && replicas.has_room(1, 5) && !replicas.has_room(1, 6));
        replicas.pin(1);
        assert!(replicas.unpin(1));
        replicas.list(1, false);
        assert_eq!(replicas.victim(1), Some(3));
        replicas.evict(3, 10);
        assert!(replicas.has_room(1, 15) && replicas.victim(1) == Some(5));
    }

    #[test]
    fn what_is_in_use_stays() {
        let mut replicas = three();
        [1, 3, 5].iter().for_each(|place| replicas.pin(*place));
        assert_eq!(replicas.victim(1), None);
        replicas.pin(3);
        assert!(!replicas.unpin(3) && replicas.unpin(3));
        replicas.list(3, false);
        assert_eq!(replicas.victim(1), Some(3));
        assert!(replicas.unpin(1));
        replicas.list(1, true);
        assert_eq!(replicas.victim(1), Some(1));
    }

    #[test]
    fn what_is_invalid_goes_first() {
        let mut replicas = three();
        replicas.invalidate(5);
        assert_eq!(replicas.victim(1), Some(5));
        replicas.pin(5);
        assert_eq!(replicas.victim(1), Some(1));
        replicas.invalidate(5);
        assert_eq!(replicas.victim(1), Some(1), "not while it is in use");
    }

    #[test]
    fn where_all_data_fits_nothing_is_limited() {
        let replicas = Replicas::new(3, vec![None, None]);
        assert!(!replicas.are_limited() && !replicas.limits(1));
    }
}
