//! Errors of drivers.

use std::fmt;

/// What a host does about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DriverErrorKind {
    /// The vendor's library is not there, or not usable.
    Unavailable,
    /// There is no such device.
    NoDevice,
    /// Memory of the device does not suffice.
    OutOfMemory,
    /// Kernels do not compile.
    Build,
    /// The device does not work any more.
    Lost,
    /// The arguments of the call are wrong.
    Invalid,
    /// The driver, or the device, cannot do this.
    Unsupported,
    /// The driver panicked.
    Panicked,
    /// Anything else.
    Other,
}

impl DriverErrorKind {
    const ALL: [DriverErrorKind; 9] = [
        DriverErrorKind::Unavailable,
        DriverErrorKind::NoDevice,
        DriverErrorKind::OutOfMemory,
        DriverErrorKind::Build,
        DriverErrorKind::Lost,
        DriverErrorKind::Invalid,
        DriverErrorKind::Unsupported,
        DriverErrorKind::Panicked,
        DriverErrorKind::Other,
    ];

    /// Its number on the wire.
    pub(crate) fn code(self) -> u32 {
        Self::ALL.iter().position(|kind| *kind == self).map_or(u32::MAX, |at| at as u32)
    }

    /// The kind of this number; those of later versions are [`Other`](Self::Other).
    pub(crate) fn of_code(code: u32) -> DriverErrorKind {
        Self::ALL.get(code as usize).copied().unwrap_or(DriverErrorKind::Other)
    }

    /// What the user of a device can do.
    #[must_use]
    pub fn fix(self) -> &'static str {
        match self {
            DriverErrorKind::Unavailable => "install the vendor's library, or choose other devices",
            DriverErrorKind::NoDevice => "`sched topology` lists the devices",
            DriverErrorKind::OutOfMemory => "use smaller data, or a device with more memory",
            DriverErrorKind::Build => "correct the source of the kernel, as the log says",
            DriverErrorKind::Lost => "look at the system's log; the other workers go on",
            DriverErrorKind::Invalid => "compare the arguments and sizes of the launch with the kernel's",
            DriverErrorKind::Unsupported => "use another device, or another implementation",
            DriverErrorKind::Panicked => "report it to the author of the driver",
            DriverErrorKind::Other => "look up the vendor's message",
        }
    }
}

impl fmt::Display for DriverErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriverErrorKind::Unavailable => "the driver is not available",
            DriverErrorKind::NoDevice => "there is no such device",
            DriverErrorKind::OutOfMemory => "out of device memory",
            DriverErrorKind::Build => "the kernel does not compile",
            DriverErrorKind::Lost => "the device is lost",
            DriverErrorKind::Invalid => "the call is not valid",
            DriverErrorKind::Unsupported => "the device cannot do this",
            DriverErrorKind::Panicked => "the driver panicked",
            DriverErrorKind::Other => "the driver failed",
        })
    }
}

/// An error of a driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriverError {
    /// What the host does about it.
    pub kind: DriverErrorKind,
    /// What the vendor's library said.
    pub message: String,
}

impl DriverError {
    /// An error with a message for people.
    #[must_use]
    pub fn new(kind: DriverErrorKind, message: impl Into<String>) -> DriverError {
        DriverError { kind, message: message.into() }
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for DriverError {}

/// The answer of a driver that does not measure what others put into its queues.
pub(super) fn no_spans() -> DriverError {
    DriverError::new(DriverErrorKind::Unsupported, "it does not measure what others put into its queues")
}

/// The answer of a driver that gains nothing by pinned memory.
pub(super) fn no_pinning() -> DriverError {
    DriverError::new(DriverErrorKind::Unsupported, "its copies do not gain by pinned memory")
}

/// The answer of a driver whose devices copy to the host only.
pub(super) fn no_copies_across() -> DriverError {
    DriverError::new(DriverErrorKind::Unsupported, "its devices do not copy to one another")
}
