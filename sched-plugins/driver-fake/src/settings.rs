//! What fake devices there are.

use super::{DriverError, invalid, locked};
use std::sync::Mutex;
use std::time::Duration;

/// What fake devices there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Number of devices.
    pub devices: u32,
    /// Memory of each in bytes.
    pub memory: u64,
    /// Time that an operation takes beside what it does.
    pub latency: Duration,
    /// Bandwidth of copies in bytes per microsecond; 0 for the host's.
    pub bytes_per_us: u64,
    /// Number of devices, the last ones, that say that they have no double precision.
    pub single_only: u32,
    /// Number of devices, the first ones, whose launches return when the kernel has ended, as those of devices without
    /// threads of their own.
    pub without_threads: u32,
    /// Number of devices beside these that are too old to be used.
    pub too_old: u32,
    /// The operation of a device whose start does not come back: its first kernel is 1, and 0 is none.
    pub hangs_at: u64,
    /// The operation whose start ends the process, counted in the same way.
    pub exits_at: u64,
    /// The operation whose start aborts the process, counted in the same way.
    pub aborts_at: u64,
}

static INSTALLED: Mutex<Option<Settings>> = Mutex::new(None);

impl Default for Settings {
    /// One device of 256 MiB, without delay.
    fn default() -> Settings {
        Settings {
            devices: 1,
            memory: 256 << 20,
            latency: Duration::ZERO,
            bytes_per_us: 0,
            single_only: 0,
            without_threads: 0,
            too_old: 0,
            hangs_at: 0,
            exits_at: 0,
            aborts_at: 0,
        }
    }
}

impl Settings {
    /// Uses these settings when the driver is opened, which happens once in a process.
    pub fn install(self) {
        *locked(&INSTALLED) = Some(self);
    }

    /// The settings that were installed, or those of the environment.
    pub(crate) fn current() -> Result<Settings, DriverError> {
        if let Some(installed) = locked(&INSTALLED).clone() {
            return Ok(installed);
        }
        let given = std::env::var("SCHED_FAKE_DEVICES").unwrap_or_default();
        Settings::read(&given).map_err(|wrong| invalid(format!("SCHED_FAKE_DEVICES: {wrong}")))
    }

    /// Reads `name=number` pairs.
    pub(crate) fn read(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for word in text.split_whitespace() {
            let number = word.split_once('=').and_then(|(name, number)| Some((name, number.parse::<u64>().ok()?)));
            match number {
                Some(("devices", number)) => settings.devices = u32::try_from(number).unwrap_or(u32::MAX).min(64),
                Some(("memory", number)) => settings.memory = number,
                Some(("latency-us", number)) => settings.latency = Duration::from_micros(number),
                Some(("bytes-per-us", number)) => settings.bytes_per_us = number,
                Some(("single-only", number)) => settings.single_only = u32::try_from(number).unwrap_or(u32::MAX),
                Some(("without-threads", number)) => {
                    settings.without_threads = u32::try_from(number).unwrap_or(u32::MAX);
                }
                Some(("too-old", number)) => settings.too_old = u32::try_from(number).unwrap_or(u32::MAX).min(64),
                Some(("hangs-at", number)) => settings.hangs_at = number,
                Some(("exits-at", number)) => settings.exits_at = number,
                Some(("aborts-at", number)) => settings.aborts_at = number,
                _ => {
                    return Err(format!(
                        "found `{word}`, expected devices=, memory=, latency-us=, bytes-per-us=, single-only=, \
                         without-threads=, too-old=, hangs-at=, exits-at= or aborts-at= with a number"
                    ));
                }
            }
        }
        Ok(settings)
    }
}
