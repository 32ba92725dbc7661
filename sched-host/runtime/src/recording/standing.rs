//! The standing entry of a recording: what names it in the orders of its data from one replay to the next.
//!
//! # Protocol
//!
//! A replay takes its turn at all data of its recording at once. To enter the order of each of them anew each time costs
//! as much as some task does, for each datum; but nothing has changed there since the last replay, unless somebody else
//! has used the data meanwhile. So the orders do not name the entry of one replay, which is another record each time
//! (the program waits for it), but one that stands for them all. Its record is open while a replay is in progress, and
//! closed in between:
//!
//! - **enter**: the first replay enters the orders of all data, with the key of the standing entry. From then on a
//!   replay *opens* the record again, with the same key, and so is in all orders at once, where the last one was.
//! - **others**: a task that conflicts finds the key in the order of the datum, and links to the record: it waits if
//!   that is open, and not if it is closed, as with any other task. It notes the datum ([`Core::disturb`]), and a closed
//!   entry is forgotten there. The next replay enters the order of that datum anew, and waits for the task.
//! - **end**: the record is closed, and those that wait for it released, before the recording may be replayed again.
//!
//! *Orders do not forget the key by themselves*: they forget tasks that have ended, but no standing entry, which opens
//! again, until its recording has left it or is gone. *A replay does not wait for itself*: where it enters an order
//! anew, the order forgets the key first, which may still be there before what it waits for. *Nobody submits while a
//! replay enters*: else a task could wait for the replay at one datum, and the replay for the task at another one. Only
//! the sole submitter of a runtime is safe from that, and whoever submits beside others enters all orders under their
//! locks, with a key of its own. Neither are parts of arrays entered so, whose orders are others.

use super::recorded::{Accesses, Recorded};
use super::{OF_RECORDINGS, new_number};
use crate::core::{Core, NO_CODELET, TaskPlace};
use crate::data::DataHeader;
use crate::task::entry::Entry;
use crate::task::record::TaskKey;
use crate::task::scratch::WorkerScratch;
use crate::task::submit::Accessed;
use parking_lot::Mutex;
use sched_graph::{AccessMode, AccessOrder, ContextId};
use sched_sync::sole::Right;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Standing(Mutex<State>);

#[derive(Default)]
struct State {
    /// Key in the orders, once there is one.
    key: Option<TaskKey>,
    /// Whether the orders of all data but those of `disturbed` have it.
    is_entered: bool,
    /// Ids of data that others have used since the last replay began.
    disturbed: BTreeSet<u64>,
}

impl Standing {
    /// The recording accesses other data than before: what orders have is nobody's any more. No replay is in progress.
    pub(super) fn leave(&self) {
        let mut state = self.0.lock();
        state.is_entered = false;
        if let Some(key) = &mut state.key {
            key.sequence = new_number();
        }
    }

    /// Its place, which nobody uses any more.
    pub(super) fn dismantle(&self, core: &Core) -> Option<TaskPlace> {
        let place = self.0.lock().key.take().map(|key| core.place(key.slot))?;
        let taken = place.record.body.lock().take();
        drop(taken);
        Some(place)
    }
}

