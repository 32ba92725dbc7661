//! Observers of simulations.

use super::event::{Event, RankMessage, Stamped, Transfer};
use std::fmt;

/// Receives the events of a simulation, in the order of time.
pub trait Observer {
    /// Called for each event, with its time in nanoseconds since the beginning.
    fn event(&mut self, nanos: u64, event: &Event);

    /// Called once, before all events, with the names of the contexts by number.
    fn contexts(&mut self, names: &[String]) {
        let _ = names;
    }
}

/// Observer that keeps all events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventLog {
    /// The events, in the order of time.
    pub events: Vec<Stamped>,
}

impl Observer for EventLog {
    fn event(&mut self, nanos: u64, event: &Event) {
        self.events.push(Stamped { nanos, event: *event });
    }
}

impl fmt::Display for EventLog {
    /// Writes a line for each event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.events.iter().try_for_each(|stamped| writeln!(f, "{stamped}"))
    }
}

/// Observer that folds all events into a number. Two simulations with the same number had, for all practical purposes,
/// the same events in the same order at the same times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// The number so far.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }

    fn fold(&mut self, word: u64) {
        // The finalizer of SplitMix64 over state and word.
        let mut mixed = (self.0 ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ mixed >> 31;
    }
}

impl Observer for Digest {
    #[inline]
    fn event(&mut self, nanos: u64, event: &Event) {
        // Digests have always counted tasks from 0.
        let place = |task: &sched_core::TaskId| task.sequence().wrapping_sub(1);
        let pair = |high: u64, low: u32| high << 32 | u64::from(low);
        let moved = |of: &Transfer| pair(of.data.0.into(), of.from.0 << 16 | of.to.0 << 8 | of.why as u32);
        let message = |of: &RankMessage| pair(of.data.map_or(u32::MAX, |data| data.0).into(), of.from << 16 ^ of.to);
        let (kind, word) = match event {
            Event::Submitted { task } => (0, place(task)),
            Event::Ready { task, by } => (1, pair(place(task), by.map_or(u32::MAX, |worker| worker.0))),
            Event::Pulled { task, worker } => (2, pair(place(task), worker.0)),
            Event::Started { task, worker, .. } => (3, pair(place(task), worker.0)),
            Event::Ended { task, worker } => (4, pair(place(task), worker.0)),
            Event::Passed { task } => (5, place(task)),
            Event::Idle { worker } => (6, u64::from(worker.0)),
            Event::Woken { worker } => (7, u64::from(worker.0)),
            Event::TransferStarted(transfer) => (8, moved(transfer)),
            Event::TransferEnded(transfer) => (9, moved(transfer)),
            Event::Moved { worker, from, to } => {
                let from = from.map_or(u16::MAX, |from| from.0);
                (10, pair(u64::from(worker.0), u32::from(from) << 16 | u32::from(to.0)))
            }
            Event::Sent(of) => (11, message(of)),
            Event::Received(of) => (12, message(of)),
            // Moves within the scheduler are reported by a tree observer, where there is one. They are not part of the
            // schedule.
            Event::Refused { .. } | Event::Held { .. } | Event::QueueLength { .. } | Event::Noted { .. } => return,
        };
        self.fold(nanos << 4 | kind);
        self.fold(word);
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::CodeletId;
    use super::*;
    use sched_core::{MemoryNode, WorkerId};
    use sched_graph::{DataId, TaskId};
    use sched_memory::Reason;

    #[test]
    fn digests_that_were_published_hold() {
        let task = |number| TaskId(number).submitted();
        let (worker, from, to) = (WorkerId(1), MemoryNode(0), MemoryNode(1));
        let transfer = Transfer { data: DataId(7), from, to, bytes: 8, why: Reason::Prefetch };
        let events = [
            Event::Submitted { task: task(4) },
            Event::Ready { task: task(4), by: None },
            Event::Ready { task: task(5), by: Some(WorkerId(2)) },
            Event::Pulled { task: task(4), worker },
            Event::Started { task: task(4), worker, codelet: CodeletId(9) },
            Event::Ended { task: task(4), worker },
            Event::Passed { task: task(6) },
            Event::Idle { worker },
            Event::Woken { worker: WorkerId(3) },
            Event::TransferStarted(transfer),
            Event::TransferEnded(transfer),
        ];
        let mut digest = Digest::default();
        events.iter().zip(0..).for_each(|(event, nanos)| digest.event(nanos, event));
        assert_eq!(digest.value(), 0x2e4b_a244_8c32_7257);
    }
}
