//! Which devices a runtime uses.

use sched_core::Arch;
use sched_core::abi::driver::OpenedDriver;
use sched_core::driver::{DeviceInfo, DeviceNumber, DriverError, DriverErrorKind};
use sched_text::closest;
use sched_tree::plugin::{DriverProblem, OpenDriver, Registry};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The environment variable that names devices, in the format of [`DeviceChoice`].
pub const DEVICES_VARIABLE: &str = "SCHED_DEVICES";

/// The devices that a runtime uses; none by default.
///
/// As text: `none`, `all`, or names of drivers joined by commas, each with a number for one of its devices: `opencl`,
/// `cuda:0`, `opencl:1,cuda`. `all` means those of all drivers that can be used, and is no error where there are none.
///
/// ```
/// use sched_runtime::DeviceChoice;
///
/// let choice: DeviceChoice = "opencl,cuda:0".parse()?;
/// assert_eq!(choice.to_string(), "opencl,cuda:0");
/// assert_eq!(DeviceChoice::default().to_string(), "none");
/// # Ok::<(), sched_runtime::DeviceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceChoice {
    all: bool,
    /// Drivers, each with a device or all of its.
    named: Vec<(String, Option<u32>)>,
    limit: Option<u64>,
}

/// Why the devices that were asked for cannot be used.
#[derive(Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum DeviceError {
    /// The text does not name devices.
    #[error(
        "found `{found}`, expected `none` alone, `all`, or drivers like `opencl` and devices like `cuda:0`, joined by commas"
    )]
    #[diagnostic(code(sched::devices::text), help("`sched topology` lists the devices"))]
    Text {
        /// The word.
        found: String,
    },
    /// There is no driver of this name.
    #[error("there is no driver `{name}`: {known}")]
    #[diagnostic(
        code(sched::devices::driver),
        help("`sched plugins` lists the folders that are searched for drivers{hint}")
    )]
    NoDriver {
        /// The name.
        name: String,
        /// The drivers that there are.
        known: String,
        /// A similar name, in words.
        hint: String,
    },
    /// The driver cannot be used.
    #[error("{0}")]
    #[diagnostic(code(sched::devices::unusable), help("{}", fix(&.0.error)))]
    Problem(DriverProblem),
    /// The device fails at once.
    #[error("the device `{device}` cannot be used: {error}")]
    #[diagnostic(code(sched::devices::unusable), help("{}", fix(error)))]
    Unusable {
        /// The device.
        device: String,
        /// What its driver said.
        error: DriverError,
    },
    /// The driver has no such device.
    #[error("there is no device `{driver}:{number}`: the driver `{driver}` has {count}")]
    #[diagnostic(code(sched::devices::number), help("`sched topology` lists the devices; they are numbered from 0"))]
    NoDevice {
        /// Name of the driver.
        driver: String,
        /// The number.
        number: u32,
        /// Number of devices of the driver.
        count: usize,
    },
    /// The driver has no device at all.
    #[error("the driver `{driver}` finds no device")]
    #[diagnostic(
        code(sched::devices::none),
        help("see that the vendor's driver is installed, and that this user may use the device")
    )]
    NoDevices {
        /// Name of the driver.
        driver: String,
    },
}

sched_text::debug_as_text!(DeviceError);

/// A device that was chosen.
#[derive(Clone, Debug)]
pub(crate) struct ChosenDevice {
    /// Name of its driver.
    pub(crate) kind: String,
    pub(crate) arch: Arch,
    pub(crate) number: DeviceNumber,
    pub(crate) info: DeviceInfo,
    pub(crate) driver: Arc<OpenedDriver>,
}

/// The devices that were chosen.
#[derive(Debug)]
pub(crate) struct OpenedDevices {
    /// Each once.
    pub(crate) chosen: Vec<ChosenDevice>,
    /// Why `all` finds none, if it does not.
    pub(crate) why_none: Vec<String>,
    /// Devices of their drivers that cannot be used, with the reason.
    pub(crate) left_out: Vec<String>,
}

impl DeviceChoice {
    /// The devices of all drivers that can be used.
    #[must_use]
    pub fn all() -> DeviceChoice {
        DeviceChoice { all: true, ..DeviceChoice::default() }
    }

    /// The choice of [`DEVICES_VARIABLE`]; none if it is not set.
    ///
    /// # Errors
    /// If it does not name devices.
    pub fn from_environment() -> Result<DeviceChoice, DeviceError> {
        std::env::var(DEVICES_VARIABLE).map_or_else(|_| Ok(DeviceChoice::default()), |text| text.parse())
    }

