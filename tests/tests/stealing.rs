//! Work stealing on machines of several caches and packages, compiled in and from the plugin.

use sched_core::Arch;
use sched_host::policy::{BoundMachine, Source};
use sched_host::topology::{BindingPlan, Topology, WorkerDistances};
use sched_tests::by_hand::ByHand;
use sched_tests::conformance::Origin;

/// `tree-ws` on a synthetic machine, with a task of its own for each worker; and the tasks' workers.
fn each_with_a_task(origin: Origin, description: &str, shown: bool) -> (ByHand, Topology, BindingPlan) {
    let topology = Topology::from_synthetic(description).expect("the description is sound");
    let binding = BindingPlan::new(&topology, topology.pus().len()).expect("there are PUs");
    let policy = Source::find("tree-ws").and_then(|source| source.policy()).expect("it is shipped");
    let distances = shown.then(|| WorkerDistances::new(&topology, &binding));
    let tree = ByHand::new(&policy, &origin.registry(), &BoundMachine::new(&topology, &binding), distances);
    for worker in 0..binding.workers().len() as u32 {
        assert_eq!(tree.push(Arch::CPU, Some(worker)), worker);
    }
    (tree, topology, binding)
}

fn stolen(tree: &ByHand, thief: u32) -> Vec<u32> {
    std::iter::from_fn(|| tree.pull(thief)).collect()
}

#[test]
fn thieves_steal_by_distance_on_a_machine_of_several_levels() {
    for origin in [Origin::BuiltIn, Origin::Plugin] {
        for thief in 0..16 {
            let (tree, topology, binding) = each_with_a_task(origin, "package:2 l3:2 l2:2 core:1 pu:2", true);
            let order = stolen(&tree, thief);
            let pu = |worker: u32| binding.workers()[worker as usize].pu;
            let distances: Vec<_> = order.iter().map(|victim| topology.distance(pu(thief), pu(*victim))).collect();
            assert_eq!((order.len(), order[0]), (16, thief), "{origin:?}: its own task comes first");
            assert!(distances.is_sorted(), "{origin:?}, worker {thief}: {order:?} at {distances:?}");
            assert_eq!(tree.faults(), []);
        }
    }
}

#[test]
fn the_plugin_asks_the_host_for_distances() {
    // Workers 0 to 3 have the first PU of each core, and 4 to 7 the second.
    let (tree, ..) = each_with_a_task(Origin::Plugin, "package:2 core:2 pu:2", true);
    assert_eq!(stolen(&tree, 0), [0, 4, 1, 5, 2, 3, 6, 7]);
    let (tree, ..) = each_with_a_task(Origin::Plugin, "package:2 core:2 pu:2", false);
    assert_eq!(stolen(&tree, 0), [0, 1, 7, 2, 6, 3, 5, 4], "a host that tells none: neighbours in order");
}

#[test]
fn thieves_of_one_package_begin_with_different_victims_of_the_other() {
    let first_far = |thief| {
        let (tree, ..) = each_with_a_task(Origin::BuiltIn, "package:2 core:4 pu:1", true);
        stolen(&tree, thief)[4]
    };
    assert_eq!([0, 1, 2, 3].map(first_far), [4, 5, 6, 7]);
}
