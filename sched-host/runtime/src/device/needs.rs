//! What kernels need of the device that they run on.

use super::Device;
use sched_core::{Arch, WorkerId};
use sched_graph::Where;
use sched_text::amount::bytes;
use sched_tree::WorkerFacts;
use std::sync::Arc;

/// What the kernels of a codelet need of a device; nothing by default. Devices that lack it do not execute its tasks.
///
/// ```
/// use sched_runtime::DeviceNeeds;
///
/// let needs = DeviceNeeds::default().double_precision().memory(64 << 20);
/// assert_ne!(needs, DeviceNeeds::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceNeeds {
    double_precision: bool,
    memory: u64,
}

impl DeviceNeeds {
    /// Kernels compute in double precision.
    #[must_use]
    pub fn double_precision(self) -> DeviceNeeds {
        DeviceNeeds { double_precision: true, ..self }
    }

    /// A task needs this number of bytes on the device at once.
    #[must_use]
    pub fn memory(self, bytes: u64) -> DeviceNeeds {
        DeviceNeeds { memory: bytes, ..self }
    }

    /// What a device lacks of it, in words.
    fn lacking(self, device: &Device) -> Option<String> {
        let limit = device.arena.limit();
        if self.double_precision && !device.info.double_precision {
            return Some(format!("double precision, which {} has not", device.name()));
        }
        let room = || format!("{} on the device, and {} has {}", bytes(self.memory), device.name(), bytes(limit));
        (self.memory > limit).then(room)
    }
}

/// Devices that cannot execute the tasks of a codelet.
pub(crate) struct Unable {
    /// The places that remain, of all workers of the runtime.
    pub(crate) others: Where,
    /// What the first of these devices lacks, in words.
    pub(crate) why: String,
}

impl Unable {
    /// The devices of these that lack what is needed; `None` if there are none.
    pub(crate) fn of(needs: DeviceNeeds, devices: &[Arc<Device>], workers: &[WorkerFacts]) -> Option<Unable> {
        if needs == DeviceNeeds::default() {
            return None;
        }
        let mut lacking = devices.iter().filter_map(|device| Some((device.worker, needs.lacking(device)?)));
        let (first, why) = lacking.next()?;
        let unable: Vec<WorkerId> = std::iter::once(first).chain(lacking.map(|(worker, _)| worker)).collect();
        let numbered = || (0..).map(WorkerId).zip(workers.iter().map(|worker| worker.arch));
        let is_able = |arch: Arch| numbered().all(|(worker, of)| of != arch || !unable.contains(&worker));
        // Where all workers of an architecture are able, the architecture says so: that costs its tasks nothing.
        let others = numbered().filter(|(worker, _)| !unable.contains(worker));
        let others = others.fold(Where::workers([]), |places, (worker, arch)| match is_able(arch) {
            true => places.or_arch(arch),
            false => places.or_workers([worker.0]),
        });
        Some(Unable { others, why })
    }
}
