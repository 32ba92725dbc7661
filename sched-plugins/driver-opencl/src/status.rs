//! Status codes of OpenCL as errors, and the devices of the system.

use cl3::device::{CL_DEVICE_TYPE_ALL, get_device_ids};
use cl3::error_codes::{
    CL_BUILD_PROGRAM_FAILURE, CL_DEVICE_NOT_AVAILABLE, CL_DEVICE_NOT_FOUND, CL_MEM_OBJECT_ALLOCATION_FAILURE,
    CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED, error_text,
};
use cl3::platform::get_platform_ids;
use cl3::types::{cl_device_id, cl_int, cl_platform_id};
use sched_core::driver::{DriverError, DriverErrorKind};

/// Status of the loader when no vendor's library is installed (`CL_PLATFORM_NOT_FOUND_KHR`).
const NO_PLATFORM: cl_int = -1001;

/// The first status that says that an argument is wrong (`CL_INVALID_VALUE`).
const FIRST_INVALID: cl_int = -30;

/// An error, by the function that returned it.
pub(crate) fn error(function: &str, status: cl_int) -> DriverError {
    let kind = match status {
        DLOPEN_RUNTIME_LOAD_FAILED | DLOPEN_FUNCTION_NOT_AVAILABLE => DriverErrorKind::Unavailable,
        CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY => DriverErrorKind::OutOfMemory,
        CL_DEVICE_NOT_AVAILABLE => DriverErrorKind::Lost,
        CL_BUILD_PROGRAM_FAILURE => DriverErrorKind::Build,
        _ if (NO_PLATFORM + 1..=FIRST_INVALID).contains(&status) => DriverErrorKind::Invalid,
        _ => DriverErrorKind::Other,
    };
    DriverError::new(kind, format!("{function}: {} ({status})", error_text(status)))
}

/// All devices, with their platforms.
pub(crate) fn devices() -> Result<Vec<(cl_platform_id, cl_device_id)>, DriverError> {
    let platforms = match get_platform_ids() {
        Ok(platforms) => platforms,
        Err(NO_PLATFORM) => Vec::new(),
        Err(DLOPEN_RUNTIME_LOAD_FAILED) => {
            let message = "libOpenCL.so cannot be loaded: there is no OpenCL on this system (`ocl-icd-libopencl1`)";
            return Err(DriverError::new(DriverErrorKind::Unavailable, message));
        }
        Err(status) => return Err(error("clGetPlatformIDs", status)),
    };
    let mut devices = Vec::new();
    for platform in platforms {
        match get_device_ids(platform, CL_DEVICE_TYPE_ALL) {
            Ok(found) => devices.extend(found.into_iter().map(|device| (platform, device))),
            Err(CL_DEVICE_NOT_FOUND) => {}
            Err(status) => return Err(error("clGetDeviceIDs", status)),
        }
    }
    Ok(devices)
}
