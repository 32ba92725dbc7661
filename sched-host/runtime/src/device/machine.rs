//! The machine that policies are laid over: cores, and devices after them.

use sched_core::{Arch, MemoryNode, WorkerId, WorkerSet};
use sched_policy::{BoundMachine, Group, Level, Machine, combined_groups};
use std::collections::BTreeMap;

/// A device, as policies see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DevicePlace {
    pub(crate) arch: Arch,
    pub(crate) node: MemoryNode,
}

/// See the [module](self).
pub(crate) struct DeviceMachine<'a> {
    pub(crate) cores: BoundMachine<'a>,
    pub(crate) devices: &'a [DevicePlace],
}

impl DeviceMachine<'_> {
    /// The devices with the numbers of their workers.
    fn numbered(&self) -> impl Iterator<Item = (WorkerId, DevicePlace)> {
        (self.cores.workers() as u32..).map(WorkerId).zip(self.devices.iter().copied())
    }
}

impl Machine for DeviceMachine<'_> {
    fn workers(&self) -> usize {
        self.cores.workers() + self.devices.len()
    }

    fn arch(&self, worker: WorkerId) -> Arch {
        let device = worker.index().checked_sub(self.cores.workers());
        device.and_then(|device| self.devices.get(device)).map_or(Arch::CPU, |device| device.arch)
    }

    fn groups(&self, level: Level) -> Vec<Group> {
        if level == Level::CombinedWorker {
            return combined_groups(self);
        }
        let mut groups = self.cores.groups(level);
        let alone = |label: String, worker: WorkerId| Group { label, workers: [worker].into_iter().collect() };
        match level {
            Level::Machine => {
                for group in &mut groups {
                    self.numbered().for_each(|(worker, _)| _ = group.workers.insert(worker));
                }
            }
            Level::Worker => {
                groups.extend(self.numbered().map(|(worker, _)| alone(format!("{level} {}", worker.0), worker)));
            }
            Level::MemoryNode => {
                groups.extend(self.numbered().map(|(worker, of)| alone(format!("{level} {}", of.node.0), worker)));
            }
            Level::Arch => {
                let mut by_arch: BTreeMap<u8, WorkerSet> = BTreeMap::new();
                for (worker, of) in self.numbered() {
                    by_arch.entry(of.arch.number()).or_default().insert(worker);
                }
                let group = |(arch, workers)| Some(Group { label: Arch::new(arch)?.to_string(), workers });
                groups.extend(by_arch.into_iter().filter_map(group));
            }
            // Devices belong to no level of processors.
            _ => {}
        }
        groups
    }

    fn has(&self, level: Level) -> bool {
        self.cores.has(level)
    }

    fn combined(&self) -> Vec<WorkerSet> {
        self.cores.combined()
    }
}
