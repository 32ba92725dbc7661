//! The machine: hwloc's topology as plain data, and the binding of workers.
//!
//! A [`Topology`] describes this machine, a machine given as a line of text, or another machine from an XML file saved
//! there. It answers the questions of scheduling: the objects of a level, the memory node local to a PU, the distance
//! of two PUs. A [`BindingPlan`] assigns a PU to every worker, and reports problems with that before anything runs.
//! [`draw`] shows both.
//!
//! No hwloc type leaves this module.
//!
//! ```
//! use sched_machine::topology::{BindingPlan, Level, Topology};
//!
//! let machine = Topology::from_synthetic("node:2 core:2 pu:2")?;
//! assert_eq!(machine.level(Level::Core).len(), 4);
//! assert!(machine.distance(0, 1) < machine.distance(0, 2)); // same core, same node
//! assert!(machine.distance(0, 2) < machine.distance(0, 4)); // same node, other node
//!
//! let plan = BindingPlan::new(&machine, 4)?;
//! let pus: Vec<u32> = plan.workers().iter().map(|worker| worker.pu).collect();
//! assert_eq!(pus, [0, 2, 4, 6]); // one worker per core
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod binding;
mod claims;
pub mod combined;
mod control_group;
mod convert;
mod distance;
pub mod draw;
mod error;
mod object;
mod quota;
mod source;
mod surroundings;
mod synthetic;
#[cfg(test)]
mod tests;
mod xml;

use std::sync::Arc;

use distance::Distances;

/// Maximum number of memory nodes of one machine: a set of them is the bits of a word.
pub const MOST_MEMORY_NODES: usize = u64::BITS as usize;

pub use binding::{BindingPlan, BindingWarning, WorkerBinding};
pub use claims::{Claim, Neighbour};
pub use combined::{CombinedSizes, CombinedWorker};
pub use control_group::ControlGroup;
pub use distance::WorkerDistances;
pub use error::{BindingError, TopologyError};
pub use object::{Level, Object, UnknownLevel};
pub use source::Source;
pub use surroundings::Surroundings;
pub use synthetic::SyntheticProblem;

/// A machine as described by hwloc. Cheap to query, immutable, and safe to share between threads.
///
/// PUs are identified by the operating system's numbers throughout.
#[derive(Clone, Debug)]
pub struct Topology {
    source: Source,
    root: Object,
    allowed: Vec<u32>,
    distances: Distances,
    this_machine: bool,
    /// hwloc's own form, where the description came from it.
    hwloc: Option<Arc<hwlocality::Topology>>,
}

impl Topology {
    /// A machine of this many cores with one PU each, and nothing else: no packages, caches or memory nodes. It is made
    /// without hwloc, for programs that run where hwloc cannot, such as under Miri.
    ///
    /// ```
    /// # use sched_machine::topology::{BindingPlan, Level, Topology};
    /// let machine = Topology::flat(4);
    /// assert_eq!(machine.level(Level::Core).len(), 4);
    /// assert_eq!(BindingPlan::new(&machine, 3)?.workers().len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn flat(cores: u32) -> Self {
        let of = |level, index, pus: Vec<u32>, children| Object {
            level,
            os_index: index,
            logical_index: index.unwrap_or(0),
            pus,
            memory_bytes: None,
            children,
        };
        let pu = |index: u32| of(Level::Pu, Some(index), vec![index], Vec::new());
        let core = |index: u32| of(Level::Core, Some(index), vec![index], vec![pu(index)]);
        let root = of(Level::Machine, None, (0..cores).collect(), (0..cores).map(core).collect());
        let (distances, allowed) = (Distances::new(&root), root.pus.clone());
        Self { source: Source::Flat { cores }, root, allowed, distances, this_machine: false, hwloc: None }
    }

    fn new(source: Source, hwloc: hwlocality::Topology) -> Self {
        let root = convert::tree(&hwloc, &[]);
        Self::of(source, hwloc, root)
    }

    fn of(source: Source, hwloc: hwlocality::Topology, root: Object) -> Self {
        let distances = Distances::new(&root);
        let this_machine = hwloc.is_this_system();
        let allowed = source::allowed_pus(&hwloc, &root);
        Self { source, root, allowed, distances, this_machine, hwloc: Some(Arc::new(hwloc)) }
    }

    /// The source of the description.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether it describes the machine that this process runs on: only then can threads be bound.
    ///
    /// False for synthetic and XML topologies, and for [`Topology::this_machine`] under hwloc's own `HWLOC_XMLFILE` or
    /// `HWLOC_SYNTHETIC`; `HWLOC_THISSYSTEM=1` asserts that an XML file describes this machine.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.this_machine
    }

    /// The root of the tree, of level [`Level::Machine`].
    #[must_use]
    pub fn root(&self) -> &Object {
        &self.root
    }

    /// Every PU of the machine, ascending.
    #[must_use]
    pub fn pus(&self) -> &[u32] {
        &self.root.pus
    }

    /// Every PU that this process may use, ascending: for this machine, those that both its cgroup and its affinity
    /// mask (`taskset`) permit; for another, those that its description permits.
    #[must_use]
    pub fn allowed_pus(&self) -> &[u32] {
        &self.allowed
    }

    /// The objects of a level in topology order; none if the machine has no such level.
    #[must_use]
    pub fn level(&self, level: Level) -> Vec<&Object> {
        let mut found: Vec<&Object> = self.root.walk().filter(|object| object.level == level).collect();
        // Memory nodes may be at different depths; groups are ranked only within their depth.
        if level != Level::Group {
            found.sort_by_key(|object| object.logical_index);
        }
        found
    }

    /// The objects of a level that contain PU `pu`: usually one; several where nodes of different memory (or nested
    /// groups) serve the same PUs.
    #[must_use]
    pub fn containing(&self, level: Level, pu: u32) -> Vec<&Object> {
        self.root.walk().filter(|object| object.level == level && object.contains(pu)).collect()
    }

    /// The memory node local to PU `pu`; among several, the one that serves the fewest PUs, and on ties the first
    /// (ordinary memory precedes special memory). `None` for an unknown PU.
    #[must_use]
    pub fn numa_of(&self, pu: u32) -> Option<&Object> {
        let nodes = self.containing(Level::Numa, pu);
        nodes.into_iter().min_by_key(|node| (node.pus.len(), node.logical_index))
    }

    /// The core of PU `pu`; `None` for an unknown PU, and in a description without cores.
    #[must_use]
    pub fn core_of(&self, pu: u32) -> Option<&Object> {
        self.containing(Level::Core, pu).into_iter().next()
    }

    /// Distance of two PUs: the height in the tree of the smallest object that contains both.
    ///
    /// 0 for a PU and itself; the larger, the less they share: first the core, then caches, the memory node, the
    /// machine. Only the order is meaningful; heights differ between machines. It is an ultrametric: `distance(a, c) <=
    /// max(distance(a, b), distance(b, c))`, so the PUs within a given distance form disjoint neighbourhoods. `None` if
    /// either PU does not exist.
    #[must_use]
    pub fn distance(&self, a: u32, b: u32) -> Option<u32> {
        self.distances.between(a, b)
    }
}
