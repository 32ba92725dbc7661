//! Platforms from hwloc topologies.

use super::{Layout, Overheads, Platform, Sized};
use sched_core::Arch;
use sched_machine::topology::{BindingPlan, Level, Topology};
use sched_model::Bus;
use sched_text::Findings;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Figures of a machine that hwloc does not give.
#[derive(Clone, PartialEq, Debug)]
pub struct MachineFigures {
    /// Costs of scheduling.
    pub overheads: Overheads,
    /// Transfers between the memory nodes that have workers, in the order of their numbers; `None` for assumed ones.
    pub bus: Option<Bus>,
    /// Execution times of kernels on a core, by the size of a task's data.
    pub measured: BTreeMap<String, Vec<Sized>>,
    /// Devices beside the cores.
    pub devices: Vec<DeviceFigures>,
    /// Speeds of kernels in GFlop/s; of [`Kernels::ANY`](super::Kernels::ANY), that of all others.
    pub gflops: BTreeMap<String, f64>,
}

/// A device with a memory of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceFigures {
    /// Its name, also that of its memory node and of its worker.
    pub name: String,
    /// Architecture of its worker.
    pub arch: Arch,
    /// Bytes of its memory.
    pub memory: u64,
    /// Latency in µs and bandwidth in MB/s of copies from the host.
    pub to_device: (f64, f64),
    /// Latency in µs and bandwidth in MB/s of copies to the host.
    pub to_host: (f64, f64),
    /// Whether it copies while it computes. One that does not has no copy engine: threads of the host copy, among them
    /// that of its worker.
    pub overlaps: bool,
    /// Execution times of kernels, by the size of a task's data.
    pub measured: BTreeMap<String, Vec<Sized>>,
}

impl DeviceFigures {
    /// How many times faster it is than a core, over the kernels that both have.
    fn speed(&self, on_core: &BTreeMap<String, Vec<Sized>>) -> f64 {
        let (mut core, mut device) = (Duration::ZERO, Duration::ZERO);
        for (kernel, times) in &self.measured {
            for sized in times {
                let of_core = on_core.get(kernel).into_iter().flatten().find(|other| other.bytes == sized.bytes);
                if let Some(of_core) = of_core {
                    core += of_core.time;
                    device += sized.time;
                }
            }
        }
        if device.is_zero() || core.is_zero() { 1.0 } else { core.as_secs_f64() / device.as_secs_f64() }
    }
}

impl MachineFigures {
    /// Figures of the shipped platform `numa-2x12`: a core of about 40 GFlop/s (f64), of which the kernels of dense
    /// linear algebra reach 55 to 75 %, and 38.4 GB/s between memory nodes.
    fn assumed() -> MachineFigures {
        let nanos = Duration::from_nanos;
        let gflops = [("potrf", 22.0), ("trsm", 27.2), ("syrk", 28.0), ("gemm", 30.0), ("*", 20.0)];
        MachineFigures {
            overheads: Overheads {
                submission: nanos(300),
                push: nanos(100),
                fetch: nanos(50),
                wake_up: nanos(5_000),
                ..Overheads::default()
            },
            bus: None,
            measured: BTreeMap::new(),
            devices: Vec::new(),
            gflops: gflops.map(|(kernel, gflops)| (kernel.to_owned(), gflops)).into(),
        }
    }

    /// Bandwidth in MB/s and latency in µs between two memory nodes, by their places among those with workers.
    fn link(&self, from: usize, to: usize) -> Option<(f64, f64)> {
        let bus = self.bus.as_ref()?;
        let both = |of: &dyn Fn(usize, usize) -> Option<f64>| Some((of(from, to)?, of(to, from)?));
        let (there, back) = both(&|from, to| bus.bandwidth.get(from, to))?;
        let (latency, latency_back) = both(&|from, to| bus.latency.get(from, to))?;
        let bandwidth = there.min(back);
        (bandwidth > 0.0).then(|| (bandwidth, latency.max(latency_back)))
    }
}

