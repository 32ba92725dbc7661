//! The option for devices, and what is shown of them.

use crate::reports;
use miette::miette;
use sched_runtime::{
    DEVICES_VARIABLE, DeviceChoice, DeviceError, DeviceReport, DeviceStats, devices_left_out, explore_devices,
};
use sched_text::amount::bytes;
use sched_text::amount::decimal_bytes;
use sched_tree::plugin::Registry;
use std::fmt::Write;

/// Devices that run tasks.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DeviceOptions {
    /// Devices to use beside the cores: `all`, `none`, or drivers and numbered devices joined by commas, such as
    /// `opencl,cuda:0`; `sched topology` lists them
    #[arg(long, value_name = "DEVICES", env = DEVICES_VARIABLE, default_value = "none", help_heading = "Machine")]
    devices: DeviceChoice,

    /// Maximum number of bytes used in the memory of each device [default: all of it]
    #[arg(long, value_name = "BYTES", help_heading = "Machine")]
    device_memory: Option<u64>,
}

impl DeviceOptions {
    /// Refuses a limit on the memory of no devices.
    pub(super) fn check(&self) -> miette::Result<()> {
        match self.device_memory.filter(|_| self.devices.is_none()) {
            Some(_) => Err(miette!(
                help = "choose devices with --devices, or leave --device-memory out",
                "--device-memory limits what is used of devices, and no device is chosen"
            )),
            None => Ok(()),
        }
    }

    /// Number of the devices.
    ///
    /// # Errors
    /// If a device is named that does not exist.
    pub(super) fn count(&self, registry: &Registry) -> Result<usize, DeviceError> {
        self.devices.count(registry)
    }

    /// The devices.
    pub(super) fn choice(&self) -> DeviceChoice {
        match self.device_memory {
            Some(bytes) => self.devices.clone().memory_limit(bytes),
            None => self.devices.clone(),
        }
    }
}

/// Explores devices, and warns of those that cannot be used.
///
/// # Errors
/// If a device is named that does not exist.
pub(super) fn explore(registry: &Registry, choice: &DeviceChoice) -> Result<Vec<DeviceReport>, DeviceError> {
    let found = explore_devices(registry, choice)?;
    devices_left_out(registry, choice)?.iter().for_each(|line| reports::warn(line));
    Ok(found)
}

/// A device in one line of a report on a run.
pub(super) fn line_of(device: &DeviceStats) -> String {
    let DeviceStats { name, model, worker, memory_node, evictions, lost, .. } = device;
    let evicted = match evictions {
        0 => String::new(),
        _ => format!(", {evictions} replicas evicted"),
    };
    let lost = if *lost { ", lost" } else { "" };
    format!("{name} ({model}), worker {worker}, memory node {memory_node}{evicted}{lost}")
}

/// The devices of a machine, with the numbers that they have after these workers and memory nodes.
pub(super) fn list(devices: &[DeviceReport], workers: usize, memory_nodes: usize) -> String {
    let mut text = String::new();
    for (place, device) in devices.iter().enumerate() {
        let DeviceReport { name, model, version, info, links, .. } = device;
        let (worker, node) = (workers + place, memory_nodes + place);
        let double = if info.double_precision { "double precision" } else { "single precision only" };
        let shared = if info.shares_host_memory { ", memory of the host" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "device {name}: {model}, worker {worker}, memory node {node}");
        let _ = writeln!(text, "  {version}");
        let _ = writeln!(text, "  {}, {} compute units, {double}{shared}", bytes(info.memory), info.compute_units);
        match links {
            Ok(links) => {
                let link =
                    |(latency, bandwidth): (f64, f64)| format!("{latency:.1} µs, {}/s", decimal_bytes(bandwidth * 1e6));
                let _ =
                    writeln!(text, "  to the device {}; to the host {}", link(links.to_device), link(links.to_host));
            }
            Err(problem) => {
                let _ = writeln!(text, "  cannot be used: {problem}");
            }
        }
    }
    text
}
