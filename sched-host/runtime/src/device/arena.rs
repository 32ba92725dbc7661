//! The memory of a device: a pool of buffers, and eviction where it is full.

use super::Device;
use parking_lot::Mutex;
use sched_core::MemoryNode;
use sched_core::driver::{BufferId, DriverError, DriverErrorKind};
use std::collections::BTreeMap;
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
    /// Data with a buffer. Held during an eviction, so that whoever takes data out knows that it is not being evicted.
    residents: Mutex<Vec<Weak<dyn Resident>>>,
    evictions: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Bytes of all buffers, those of the pool included.
    allocated: u64,
    /// Buffers for reuse, by size.
    pool: BTreeMap<u64, Vec<BufferId>>,
}

impl Arena {
    pub(crate) fn new(limit: u64) -> Arena {
        Arena { limit, state: Mutex::default(), residents: Mutex::default(), evictions: AtomicU64::new(0) }
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

    /// Allocates a buffer: one of the pool, a new one, or one in the place of what is evicted.
    pub(crate) fn allocate(&self, device: &Device, bytes: u64) -> Result<BufferId, DriverError> {
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
                    if !self.shrink(device) && !self.evict_one(device)? {
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
        let mut residents = self.residents.lock();
        let mut there: Vec<Arc<dyn Resident>> = residents.iter().filter_map(Weak::upgrade).collect();
        residents.retain(|resident| resident.strong_count() > 0);
        there.sort_by_key(|resident| resident.last_use(device.node));
        for resident in there {
            let evicted = Arc::downgrade(&resident);
            if resident.evict(device)? {
                self.evictions.fetch_add(1, Relaxed);
                residents.retain(|other| !other.ptr_eq(&evicted));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Notes that data has a buffer.
    pub(crate) fn add(&self, resident: Weak<dyn Resident>) {
        self.residents.lock().push(resident);
    }

    /// Forgets data, whose buffer its owner gives back. Nobody evicts it afterwards.
    pub(crate) fn forget(&self, resident: &Weak<dyn Resident>) {
        self.residents.lock().retain(|other| !other.ptr_eq(resident));
    }

    /// Keeps a buffer for reuse.
    pub(crate) fn release(&self, bytes: u64, buffer: BufferId) {
        self.state.lock().pool.entry(bytes).or_default().push(buffer);
    }

    /// Takes the buffers of the pool.
    pub(crate) fn take_pooled(&self) -> Vec<BufferId> {
        std::mem::take(&mut self.state.lock().pool).into_values().flatten().collect()
    }
}
