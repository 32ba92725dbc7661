//! Factorisations on cores and devices.

use super::with_devices;
use sched_core::Arch;
use sched_host::linalg::Precision;
use sched_host::plugin::Registry;
use sched_host::runtime::{Builder, DeviceChoice, Runtime, Where};
use sched_host::workload::{Cholesky, Lu, Qr, Workload, WorkloadError};
use sched_test_support::skipped;
use sched_tests::fixtures::{self, Profile};
use std::sync::Arc;

const ORDER: usize = 120;
const TILE: usize = 24;

/// Orders of matrices with sizes of tiles, some with edges that are no whole tiles.
const SIZES: [(usize, usize); 4] = [(ORDER, TILE), (77, 20), (90, 43), (5, 8)];

/// Factorises matrices of these orders, in tiles of these sizes.
fn factorise_sizes<W: Workload>(builder: Builder, precision: Precision, sizes: &[(usize, usize)]) -> Runtime {
    let runtime = builder.build().expect("it starts");
    for &(order, tile_size) in sizes {
        let a = W::random(order, 7);
        let factored = W::run_in(&runtime, W::cut(&*a, tile_size), precision).expect("it has factors");
        let (residual, tolerance) = (W::residual(&*a, &factored.factors), W::tolerance_in(order, precision));
        assert!(residual <= tolerance, "{} of order {order}: residual {residual}", W::NAME);
        assert!(precision == Precision::Double || order < 10 || residual > W::tolerance(order), "it is single");
    }
    runtime
}

fn factorise_as<W: Workload>(builder: Builder, precision: Precision) -> Runtime {
    factorise_sizes::<W>(builder, precision, &SIZES)
}

fn factorise(builder: Builder) -> Runtime {
    factorise_as::<Cholesky>(builder, Precision::Double)
}

/// [`factorise_sizes`], where devices of this architecture execute every task that they have a kernel for.
fn factorise_there<W: Workload>(builder: Builder, arch: Arch, precision: Precision, sizes: &[(usize, usize)]) {
    let only = |builder: Builder, kernel: &&str| builder.only_on(*kernel, Where::arch(arch));
    let runtime = factorise_sizes::<W>(W::ON_DEVICES.iter().fold(builder, only), precision, sizes);
    assert!(by_devices(&runtime) > 0 && runtime.devices().iter().all(|device| !device.lost));
}

/// Number of tasks that devices have executed.
fn by_devices(runtime: &Runtime) -> u64 {
    let workers: Vec<u32> = runtime.devices().iter().map(|device| device.worker).collect();
    runtime.stats().iter().filter(|worker| workers.contains(&worker.id)).map(|worker| worker.tasks).sum()
}

#[test]
fn the_factor_is_right_with_every_kind_of_policy() {
    for policy in ["tree-eager", "tree-prio", "tree-ws", "tree-heft", "tree-dmdar"] {
        factorise(with_devices("fake:6,fake:7").policy(policy).workers(2));
    }
}

#[test]
fn every_factorisation_is_right_in_either_precision() {
    for precision in [Precision::Double, Precision::Single] {
        let builder = || with_devices("fake:6,fake:7").policy("tree-ws").workers(1);
        factorise_there::<Cholesky>(builder(), Arch::OPENCL, precision, &SIZES);
        factorise_there::<Lu>(builder(), Arch::OPENCL, precision, &SIZES);
        factorise_there::<Qr>(builder(), Arch::OPENCL, precision, &SIZES);
    }
}

#[test]
fn the_factors_are_right_where_devices_have_room_for_a_few_tiles() {
    let small = |tiles: usize| {
        let choice: DeviceChoice = "fake:6,fake:7".parse().expect("it names devices");
        let choice = choice.memory_limit((tiles * 8 * TILE * TILE) as u64);
        with_devices("none").devices(choice).workers(2)
    };
    factorise_as::<Cholesky>(small(4), Precision::Double);
    factorise_as::<Lu>(small(4), Precision::Double);
    factorise_as::<Qr>(small(6), Precision::Double);
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
    real("opencl")
}

/// The first device of a driver with double precision; says so in one line if there is none.
fn real(driver: &str) -> Option<(Arc<Registry>, DeviceChoice)> {
    let plugin = fixtures::stock_plugin(&format!("sched-plugin-driver-{driver}"), Profile::Debug);
    let mut registry = Registry::of_file(&plugin).expect("it is sound");
    registry.add_builtin("sched-components", sched_components::stock()).expect("they are sound");
    let devices = match registry.driver(driver).expect("it offers one").open() {
        Ok(open) => open.devices,
        Err(problem) => {
            skipped(&problem.to_string());
            return None;
        }
    };
    if !devices.first().is_some_and(|device| device.double_precision) {
        skipped(&format!("there is no device `{driver}` with double precision"));
        return None;
    }
    Some((Arc::new(registry), format!("{driver}:0").parse().expect("it names a device")))
}

/// The drivers of devices that machines may have, with their architectures.
const REAL: [(&str, Arch); 2] = [("opencl", Arch::OPENCL), ("cuda", Arch::CUDA)];

#[test]
fn the_factors_are_right_on_real_devices_in_either_precision() {
    for (driver, arch) in REAL {
        let Some((registry, choice)) = real(driver) else { continue };
        let builder = || Runtime::builder().registry(Arc::clone(&registry)).workers(1).devices(choice.clone());
        for precision in [Precision::Double, Precision::Single] {
            factorise_there::<Cholesky>(builder(), arch, precision, &SIZES);
            factorise_there::<Lu>(builder(), arch, precision, &SIZES);
            factorise_there::<Qr>(builder(), arch, precision, &SIZES);
        }
    }
}

#[test]
fn the_factor_is_right_where_tiles_need_several_groups_and_rounds() {
    for (driver, arch) in REAL {
        let Some((registry, choice)) = real(driver) else { continue };
        let builder = Runtime::builder().registry(registry).workers(1).devices(choice);
        // More rows than those of a group, and more columns than a group copies at once.
        factorise_there::<Cholesky>(builder, arch, Precision::Double, &[(531, 265), (300, 150)]);
    }
}
