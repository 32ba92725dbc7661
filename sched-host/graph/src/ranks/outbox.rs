//! Values that wait to be sent.
//!
//! Of the values for one rank only some are on their way at a time, so that one for an urgent task overtakes those that
//! were asked for earlier: what a network has begun to send goes in order. Messages of one datum cannot overtake each
//! other, since each is a turn at the datum, and the next value is computed after it.

use std::cmp::{Ordering, Reverse};
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};

/// Maximum number of values on their way to one rank. The sender may learn late that one has arrived.
const MOST: usize = 8;

/// Maximum number of bytes of a message that does not wait: it is gone at once.
const SMALL: u64 = 4096;

/// What a rank has to send, with what a message is to the one who sends it.
///
/// ```
/// use sched_graph::ranks::Outbox;
/// let mut outbox = Outbox::default();
/// for (name, urgency) in [("first", 0), ("urgent", 5), ("last", 0)] {
///     outbox.add(1, urgency, 1 << 20, name);
/// }
/// // Seven are on their way.
/// assert_eq!(outbox.next(|_| 7), Some((1, "urgent")));
/// // Now eight are.
/// assert_eq!(outbox.next(|_| 8), None);
/// ```
pub struct Outbox<T> {
    /// For each rank.
    waiting: BTreeMap<usize, BinaryHeap<Waiting<T>>>,
    /// Number of those so far.
    asked: u64,
}

struct Waiting<T> {
    /// Small ones first, then the most urgent, then in the order in which they were asked for.
    place: (bool, i32, Reverse<u64>),
    what: T,
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Waiting<T>) -> bool {
        self.place == other.place
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Waiting<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Waiting<T>) -> Ordering {
        self.place.cmp(&other.place)
    }
}

impl<T> Default for Outbox<T> {
    fn default() -> Outbox<T> {
        Outbox { waiting: BTreeMap::new(), asked: 0 }
    }
}

impl<T> Outbox<T> {
    /// Adds a message of some bytes to a rank, for a task of this urgency.
    pub fn add(&mut self, to: usize, urgency: i32, bytes: u64, what: T) {
        self.asked += 1;
        let place = (bytes <= SMALL, urgency, Reverse(self.asked));
        self.waiting.entry(to).or_default().push(Waiting { place, what });
    }

    /// Takes out the next one that need not wait any more, with the rank that it is for. `on_their_way` is the number of
    /// values on their way to a rank, those that were taken out before included; small ones may be among them.
    pub fn next(&mut self, on_their_way: impl Fn(usize) -> usize) -> Option<(usize, T)> {
        let (to, what) = self.waiting.iter_mut().find_map(|(to, waiting)| {
            let next = waiting.peek_mut()?;
            let (is_small, ..) = next.place;
            (is_small || on_their_way(*to) < MOST).then(|| (*to, PeekMut::pop(next).what))
        })?;
        if self.waiting.get(&to).is_some_and(BinaryHeap::is_empty) {
            self.waiting.remove(&to);
        }
        Some((to, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: u64 = SMALL + 1;

    #[test]
    fn urgent_values_overtake_those_that_wait_and_small_ones_all() {
        let (mut outbox, mut under_way) = (Outbox::default(), Vec::new());
        let post = |outbox: &mut Outbox<u32>, under_way: &mut Vec<(usize, u32)>| {
            let mut posted = Vec::new();
            while let Some(next) = outbox.next(|to| under_way.iter().filter(|(of, _)| *of == to).count()) {
                under_way.extend(Some(next).filter(|(_, tag)| *tag < 300));
                posted.push(next);
            }
            posted
        };
        // As many as may be on their way go in the order in which they are asked for.
        for tag in 0..MOST as u32 {
            outbox.add(1, -1, LARGE, tag);
            assert_eq!(post(&mut outbox, &mut under_way), [(1, tag)]);
        }
        for (tag, urgency) in [(100, 1), (101, 7), (102, 7), (103, i32::MAX), (104, i32::MIN)] {
            outbox.add(1, urgency, LARGE, tag);
        }
        assert_eq!(post(&mut outbox, &mut under_way), []);
        // Those for others, and small ones, do not wait.
        outbox.add(2, 0, LARGE, 200);
        outbox.add(1, i32::MIN, SMALL, 300);
        assert_eq!(post(&mut outbox, &mut under_way), [(1, 300), (2, 200)]);
        let mut order = Vec::new();
        loop {
            let ended = under_way.iter().position(|(to, _)| *to == 1);
            let Some(ended) = ended else { break };
            under_way.remove(ended);
            order.extend(post(&mut outbox, &mut under_way).into_iter().map(|(_, tag)| tag));
        }
        assert_eq!(order, [103, 101, 102, 100, 104]);
    }

    #[test]
    fn where_messages_are_gone_at_once_none_waits() {
        let mut outbox = Outbox::default();
        (0..20).for_each(|tag| outbox.add(1, tag % 2, LARGE, tag));
        let sent: Vec<i32> = std::iter::from_fn(|| outbox.next(|_| 0)).map(|(_, tag)| tag).collect();
        let (urgent, others): (Vec<i32>, Vec<i32>) = (0..20).partition(|tag| tag % 2 == 1);
        assert_eq!(sent, [urgent, others].concat());
    }
}
