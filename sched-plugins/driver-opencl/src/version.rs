//! Versions of OpenCL that platforms and devices have.

use cl3::device::{CL_DEVICE_NAME, CL_DEVICE_VERSION, get_device_info};
use cl3::platform::{CL_PLATFORM_NAME, CL_PLATFORM_VERSION, get_platform_info};
use cl3::types::{cl_device_id, cl_platform_id};
use sched_core::driver::{DriverError, DriverErrorKind};

/// The oldest version that has all functions that this driver calls: markers with events, and copies that are migrated.
const OLDEST: (u32, u32) = (1, 2);

/// The version in what OpenCL says: `OpenCL 1.2 pocl 3.1`, with more words of the vendor or without.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.strip_prefix("OpenCL ")?.split_whitespace().next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// What is wrong with a version, if it is too old or none; `owner` is whose it is.
fn too_old(owner: &str, text: &str) -> Option<String> {
    let (major, minor) = OLDEST;
    match version(text) {
        Some(found) if found >= OLDEST => None,
        Some((a, b)) => {
            Some(format!("{owner} has OpenCL {a}.{b}, expected {major}.{minor} or later; update its driver"))
        }
        None => Some(format!("{owner} has the version `{text}`, expected `OpenCL {major}.{minor}` or later")),
    }
}

fn of_platform(platform: cl_platform_id, what: u32) -> String {
    get_platform_info(platform, what).map(String::from).unwrap_or_default().trim_matches(['\0', ' ']).to_owned()
}

fn of_device(device: cl_device_id, what: u32) -> String {
    get_device_info(device, what).map(String::from).unwrap_or_default().trim_matches(['\0', ' ']).to_owned()
}

/// Words for a device.
pub(crate) fn words(platform: cl_platform_id, device: cl_device_id) -> String {
    let (device, platform) = (of_device(device, CL_DEVICE_NAME), of_platform(platform, CL_PLATFORM_NAME));
    format!("the device `{device}` of the platform `{platform}`")
}

/// Words for a platform with its version.
pub(crate) fn of_compiler(platform: cl_platform_id) -> String {
    format!("{}, {}", of_platform(platform, CL_PLATFORM_NAME), of_platform(platform, CL_PLATFORM_VERSION))
}

/// Refuses devices and platforms that are too old: a function that is missing would end the process when it is called.
pub(crate) fn check(platform: cl_platform_id, device: cl_device_id) -> Result<(), DriverError> {
    let problem = too_old("its platform", &of_platform(platform, CL_PLATFORM_VERSION))
        .or_else(|| too_old("it", &of_device(device, CL_DEVICE_VERSION)));
    problem.map_or(Ok(()), |message| Err(DriverError::new(DriverErrorKind::Unsupported, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_standard_writes_them() {
        assert_eq!(version("OpenCL 1.2 pocl"), Some((1, 2)));
        assert_eq!(version("OpenCL 3.0"), Some((3, 0)));
        assert_eq!(version("OpenCL 1.1 Mesa 20.3.5 (git-1.2)"), Some((1, 1)));
        for wrong in ["", "OpenCL", "OpenCL x.y", "OpenCL 2", "1.2", "opencl 1.2"] {
            assert_eq!(version(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_too_old_says_what_was_found_and_expected() {
        assert_eq!(
            (too_old("it", "OpenCL 1.2 X"), too_old("it", "OpenCL 1.10"), too_old("it", "OpenCL 3.0 X")),
            (None, None, None)
        );
        let old = too_old("its platform", "OpenCL 1.1 Mesa").expect("it is too old");
        assert_eq!(old, "its platform has OpenCL 1.1, expected 1.2 or later; update its driver");
        let none = too_old("it", "ES 1.2").expect("it is no version");
        assert_eq!(none, "it has the version `ES 1.2`, expected `OpenCL 1.2` or later");
    }
}
