//! A device driver for OpenCL: every device of every platform, with OpenCL 1.2 or later.
//!
//! Each device has a context of its own, so a buffer is in the memory of one device; copies between devices go through
//! the host. Where a device shares memory with the host, the thread that asks for a copy makes it. Vendors' libraries keep
//! compiled kernels on disk themselves.

mod device;
mod shared;
mod status;
mod turns;

use device::Device;
use sched_core::Arch;
use sched_core::driver::{
    BufferId, DeviceInfo, DeviceMemory, DeviceNumber, Driver, DriverError, DriverErrorKind, DriverInfo, Finished,
    HostMemory, KernelId, Launch, ModuleId, Order, RawObject, Rows, Source, Token,
};

/// See the [crate](self).
#[derive(Debug)]
pub struct OpenClDriver {
    devices: Vec<Device>,
}

impl OpenClDriver {
    fn device(&self, number: DeviceNumber) -> Result<&Device, DriverError> {
        self.devices.get(number.0 as usize).ok_or_else(|| {
            DriverError::new(DriverErrorKind::NoDevice, format!("there is no OpenCL device {}", number.0))
        })
    }
}

impl Driver for OpenClDriver {
    const INFO: DriverInfo = DriverInfo::new("opencl", Arch::OPENCL, "OpenCL devices of every vendor.");

    fn open() -> Result<OpenClDriver, DriverError> {
        let mut devices = Vec::new();
        for (platform, device) in status::devices()? {
            devices.push(Device::open(platform, device)?);
        }
        Ok(OpenClDriver { devices })
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        self.devices.iter().map(|device| device.info().clone()).collect()
    }

    fn allocate(&self, device: DeviceNumber, bytes: u64) -> Result<BufferId, DriverError> {
        self.device(device)?.allocate(bytes)
    }

    fn free(&self, device: DeviceNumber, buffer: BufferId) {
        if let Ok(device) = self.device(device) {
            device.free(buffer);
        }
    }

    fn copy_in(&self, from: HostMemory, to: DeviceMemory, rows: Rows, order: Order<'_>) -> Result<Token, DriverError> {
        self.device(to.device)?.copy(from, to, rows, order, device::Direction::In)
    }

    fn copy_out(&self, from: DeviceMemory, to: HostMemory, rows: Rows, order: Order<'_>) -> Result<Token, DriverError> {
        self.device(from.device)?.copy(to, from, rows, order, device::Direction::Out)
    }

    fn load(&self, device: DeviceNumber, source: Source<'_>) -> Result<ModuleId, DriverError> {
        self.device(device)?.load(source)
    }

    fn kernel(&self, device: DeviceNumber, module: ModuleId, entry: &str) -> Result<KernelId, DriverError> {
        self.device(device)?.kernel(module, entry)
    }

    fn launch(&self, device: DeviceNumber, launch: Launch<'_>, order: Order<'_>) -> Result<Token, DriverError> {
        self.device(device)?.launch(launch, order)
    }

    fn mark(&self, device: DeviceNumber, queue: u32) -> Result<Token, DriverError> {
        self.device(device)?.mark(queue)
    }

    fn poll(&self, device: DeviceNumber, token: Token) -> Result<Option<Finished>, DriverError> {
        self.device(device)?.poll(token)
    }

    fn wait(&self, device: DeviceNumber, token: Token) -> Result<Finished, DriverError> {
        self.device(device)?.wait(token)
    }

    fn raw(&self, device: DeviceNumber, object: RawObject) -> Option<u64> {
        self.device(device).ok()?.raw(object)
    }
}

#[cfg(not(test))]
sched_core::export_driver!(OpenClDriver);

#[cfg(test)]
mod tests;
