//! The memory of a device: a pool of buffers, and eviction where it is full.
//!
//! # Waiting for room
//!
//! A buffer cannot be evicted while it is used: by tasks in the pipeline of the device's own worker, by a thread that
//! fills it ahead of tasks, by one that copies from it, or by one that is about to give it back. Only the worker waits
//! for room: for the data of a task after its pipeline is empty, while it holds no buffer, and for the room that a task
//! wants to work in while it holds those of its pipeline, whose end it does not wait for. Others give up where there is
//! none. So those who use buffers never wait for one who waits, and each use ends.
//!
//! Every end of a use, and every buffer that is given back, counts as a *change* under the lock of the state, and wakes
//! the worker. The worker reads the number of changes before it tries to get room. Where it got none, it tries again
//! after the next change; a change that came while it tried is one. If nobody uses a buffer and nothing has changed,
//! whatever is on the device could have been evicted, and the task does not fit.

use super::Device;
use parking_lot::{Condvar, Mutex};
use sched_core::MemoryNode;
use sched_core::driver::{BufferId, DriverError, DriverErrorKind};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Data that has a buffer on devices.
pub(crate) trait Resident: Send + Sync {
    /// When a task on the device last used it.
    fn last_use(&self, node: MemoryNode) -> u64;

    /// Gives its buffer on a device back, after what only the device holds was copied to the host. Returns whether it
    /// did: not while it is used.
    fn evict(self: Arc<Self>, device: &Device) -> Result<bool, DriverError>;
}

/// See the [module](self).
pub(crate) struct Arena {
    limit: u64,
    state: Mutex<State>,
    /// Notified after each change.
    changed: Condvar,
    /// Held during an eviction, so that whoever takes data out knows that it is not being evicted.
    evicting: Mutex<()>,
    evictions: AtomicU64,
    /// Number of times that a task waited for room.
    waits: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Bytes of all buffers, those of the pool included.
    allocated: u64,
    /// Buffers for reuse, by size.
    pool: BTreeMap<u64, Vec<BufferId>>,
    /// Buffers outside the pool, with the data whose they are.
    residents: HashMap<BufferId, Entry>,
    /// Number of threads, other than the worker of the device, that fill buffers or copy from them.
    users: usize,
    /// See the [module](self).
    changes: u64,
}

struct Entry {
    data: Weak<dyn Resident>,
    /// Whether the owner of the data is about to give the buffer back.
    is_leaving: bool,
}

impl State {
    /// Whether somebody is about to make room, or to make a buffer one that can be evicted.
    fn will_change(&self) -> bool {
        let leaves = |entry: &Entry| entry.is_leaving || entry.data.strong_count() == 0;
        self.users > 0 || self.residents.values().any(leaves)
    }
}

