//! A device driver for OpenCL: every device of every platform, with OpenCL 1.2 or later. Older ones, and those that
//! cannot be opened, are left out with a remark.
//!
//! Each device has a context of its own, so a buffer is in the memory of one device; copies between devices go through
//! the host. Where a device shares memory with the host, the thread that asks for a copy makes it. Compiled kernels are
//! kept on disk.

mod device;
mod program;
mod shared;
mod status;
mod turns;
mod version;

use device::Device;
use sched_core::Arch;
use sched_core::driver::{Devices, DriverError, DriverInfo, DriverOf, Found};

/// The devices; see the [crate](self).
#[derive(Debug)]
pub(crate) struct OpenClDevices;

/// The driver.
pub(crate) type OpenClDriver = DriverOf<OpenClDevices>;

impl Devices for OpenClDevices {
    const INFO: DriverInfo = DriverInfo::new("opencl", Arch::OPENCL, "OpenCL devices of every vendor.");

    type Device = Device;

    fn find() -> Result<Found<Device>, DriverError> {
        Found::of(status::devices()?.into_iter().map(|(platform, device)| {
            let opened = version::check(platform, device).and_then(|()| Device::open(platform, device));
            (version::words(platform, device), opened)
        }))
    }
}

#[cfg(not(test))]
sched_core::export_driver!(OpenClDriver);

#[cfg(test)]
mod tests;
