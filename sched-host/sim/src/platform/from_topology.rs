//! Platforms from hwloc topologies.

use super::Platform;
use sched_core::Arch;
use sched_machine::topology::{BindingPlan, Level, Topology};
use sched_text::Findings;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Figures that hwloc does not give, from the shipped platform `numa-2x12`: a core of about 40 GFlop/s (f64), of which
/// the kernels of dense linear algebra reach 55 to 75 %, and 38.4 GB/s between memory nodes.
const ASSUMED: &str = r#"
    overheads submission="300 ns" push="100 ns" fetch="50 ns" wake-up="5 us"
    kernel "potrf" { on "cpu" gflops=22.0 overhead="1 us"; }
    kernel "trsm"  { on "cpu" gflops=27.2 overhead="1 us"; }
    kernel "syrk"  { on "cpu" gflops=28.0 overhead="1 us"; }
    kernel "gemm"  { on "cpu" gflops=30.0 overhead="1 us"; }
    kernel "*"     { on "cpu" gflops=20.0 overhead="1 us"; }
}
"#;

impl Platform {
    /// A platform of the workers of `plan` on `topology`: each accesses the memory node near it, and all memory nodes
    /// are linked. The speeds of cores and links are assumed to be those of the shipped platform `numa-2x12`.
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
        let nodes = topology.level(Level::Numa);
        let sizes: BTreeMap<u32, Option<u64>> = nodes.iter().map(|node| (node.index(), node.memory_bytes)).collect();
        let mut used: Vec<u32> = plan.workers().iter().map(|worker| worker.numa.unwrap_or(0)).collect();
        used.sort_unstable();
        used.dedup();
        let mut text = String::from("platform \"machine\" {\n");
        // Writing to a string does not fail.
        for node in &used {
            let size =
                sizes.get(node).copied().flatten().map(|bytes| format!(" size=\"{bytes} B\"")).unwrap_or_default();
            let _ = writeln!(text, "memory \"numa{node}\"{size}");
        }
        if used.len() > 1 {
            text.push_str("switch \"fabric\"\n");
        }
        for node in used.iter().filter(|_| used.len() > 1) {
            let _ = writeln!(text, "link \"numa{node}\" \"fabric\" bandwidth=\"38.4 GB/s\" latency=\"100 ns\"");
        }
        let packages = topology.level(Level::Package);
        let package = |pu: u32| packages.iter().position(|package| package.pus.contains(&pu));
        for worker in plan.workers() {
            let package = package(worker.pu).map(|package| format!(" package={package}")).unwrap_or_default();
            let node = worker.numa.unwrap_or(0);
            let _ = writeln!(text, "workers \"cpu\" count=1 arch=\"cpu\" memory=\"numa{node}\"{package}");
        }
        text.push_str(ASSUMED);
        let mut platform = Platform::parse("machine", &text)?;
        platform.name = topology.source().to_string();
        Ok(platform)
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
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::find;
    use sched_core::MemoryNode;

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
    fn accelerators_stay_where_cpu_workers_are_left_out() {
        let platform = find("cpu9-gpu3").expect("it is shipped");
        assert_eq!(platform.cpu_workers(), 9);
        let platform = platform.with_cpu_workers(2);
        assert_eq!((platform.cpu_workers(), platform.workers.len()), (2, 5));
    }
}
