//! Planned actions, in order of time.
//!
//! A heap compares more entries the more workers there are. But kernels of one kind take equally long on workers of one
//! kind, so their ends are planned in the order in which they come: most entries go to the end of one of a few queues,
//! which are in order by themselves, and only those that fit behind none of them go into a heap. The next entry is the
//! least of the first ones of all queues and of the heap. (Patience sorting: Mallows, "Patience sorting", SIAM Review
//! 5(4), 1963.)

use super::Action;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Actions by time, then by order of planning.
pub(super) struct Agenda {
    piles: [VecDeque<Entry>; PILES],
    /// Time of the last entry of each pile; decreasing from each pile to the next.
    lasts: [u64; PILES],
    heap: BinaryHeap<Reverse<Entry>>,
    /// Key of the first entry of each pile, and of the heap; [`NEVER`] for none.
    firsts: [Key; PILES + 1],
    /// The pile with the next entry; [`PILES`] for the heap.
    next: usize,
    /// Sequence number of the last entry.
    sequence: u64,
}

/// Number of queues: enough for a few kinds of kernels on a few kinds of workers, and for what is done at once.
const PILES: usize = 7;

/// A planned action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    /// Order of planning.
    sequence: u64,
    action: Action,
}

/// The time in the upper half, the order of planning in the lower.
type Key = u128;

const NEVER: Key = Key::MAX;

impl Entry {
    fn key(&self) -> Key {
        Key::from(self.time) << 64 | Key::from(self.sequence)
    }
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

    /// The next action.
    #[inline]
    pub(super) fn peek(&self) -> Option<Action> {
        match self.piles.get(self.next) {
            Some(pile) => pile.front().map(|entry| entry.action),
            None => self.heap.peek().map(|Reverse(entry)| entry.action),
        }
    }

    /// Time of the next action.
    #[inline]
    pub(super) fn next_time(&self) -> Option<u64> {
        let first = self.firsts[self.next];
        (first != NEVER).then_some((first >> 64) as u64)
    }

    /// Plans an action. Actions of equal time are performed in the order in which they were planned.
    #[inline]
    pub(super) fn push(&mut self, time: u64, action: Action) {
        self.sequence += 1;
        let entry = Entry { time, sequence: self.sequence, action };
        let key = entry.key();
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

    /// Takes the next action, with its time.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, Action)> {
        let at = self.next;
        let (entry, first) = match self.piles.get_mut(at) {
            Some(pile) => {
                let entry = pile.pop_front()?;
                if pile.is_empty() {
                    // No action is planned in the past, so every later one fits behind this.
                    self.lasts[at] = entry.time;
                }
                (entry, pile.front().map_or(NEVER, Entry::key))
            }
            None => {
                let Reverse(entry) = self.heap.pop()?;
                (entry, self.heap.peek().map_or(NEVER, |Reverse(entry)| entry.key()))
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
        Some((entry.time, entry.action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sched_core::WorkerId;

    /// Delays of the actions that each performed action plans, some of them as if by kernels of a few kinds.
    fn delays() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let kinds = prop_oneof![0..4_u64, (0..20_u64).prop_map(|kind| kind * 37), 0..10_000_u64];
        prop::collection::vec(prop::collection::vec(kinds, 0..4), 1..200)
    }

    proptest! {
        /// The agenda pops in the order of a plain heap of (time, order of planning).
        #[test]
        fn events_come_in_order_of_time_then_of_planning(delays in delays()) {
            let (mut agenda, mut heap) = (Agenda::new(), BinaryHeap::new());
            let (mut now, mut number) = (0, 0);
            for planned in delays {
                for delay in planned {
                    number += 1;
                    agenda.push(now + delay, Action::Host(WorkerId(number)));
                    heap.push(Reverse((now + delay, number)));
                }
                prop_assert_eq!(agenda.peek(), heap.peek().map(|Reverse((_, number))| Action::Host(WorkerId(*number))));
                let popped = agenda.pop();
                prop_assert_eq!(popped, heap.pop().map(|Reverse((time, number))| (time, Action::Host(WorkerId(number)))));
                now = popped.map_or(now, |(time, _)| time);
                prop_assert_eq!(agenda.peek().is_none(), heap.is_empty());
            }
            while let Some(Reverse((time, number))) = heap.pop() {
                prop_assert_eq!(agenda.pop(), Some((time, Action::Host(WorkerId(number)))));
            }
            prop_assert!(agenda.peek().is_none() && agenda.pop().is_none());
        }
    }
}
