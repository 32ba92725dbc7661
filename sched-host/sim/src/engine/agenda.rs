//! Planned actions, in order of time.
//!
//! A heap compares more entries the more workers there are. But kernels of one kind take equally long on workers of one
//! kind, so their ends are planned in the order in which they come: most entries go to the end of one of a few queues,
//! which are in order by themselves, and only those that fit behind none of them go into a heap. The next entry is the
//! least of the first ones of all queues and of the heap. (Patience sorting: Mallows, "Patience sorting", SIAM Review
//! 5(4), 1963.)
//!
//! The next arrival of a transfer has a place of its own: each change of the network moves it.

use super::Action;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Actions by time, then by order of planning.
pub(super) struct Agenda {
    piles: [VecDeque<Entry>; PILES],
    /// Time of the last entry of each pile; decreasing from each pile to the next.
    lasts: [u64; PILES],
    heap: BinaryHeap<Reverse<Entry>>,
    /// Key of the first entry of each pile, of the heap, and of the next arrival.
    firsts: [Key; PLACES],
    /// The place of the next entry.
    next: usize,
    /// Number of arrivals that were planned and then at another time.
    withdrawn: u64,
    /// The latest time of these.
    latest: u64,
    /// Sequence number of the last entry, a multiple of the number of places.
    sequence: u64,
}

/// Number of queues: enough for a few kinds of kernels on a few kinds of workers, and for what is done at once.
const PILES: usize = 6;

/// Place of the heap, behind the queues.
const HEAP: usize = PILES;

/// Place of the next arrival.
const ARRIVAL: usize = PILES + 1;

const PLACES: usize = PILES + 2;

/// A planned action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    /// Order of planning.
    sequence: u64,
    action: Action,
}

/// The time in the upper half, the order of planning in the lower, and the place in bits that the latter leaves 0: so
/// the least key says where it is, and nothing is looked up while it is found.
type Key = u128;

/// Keys are less than this; of a place without an entry, the key is this with the place.
const NEVER: Key = Key::MAX - (PLACES as Key - 1);

const _: () = assert!(PLACES.is_power_of_two());

/// Key of an entry at a place.
fn key(time: u64, sequence: u64, place: usize) -> Key {
    Key::from(time) << 64 | Key::from(sequence) | place as Key
}

/// Key of a place whose first entry is this.
fn first(entry: Option<&Entry>, place: usize) -> Key {
    entry.map_or(NEVER | place as Key, |entry| key(entry.time, entry.sequence, place))
}

impl Agenda {
    pub(super) fn new() -> Agenda {
        Agenda {
            piles: [const { VecDeque::new() }; PILES],
            lasts: [0; PILES],
            heap: BinaryHeap::new(),
            firsts: std::array::from_fn(|place| first(None, place)),
            next: 0,
            withdrawn: 0,
            latest: 0,
            sequence: 0,
        }
    }

    /// The next action.
    #[inline]
    pub(super) fn peek(&self) -> Option<Action> {
        match self.next {
            HEAP => self.heap.peek().map(|Reverse(entry)| entry.action),
            ARRIVAL => Some(Action::Arrive),
            pile => self.piles[pile].front().map(|entry| entry.action),
        }
    }

    /// Time of the next action.
    #[inline]
    pub(super) fn next_time(&self) -> Option<u64> {
        let first = self.firsts[self.next];
        (first < NEVER).then_some((first >> 64) as u64)
    }

    /// Plans an action. Actions of equal time are performed in the order in which they were planned.
    #[inline]
    pub(super) fn push(&mut self, time: u64, action: Action) {
        self.sequence += PLACES as u64;
        let entry = Entry { time, sequence: self.sequence, action };
        let fits = self.lasts.iter().position(|last| *last <= time);
        let at = fits.unwrap_or(HEAP);
        let key = key(time, self.sequence, at);
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

    /// Plans the next arrival for this time, or for none, instead of the time for which it was planned.
    pub(super) fn plan_arrival(&mut self, time: Option<u64>) {
        let before = std::mem::replace(&mut self.firsts[ARRIVAL], first(None, ARRIVAL));
        if before < NEVER {
            self.withdrawn += 1;
            self.latest = self.latest.max((before >> 64) as u64);
        }
        if let Some(time) = time {
            self.sequence += PLACES as u64;
            self.firsts[ARRIVAL] = key(time, self.sequence, ARRIVAL);
        }
        self.next = match self.next {
            next if next != ARRIVAL && self.firsts[next] < self.firsts[ARRIVAL] => next,
            ARRIVAL => self.least(),
            _ => ARRIVAL,
        };
    }

    /// Number of arrivals that were planned and did not come about.
    pub(super) fn withdrawn(&self) -> u64 {
        self.withdrawn
    }

    /// The latest time of these.
    pub(super) fn last_withdrawn(&self) -> u64 {
        self.latest
    }

    /// The place of the next entry. Of pairs, so that the processor compares some of them at once.
    #[inline]
    fn least(&self) -> usize {
        let [a, b, c, d, e, f, g, h] = self.firsts;
        let least = a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)));
        least as usize % PLACES
    }

    /// Takes the next action, with its time.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, Action)> {
        let at = self.next;
        let (time, action, first) = match at {
            HEAP => {
                let Reverse(Entry { time, action, .. }) = self.heap.pop()?;
                (time, action, first(self.heap.peek().map(|Reverse(entry)| entry), HEAP))
            }
            ARRIVAL => ((self.firsts[ARRIVAL] >> 64) as u64, Action::Arrive, first(None, ARRIVAL)),
            _ => {
                let pile = &mut self.piles[at];
                let Entry { time, action, .. } = pile.pop_front()?;
                if pile.is_empty() {
                    // No action is planned in the past, so every later one fits behind this.
                    self.lasts[at] = time;
                }
                (time, action, first(pile.front(), at))
            }
        };
        self.firsts[at] = first;
        self.next = self.least();
        Some((time, action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sched_core::WorkerId;
    use std::collections::BTreeMap;

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

        /// The last plan of an arrival holds, and all others are counted.
        #[test]
        fn an_arrival_comes_when_it_was_planned_last(delays in prop::collection::vec((0..90_u64, 0..90_u64), 1..100)) {
            let mut agenda = Agenda::new();
            let mut planned: BTreeMap<(u64, u32), Action> = BTreeMap::new();
            let (mut now, mut number, mut arrivals) = (0, 0, 0);
            for (delay, arrival) in delays {
                agenda.push(now + delay, Action::Host(WorkerId(number)));
                planned.insert((now + delay, number), Action::Host(WorkerId(number)));
                planned.retain(|_, action| *action != Action::Arrive);
                agenda.plan_arrival((arrival > 9).then_some(now + arrival));
                if arrival > 9 {
                    planned.insert((now + arrival, number + 1), Action::Arrive);
                    arrivals += 1;
                }
                number += 2;
                prop_assert_eq!(agenda.next_time(), planned.first_key_value().map(|((time, _), _)| *time));
                let first = planned.pop_first().map(|((time, _), action)| (time, action));
                prop_assert_eq!(agenda.pop(), first);
                now = first.map_or(now, |(time, _)| time);
                arrivals -= u64::from(first.is_some_and(|(_, action)| action == Action::Arrive));
            }
            let left = planned.values().filter(|action| **action == Action::Arrive).count() as u64;
            prop_assert_eq!(agenda.withdrawn() + left, arrivals);
        }
    }
}
