//! Values that wait to be sent.
//!
//! Of the values for one rank only some are on their way at a time, so that one for an urgent task overtakes those that
//! were asked for earlier: what MPI has begun to send goes in order. Messages of one datum cannot overtake each other,
//! since each is a turn at the datum, and the next value is computed after it.

use crate::transport::{Parcel, Tag, Transport};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};

/// Maximum number of values on their way to one rank. The sender may learn late that one has arrived.
const MOST: usize = 8;

/// Maximum number of bytes of a message that does not wait: it is gone at once.
const SMALL: usize = 4096;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Outbox {
    /// For each rank.
    waiting: BTreeMap<usize, BinaryHeap<Waiting>>,
    /// Number of those so far.
    asked: u64,
}

struct Waiting {
    /// Small ones first, then the most urgent, then in the order in which they were asked for.
    place: (bool, i32, Reverse<u64>),
    tag: Tag,
    parcel: Box<dyn Parcel>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.place == other.place
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.place.cmp(&other.place)
    }
}

impl Outbox {
    /// Adds a value for a task of this urgency.
    pub(crate) fn add(&mut self, (to, tag): (usize, Tag), urgency: i32, parcel: Box<dyn Parcel>) {
        self.asked += 1;
        let place = (parcel.len() <= SMALL, urgency, Reverse(self.asked));
        self.waiting.entry(to).or_default().push(Waiting { place, tag, parcel });
    }

    /// Begins to send those that need not wait any more; `log` is called for each.
    pub(crate) fn post(&mut self, transport: &mut dyn Transport, mut log: impl FnMut(usize, Tag, usize)) {
        self.waiting.retain(|to, waiting| {
            let mut room = MOST.saturating_sub(transport.sending_to(*to));
            while let Some(next) = waiting.peek_mut() {
                let len = next.parcel.len();
                if room == 0 && len > SMALL {
                    return true;
                }
                room = room.saturating_sub(1);
                let Waiting { tag, parcel, .. } = PeekMut::pop(next);
                log(*to, tag, len);
                transport.send(*to, tag, parcel);
            }
            false
        });
    }

    /// Begins to send all of them.
    pub(crate) fn empty(&mut self, transport: &mut dyn Transport) {
        for (to, waiting) in std::mem::take(&mut self.waiting) {
            let in_order = waiting.into_sorted_vec().into_iter().rev();
            in_order.for_each(|Waiting { tag, parcel, .. }| transport.send(to, tag, parcel));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Arrived;
    use std::time::Duration;

    /// Sends nothing, and notes what is to be sent.
    #[derive(Default)]
    struct Slow {
        posted: Vec<(usize, Tag)>,
        on_their_way: Vec<usize>,
    }

    impl Transport for Slow {
        fn rank(&self) -> usize {
            0
        }

        fn ranks(&self) -> usize {
            3
        }

        fn most_tag(&self) -> u32 {
            u32::MAX
        }

        fn send(&mut self, to: usize, tag: Tag, parcel: Box<dyn Parcel>) {
            self.posted.push((to, tag));
            // Small ones are gone at once.
            if parcel.len() > SMALL {
                self.on_their_way.push(to);
            }
        }

        fn expect(&mut self, _bytes: usize) {}

        fn look(&mut self, _deliver: &mut dyn FnMut(usize, Tag, &mut dyn Arrived)) -> bool {
            false
        }

        fn sending(&self) -> usize {
            self.on_their_way.len()
        }

        fn sending_to(&self, rank: usize) -> usize {
            self.on_their_way.iter().filter(|to| **to == rank).count()
        }

        fn patience(&self) -> Option<Duration> {
            None
        }
    }

    fn large() -> Box<dyn Parcel> {
        Box::new(vec![0; SMALL + 1])
    }

    #[test]
    fn urgent_values_overtake_those_that_wait_and_small_ones_all() {
        let (mut outbox, mut transport) = (Outbox::default(), Slow::default());
        // As many as may be on their way go in the order in which they are asked for.
        for tag in 0..MOST as u32 {
            outbox.add((1, Tag(tag)), -1, large());
            outbox.post(&mut transport, |_, _, _| {});
        }
        for (tag, urgency) in [(100, 1), (101, 7), (102, 7), (103, i32::MAX), (104, i32::MIN)] {
            outbox.add((1, Tag(tag)), urgency, large());
        }
        outbox.post(&mut transport, |_, _, _| {});
        assert_eq!(transport.posted, (0..MOST as u32).map(|tag| (1, Tag(tag))).collect::<Vec<_>>());
        transport.posted.clear();
        // Those for others, and small ones, do not wait.
        outbox.add((2, Tag(200)), 0, large());
        outbox.add((1, Tag(300)), i32::MIN, Box::new(vec![0; SMALL]));
        let mut logged = Vec::new();
        outbox.post(&mut transport, |to, tag, len| logged.push((to, tag, len)));
        assert_eq!(logged, [(1, Tag(300), SMALL), (2, Tag(200), SMALL + 1)]);
        let mut order = Vec::new();
        while let Some(ended) = transport.on_their_way.iter().position(|to| *to == 1) {
            transport.on_their_way.remove(ended);
            transport.posted.clear();
            outbox.post(&mut transport, |_, _, _| {});
            order.extend(transport.posted.iter().map(|(_, tag)| tag.0));
        }
        assert_eq!(order, [103, 101, 102, 100, 104]);
    }

    #[test]
    fn at_the_end_all_that_wait_are_sent() {
        let (mut outbox, mut transport) = (Outbox::default(), Slow::default());
        (0..20).for_each(|tag| outbox.add((1, Tag(tag)), tag as i32 % 2, large()));
        outbox.post(&mut transport, |_, _, _| {});
        outbox.empty(&mut transport);
        let tags: Vec<u32> = transport.posted.iter().map(|(_, tag)| tag.0).collect();
        let (urgent, others): (Vec<u32>, Vec<u32>) = (0..20).partition(|tag| tag % 2 == 1);
        assert_eq!(tags, [urgent, others].concat());
    }
}