impl Platform {
    /// A platform of the workers of `plan` on `topology`: each accesses the memory node near it, and all memory nodes
    /// are linked. Its levels are those of the topology, with the substitutes of
    /// [`BoundMachine`](sched_policy::BoundMachine), and its combined workers those of `plan`. The speeds of cores and
    /// links are assumed to be those of the shipped platform `numa-2x12`.
    ///
    /// ```
    /// use sched_sim::Platform;
    /// use sched_machine::topology::{BindingPlan, Topology};
    ///
    /// let topology = Topology::from_synthetic("node:2 core:4 pu:1")?;
    /// let platform = Platform::from_topology(&topology, &BindingPlan::new(&topology, 8)?)?;
    /// assert_eq!((platform.workers.len(), platform.memories.len()), (8, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there are more memory nodes or workers than a platform can have.
    pub fn from_topology(topology: &Topology, plan: &BindingPlan) -> Result<Platform, Findings> {
        let text = Platform::describe("machine", topology, plan, &MachineFigures::assumed());
        let mut platform = Platform::parse("machine", &text)?;
        platform.name = topology.source().to_string();
        platform.layout = Some(Layout::new(topology, plan));
        Ok(platform)
    }

    /// The text of a platform with the workers of `plan` on `topology`, and these figures.
    #[must_use]
    pub fn describe(name: &str, topology: &Topology, plan: &BindingPlan, figures: &MachineFigures) -> String {
        let nodes = topology.level(Level::Numa);
        let sizes: BTreeMap<u32, Option<u64>> = nodes.iter().map(|node| (node.index(), node.memory_bytes)).collect();
        let mut used: Vec<u32> = plan.workers().iter().map(|worker| worker.numa.unwrap_or(0)).collect();
        used.sort_unstable();
        used.dedup();
        let mut text = format!("platform \"{name}\" {{\n");
        // Writing to a string does not fail.
        for node in &used {
            let size =
                sizes.get(node).copied().flatten().map(|bytes| format!(" size=\"{bytes} B\"")).unwrap_or_default();
            let _ = writeln!(text, "    memory \"numa{node}\"{size}");
        }
        for DeviceFigures { name, memory, overlaps, .. } in &figures.devices {
            let copied = if *overlaps { "" } else { " copied-by-workers=#true" };
            let _ = writeln!(text, "    memory \"{name}\" size=\"{memory} B\" device=#true{copied}");
        }
        links(&mut text, &used, figures);
        let packages = topology.level(Level::Package);
        let package = |pu: u32| packages.iter().position(|package| package.pus.contains(&pu));
        for worker in plan.workers() {
            let package = package(worker.pu).map(|package| format!(" package={package}")).unwrap_or_default();
            let node = worker.numa.unwrap_or(0);
            let _ = writeln!(text, "    workers \"cpu\" count=1 arch=\"cpu\" memory=\"numa{node}\"{package}");
        }
        for device in &figures.devices {
            let (name, arch, speed) = (&device.name, device.arch, device.speed(&figures.measured));
            let pipeline = if device.overlaps { 2 } else { 1 };
            let _ = writeln!(
                text,
                "    workers \"{name}\" count=1 arch=\"{arch}\" memory=\"{name}\" speed={speed:.3} pipeline={pipeline}"
            );
        }
        let Overheads { submission, push, fetch, wake_up, .. } = figures.overheads;
        let [submission, push, fetch, wake_up] = [submission, push, fetch, wake_up].map(|time| time.as_nanos());
        let _ = writeln!(
            text,
            "    overheads submission=\"{submission} ns\" push=\"{push} ns\" fetch=\"{fetch} ns\" wake-up=\"{wake_up} ns\""
        );
        for (kernel, times) in &figures.measured {
            let on_devices =
                figures.devices.iter().filter_map(|device| Some((&*device.name, device.measured.get(kernel)?)));
            let _ = writeln!(text, "    kernel \"{kernel}\" {{");
            for (class, times) in std::iter::once(("cpu", times)).chain(on_devices) {
                let _ = writeln!(text, "        on \"{class}\" {{");
                for Sized { bytes, time } in times {
                    let _ = writeln!(text, "            at \"{bytes} B\" \"{} ns\"", time.as_nanos());
                }
                text.push_str("        }\n");
            }
            text.push_str("    }\n");
        }
        for (kernel, gflops) in &figures.gflops {
            let _ = writeln!(text, "    kernel \"{kernel}\" {{ on \"cpu\" gflops={gflops:?} overhead=\"1 us\"; }}");
        }
        text.push_str("}\n");
        text
    }

    /// Number of its CPU workers.
    #[must_use]
    pub fn cpu_workers(&self) -> usize {
        self.workers.iter().filter(|worker| self.classes[worker.class].arch == Arch::CPU).count()
    }

