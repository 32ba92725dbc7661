//! Tasks wait for room on a device while others use its memory.

use super::{On, axpy, fill, scale, with_devices};
use sched_core::Arch;
use sched_driver_fake::hold_copies;
use sched_host::runtime::{DeviceChoice, Outcome, Plan, ReadWrite, Runtime};
use std::thread::yield_now;

/// A runtime with this device, with room for this number of arrays of ten elements.
fn with_room_for(device: &str, arrays: u64) -> Runtime {
    let choice: DeviceChoice = device.parse().expect("it names a device");
    with_devices("none").devices(choice.memory_limit(arrays * 80)).build().expect("it starts")
}

fn wait_until_a_task_waits(runtime: &Runtime) {
    while runtime.devices()[0].waits_for_room == 0 {
        yield_now();
    }
}

#[test]
fn a_task_waits_for_data_that_is_on_its_way_and_then_takes_its_place() {
    let runtime = with_room_for("fake:22", 1);
    let fill = fill(&runtime, On::Devices);
    let (ahead, x) = (runtime.array(vec![1.0; 10]), runtime.array(vec![0.0; 10]));
    let held = hold_copies(22);
    runtime.prefetch(&ahead, runtime.devices()[0].memory_node).expect("there is such a node");
    held.wait_for_one();
    let task = runtime.task_with(&fill, 3.0, (&x,)).submit().expect("it is taken");
    wait_until_a_task_waits(&runtime);
    drop(held);
    assert!(matches!(runtime.wait(task).expect("it ends"), Outcome::Done));
    assert_eq!(*runtime.read(&x).expect("it was computed"), [3.0; 10]);
    assert_eq!(*runtime.read(&ahead).expect("it is on the host"), [1.0; 10]);
}

#[test]
fn a_task_waits_while_another_device_copies_what_stands_in_its_way() {
    let choice: DeviceChoice = "fake:23,fake:24".parse().expect("it names devices");
    let runtime = with_devices("none").devices(choice.memory_limit(80)).build().expect("it starts");
    let (fill, devices) = (fill(&runtime, On::Devices), runtime.devices());
    let on = |device: usize| sched_host::runtime::Where::worker(devices[device].worker);
    let (x, y) = (runtime.array(vec![0.0; 10]), runtime.array(vec![0.0; 10]));
    let first = runtime.task_with(&fill, 2.0, (&x,)).only_on(on(0)).submit().expect("it is taken");
    runtime.wait(first).expect("it ends");
    // A copy from one device to another is in a queue of the first.
    let held = hold_copies(23);
    runtime.prefetch(&x, devices[1].memory_node).expect("there is such a node");
    held.wait_for_one();
    let task = runtime.task_with(&fill, 3.0, (&y,)).only_on(on(0)).submit().expect("it is taken");
    wait_until_a_task_waits(&runtime);
    drop(held);
    assert!(matches!(runtime.wait(task).expect("it ends"), Outcome::Done));
    assert_eq!(*runtime.read(&x).expect("it was computed"), [2.0; 10]);
    assert_eq!(*runtime.read(&y).expect("it was computed"), [3.0; 10]);
}

/// A handle that has left its scope is of no use, nor is what is on the device for it.
#[test]
fn what_a_scope_lent_makes_room_after_its_end() {
    let runtime = with_room_for("fake:2", 1);
    let (fill, mut values) = (fill(&runtime, On::Devices), [0.0; 10]);
    let ended = runtime.scope(|scope| {
        let x = scope.array(&mut values);
        runtime.task_with(&fill, 2.0, (&x,)).submit().expect("it is taken");
        x
    });
    let (left, y) = (ended.expect("no task fails"), runtime.array(vec![0.0; 10]));
    let task = runtime.task_with(&fill, 3.0, (&y,)).submit().expect("it is taken");
    assert!(matches!(runtime.wait(task).expect("it ends"), Outcome::Done));
    drop(left);
    assert_eq!((values, &*runtime.read(&y).expect("it was computed")), ([2.0; 10], &[3.0; 10][..]));
}

#[test]
fn a_closure_waits_for_room_to_work_in_while_data_is_on_its_way() {
    let choice: DeviceChoice = "fake:29".parse().expect("it names a device");
    let runtime = with_devices("none").devices(choice.memory_limit(80 + 128)).build().expect("it starts");
    let works = runtime.codelet::<(ReadWrite<[f64]>,), ()>("works");
    let works = works.device_raw(Arch::OPENCL, "works", |device, (), _| device.scratch(128).map(drop)).build();
    let (ahead, x) = (runtime.array(vec![1.0; 10]), runtime.array(vec![0.0; 10]));
    let there = runtime.task_with(&fill(&runtime, On::Devices), 3.0, (&x,)).submit().expect("it is taken");
    runtime.wait(there).expect("it ends");
    let held = hold_copies(29);
    runtime.prefetch(&ahead, runtime.devices()[0].memory_node).expect("there is such a node");
    held.wait_for_one();
    let task = runtime.task(&works, (&x,)).submit().expect("it is taken");
    wait_until_a_task_waits(&runtime);
    drop(held);
    assert!(matches!(runtime.wait(task).expect("it ends"), Outcome::Done));
    assert_eq!(*runtime.read(&x).expect("it was computed"), [3.0; 10]);
}

/// What does not fit is not waited for when nobody uses the device.
#[test]
fn a_task_that_never_fits_fails_after_what_it_waited_for() {
    let runtime = with_room_for("fake:11", 1);
    let axpy = axpy(&runtime, On::Devices);
    let [ahead, x, y] = [(); 3].map(|()| runtime.array(vec![1.0; 10]));
    let held = hold_copies(11);
    runtime.prefetch(&ahead, runtime.devices()[0].memory_node).expect("there is such a node");
    held.wait_for_one();
    let task = runtime.task_with(&axpy, 1.0, (&x, &y)).submit().expect("it is taken");
    wait_until_a_task_waits(&runtime);
    drop(held);
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("it has no room") };
    assert!(failure.message.starts_with("out of device memory: 80 bytes are needed"), "{}", failure.message);
    assert!(runtime.wait_all().is_err());
}

/// Parts that are written back one by one are written as a whole meanwhile.
#[test]
fn data_may_be_written_while_it_is_evicted() {
    let runtime = with_room_for("fake:14", 1);
    let (fill, scale) = (fill(&runtime, On::Devices), scale(&runtime, On::Devices));
    let (x, ahead) = (runtime.array(vec![0.0; 10]), runtime.array(vec![1.0; 10]));
    for half in x.partition(&Plan::ranges(2)).expect("it can be divided").iter() {
        runtime.task_with(&fill, 3.0, (half,)).submit().expect("it is taken");
    }
    runtime.wait_all().expect("no task fails");
    let held = hold_copies(14);
    runtime.prefetch(&ahead, runtime.devices()[0].memory_node).expect("there is such a node");
    held.wait_for_one();
    let task = runtime.task_with(&scale, 2.0, (&x,)).submit().expect("it is taken");
    assert!(matches!(runtime.wait(task).expect("it ends"), Outcome::Done));
    drop(held);
    assert_eq!(*runtime.read(&x).expect("it was computed"), [6.0; 10]);
    assert_eq!(*runtime.read(&ahead).expect("it is on the host"), [1.0; 10]);
}
