//! How a task that is numbered enters: it takes its place in the orders of its data, and is linked to those that it must wait
//! for.

use super::record::{Dependent, TaskKey};
use super::submit::TaskRef;
use crate::core::{Core, NO_CODELET, TaskPlace};
use crate::data::DataHeader;
use crate::recording::OF_RECORDINGS;
use sched_core::{ArchSet, fetch_to_write};
use sched_graph::{AccessMode, AccessOrder, ContextId};
use sched_sync::sole::Right;
use sched_tree::Phase;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// What [enters](Core::enter).
pub(crate) struct Entry<'a> {
    pub(crate) place: TaskPlace,
    /// Its [number](Core::number_tasks).
    pub(crate) sequence: u64,
    /// Number of its context.
    pub(crate) context: ContextId,
    pub(crate) priority: i32,
    pub(crate) archs: ArchSet,
    pub(crate) codelet: u32,
    pub(crate) width: u16,
    pub(crate) sched_data: u64,
    pub(crate) footprint: u64,
    pub(crate) after: &'a [TaskRef],
    /// Each data once.
    pub(crate) accesses: &'a [(&'a Arc<DataHeader>, AccessMode)],
    /// What orders name it by, if not by its own key; see [`standing`](crate::recording::standing).
    pub(crate) standing: Option<&'a TaskKey>,
}

impl<'a> Entry<'a> {
    /// An access of the program itself, or of what stands for it.
    pub(crate) fn of_program(
        (place, sequence): (TaskPlace, u64),
        accesses: &'a [(&'a Arc<DataHeader>, AccessMode)],
        standing: Option<&'a TaskKey>,
    ) -> Entry<'a> {
        Entry {
            place,
            sequence,
            context: ContextId::DEFAULT,
            priority: 0,
            archs: ArchSet::EMPTY,
            codelet: NO_CODELET,
            width: 1,
            sched_data: 0,
            footprint: 0,
            after: &[],
            accesses,
            standing,
        }
    }
}

impl Core {
    /// Makes a task wait for another one, unless that has ended. Returns whether it waits.
    pub(crate) fn link(&self, before: TaskKey, dependent: Dependent) -> bool {
        let TaskPlace { slot, record } = self.place(before.slot);
        // The processor does not read ahead of the lock there.
        fetch_to_write(record);
        record.link(&slot.head().sequence, before.sequence, dependent)
    }

    /// Enters a task that has its number: links it to those that it must wait for. Returns the number of links; the task
    /// starts when its record is [submitted](Record::submitted) with that number.
    #[inline(always)]
    pub(crate) fn enter(&self, entry: Entry<'_>, right: &mut Right<'_>) -> (TaskKey, u32) {
        let TaskPlace { slot, record } = entry.place;
        let key = TaskKey { slot: slot.id(), sequence: entry.sequence };
        let head = slot.head();
        head.reset();
        head.priority.store(entry.priority, Relaxed);
        head.archs.store(entry.archs.bits(), Relaxed);
        head.codelet.store(entry.codelet, Relaxed);
        if entry.width > 1 {
            head.width.store(entry.width, Relaxed);
        }
        if entry.sched_data != 0 {
            head.set_sched_data(entry.sched_data);
        }
        head.footprint.store(entry.footprint, Relaxed);
        record.open(&head.sequence, key.sequence, entry.context);
        if entry.context != ContextId::DEFAULT {
            self.roster.get(entry.context).in_flight.number();
        }
        let waits = !(entry.after.is_empty() && entry.accesses.is_empty());
        let links = match (waits, self.has_standing.load(Relaxed)) {
            (false, _) => 0,
            (true, false) => self.link_all::<false>(key, &entry, right),
            (true, true) => self.link_all::<true>(key, &entry, right),
        };
        (key, links)
    }

    /// Links a task to those that it must wait for, and returns their number. `STANDS`: whether orders may have
    /// standing entries.
    #[inline(never)]
    fn link_all<const STANDS: bool>(&self, key: TaskKey, entry: &Entry<'_>, right: &mut Right<'_>) -> u32 {
        let Entry { place: TaskPlace { slot, record }, after, accesses, standing, .. } = *entry;
        slot.set_phase(Phase::Waiting);
        let (mut links, mut seen) = (0, Seen::default());
        for before in after.iter().map(|task| task.key()) {
            if seen.is_again(before.sequence) {
                continue;
            }
            if !self.has_long_ended(before.sequence) && self.link(before, Dependent::new(key.slot, true)) {
                links += 1;
            } else {
                // It has ended. If it failed, this task is cancelled.
                if self.outcomes.watch().for_bad_data()
                    && let Some(cause) = self.outcomes.cause(before.sequence)
                {
                    record.body.lock().rare(record).cancelled = Some(cause);
                }
            }
        }
        let named = *standing.unwrap_or(&key);
        let mut access = |order: &mut AccessOrder<TaskKey>, mode| {
            let link = |before: TaskKey| {
                if !self.has_long_ended(before.sequence) && !seen.is_again(before.sequence) {
                    links += u32::from(self.link(before, Dependent::new(key.slot, false)));
                }
            };
            let is_over = |old: TaskKey| match STANDS && old.sequence & OF_RECORDINGS != 0 {
                true => self.is_left(old),
                false => self.is_ended(old),
            };
            order.access(named, mode, link, is_over);
        };
        match right {
            Right::Alone(alone) => {
                for (header, mode) in accesses {
                    header.order.alone(alone, |order| {
                        if STANDS {
                            self.disturb(header, order, *mode, standing);
                        }
                        access(order, *mode);
                    });
                }
            }
            // All orders are locked at once, in the order of data ids, so that two concurrent submissions have the same
            // order on all data.
            Right::Shared(shared) => {
                let mut in_order: SmallVec<[_; 8]> = SmallVec::from_slice(accesses);
                in_order.sort_unstable_by_key(|(header, _)| header.id);
                let locked = in_order.iter().map(|(header, mode)| (header.order.shared(*shared), *mode));
                let mut locked: SmallVec<[_; 8]> = locked.collect();
                locked.iter_mut().for_each(|(order, mode)| order.with(|order| access(order, *mode)));
            }
        }
        links
    }
}

/// The first tasks that a task waits for. Often it waits for the same one for several data: because that writes what it
/// reads, and reads what it writes.
#[derive(Default)]
struct Seen {
    /// Their sequences.
    tasks: [u64; 8],
    count: usize,
}

impl Seen {
    /// Whether the task of this sequence is one of them; otherwise it is from now on, if there is room.
    #[inline]
    fn is_again(&mut self, task: u64) -> bool {
        if self.tasks[..self.count].contains(&task) {
            return true;
        }
        if let Some(place) = self.tasks.get_mut(self.count) {
            *place = task;
            self.count += 1;
        }
        false
    }
}