    /// Limits the memory that is used on each device, in bytes.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> DeviceChoice {
        self.limit = Some(bytes);
        self
    }

    /// Whether no device is chosen.
    #[must_use]
    pub fn is_none(&self) -> bool {
        !self.all && self.named.is_empty()
    }

    /// The limit on the memory of each device.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Number of the chosen devices that there are.
    ///
    /// # Errors
    /// If a device is named that does not exist.
    pub fn count(&self, registry: &Registry) -> Result<usize, DeviceError> {
        self.open(registry).map(|opened| opened.chosen.len())
    }

    /// Opens the drivers of the chosen devices.
    pub(crate) fn open(&self, registry: &Registry) -> Result<OpenedDevices, DeviceError> {
        let (mut chosen, mut remarks, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        if self.all {
            for driver in registry.drivers().iter().filter(|driver| !driver.summary().on_request) {
                match driver.open() {
                    Ok(open) => {
                        chosen.extend((0..open.devices.len()).map(|number| device_of(&open, number)));
                        left_out.extend(open.remarks);
                    }
                    Err(problem) => remarks.push(problem.to_string()),
                }
            }
            if !chosen.is_empty() {
                remarks.clear();
            } else if remarks.is_empty() {
                remarks.push("no driver finds a device".to_owned());
            }
        }
        for (name, number) in &self.named {
            let driver = registry.driver(name).ok_or_else(|| no_driver(name, registry))?;
            let mut open = driver.open().map_err(DeviceError::Problem)?;
            left_out.append(&mut open.remarks);
            let count = open.devices.len();
            let wanted = match number {
                _ if count == 0 => return Err(DeviceError::NoDevices { driver: name.clone() }),
                None => 0..count,
                Some(number) if (*number as usize) < count => *number as usize..*number as usize + 1,
                Some(number) => {
                    return Err(DeviceError::NoDevice { driver: name.clone(), number: *number, count });
                }
            };
            for number in wanted {
                let device = device_of(&open, number);
                if !chosen.iter().any(|other| (&other.kind, other.number) == (&device.kind, device.number)) {
                    chosen.push(device);
                }
            }
        }
        let why_none = remarks.into_iter().map(|remark| format!("no device is used: {remark}")).collect();
        left_out.dedup();
        Ok(OpenedDevices { chosen, why_none, left_out })
    }
}

/// What to do where a driver or a device does not even start.
fn fix(error: &DriverError) -> &'static str {
    match error.kind {
        DriverErrorKind::Invalid => {
            "correct the settings of the driver that the message names, or choose other devices"
        }
        DriverErrorKind::OutOfMemory => "end other programs that use the device, or choose another one",
        kind => kind.fix(),
    }
}

fn device_of(open: &OpenDriver, number: usize) -> ChosenDevice {
    ChosenDevice {
        kind: open.summary.name.clone(),
        arch: open.summary.arch,
        number: DeviceNumber(number as u32),
        info: open.devices[number].clone(),
        driver: Arc::clone(&open.driver),
    }
}

fn no_driver(name: &str, registry: &Registry) -> DeviceError {
    let names: Vec<&str> = registry.drivers().iter().map(|driver| driver.summary().name.as_str()).collect();
    let known = match names.is_empty() {
        true => "no plugin offers one".to_owned(),
        false => format!("those that were found are {}", names.join(", ")),
    };
    let similar = closest(name, names.iter().copied());
    let hint = similar.map_or_else(String::new, |similar| format!("; did you mean `{similar}`?"));
    DeviceError::NoDriver { name: name.to_owned(), known, hint }
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<DeviceChoice, DeviceError> {
        let mut choice = DeviceChoice::default();
        let has_none = text.split(',').any(|word| word.trim() == "none");
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty() && *word != "none") {
            let wrong = || DeviceError::Text { found: word.to_owned() };
            if word == "all" {
                choice.all = true;
                continue;
            }
            let (name, number) = match word.split_once(':') {
                Some((name, number)) => (name, Some(number.parse().map_err(|_| wrong())?)),
                None => (word, None),
            };
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            if name.is_empty() || !name.bytes().all(is_plain) {
                return Err(wrong());
            }
            choice.named.push((name.to_owned(), number));
        }
        if has_none && !choice.is_none() {
            return Err(DeviceError::Text { found: text.to_owned() });
        }
        Ok(choice)
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.named.iter().map(|(name, number)| match number {
            Some(number) => format!("{name}:{number}"),
            None => name.clone(),
        });
        let words: Vec<String> = self.all.then(|| "all".to_owned()).into_iter().chain(named).collect();
        f.write_str(if words.is_empty() { "none" } else { "" })?;
        f.write_str(&words.join(","))
    }
}
