//! Memory that host and device share without maps: fine-grained shared virtual memory of OpenCL 2.0, which devices have
//! that are made of cores, or have no memory of their own. A copy is one by the thread that asks for it then, beside
//! whatever the device does. Where copies are commands, a device without threads of its own makes them wait for the end
//! of its kernel.

use super::device::Direction;
use cl3::device::{CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_FINE_GRAIN_BUFFER, get_device_info};
use cl3::error_codes::CL_MEM_OBJECT_ALLOCATION_FAILURE;
use cl3::memory::{
    CL_MEM_READ_WRITE, CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_MEM_USE_HOST_PTR, create_buffer, svm_alloc, svm_free,
};
use cl3::types::{cl_context, cl_device_id, cl_int};
use sched_core::driver::{BufferId, DeviceMemory, HostMemory, Rows};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Shared {
    context: usize,
    /// Address of each buffer.
    places: Mutex<HashMap<BufferId, usize>>,
}

impl Shared {
    /// The shared memory of a device; `None` if it has none.
    pub(crate) fn of(device: cl_device_id, context: cl_context) -> Option<Shared> {
        let can = get_device_info(device, CL_DEVICE_SVM_CAPABILITIES).ok()?.to_ulong();
        (can & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0)
            .then(|| Shared { context: context as usize, places: Mutex::default() })
    }

    fn places(&self) -> MutexGuard<'_, HashMap<BufferId, usize>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates a buffer.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<BufferId, cl_int> {
        let context = self.context as cl_context;
        // SAFETY: the flags are those of shared memory; the context is there as long as the driver.
        let place = unsafe { svm_alloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, bytes as usize, 0) }?;
        if place.is_null() {
            return Err(CL_MEM_OBJECT_ALLOCATION_FAILURE);
        }
        let flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
        // SAFETY: the memory has this size, and stays until the buffer is released.
        match unsafe { create_buffer(context, flags, bytes as usize, place) } {
            Ok(buffer) => {
                let buffer = BufferId(buffer as u64);
                self.places().insert(buffer, place as usize);
                Ok(buffer)
            }
            Err(status) => {
                // SAFETY: nobody has the memory.
                let _ = unsafe { svm_free(context, place) };
                Err(status)
            }
        }
    }

    /// Frees the memory of a buffer that was released.
    pub(crate) fn free(&self, buffer: BufferId) {
        if let Some(place) = self.places().remove(&buffer) {
            // SAFETY: the host frees each buffer once, when no operation uses it.
            let _ = unsafe { svm_free(self.context as cl_context, place as *mut c_void) };
        }
    }

    /// Copies rows between the host and a buffer. Returns whether the buffer is one of these.
    pub(crate) fn copy(&self, host: HostMemory, memory: DeviceMemory, rows: Rows, direction: Direction) -> bool {
        let Some(place) = self.places().get(&memory.buffer).copied() else { return false };
        for row in 0..rows.count {
            let offset = memory.offset + row * memory.pitch;
            // SAFETY: the host promises that the rows are in its memory and in the buffer, and that no operation uses
            // them otherwise meanwhile.
            unsafe {
                let there = (place as *mut u8).add(offset as usize);
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
