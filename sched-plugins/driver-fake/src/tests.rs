use super::*;
use sched_core::abi::driver::{DriverHandle, OpenedDriver};
use sched_core::driver::Arg;

const DEVICE: DeviceNumber = DeviceNumber(0);
const NOW: Order<'static> = Order { queue: 0, after: &[] };

/// Opened as a host does it.
fn driver() -> OpenedDriver {
    DriverHandle::of::<FakeDriver>().open().expect("the settings are right")
}

fn place(buffer: BufferId) -> DeviceMemory {
    DeviceMemory { device: DEVICE, buffer, offset: 0, pitch: 0 }
}

fn rows_of(values: &[f64]) -> (HostMemory, Rows) {
    // SAFETY: the tests wait for the end of each copy while the values are there.
    let memory = unsafe { HostMemory::new(values.as_ptr().cast_mut().cast(), 0) };
    (memory, Rows { bytes: size_of_val(values) as u64, count: 1 })
}

fn kernel(driver: &OpenedDriver, name: &str) -> KernelId {
    let text = format!("__kernel void {name}(…) {{}}");
    let module = driver.load(DEVICE, Source::Text { text: &text, options: "" }).expect("it is known");
    driver.kernel(DEVICE, module, name).expect("it is declared")
}

fn launch(driver: &OpenedDriver, name: &str, args: &[Arg]) -> Result<Token, DriverError> {
    let launch = Launch { kernel: kernel(driver, name), items: [1, 1, 1], group: [0; 3], args };
    driver.launch(DEVICE, launch, NOW)
}

#[test]
fn values_go_to_the_device_and_come_back_changed() {
    let driver = driver();
    let buffer = driver.allocate(DEVICE, 24).expect("there is room");
    let values = [1.0, 2.0, 3.0];
    let (memory, rows) = rows_of(&values);
    let arrived = driver.copy_in(memory, place(buffer), rows, Order { queue: 1, after: &[] }).expect("it starts");
    let args = [Arg::Buffer(buffer), 1u32.into(), 2u32.into(), 10.0.into()];
    let scaling = Launch { kernel: kernel(&driver, "scale"), items: [2, 1, 1], group: [0; 3], args: &args };
    let scaled = driver.launch(DEVICE, scaling, Order { queue: 0, after: &[arrived] }).expect("it starts");
    let mut back = [0.0; 3];
    let (memory, rows) = rows_of(&back);
    let done = driver.copy_out(place(buffer), memory, rows, Order { queue: 1, after: &[scaled] }).expect("it starts");
    driver.wait(DEVICE, done).expect("it ends well");
    assert_eq!(std::mem::take(&mut back), [1.0, 20.0, 30.0]);
    driver.free(DEVICE, buffer).expect("it was there");
}

#[test]
fn kernels_fail_with_words_that_say_why() {
    let driver = driver();
    let error = launch(&driver, "fail", &[]).and_then(|token| driver.wait(DEVICE, token)).unwrap_err();
    assert_eq!(error.to_string(), "the driver failed: the kernel `fail` failed, as it was asked to");
    let error = launch(&driver, "panic", &[]).unwrap_err();
    assert_eq!(error.kind, DriverErrorKind::Panicked, "{error}");
    let error = launch(&driver, "scale", &[1u32.into()]).unwrap_err();
    assert_eq!(error.kind, DriverErrorKind::Invalid, "{error}");
    let text = "\nkernel void magic(…)";
    let error = driver.load(DEVICE, Source::Text { text, options: "" }).unwrap_err();
    assert!(error.to_string().starts_with("the kernel does not compile: line 2: fake devices have no kernel `magic`"));
}

#[test]
fn a_device_that_is_lost_stays_lost() {
    let driver = driver();
    let buffer = driver.allocate(DEVICE, 8).expect("there is room");
    let error = launch(&driver, "lose", &[]).and_then(|token| driver.wait(DEVICE, token)).unwrap_err();
    assert_eq!(error.kind, DriverErrorKind::Lost, "{error}");
    assert_eq!(driver.allocate(DEVICE, 8).unwrap_err().kind, DriverErrorKind::Lost);
    driver.free(DEVICE, buffer).expect("what is freed on a lost device is no error");
}

#[test]
fn memory_has_an_end() {
    let driver = driver();
    let whole = driver.devices().expect("it has one")[0].memory;
    let most = driver.allocate(DEVICE, whole).expect("all of it");
    assert_eq!(driver.allocate(DEVICE, 1).unwrap_err().kind, DriverErrorKind::OutOfMemory);
    driver.free(DEVICE, most).expect("it was there");
    assert!(driver.allocate(DEVICE, 1).is_ok());
}

#[test]
fn settings_are_read_and_mistakes_named() {
    let read = Settings::read("devices=2 memory=1000 latency-us=20").expect("it is right");
    assert_eq!((read.devices, read.memory, read.latency.as_micros()), (2, 1000, 20));
    let wrong = Settings::read("device=2").unwrap_err();
    assert!(wrong.starts_with("found `device=2`, expected devices="), "{wrong}");
}