impl Arena {
    pub(crate) fn new(limit: u64) -> Arena {
        Arena {
            limit,
            state: Mutex::default(),
            changed: Condvar::new(),
            evicting: Mutex::default(),
            evictions: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn allocated(&self) -> u64 {
        self.state.lock().allocated
    }

    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.load(Relaxed)
    }

    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Relaxed)
    }

    /// Begins a use of buffers by a thread that is not the worker of the device.
    pub(crate) fn enter(&self) {
        self.state.lock().users += 1;
    }

    /// Ends what [`enter`](Self::enter) began.
    pub(crate) fn leave(&self) {
        self.change(|state| state.users -= 1);
    }

    /// Number of changes so far; see [`wait_for_change`](Self::wait_for_change).
    pub(crate) fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// Waits until there may be more room than after this number of changes. Returns whether there may be: not if
    /// nobody uses a buffer.
    pub(crate) fn wait_for_change(&self, seen: u64) -> bool {
        let mut state = self.state.lock();
        if state.changes == seen && state.will_change() {
            self.waits.fetch_add(1, Relaxed);
        }
        self.changed.wait_while(&mut state, |state| state.changes == seen && state.will_change());
        state.changes != seen
    }

    fn change(&self, what: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        what(&mut state);
        state.changes += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Allocates a buffer for data: one of the pool, a new one, or, if that `evicts`, one in the place of other data.
    pub(crate) fn allocate(
        &self,
        device: &Device,
        bytes: u64,
        data: Weak<dyn Resident>,
        evicts: bool,
    ) -> Result<BufferId, DriverError> {
        let buffer = self.obtain(device, bytes, evicts)?;
        self.state.lock().residents.insert(buffer, Entry { data, is_leaving: false });
        Ok(buffer)
    }

    /// Allocates a buffer that is not evicted, and that its user frees after the runtime; for the worker, which waits
    /// while others use what stands in the way.
    pub(crate) fn reserve(&self, device: &Device, bytes: u64) -> Result<BufferId, DriverError> {
        loop {
            let seen = self.changes();
            match self.obtain(device, bytes, true) {
                Err(error)
                    if error.kind == DriverErrorKind::OutOfMemory
                        && bytes <= self.limit
                        && self.wait_for_change(seen) => {}
                reserved => return reserved,
            }
        }
    }

    fn obtain(&self, device: &Device, bytes: u64, evicts: bool) -> Result<BufferId, DriverError> {
        if bytes > self.limit {
            let message = format!("{bytes} bytes are needed at once, and {} has {}", device.name(), self.limit);
            return Err(DriverError::new(DriverErrorKind::OutOfMemory, message));
        }
        loop {
            if let Some(buffer) = self.state.lock().pool.get_mut(&bytes).and_then(Vec::pop) {
                return Ok(buffer);
            }
            match self.allocate_new(device, bytes) {
                Err(error) if error.kind == DriverErrorKind::OutOfMemory => {
                    let is_less = self.shrink(device) || (evicts && self.evict_one(device)?);
                    if !is_less {
                        return Err(error);
                    }
                }
                other => return device.note(other),
            }
        }
    }

    fn allocate_new(&self, device: &Device, bytes: u64) -> Result<BufferId, DriverError> {
        {
            let mut state = self.state.lock();
            if state.allocated + bytes > self.limit {
                let message = format!("{bytes} bytes are needed, and {} of {} are in use", state.allocated, self.limit);
                return Err(DriverError::new(DriverErrorKind::OutOfMemory, message));
            }
            state.allocated += bytes;
        }
        let allocated = device.driver.allocate(device.number, bytes);
        if allocated.is_err() {
            self.state.lock().allocated -= bytes;
        }
        allocated
    }

    /// Frees the buffers of the pool. Returns whether there were any.
    fn shrink(&self, device: &Device) -> bool {
        let pool = std::mem::take(&mut self.state.lock().pool);
        let mut is_any = false;
        for (bytes, buffers) in pool {
            for buffer in buffers {
                let _ = device.driver.free(device.number, buffer);
                self.state.lock().allocated -= bytes;
                is_any = true;
            }
        }
        is_any
    }

    /// Evicts the data whose last use is longest ago, of that which is not in use. Returns whether there was any.
    fn evict_one(&self, device: &Device) -> Result<bool, DriverError> {
        let _evicting = self.evicting.lock();
        let mut there: Vec<Arc<dyn Resident>> = {
            let state = self.state.lock();
            let staying = state.residents.values().filter(|entry| !entry.is_leaving);
            staying.filter_map(|entry| entry.data.upgrade()).collect()
        };
        there.sort_by_key(|resident| resident.last_use(device.node));
        // What fails for one datum is not the error of another that needs room.
        let mut failed = None;
        for resident in there {
            match resident.evict(device) {
                Ok(true) => {
                    self.evictions.fetch_add(1, Relaxed);
                    return Ok(true);
                }
                Ok(false) => {}
                Err(error) if device.is_lost() => return Err(error),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(false), Err)
    }

    /// Notes whether the owner of data is about to give its buffer back. Nobody evicts it meanwhile.
    pub(crate) fn note_leaving(&self, data: &Weak<dyn Resident>, is_leaving: bool) {
        let _evicting = self.evicting.lock();
        self.change(|state| {
            let of_data = state.residents.values_mut().filter(|entry| entry.data.ptr_eq(data));
            of_data.for_each(|entry| entry.is_leaving = is_leaving);
        });
    }

    /// Keeps a buffer for reuse, which its data does not need any more.
    pub(crate) fn release(&self, bytes: u64, buffer: BufferId) {
        self.change(|state| {
            state.residents.remove(&buffer);
            state.pool.entry(bytes).or_default().push(buffer);
        });
    }

    /// Takes the buffers of the pool.
    pub(crate) fn take_pooled(&self) -> Vec<BufferId> {
        std::mem::take(&mut self.state.lock().pool).into_values().flatten().collect()
    }
}
