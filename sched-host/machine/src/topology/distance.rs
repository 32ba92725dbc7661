//! Distances between PUs.

use std::collections::BTreeMap;

use super::object::{Level, Object};
use super::{BindingPlan, Topology};
use sched_core::WorkerId;

/// For each PU, the objects that contain it, from itself to the machine.
#[derive(Clone, Debug)]
pub(super) struct Distances(BTreeMap<u32, Vec<Ancestor>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ancestor {
    /// Unique for each object.
    id: usize,
    /// Length of the longest path from the object down to a PU.
    height: u32,
}

impl Distances {
    pub(super) fn new(root: &Object) -> Self {
        let mut distances = Self(BTreeMap::new());
        distances.climb(root, &mut 0);
        distances
    }

    /// The height of the smallest object that contains both; `None` if either is unknown.
    pub(super) fn between(&self, a: u32, b: u32) -> Option<u32> {
        let (a, b) = (self.0.get(&a)?, self.0.get(&b)?);
        // Both lists end with the root, so counting from there aligns paths of different lengths.
        let shared = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).last()?;
        Some(shared.0.height)
    }

    /// Records the path to the root for every PU below `object`; returns these PUs and the object's height.
    fn climb(&mut self, object: &Object, next: &mut usize) -> (Vec<u32>, u32) {
        let id = *next;
        *next += 1;
        let (mut pus, mut height) = (Vec::new(), 0);
        if object.level == Level::Pu {
            pus.push(object.index());
        }
        for child in &object.children {
            // Empty for a memory node beside the processors: it contains nothing, whichever PUs it serves.
            let (below, child_height) = self.climb(child, next);
            if !below.is_empty() {
                height = height.max(child_height + 1);
                pus.extend(below);
            }
        }
        for &pu in &pus {
            self.0.entry(pu).or_default().push(Ancestor { id, height });
        }
        (pus, height)
    }
}

/// The distances between the workers of a plan: those of their PUs, without a reference to the topology.
///
/// ```
/// use sched_core::WorkerId;
/// use sched_machine::topology::{BindingPlan, Topology, WorkerDistances};
///
/// let machine = Topology::from_synthetic("package:2 core:2 pu:1")?;
/// let workers = WorkerDistances::new(&machine, &BindingPlan::new(&machine, 4)?);
/// let from_0 = |worker| workers.between(WorkerId(0), WorkerId(worker));
/// assert!(from_0(0) < from_0(1) && from_0(1) < from_0(2) && from_0(2) == from_0(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WorkerDistances {
    /// The PU of each worker.
    pus: Vec<u32>,
    distances: Distances,
}

impl WorkerDistances {
    /// Computes the distances of the workers of `plan`, which was made for `topology`.
    #[must_use]
    pub fn new(topology: &Topology, plan: &BindingPlan) -> Self {
        let pus = plan.workers().iter().map(|worker| worker.pu).collect();
        Self { pus, distances: topology.distances.clone() }
    }

    /// The [distance](Topology::distance) of the PUs of two workers; `None` if a worker does not exist.
    #[must_use]
    pub fn between(&self, one: WorkerId, other: WorkerId) -> Option<u32> {
        let pu = |worker: WorkerId| self.pus.get(worker.0 as usize).copied();
        self.distances.between(pu(one)?, pu(other)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The shape of a machine: a leaf is a PU or, in one of eight cases, memory beside the processors.
    #[derive(Clone, Debug)]
    enum Shape {
        Leaf(u8),
        Inner(Vec<Shape>),
    }

    fn shape() -> impl Strategy<Value = Shape> {
        any::<u8>()
            .prop_map(Shape::Leaf)
            .prop_recursive(5, 40, 4, |inner| prop::collection::vec(inner, 1..5).prop_map(Shape::Inner))
    }

    fn object(shape: &Shape, next: &mut u32) -> Object {
        let empty = Object {
            level: Level::Group,
            os_index: None,
            logical_index: 0,
            pus: Vec::new(),
            memory_bytes: None,
            children: Vec::new(),
        };
        match shape {
            Shape::Leaf(kind) if kind % 8 == 0 => Object { level: Level::Numa, pus: (0..*next).collect(), ..empty },
            Shape::Leaf(_) => {
                *next += 1;
                Object { level: Level::Pu, os_index: Some(*next - 1), pus: vec![*next - 1], ..empty }
            }
            Shape::Inner(shapes) => {
                let first = *next;
                let children = shapes.iter().map(|shape| object(shape, next)).collect();
                Object { pus: (first..*next).collect(), children, ..empty }
            }
        }
    }

    proptest! {
        #[test]
        fn distance_is_a_symmetric_ultrametric_on_trees_of_any_shape(shape in shape()) {
            let mut pus = 0;
            let distances = Distances::new(&object(&shape, &mut pus));
            let between = |a, b| distances.between(a, b).expect("both PUs are in the tree");
            for a in 0..pus {
                for b in 0..pus {
                    prop_assert_eq!(between(a, b), between(b, a));
                    prop_assert_eq!(between(a, b) == 0, a == b);
                    for c in 0..pus {
                        prop_assert!(between(a, c) <= between(a, b).max(between(b, c)));
                    }
                }
            }
            prop_assert_eq!(distances.between(0, pus), None);
        }
    }
}
