//! Device drivers of plugins.
//!
//! A driver is opened when a device of it is first asked for, once in a process: vendors' libraries start threads and
//! keep state that they do not give back. The devices are listed then, and their number does not change. All its calls
//! are [noted](crate::attendance).

use super::listing::PluginId;
use crate::attendance::{Post, PostNumber};
use parking_lot::Mutex;
use sched_core::abi::driver::{DriverHandle, DriverSummary, OpenedDriver};
use sched_core::driver::{DeviceInfo, DriverError};
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// A driver in a library, before it has a place in a registry.
#[derive(Clone, Debug)]
pub(super) struct FoundDriver {
    pub(super) handle: DriverHandle,
    pub(super) summary: DriverSummary,
}

/// A driver that devices can be chosen from.
#[derive(Clone, Debug)]
pub struct RegisteredDriver {
    found: FoundDriver,
    plugin: Arc<PluginId>,
}

/// An open driver and its devices.
#[derive(Clone, Debug)]
pub struct OpenDriver {
    /// What the driver is.
    pub summary: DriverSummary,
    /// The driver.
    pub driver: Arc<OpenedDriver>,
    /// Its devices, by number.
    pub devices: Vec<DeviceInfo>,
    /// What users should know of them, such as one that is left out, each in one line.
    pub remarks: Vec<String>,
}

/// Why a driver could not be opened.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("the driver `{driver}` of {plugin} cannot be used: {error}")]
pub struct DriverProblem {
    /// Name of the driver.
    pub driver: String,
    /// Its plugin.
    pub plugin: String,
    /// What it said.
    pub error: DriverError,
}

type Opened = Result<(Arc<OpenedDriver>, Vec<DeviceInfo>, Vec<String>), DriverError>;

/// The drivers that this process has opened, by the address of their root. The lock makes them open one at a time.
static OPEN: Mutex<BTreeMap<usize, Opened>> = Mutex::new(BTreeMap::new());

impl RegisteredDriver {
    pub(super) fn new(found: FoundDriver, plugin: Arc<PluginId>) -> RegisteredDriver {
        RegisteredDriver { found, plugin }
    }

    /// What the driver is.
    #[must_use]
    pub fn summary(&self) -> &DriverSummary {
        &self.found.summary
    }

    /// Its plugin.
    #[must_use]
    pub fn plugin(&self) -> &PluginId {
        &self.plugin
    }

    /// Opens the driver, unless it is open, and lists its devices.
    ///
    /// # Errors
    /// What the driver said when it was first opened.
    pub fn open(&self) -> Result<OpenDriver, DriverProblem> {
        let mut open = OPEN.lock();
        let opened = open.entry(self.found.handle.address()).or_insert_with(|| {
            let post = Post::Driver { driver: self.found.summary.name.clone(), plugin: self.plugin.to_string() };
            let driver = self.found.handle.open_attended(Box::new(PostNumber::new(post)))?;
            let (devices, remarks) = (driver.devices()?, driver.remarks());
            Ok((Arc::new(driver), devices, remarks))
        });
        match opened {
            Ok((driver, devices, remarks)) => Ok(OpenDriver {
                summary: self.found.summary.clone(),
                driver: Arc::clone(driver),
                devices: devices.clone(),
                remarks: remarks.clone(),
            }),
            Err(error) => Err(DriverProblem {
                driver: self.found.summary.name.clone(),
                plugin: self.plugin.to_string(),
                error: error.clone(),
            }),
        }
    }
}
