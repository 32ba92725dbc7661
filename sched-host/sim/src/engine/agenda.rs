//! What is planned, in the order of time.
//!
//! A heap would look at more events the more workers there are. But kernels of one kind take equally long on workers of one
//! kind, so their ends are planned in the order in which they come: most events go to the end of one of a few queues, which
//! are in order by themselves, and only what fits behind none of them goes into a heap. The next event is the least of all
//! their first ones. (Patience sorting: Mallows, "Patience sorting", SIAM Review 5(4), 1963.)

use super::Plan;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Events by (time, order of planning).
pub(super) struct Agenda {
    piles: [VecDeque<Entry>; PILES],
    /// The time of the last event of each pile: they fall from one pile to the next.
    lasts: [u64; PILES],
    heap: BinaryHeap<Reverse<Entry>>,
    /// The key of the first event of each pile, and of the heap; [`NEVER`] for none.
    firsts: [Key; PILES + 1],
    /// Whose first event comes next.
    next: usize,
    /// Order of planning.
    sequence: u64,
}

/// Kinds of kernels times kinds of workers, where there are few; and what is done at once.
const PILES: usize = 7;

type Entry = (u64, u64, Plan);

/// The time in the upper half, the order of planning in the lower.
type Key = u128;

const NEVER: Key = Key::MAX;

fn key(&(time, sequence, _): &Entry) -> Key {
    Key::from(time) << 64 | Key::from(sequence)
}

impl Agenda {
    pub(super) fn new() -> Agenda {
        Agenda {
            piles: [const { VecDeque::new() }; PILES],
            lasts: [0; PILES],
            heap: BinaryHeap::new(),
            firsts: [NEVER; PILES + 1],
            next: 0,
            sequence: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.firsts[self.next] == NEVER
    }

    /// What comes next.
    #[inline]
    pub(super) fn peek(&self) -> Option<Plan> {
        match self.piles.get(self.next) {
            Some(pile) => pile.front().map(|entry| entry.2),
            None => self.heap.peek().map(|Reverse(entry)| entry.2),
        }
    }

    /// Plans something for a time. Of what is planned for one time, what was planned first comes first.
    #[inline]
    pub(super) fn push(&mut self, time: u64, plan: Plan) {
        self.sequence += 1;
        let entry = (time, self.sequence, plan);
        let key = key(&entry);
        let fits = self.lasts.iter().position(|last| *last <= time);
        let at = fits.unwrap_or(PILES);
        match self.piles.get_mut(at) {
            Some(pile) => {
                self.lasts[at] = time;
                pile.push_back(entry);
            }
            None => self.heap.push(Reverse(entry)),
        }
        if key < self.firsts[at] {
            self.firsts[at] = key;
            if key < self.firsts[self.next] {
                self.next = at;
            }
        }
    }

    /// Takes what comes next.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, Plan)> {
        let at = self.next;
        let (time, plan, first) = match self.piles.get_mut(at) {
            Some(pile) => {
                let (time, _, plan) = pile.pop_front()?;
                if pile.is_empty() {
                    // What is planned is never in the past, so whatever comes fits behind this.
                    self.lasts[at] = time;
                }
                (time, plan, pile.front().map_or(NEVER, key))
            }
            None => {
                let Reverse((time, _, plan)) = self.heap.pop()?;
                (time, plan, self.heap.peek().map_or(NEVER, |Reverse(entry)| key(entry)))
            }
        };
        self.firsts[at] = first;
        let mut next = 0;
        for other in 1..=PILES {
            if self.firsts[other] < self.firsts[next] {
                next = other;
            }
        }
        self.next = next;
        Some((time, plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is planned while an event is carried out: how much later, as if by kernels of some kinds.
    fn delays() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let kinds = prop_oneof![0..4_u64, (0..20_u64).prop_map(|kind| kind * 37), 0..10_000_u64];
        prop::collection::vec(prop::collection::vec(kinds, 0..4), 1..200)
    }

    proptest! {
        /// It is a queue in order of time, then of planning.
        #[test]
        fn events_come_in_order_of_time_then_of_planning(delays in delays()) {
            let (mut agenda, mut heap) = (Agenda::new(), BinaryHeap::new());
            let (mut now, mut number) = (0, 0);
            for planned in delays {
                for delay in planned {
                    number += 1;
                    agenda.push(now + delay, Plan::Host(number));
                    heap.push(Reverse((now + delay, number)));
                }
                prop_assert_eq!(agenda.peek(), heap.peek().map(|Reverse((_, number))| Plan::Host(*number)));
                let popped = agenda.pop();
                prop_assert_eq!(popped, heap.pop().map(|Reverse((time, number))| (time, Plan::Host(number))));
                now = popped.map_or(now, |(time, _)| time);
                prop_assert_eq!(agenda.is_empty(), heap.is_empty());
            }
            while let Some(Reverse((time, number))) = heap.pop() {
                prop_assert_eq!(agenda.pop(), Some((time, Plan::Host(number))));
            }
            prop_assert!(agenda.is_empty() && agenda.pop().is_none());
        }
    }
}
