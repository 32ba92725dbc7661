//! The combined workers that a plan offers.

use crate::topology::{BindingPlan, CombinedSizes, Topology};

/// The combined workers of `workers` workers on a described machine, one per line.
fn combined(description: &str, workers: usize, sizes: CombinedSizes) -> String {
    let topology = Topology::from_synthetic(description).expect("the description is sound");
    let plan = BindingPlan::new(&topology, workers).expect("there are PUs").with_combined(&topology, sizes);
    let line = |combined: &crate::topology::CombinedWorker| format!("{:?} of {}", combined.members, combined.within);
    plan.combined().iter().map(line).collect::<Vec<_>>().join("\n")
}

const ALL: CombinedSizes = CombinedSizes { min: 2, max: usize::MAX, arity: 2 };

#[test]
fn every_object_with_several_workers_offers_one() {
    insta::assert_snapshot!(combined("package:2 l3:2 core:2 pu:1", 8, ALL), @r"
    [0, 1, 2, 3, 4, 5, 6, 7] of numa 0
    [0, 1, 2, 3] of package 0
    [0, 1] of l3 0
    [2, 3] of l3 1
    [4, 5, 6, 7] of package 1
    [4, 5] of l3 2
    [6, 7] of l3 3
    ");
}

#[test]
fn objects_with_the_same_workers_offer_one_together() {
    assert_eq!(combined("node:1 package:1 l3:1 core:2 pu:1", 2, ALL), "[0, 1] of l3 0");
}

#[test]
fn hardware_threads_of_a_core_belong_together() {
    // Workers 0 and 1 are on the first hardware threads of the cores.
    insta::assert_snapshot!(combined("core:2 pu:2", 4, ALL), @r"
    [0, 1, 2, 3] of numa 0
    [0, 2] of core 0
    [1, 3] of core 1
    ");
}

#[test]
fn many_parts_are_drawn_together_step_by_step() {
    insta::assert_snapshot!(combined("l3:1 core:6 pu:1", 6, ALL), @r"
    [0, 1, 2, 3, 4, 5] of numa 0
    [0, 1, 2] of numa 0
    [0, 1] of numa 0
    [3, 4, 5] of numa 0
    [3, 4] of numa 0
    ");
    let wide = CombinedSizes { arity: 4, ..ALL };
    insta::assert_snapshot!(combined("l3:1 core:6 pu:1", 6, wide), @r"
    [0, 1, 2, 3, 4, 5] of numa 0
    [0, 1] of numa 0
    [2, 3] of numa 0
    ");
    assert_eq!(combined("l3:1 core:6 pu:1", 6, CombinedSizes { arity: 6, ..ALL }).lines().count(), 1);
}

#[test]
fn sizes_can_be_bounded() {
    assert_eq!(combined("l3:2 core:4 pu:1", 8, CombinedSizes { min: 5, ..ALL }), "[0, 1, 2, 3, 4, 5, 6, 7] of numa 0");
    assert_eq!(combined("l3:2 core:4 pu:1", 8, CombinedSizes { max: 2, ..ALL }).lines().count(), 4);
    assert_eq!(combined("l3:2 core:4 pu:1", 8, CombinedSizes { min: 9, ..ALL }), "");
}

#[test]
fn workers_that_take_turns_on_a_unit_are_no_team_for_that() {
    assert_eq!(combined("core:1 pu:1", 3, ALL), "");
    assert_eq!(combined("core:2 pu:1", 4, ALL), "[0, 1, 2, 3] of numa 0");
    assert_eq!(combined("core:8 pu:1", 1, ALL), "");
}
