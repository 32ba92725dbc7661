//! Cholesky on cores and devices.

use super::with_devices;
use sched_host::linalg::{RandomSpd, tolerance};
use sched_host::plugin::Registry;
use sched_host::runtime::{Builder, DeviceChoice, Runtime};
use sched_host::workload::{Cholesky, Workload, WorkloadError};
use sched_test_support::skipped;
use sched_tests::fixtures::{self, Profile};
use std::sync::Arc;

const ORDER: usize = 120;
const TILE: usize = 24;

/// Factorises a matrix with edges that are no whole tiles.
fn factorise(builder: Builder) -> Runtime {
    let runtime = builder.build().expect("it starts");
    for (order, tile_size) in [(ORDER, TILE), (77, 20), (5, 8)] {
        let a = RandomSpd::new(order, 7);
        let factored = Cholesky::run(&runtime, Cholesky::cut(&a, tile_size)).expect("it is positive definite");
        let residual = Cholesky::residual(&a, &factored.factors);
        assert!(residual <= tolerance(order), "order {order}: residual {residual}");
    }
    runtime
}

#[test]
fn the_factor_is_right_with_every_kind_of_policy() {
    for policy in ["tree-eager", "tree-prio", "tree-ws", "tree-heft", "tree-dmdar"] {
        factorise(with_devices("fake:6,fake:7").policy(policy).workers(2));
    }
}

#[test]
fn the_factor_is_right_where_devices_have_room_for_four_tiles() {
    let choice: DeviceChoice = "fake:6,fake:7".parse().expect("it names devices");
    let choice = choice.memory_limit(4 * 8 * (TILE * TILE) as u64);
    factorise(with_devices("none").devices(choice).workers(2));
}

#[test]
fn a_bad_pivot_is_named_with_devices_too() {
    let runtime = with_devices("fake:6").build().expect("it starts");
    let bad = sched_host::linalg::SymmetricMatrix::from_lower(30, |r, c| match (r == c, r == 20) {
        (true, true) => -1.0,
        (true, false) => 1.0,
        _ => 0.0,
    });
    let bad = bad.expect("it is small");
    match Cholesky::run(&runtime, Cholesky::cut(&bad, 8)) {
        Err(WorkloadError::NotPositiveDefinite(error)) => assert_eq!(error.row, 21),
        other => panic!("{:?}", other.map(|factored| factored.figures)),
    }
}

/// The first OpenCL device with double precision; says so in one line if there is none.
pub(super) fn opencl() -> Option<(Arc<Registry>, DeviceChoice)> {
    let plugin = fixtures::stock_plugin("sched-plugin-driver-opencl", Profile::Debug);
    let mut registry = Registry::of_file(&plugin).expect("it is sound");
    registry.add_builtin("sched-components", sched_components::stock()).expect("they are sound");
    let driver = registry.driver("opencl").expect("it offers one");
    let devices = match driver.open() {
        Ok(open) => open.devices,
        Err(problem) => {
            skipped(&problem.to_string());
            return None;
        }
    };
    if !devices.first().is_some_and(|device| device.double_precision) {
        skipped("there is no OpenCL device with double precision");
        return None;
    }
    Some((Arc::new(registry), "opencl:0".parse().expect("it names a device")))
}

#[test]
fn the_factor_is_right_with_opencl() {
    let Some((registry, choice)) = opencl() else { return };
    let runtime = factorise(Runtime::builder().registry(registry).workers(1).devices(choice));
    assert!(!runtime.devices()[0].lost);
}