    /// The platform with its first `count` CPU workers and all other workers, which are renumbered.
    #[must_use]
    pub fn with_cpu_workers(mut self, count: usize) -> Platform {
        let mut kept = 0;
        let classes = &self.classes;
        self.workers.retain(|worker| {
            let is_cpu = classes[worker.class].arch == Arch::CPU;
            kept += usize::from(is_cpu);
            !is_cpu || kept <= count
        });
        if let Some(layout) = &mut self.layout {
            layout.keep(count);
        }
        self
    }
}

/// Writes the links between the memory nodes with these numbers.
fn links(text: &mut String, nodes: &[u32], figures: &MachineFigures) {
    for DeviceFigures { name, to_device, to_host, .. } in &figures.devices {
        let (first, latency) = (nodes.first().copied().unwrap_or(0), to_device.0.max(to_host.0) * 1e3);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "    link \"numa{first}\" \"{name}\" bandwidth=\"{:.0} MB/s\" back=\"{:.0} MB/s\" latency=\"{latency:.0} ns\"",
            to_device.1, to_host.1
        );
    }
    if nodes.len() <= 1 {
        return;
    }
    let pairs = (0..nodes.len()).flat_map(|one| (one + 1..nodes.len()).map(move |other| (one, other)));
    let measured: Option<Vec<_>> = pairs.map(|(one, other)| Some((one, other, figures.link(one, other)?))).collect();
    // Writing to a string does not fail.
    for (one, other, (bandwidth, latency)) in measured.iter().flatten() {
        let (one, other) = (nodes[*one], nodes[*other]);
        let _ = writeln!(
            text,
            "    link \"numa{one}\" \"numa{other}\" bandwidth=\"{bandwidth:.0} MB/s\" latency=\"{:.0} ns\"",
            latency * 1e3
        );
    }
    if measured.is_none() {
        text.push_str("    switch \"fabric\"\n");
        for node in nodes {
            let _ = writeln!(text, "    link \"numa{node}\" \"fabric\" bandwidth=\"38.4 GB/s\" latency=\"100 ns\"");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{KernelTime, find};
    use sched_core::MemoryNode;
    use sched_model::NodeMatrix;
    use sched_policy::{BoundMachine, Group, Level as PolicyLevel, Machine};

    #[test]
    fn a_machine_becomes_its_memories_and_workers() {
        let topology = Topology::from_synthetic("node:2(memory=1GiB) package:1 core:2 pu:1").expect("it is sound");
        let plan = BindingPlan::new(&topology, 3).expect("there are four");
        let platform = Platform::from_topology(&topology, &plan).expect("it is small");
        let places: Vec<_> = platform.workers.iter().map(|worker| (worker.memory.0, worker.package)).collect();
        assert_eq!(places, [(0, Some(0)), (0, Some(0)), (1, Some(1))]);
        assert_eq!(platform.memories[0].capacity, Some(1 << 30));
        assert!(
            !platform.route(MemoryNode(0), MemoryNode(1)).links.is_empty() && platform.name.contains("node:2"),
            "{}",
            platform.name
        );
        let one = Topology::from_synthetic("core:1 pu:2").expect("it is sound");
        let platform = Platform::from_topology(&one, &BindingPlan::new(&one, 2).expect("there are two"));
        assert_eq!(platform.expect("it is small").memories.len(), 1);
    }

    #[test]
    fn levels_are_those_of_the_topology() {
        let groups = |machine: &dyn Machine, level| -> Vec<(String, Vec<u32>)> {
            let workers = |group: &Group| group.workers.iter().map(|worker| worker.0).collect();
            machine.groups(level).iter().map(|group| (group.label.clone(), workers(group))).collect()
        };
        // Packages are missing, memory nodes have two caches each, and cores two processing units.
        let topology = Topology::from_synthetic("node:2 l3:2 core:2 pu:2").expect("it is sound");
        let plan = BindingPlan::new(&topology, 16).expect("there are sixteen");
        let platform = Platform::from_topology(&topology, &plan).expect("it is small");
        let machine = BoundMachine::new(&topology, &plan);
        for level in [PolicyLevel::Numa, PolicyLevel::Package, PolicyLevel::L3, PolicyLevel::L2, PolicyLevel::Core] {
            assert_eq!(groups(&platform, level), groups(&machine, level));
            assert_eq!(platform.has(level), machine.has(level), "{level}");
        }
        assert_eq!(groups(&platform, PolicyLevel::Package), [("package 0".to_owned(), (0..16).collect())]);
        assert_eq!((groups(&platform, PolicyLevel::L3).len(), groups(&platform, PolicyLevel::Core).len()), (4, 8));
        assert_eq!(platform.combined(), machine.combined());
        let fewer = platform.with_cpu_workers(3);
        assert_eq!(groups(&fewer, PolicyLevel::Package), [("package 0".to_owned(), vec![0, 1, 2])]);
        assert!(fewer.combined().iter().all(|team| team.iter().all(|worker| worker.0 < 3)), "{:?}", fewer.combined());
    }

    #[test]
    fn measured_figures_become_a_platform() {
        let topology = Topology::from_synthetic("node:2 core:1 pu:1").expect("it is sound");
        let plan = BindingPlan::new(&topology, 2).expect("there are two");
        let between = |value: f64| NodeMatrix::new(2, vec![0.0, value, value * 2.0, 0.0]);
        let bus = Bus { bandwidth: between(9_000.0), latency: between(0.2), ..Bus::default() };
        let at = |bytes, micros| Sized { bytes, time: Duration::from_micros(micros) };
        let figures = MachineFigures {
            bus: Some(bus),
            measured: [("gemm".to_owned(), vec![at(1_000, 10), at(8_000, 100)])].into(),
            gflops: [("*".to_owned(), 12.0)].into(),
            ..MachineFigures::assumed()
        };
        let text = Platform::describe("here", &topology, &plan, &figures);
        let platform = Platform::parse("here.kdl", &text).expect("it is valid");
        assert_eq!((platform.name.as_str(), platform.workers.len()), ("here", 2));
        assert_eq!(platform.overheads, figures.overheads);
        assert_eq!(platform.expected_transfer(MemoryNode(0), MemoryNode(1), 9_000_000), 1_000_400);
        assert_eq!(platform.kernels.get("gemm", 0), Some(&KernelTime::Measured(figures.measured["gemm"].clone())));
        assert!(platform.kernels.get("other", 0).is_some());
    }

    #[test]
    fn devices_are_beside_the_cores_with_their_links_and_kernels() {
        let topology = Topology::from_synthetic("core:2 pu:1").expect("it is sound");
        let plan = BindingPlan::new(&topology, 2).expect("there are two");
        let at = |micros| vec![Sized { bytes: 1_000, time: Duration::from_micros(micros) }];
        let device = DeviceFigures {
            name: "opencl:0".to_owned(),
            arch: Arch::OPENCL,
            memory: 1 << 30,
            to_device: (2.0, 8_000.0),
            to_host: (3.0, 4_000.0),
            overlaps: true,
            measured: [("gemm".to_owned(), at(5))].into(),
        };
        let figures = MachineFigures {
            measured: [("gemm".to_owned(), at(20)), ("potrf".to_owned(), at(30))].into(),
            gflops: [("*".to_owned(), 12.0)].into(),
            devices: vec![device],
            ..MachineFigures::assumed()
        };
        let text = Platform::describe("here", &topology, &plan, &figures);
        let platform = Platform::parse("here.kdl", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let worker = &platform.workers[2];
        let class = &platform.classes[worker.class];
        assert_eq!((class.arch, class.speed, worker.memory), (Arch::OPENCL, 4.0, MemoryNode(1)));
        assert_eq!((platform.memories[1].capacity, platform.memories[1].device), (Some(1 << 30), true));
        assert_eq!(platform.expected_transfer(MemoryNode(0), MemoryNode(1), 8_000_000), 1_003_000);
        assert_eq!(platform.expected_transfer(MemoryNode(1), MemoryNode(0), 8_000_000), 2_003_000);
        assert_eq!(platform.kernels.get("gemm", worker.class), Some(&KernelTime::Measured(at(5))));
        assert_eq!(platform.kernels.get("potrf", worker.class), None);
        assert_eq!((class.pipeline, platform.memories[1].copied_by_workers), (2, false));
        let mut without_engine = figures;
        without_engine.devices[0].overlaps = false;
        let text = Platform::describe("here", &topology, &plan, &without_engine);
        let platform = Platform::parse("here.kdl", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let class = &platform.classes[platform.workers[2].class];
        assert_eq!((class.pipeline, platform.memories[1].copied_by_workers), (1, true));
    }

    #[test]
    fn accelerators_stay_where_cpu_workers_are_left_out() {
        let platform = find("cpu9-gpu3").expect("it is shipped");
        assert_eq!(platform.cpu_workers(), 9);
        let platform = platform.with_cpu_workers(2);
        assert_eq!((platform.cpu_workers(), platform.workers.len()), (2, 5));
    }
}
