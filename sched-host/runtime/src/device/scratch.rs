//! Memory of a device that kernels of libraries need beside the data of tasks: room to work in, and a number in which
//! they say how it went.

use super::Device;
use parking_lot::Mutex;
use sched_core::driver::{BufferId, DeviceMemory, DriverError, DriverErrorKind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of statuses of tasks that are under way at most, a power of two: more than the pipeline of a worker has.
const STATUSES: u64 = 16;
/// Bytes of a status.
const BYTES: u64 = size_of::<i32>() as u64;

/// See the [module](self). What has become too small is kept, since work that uses it may be under way; sizes double,
/// so that is little.
#[derive(Default)]
pub(crate) struct Scratch {
    room: Mutex<Vec<(u64, BufferId)>>,
    statuses: Mutex<Option<BufferId>>,
    next_status: AtomicU64,
}

/// What is made of a status: the reason why the task fails, if it does.
pub(crate) type Check = Box<dyn FnOnce(i32) -> Result<(), String> + Send>;

/// A status that is read when the work of a task has ended.
pub(crate) struct Status {
    pub(crate) buffer: BufferId,
    pub(crate) offset: u64,
    check: Check,
}

impl Scratch {
    /// All buffers, which nobody uses any more.
    pub(crate) fn take(&self) -> Vec<BufferId> {
        let room = std::mem::take(&mut *self.room.lock());
        room.into_iter().map(|(_, buffer)| buffer).chain(self.statuses.lock().take()).collect()
    }
}

impl Device {
    /// A buffer of at least this size, for the work of one task at a time, in the order of the queue for kernels.
    pub(crate) fn room(&self, bytes: u64) -> Result<BufferId, DriverError> {
        let mut room = self.scratch.room.lock();
        if let Some((_, buffer)) = room.iter().find(|(has, _)| *has >= bytes) {
            return Ok(*buffer);
        }
        let size = bytes.max(1).checked_next_power_of_two().unwrap_or(bytes).min(self.arena.limit()).max(bytes);
        let buffer = self.arena.reserve(self, size)?;
        room.push((size, buffer));
        Ok(buffer)
    }

    /// A place for the status of a task.
    pub(crate) fn status(&self, check: Check) -> Result<Status, DriverError> {
        let mut statuses = self.scratch.statuses.lock();
        let buffer = match *statuses {
            Some(buffer) => buffer,
            None => *statuses.insert(self.arena.reserve(self, STATUSES * BYTES)?),
        };
        let number = self.scratch.next_status.fetch_add(1, Relaxed) % STATUSES;
        Ok(Status { buffer, offset: number * BYTES, check })
    }

    /// Reads a status after the work has ended.
    pub(crate) fn conclude(&self, status: Status) -> Result<(), DriverError> {
        let from = DeviceMemory { device: self.number, buffer: status.buffer, offset: status.offset, pitch: 0 };
        let mut bytes = [0; BYTES as usize];
        self.note(self.driver.read(from, &mut bytes, self.copying()))?;
        (status.check)(i32::from_ne_bytes(bytes)).map_err(|said| DriverError::new(DriverErrorKind::Other, said))
    }
}
