//! Policies over machines that hwloc knows: this one, a synthetic one, one from a file.

use super::{catalogue, policy};
use crate::{BoundMachine, Level, Machine, TreePlan, expand};
use proptest::prelude::*;
use sched_core::{WorkerId, WorkerSet};
use sched_machine::topology::{BindingPlan, Topology};
use std::path::Path;

/// Two packages with two memory nodes each.
fn saved() -> Topology {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/src/topology/testdata/two-memories.xml");
    Topology::from_xml_file(&path).expect("the fixture is a topology")
}

fn synthetic(description: &str) -> Topology {
    Topology::from_synthetic(description).expect("the description is sound")
}

fn all_workers(topology: &Topology) -> BindingPlan {
    BindingPlan::new(topology, BindingPlan::default_workers(topology)).expect("there is a PU")
}

fn laid(text: &str, topology: &Topology) -> TreePlan {
    let binding = all_workers(topology);
    expand(&policy(text), &catalogue(), &BoundMachine::new(topology, &binding))
        .unwrap_or_else(|errors| panic!("{}: {}", topology.source(), super::shown(&errors)))
}

/// The groups of a level, by their labels.
fn groups(topology: &Topology, level: Level) -> Vec<(String, Vec<u32>)> {
    let binding = all_workers(topology);
    let groups = BoundMachine::new(topology, &binding).groups(level);
    groups.into_iter().map(|group| (group.label, group.workers.iter().map(|worker| worker.0).collect())).collect()
}

/// The levels whose groups are of simple workers.
fn simple_levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| *level != Level::CombinedWorker)
}

#[test]
fn every_level_works_on_every_kind_of_machine() {
    let here = Topology::this_machine().expect("the machine can be explored");
    for machine in [here, synthetic("node:2 package:1 l3:1 core:8 pu:2"), saved(), synthetic("pu:3")] {
        let workers = all_workers(&machine).workers().len();
        for level in simple_levels() {
            let text = format!(
                r#"policy "p" {{ fifo {{ eager {{ each "{level}" {{ eager {{ each "worker" {{ worker }} }} }} }} }} }}"#
            );
            let leaves = laid(&text, &machine).nodes.iter().filter(|node| node.info.name == "worker").count();
            assert_eq!(leaves, workers, "{level} of {}", machine.source());
        }
    }
}

#[test]
fn groups_are_those_of_the_topology() {
    let machine = synthetic("node:2 package:1 l3:2 core:2 pu:2");
    let sizes = |level| groups(&machine, level).iter().map(|group| group.1.len()).collect::<Vec<_>>();
    assert_eq!(
        (sizes(Level::Numa), sizes(Level::MemoryNode), sizes(Level::Package)),
        (vec![8; 2], vec![8; 2], vec![8; 2])
    );
    assert_eq!((sizes(Level::L3), sizes(Level::Core), sizes(Level::Worker)), (vec![4; 4], vec![2; 8], vec![1; 16]));
    // Workers 0 to 7 have the first PU of each core.
    assert_eq!(groups(&machine, Level::L3)[0], ("l3 0".to_owned(), vec![0, 1, 8, 9]));
    assert_eq!(groups(&saved(), Level::Package)[1], ("package 1".to_owned(), vec![2, 3, 6, 7]));
}

#[test]
fn the_next_level_stands_for_one_that_the_machine_lacks() {
    let machine = synthetic("package:2 core:2 pu:2");
    let of = |level| groups(&machine, level).into_iter().map(|group| group.1).collect::<Vec<_>>();
    assert_eq!((of(Level::L3), of(Level::L2)), (of(Level::Package), of(Level::Core)));
    assert_eq!(groups(&machine, Level::L2)[3].0, "l2 3");

    let bare = synthetic("pu:3");
    let of = |level| groups(&bare, level).into_iter().map(|group| group.1).collect::<Vec<_>>();
    for level in [Level::L2, Level::Core] {
        assert_eq!(of(level), [[0], [1], [2]], "{level}");
    }
    for level in [Level::L3, Level::Package, Level::Numa] {
        assert_eq!(of(level), [[0, 1, 2]], "{level}");
    }
}

proptest! {
    /// Whatever the machine looks like, each worker is in one group of each level.
    #[test]
    fn every_worker_is_in_one_group_of_a_level(
        nodes in 1u32..3, packages in 0u32..3, l3 in 0u32..3, l2 in 0u32..3, cores in 0u32..3, pus in 1u32..3, workers in 1usize..40,
    ) {
        let some = |name: &str, count: u32| if count == 0 { String::new() } else { format!("{name}:{count} ") };
        let levels = [("node", nodes), ("package", packages), ("l3", l3), ("l2", l2), ("core", cores), ("pu", pus)];
        let description: String = levels.map(|(name, count)| some(name, count)).concat();
        let topology = synthetic(description.trim());
        let binding = BindingPlan::new(&topology, workers).expect("there are workers");
        let machine = BoundMachine::new(&topology, &binding);
        for level in simple_levels() {
            let mut seen = WorkerSet::new();
            for group in machine.groups(level) {
                for worker in group.workers.iter() {
                    prop_assert!(!seen.contains(worker), "{} twice at {}", worker, level);
                    seen.insert(worker);
                }
            }
            prop_assert_eq!(seen.iter().count(), workers, "{}", level);
            prop_assert!(!seen.contains(WorkerId(workers as u32)));
        }
    }
}
