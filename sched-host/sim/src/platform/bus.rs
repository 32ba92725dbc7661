//! The links of a platform in the form of StarPU's bus measurements.

use super::Platform;
use sched_core::{Arch, MemoryNode};
use sched_model::{Bus, BusConfig, NodeMatrix};
use std::cmp::Ordering;

/// Devices whose memories StarPU numbers, in its order.
const DEVICES: [Arch; 6] = [Arch::CUDA, Arch::OPENCL, Arch::FPGA, Arch::MPI, Arch::HIP, Arch::SYCL];

impl Platform {
    /// Costs of transfers between its memory nodes without contention, in StarPU's order: main memories first, then
    /// those of devices. Devices without a worker are left out. In StarPU a device occupies a core, so one is added for
    /// each.
    ///
    /// ```
    /// let bus = sched_sim::platform::find("cpu9-gpu3")?.starpu_bus();
    /// assert_eq!((bus.nodes(), bus.config.cpus, bus.config.cuda), (4, 12, 3));
    /// // 10 µs, and 11.5 GB/s.
    /// assert_eq!(bus.transfer(0, 1, 11_500_000), Some(1010.0));
    /// # Ok::<(), sched_text::Findings>(())
    /// ```
    #[must_use]
    pub fn starpu_bus(&self) -> Bus {
        let main: Vec<MemoryNode> =
            self.memory_nodes().filter(|memory| !self.memories[memory.index()].device).collect();
        let of_kind = |arch: Arch| -> Vec<MemoryNode> {
            self.memory_nodes().filter(|memory| self.device_kind(*memory) == Some(arch)).collect()
        };
        let devices = DEVICES.map(of_kind);
        let nodes: Vec<MemoryNode> = main.iter().chain(devices.iter().flatten()).copied().collect();
        let matrix = |of: &dyn Fn(MemoryNode, MemoryNode) -> f64| {
            let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (*from, *to)));
            NodeMatrix::new(nodes.len(), pairs.map(|(from, to)| if from == to { 0.0 } else { of(from, to) }).collect())
        };
        let count =
            |arch: Arch| devices.iter().zip(DEVICES).find(|(_, kind)| *kind == arch).map_or(0, |(of, _)| of.len());
        let cpus = self.workers.iter().filter(|worker| self.classes[worker.class].arch == Arch::CPU).count();
        let cpus = cpus + devices.iter().map(Vec::len).sum::<usize>();
        let (cuda, opencl) = (count(Arch::CUDA), count(Arch::OPENCL));
        let lines = [
            (cpus, "CPUs"),
            (main.len(), "NUMA nodes"),
            (cuda, "CUDA devices"),
            (opencl, "OpenCL devices"),
            (0, "MIC devices"),
            (0, "MPI devices"),
        ];
        Bus {
            bandwidth: matrix(&|from, to| self.bandwidth(from, to).unwrap_or(f64::NAN) * 1e3),
            latency: matrix(&|from, to| self.bandwidth(from, to).map_or(f64::NAN, |_| self.latency(from, to))),
            config: BusConfig {
                cpus: cpus as u32,
                cuda: cuda as u32,
                opencl: opencl as u32,
                lines: lines.map(|(count, of)| (count as u32, format!("Number of {of}"))).to_vec(),
            },
            affinity: devices.iter().flatten().map(|device| self.nearest(*device, &main)).collect(),
        }
    }

    /// Architecture of the device that a memory node belongs to.
    fn device_kind(&self, memory: MemoryNode) -> Option<Arch> {
        let of_it = |arch: &Arch| {
            let mut workers = self.workers.iter();
            workers.any(|worker| worker.memory == memory && self.classes[worker.class].arch == *arch)
        };
        DEVICES.into_iter().find(of_it).filter(|_| self.memories[memory.index()].device)
    }

    /// Bandwidth from one memory node to another in bytes per nanosecond, if there is a route. A link that it passes
    /// twice has half as much for it.
    pub(super) fn bandwidth(&self, from: MemoryNode, to: MemoryNode) -> Option<f64> {
        let links = &self.route(from, to).links;
        let share = |link: &usize| {
            let passed = links.iter().filter(|other| *other == link).count();
            self.links[*link].bandwidth / passed as f64
        };
        links.iter().map(share).min_by(f64::total_cmp)
    }

    /// Latency in microseconds.
    pub(super) fn latency(&self, from: MemoryNode, to: MemoryNode) -> f64 {
        self.route(from, to).latency as f64 / 1e3
    }

    /// Places in `main`, in order of distance from a device.
    fn nearest(&self, device: MemoryNode, main: &[MemoryNode]) -> Vec<u32> {
        let mut order: Vec<u32> = (0..main.len() as u32).collect();
        order.sort_by(|one, other| {
            let key = |place: &u32| {
                let memory = main[*place as usize];
                let bandwidth = self.bandwidth(memory, device);
                bandwidth.map_or((f64::INFINITY, 0.0), |bandwidth| (self.latency(memory, device), -bandwidth))
            };
            key(one).partial_cmp(&key(other)).unwrap_or(Ordering::Equal)
        });
        order
    }
}