impl Recorded {
    /// Enters a replay, whose entry is in `place`, in the orders of its data. Returns its key and its number of links.
    pub(super) fn enter(self: &Arc<Recorded>, core: &Core, place: TaskPlace, accesses: &Accesses) -> (TaskKey, u32) {
        let mut right = core.sole.enter();
        let mut state = self.standing.0.lock();
        let stands = !accesses.has_special && matches!(right, Right::Alone(_));
        let key = stands.then(|| *state.key.get_or_insert_with(|| self.new_standing_entry(core)));
        let entered: Vec<Accessed<'_>> = if stands && state.is_entered {
            let disturbed = std::mem::take(&mut state.disturbed);
            let place = |id: &u64| accesses.list.binary_search_by_key(id, |(header, _)| header.id).ok();
            let disturbed = disturbed.iter().filter_map(place).map(|place| &accesses.list[place]);
            disturbed.map(|(header, mode)| (header, *mode)).collect()
        } else {
            state.disturbed.clear();
            accesses.list.iter().map(|(header, mode)| (header, *mode)).collect()
        };
        state.is_entered = stands;
        drop(state);
        if let Some(key) = key {
            let TaskPlace { slot, record } = core.place(key.slot);
            record.open(&slot.head().sequence, key.sequence, ContextId::DEFAULT);
        }
        let sequence = core.number_all(1, &right);
        let entry = Entry::of_program((place, sequence), &entered, key.as_ref());
        match accesses.has_special {
            true => core.enter_with_parts(entry, &mut right),
            false => core.enter(entry, &mut right),
        }
    }

    /// One that is closed.
    fn new_standing_entry(self: &Arc<Recorded>, core: &Core) -> TaskKey {
        core.has_standing.store(true, Relaxed);
        let TaskPlace { slot, record } = core.take_fresh();
        slot.head().codelet.store(NO_CODELET, Relaxed);
        record.body.lock().rare(record).launches = Some(Arc::clone(self));
        TaskKey { slot: slot.id(), sequence: new_number() }
    }

    /// Closes the standing entry, if the replay that ends has opened it, and has those released that wait for it.
    pub(super) fn close_standing(&self, core: &Core, scratch: &mut WorkerScratch) {
        let Some(key) = self.standing.0.lock().key else { return };
        let TaskPlace { slot, record } = core.place(key.slot);
        if slot.head().sequence.load(Acquire) == key.sequence {
            let mut body = record.body.lock();
            record.close(&slot.head().sequence);
            let released = body.dependents.drain(..).map(|dependent| dependent.slot());
            released.filter(|slot| core.place(*slot).record.release()).for_each(|slot| scratch.schedule_later(slot));
        }
    }
}

impl Core {
    /// Notes that a task follows standing entries in the order of a datum, if it does. Closed ones are forgotten there:
    /// their next replays enter that order anew. So is the key that the task itself is a replay of, if it is one.
    pub(crate) fn disturb(
        &self,
        header: &DataHeader,
        order: &mut AccessOrder<TaskKey>,
        mode: AccessMode,
        own: Option<&TaskKey>,
    ) {
        own.into_iter().for_each(|own| order.remove(*own));
        let standing = order.nearest(mode).iter().filter(|key| key.sequence & OF_RECORDINGS != 0).copied();
        let standing: SmallVec<[TaskKey; 2]> = standing.collect();
        for key in standing {
            if !self.note_disturbed(key, header) {
                order.remove(key);
            }
        }
    }

    /// Notes that a task follows the standing entry of this key. Returns whether that is open.
    #[cold]
    fn note_disturbed(&self, standing: TaskKey, header: &DataHeader) -> bool {
        self.with_standing(standing, |state| state.disturbed.insert(header.id));
        self.place(standing.slot).slot.head().sequence.load(Acquire) == standing.sequence
    }

    /// Whether the key is that of a standing entry which will not open again: its recording accesses other data now, or
    /// is gone.
    #[cold]
    pub(crate) fn is_left(&self, standing: TaskKey) -> bool {
        self.with_standing(standing, |_| ()).is_none()
    }

    /// Uses the state of a recording whose standing entry has this key, unless it has left that.
    fn with_standing<R>(&self, standing: TaskKey, using: impl FnOnce(&mut State) -> R) -> Option<R> {
        // Not cloned: the last reference would drop the kernels here, where the program must not be called.
        let body = self.place(standing.slot).record.body.lock();
        let recorded = body.rare.as_ref()?.launches.as_ref()?;
        let mut state = recorded.standing.0.lock();
        (state.key == Some(standing)).then(|| using(&mut state))
    }
}
