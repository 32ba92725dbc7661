use super::*;
use sched_core::abi::driver::{DriverHandle, OpenedDriver};
use sched_core::driver::{Arg, BufferId, DeviceMemory, DeviceNumber, DriverErrorKind, Launch, Order, Source};
use sched_test_support::skipped;
use std::sync::OnceLock;

const DEVICE: DeviceNumber = DeviceNumber(0);
const NOW: Order<'static> = Order { queue: 0, after: &[] };

/// The driver, opened once as hosts do, if there is a device that kernels with double precision run on; reports
/// otherwise that the test is skipped.
fn driver() -> Option<&'static OpenedDriver> {
    static OPEN: OnceLock<Result<OpenedDriver, DriverError>> = OnceLock::new();
    let driver = match OPEN.get_or_init(|| DriverHandle::of::<OpenClDriver>().open()) {
        Ok(driver) => driver,
        Err(error) if error.kind == DriverErrorKind::Unavailable => {
            skipped(&error.to_string());
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let can = driver.devices().expect("they are listed").first().is_some_and(|device| device.double_precision);
    if !can {
        skipped("there is no OpenCL device with double precision");
    }
    can.then_some(driver)
}

fn place(buffer: BufferId, offset: u64) -> DeviceMemory {
    DeviceMemory { device: DEVICE, buffer, offset, pitch: 0 }
}

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn values(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect()
}

const SCALE: &str = "
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void scale(__global double *x, uint offset, uint n, double factor, __local double *unused) {
    if (get_global_id(0) < n) x[offset + get_global_id(0)] *= factor;
}";

#[test]
fn values_go_to_the_device_and_come_back_changed() {
    let Some(driver) = driver() else { return };
    let buffer = driver.allocate(DEVICE, 24).expect("there is room");
    driver.write(&bytes(&[1.0, 2.0, 3.0]), place(buffer, 0), Order { queue: 1, after: &[] }).expect("it is copied");
    let module = driver.load(DEVICE, Source::Text { text: SCALE, options: "" }).expect("it compiles");
    let kernel = driver.kernel(DEVICE, module, "scale").expect("it is there");
    let args = [Arg::Buffer(buffer), 1u32.into(), 2u32.into(), 10.0.into(), Arg::Local(64)];
    let launch = Launch { kernel, items: [2, 1, 1], group: [0; 3], args: &args };
    let scaled = driver.launch(DEVICE, launch, NOW).expect("it starts");
    let marked = driver.mark(DEVICE, 0).expect("it starts");
    driver.wait(DEVICE, scaled).expect("it ends well");
    driver.wait(DEVICE, marked).expect("it ends well");
    let mut back = vec![0; 16];
    driver.read(place(buffer, 8), &mut back, Order { queue: 1, after: &[] }).expect("it is copied");
    assert_eq!(values(&back), [20.0, 30.0]);
    driver.free(DEVICE, buffer).expect("it was there");
}

#[test]
fn a_kernel_that_does_not_compile_has_the_log_of_the_compiler() {
    let Some(driver) = driver() else { return };
    let text = "__kernel void wrong(__global float *x) { x[0] = undeclared_name; }";
    let error = driver.load(DEVICE, Source::Text { text, options: "" }).expect_err("it does not compile");
    assert_eq!(error.kind, DriverErrorKind::Build);
    assert!(error.message.contains("undeclared_name"), "{error}");
    let module = driver.load(DEVICE, Source::Text { text: SCALE, options: "" }).expect("it compiles");
    let error = driver.kernel(DEVICE, module, "scall").expect_err("there is none");
    assert!(error.message.starts_with("kernel `scall`: clCreateKernel: CL_INVALID_KERNEL_NAME"), "{error}");
}

#[test]
fn what_is_not_there_is_an_error() {
    let Some(driver) = driver() else { return };
    assert_eq!(driver.allocate(DeviceNumber(99), 8).expect_err("there is none").kind, DriverErrorKind::NoDevice);
    assert_eq!(driver.mark(DEVICE, 7).expect_err("there is none").kind, DriverErrorKind::Invalid);
}
