//! A device driver for NVIDIA devices, by the driver interface of CUDA; kernels in CUDA C are compiled by NVRTC where that
//! is installed, and PTX is taken as it is.
//!
//! **Not run on a device**: it compiles, and is opened where there is no CUDA, but no machine with a device has tested it.

mod device;

use cudarc::driver::{result, sys};
use device::{Device, failure};
use sched_core::Arch;
use sched_core::driver::{
    BufferId, DeviceInfo, DeviceMemory, DeviceNumber, Driver, DriverError, DriverErrorKind, DriverInfo, Finished,
    HostMemory, KernelId, Launch, ModuleId, Order, RawObject, Rows, Source, Token,
};
use std::ffi::c_int;

/// See the [crate](self).
#[derive(Debug)]
pub struct CudaDriver {
    devices: Vec<Device>,
}

impl CudaDriver {
    fn device(&self, number: DeviceNumber) -> Result<&Device, DriverError> {
        self.devices
            .get(number.0 as usize)
            .ok_or_else(|| DriverError::new(DriverErrorKind::NoDevice, format!("there is no CUDA device {}", number.0)))
    }
}

impl Driver for CudaDriver {
    const INFO: DriverInfo = DriverInfo {
        note: "compiled, and not run on a device",
        ..DriverInfo::new("cuda", Arch::CUDA, "NVIDIA devices, by CUDA 12 or later.")
    };

    fn open() -> Result<CudaDriver, DriverError> {
        // SAFETY: it only tries to load the library, whose initializers are NVIDIA's.
        if !unsafe { sys::is_culib_present() } {
            let message = "libcuda.so cannot be loaded: there is no NVIDIA driver on this system";
            return Err(DriverError::new(DriverErrorKind::Unavailable, message));
        }
        if let Err(error) = result::init() {
            return match error.0 {
                sys::CUresult::CUDA_ERROR_NO_DEVICE => Ok(CudaDriver { devices: Vec::new() }),
                _ => Err(DriverError { kind: DriverErrorKind::Unavailable, ..failure("cuInit", error) }),
            };
        }
        check_version()?;
        let count = result::device::get_count().map_err(|error| failure("cuDeviceGetCount", error))?;
        let devices = (0..count).map(Device::open).collect::<Result<Vec<Device>, DriverError>>()?;
        Ok(CudaDriver { devices })
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

    fn copy_across(
        &self,
        from: DeviceMemory,
        to: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let target = self.device(to.device)?;
        self.device(from.device)?.copy_to(target, from, to, rows, order)
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

/// The oldest version of CUDA's driver interface that has all functions, as CUDA numbers it.
const OLDEST: c_int = 12_000;

/// Refuses NVIDIA drivers that are too old: a function that is missing would be a panic when it is called.
fn check_version() -> Result<(), DriverError> {
    let mut version = 0;
    // SAFETY: the driver writes a number there.
    let asked = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    asked.result().map_err(|error| failure("cuDriverGetVersion", error))?;
    too_old(version).map_or(Ok(()), |message| Err(DriverError::new(DriverErrorKind::Unavailable, message)))
}

/// What is wrong with a version, if it is too old.
fn too_old(version: c_int) -> Option<String> {
    let words = |version: c_int| format!("{}.{}", version / 1000, version % 1000 / 10);
    let (found, oldest) = (words(version), words(OLDEST));
    (version < OLDEST).then(|| format!("found an NVIDIA driver for CUDA {found}, expected one for {oldest} or later"))
}

#[cfg(not(test))]
sched_core::export_driver!(CudaDriver);

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::abi::driver::DriverHandle;

    #[test]
    fn an_old_driver_is_named_with_its_version() {
        let old = too_old(11_040).expect("it is too old");
        assert_eq!(old, "found an NVIDIA driver for CUDA 11.4, expected one for 12.0 or later");
        assert_eq!((too_old(12_000), too_old(13_010)), (None, None));
    }

    /// Where there is a device, this is the first test of the driver on one.
    #[test]
    fn without_cuda_it_says_what_is_missing() {
        match DriverHandle::of::<CudaDriver>().open() {
            Ok(driver) => drop(driver.devices().expect("they are listed")),
            Err(error) => {
                assert_eq!(error.kind, DriverErrorKind::Unavailable, "{error}");
                sched_test_support::skipped(&error.to_string());
            }
        }
    }
}
