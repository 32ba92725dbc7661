//! Memory that host and device share without maps: fine-grained shared virtual memory of OpenCL 2.0, which devices have
//! that are made of cores, or have no memory of their own. A copy is one by the thread that asks for it then, beside
//! whatever the device does. Where copies are commands, a device without threads of its own makes them wait for the end
//! of its kernel.

use cl3::device::{CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_FINE_GRAIN_BUFFER, get_device_info};
use cl3::error_codes::CL_MEM_OBJECT_ALLOCATION_FAILURE;
use cl3::memory::{
    CL_MEM_READ_WRITE, CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_MEM_USE_HOST_PTR, create_buffer, svm_alloc, svm_free,
};
use cl3::types::{cl_context, cl_device_id, cl_int};
use sched_core::driver::{BufferId, DeviceMemory, Direction, HostMemory, Rows};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of freed memory that are kept for the next buffers. The first use of memory that the system gives is far
/// slower than a copy, and the host frees all buffers when a runtime ends.
const KEPT: usize = 256 << 20;

/// Memory of a buffer.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: usize,
    bytes: usize,
}

#[derive(Default, Debug)]
struct Places {
    used: HashMap<BufferId, Place>,
    kept: Vec<Place>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Shared {
    context: usize,
    places: Mutex<Places>,
}

impl Shared {
    /// The shared memory of a device; `None` if it has none.
    pub(crate) fn of(device: cl_device_id, context: cl_context) -> Option<Shared> {
        let can = get_device_info(device, CL_DEVICE_SVM_CAPABILITIES).ok()?.to_ulong();
        (can & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0)
            .then(|| Shared { context: context as usize, places: Mutex::default() })
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates a buffer.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<BufferId, cl_int> {
        let (context, bytes) = (self.context as cl_context, bytes as usize);
        let mut places = self.places();
        let kept = places.kept.iter().rposition(|place| place.bytes == bytes).map(|at| places.kept.swap_remove(at));
        let place = match kept.or_else(|| self.place(bytes)) {
            Some(place) => place,
            None => {
                places.kept.drain(..).for_each(|place| self.give_back(place));
                self.place(bytes).ok_or(CL_MEM_OBJECT_ALLOCATION_FAILURE)?
            }
        };
        let flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
        // SAFETY: the memory has this size, and stays until the buffer is released.
        let made = unsafe { create_buffer(context, flags, bytes, place.address as *mut c_void) };
        match made {
            Ok(buffer) => {
                let buffer = BufferId(buffer as u64);
                places.used.insert(buffer, place);
                Ok(buffer)
            }
            Err(status) => {
                self.give_back(place);
                Err(status)
            }
        }
    }

    /// Memory of this size from the system, if there is any.
    fn place(&self, bytes: usize) -> Option<Place> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
        // SAFETY: the flags are those of shared memory; the context is there as long as the driver.
        let address = unsafe { svm_alloc(self.context as cl_context, flags, bytes, 0) }.ok()? as usize;
        (address != 0).then_some(Place { address, bytes })
    }

    fn give_back(&self, place: Place) {
        // SAFETY: no buffer has the memory.
        let _ = unsafe { svm_free(self.context as cl_context, place.address as *mut c_void) };
    }

    /// Keeps or frees the memory of a buffer that was released.
    pub(crate) fn free(&self, buffer: BufferId) {
        let mut places = self.places();
        let Some(place) = places.used.remove(&buffer) else { return };
        let kept: usize = places.kept.iter().map(|place| place.bytes).sum();
        if kept + place.bytes > KEPT {
            self.give_back(place);
        } else {
            places.kept.push(place);
        }
    }

    /// Copies rows between the host and a buffer. Returns whether the buffer is one of these.
    pub(crate) fn copy(&self, host: HostMemory, memory: DeviceMemory, rows: Rows, direction: Direction) -> bool {
        let Some(place) = self.places().used.get(&memory.buffer).copied() else { return false };
        for row in 0..rows.count {
            let offset = memory.offset + row * memory.pitch;
            // SAFETY: the host promises that the rows are in its memory and in the buffer, and that no operation uses
            // them otherwise meanwhile.
            unsafe {
                let there = (place.address as *mut u8).add(offset as usize);
                let here = host.first().add((row * host.pitch()) as usize);
                match direction {
                    Direction::In => std::ptr::copy_nonoverlapping(here, there, rows.bytes as usize),
                    Direction::Out => std::ptr::copy_nonoverlapping(there, here, rows.bytes as usize),
                }
            }
        }
        true
    }
}
