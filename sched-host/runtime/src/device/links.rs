//! Measures the links between the host and devices.

use super::Device;
use super::choice::{ChosenDevice, DeviceChoice, DeviceError};
use parking_lot::Mutex;
use sched_core::driver::{DeviceInfo, DeviceMemory, DriverError};
use sched_core::{Arch, MemoryNode, WorkerId};
use sched_model::{Bus, NodeMatrix};
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Bytes copied to measure bandwidth, and latency. Data that tasks leave is rarely in the caches of the thread that
/// copies it, so the larger one is more than these hold.
const LARGE: usize = 32 << 20;
const SMALL: usize = 64;
/// Number of copies of each size; the shortest counts.
const ROUNDS: usize = 4;

/// Latency in microseconds and bandwidth in bytes per microsecond, in each direction.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Links {
    /// From the host.
    pub to_device: (f64, f64),
    /// To the host.
    pub to_host: (f64, f64),
}

/// A device of the machine, for reports.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceReport {
    /// Name by which it is chosen: `opencl:0`.
    pub name: String,
    /// Name of the model.
    pub model: String,
    /// Vendor and versions.
    pub version: String,
    /// Architecture of its worker.
    #[serde(skip)]
    pub arch: Arch,
    /// What the driver says of it.
    #[serde(skip)]
    pub info: DeviceInfo,
    /// Its links, or why they cannot be measured.
    pub links: Result<Links, String>,
}

/// Explores the devices of a machine, and measures their links.
///
/// # Errors
/// If a device is named that does not exist.
pub fn explore_devices(registry: &Registry, choice: &DeviceChoice) -> Result<Vec<DeviceReport>, DeviceError> {
    let chosen = choice.open(registry)?.chosen;
    let report = |chosen: ChosenDevice| {
        let arch = chosen.arch;
        let device = Device::new(chosen, None, WorkerId(0), MemoryNode(0));
        DeviceReport {
            arch,
            name: device.name(),
            model: device.info.name.clone(),
            version: device.info.version.clone(),
            info: device.info.clone(),
            links: device.links().map_err(|error| error.to_string()),
        }
    };
    Ok(chosen.into_iter().map(report).collect())
}

/// Devices of the chosen drivers that cannot be used, each in one line with the reason.
///
/// # Errors
/// If a device is named that does not exist.
pub fn devices_left_out(registry: &Registry, choice: &DeviceChoice) -> Result<Vec<String>, DeviceError> {
    choice.open(registry).map(|opened| opened.left_out)
}

/// Extends the bus between the first memory nodes, those of the host, by the links of devices.
#[must_use]
pub fn bus_with_devices(host: &Bus, host_nodes: usize, devices: &[DeviceReport]) -> Bus {
    let unknown = Links { to_device: (f64::NAN, f64::NAN), to_host: (f64::NAN, f64::NAN) };
    let links: Vec<Links> = devices.iter().map(|device| device.links.clone().unwrap_or(unknown)).collect();
    with_devices(host, host_nodes, &links)
}

/// What was measured in this process, by driver and device.
static MEASURED: Mutex<Option<HashMap<(usize, u32), Links>>> = Mutex::new(None);

impl Device {
    /// The links of this device, measured once in a process.
    pub(crate) fn links(&self) -> Result<Links, DriverError> {
        let key = (Arc::as_ptr(&self.driver).addr(), self.number.0);
        // Locked during the measurement: two at once would disturb each other.
        let mut measured = MEASURED.lock();
        if let Some(known) = measured.get_or_insert_default().get(&key) {
            return Ok(*known);
        }
        let links = self.measure()?;
        measured.get_or_insert_default().insert(key, links);
        Ok(links)
    }

    fn measure(&self) -> Result<Links, DriverError> {
        let large = LARGE.min((self.arena.limit() / 4) as usize).max(2 * SMALL);
        let mut values = vec![1u8; large];
        // As the memory of arrays.
        let mut values = self.driver.pinned(self.number, &mut values);
        let buffer = self.driver.allocate(self.number, large as u64)?;
        let device = DeviceMemory { device: self.number, buffer, offset: 0, pitch: 0 };
        let mut time = |bytes: usize, is_out: bool| -> Result<f64, DriverError> {
            let mut best = f64::INFINITY;
            for _ in 0..ROUNDS {
                let began = Instant::now();
                self.note(match is_out {
                    true => self.driver.read(device, &mut values[..bytes], self.copying()),
                    false => self.driver.write(&values[..bytes], device, self.copying()),
                })?;
                best = best.min(began.elapsed().as_secs_f64() * 1e6);
            }
            Ok(best)
        };
        let mut link = |is_out: bool| -> Result<(f64, f64), DriverError> {
            let (short, long) = (time(SMALL, is_out)?, time(large, is_out)?);
            Ok((short, ((large - SMALL) as f64 / (long - short).max(1e-3)).max(1.0)))
        };
        let links = link(false).and_then(|to_device| Ok(Links { to_device, to_host: link(true)? }));
        let freed = self.driver.free(self.number, buffer);
        links.and_then(|links| freed.map(|()| links))
    }
}

/// Extends the bus between the first memory nodes, those of the host, by the links of devices. Devices that do not copy
/// to each other are linked through the host.
pub(crate) fn with_devices(host: &Bus, host_nodes: usize, links: &[Links]) -> Bus {
    let nodes = host_nodes + links.len();
    let of = |node: usize| node.checked_sub(host_nodes).map(|device| links[device]);
    let link = |from: usize, to: usize| match (of(from), of(to)) {
        _ if from == to => (0.0, 0.0),
        (None, None) => {
            let known = host.latency.get(from, to).zip(host.bandwidth.get(from, to));
            known.unwrap_or((f64::NAN, f64::NAN))
        }
        (None, Some(device)) => device.to_device,
        (Some(device), None) => device.to_host,
        (Some(from), Some(to)) => {
            let (one, other) = (from.to_host, to.to_device);
            (one.0 + other.0, 1.0 / (1.0 / one.1 + 1.0 / other.1))
        }
    };
    let all = |part: fn((f64, f64)) -> f64| {
        let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        NodeMatrix::new(nodes, pairs.map(|(from, to)| part(link(from, to))).collect())
    };
    Bus { latency: all(|link| link.0), bandwidth: all(|link| link.1), ..host.clone() }
}
