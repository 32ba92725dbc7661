//! `sched bench device` measures what its figures say.

use super::factorisations::opencl;
use super::registry;
use sched_core::Arch;
use sched_host::bench::{Calibration, DeviceBench, DeviceBenchError, calibrate, device_bench};
use sched_host::runtime::DeviceChoice;
use sched_host::topology::Topology;
use std::time::Duration;

fn small(device: DeviceChoice) -> DeviceBench {
    DeviceBench {
        device,
        policy: "tree-eager".to_owned(),
        workers: 1,
        kernels: 50,
        length: Duration::from_micros(20),
        bytes: 64 << 10,
        tiles: 3,
        tile_size: 20,
        rounds: 1,
    }
}

#[test]
fn without_a_device_there_is_an_error_that_helps() {
    let error = device_bench(&small(DeviceChoice::default()), &registry(), |_| {}).expect_err("there is none");
    assert!(matches!(error, DeviceBenchError::NoDevice), "{error}");
    let help = miette::Diagnostic::help(&error).expect("what to do").to_string();
    assert!(help.contains("sched topology"), "{help}");
}

#[test]
fn the_kernels_of_devices_are_measured_for_simulations() {
    let wanted = Calibration {
        policy: "tree-eager".to_owned(),
        workers: 1,
        bind: true,
        tile_sizes: vec![8],
        devices: vec![("fake:5".to_owned(), Arch::OPENCL)],
    };
    let topology = Topology::this_machine().expect("it is one");
    let measured = calibrate(&wanted, &registry(), &topology, |_| {}).expect("the device works");
    let [on_device] = &*measured.on_devices else { panic!("there is one device: {measured:?}") };
    assert!(on_device.overlaps, "it has threads of its own, and no kernel to find out with");
    let on_device = &on_device.kernels;
    let kernels: Vec<&str> = on_device.keys().map(String::as_str).collect();
    assert_eq!(kernels, ["gemm", "syrk", "trsm", "trsm_column", "trsm_row", "tsmqr", "unmqr"]);
    // Three tiles, and two.
    assert!(on_device["gemm"].keys().eq([&(3 * 8 * 64)]) && on_device["trsm"].keys().eq([&(2 * 8 * 64)]));
    assert!(measured.kernels.contains_key("potrf") && !on_device.contains_key("potrf"));
}

#[test]
fn figures_of_an_opencl_device_agree_with_each_other() {
    let Some((registry, choice)) = opencl() else { return };
    let report = device_bench(&small(choice), &registry, |_| {}).expect("the device works");
    assert_eq!((&*report.device, report.workers, report.rounds), ("opencl:0", 1, 1));
    let (kernels, copies) = (report.kernels, report.copies);
    assert!((kernels.ratio - kernels.runtime_per_s / kernels.driver_per_s).abs() < 1e-9, "{kernels:?}");
    assert!((0.0..=1.0).contains(&copies.overlap) && copies.copies_gb_per_s > 0.0, "{copies:?}");
    let cholesky = report.cholesky.expect("the device has double precision");
    assert_eq!((cholesky.order, cholesky.tile_size), (60, 20));
    let better = cholesky.device_gflops.max(cholesky.cores_gflops);
    assert!((cholesky.gain - cholesky.both_gflops / better).abs() < 1e-9, "{cholesky:?}");
    assert!((cholesky.gain_apart - cholesky.apart_gflops / better).abs() < 1e-9, "{cholesky:?}");
    assert!(cholesky.apart_gflops > 0.0 && cholesky.queue_gflops > 0.0 && cholesky.ratio > 0.0, "{cholesky:?}");
}
