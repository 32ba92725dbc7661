//! A device driver for NVIDIA devices, by the driver interface of CUDA; kernels in CUDA C are compiled by NVRTC where
//! that is installed, and PTX is taken as it is. What NVRTC made is kept on disk.
//!
//! It has been run on one model so far, an H200 with CUDA 13.0.

mod compiler;
mod device;

use cudarc::driver::{result, sys};
use device::{Device, failure};
use sched_core::Arch;
use sched_core::driver::{Devices, DriverError, DriverErrorKind, DriverInfo, DriverOf, Found};
use std::ffi::c_int;

/// The devices; see the [crate](self).
#[derive(Debug)]
pub(crate) struct CudaDevices;

/// The driver.
pub(crate) type CudaDriver = DriverOf<CudaDevices>;

impl Devices for CudaDevices {
    const INFO: DriverInfo = DriverInfo {
        note: "run on one model of device so far, an H200",
        ..DriverInfo::new("cuda", Arch::CUDA, "NVIDIA devices, by CUDA 12 or later.")
    };

    type Device = Device;

    fn find() -> Result<Found<Device>, DriverError> {
        // SAFETY: it only tries to load the library, whose initializers are NVIDIA's.
        if !unsafe { sys::is_culib_present() } {
            let message = "libcuda.so cannot be loaded: there is no NVIDIA driver on this system";
            return Err(DriverError::new(DriverErrorKind::Unavailable, message));
        }
        if let Err(error) = result::init() {
            return match error.0 {
                sys::CUresult::CUDA_ERROR_NO_DEVICE => Ok(Vec::new().into()),
                _ => Err(DriverError { kind: DriverErrorKind::Unavailable, ..failure("cuInit", error) }),
            };
        }
        check_version()?;
        let count = result::device::get_count().map_err(|error| failure("cuDeviceGetCount", error))?;
        Found::of((0..count).map(|number| (format!("the NVIDIA device {number}"), Device::open(number))))
    }
}

/// The oldest version of CUDA's driver interface that has all functions, as CUDA numbers it.
const OLDEST: c_int = 12_000;

/// Version of the NVIDIA driver's interface, as CUDA numbers it.
fn version() -> Result<c_int, DriverError> {
    let mut version = 0;
    // SAFETY: the driver writes a number there.
    let asked = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    asked.result().map(|()| version).map_err(|error| failure("cuDriverGetVersion", error))
}

/// Refuses NVIDIA drivers that are too old: a function that is missing would be a panic when it is called.
fn check_version() -> Result<(), DriverError> {
    too_old(version()?).map_or(Ok(()), |message| Err(DriverError::new(DriverErrorKind::Unavailable, message)))
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
