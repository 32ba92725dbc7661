//! Kernels and devices that fail.

use super::{On, SOURCE, axpy, fill, scale, with_devices};
use sched_core::driver::DriverError;
use sched_core::{Arch, Build, BuildError, Child, Component, Family, Info, Node, Offer, Params, Push, Task};
use sched_driver_fake::{FakeDriver, open_spans};
use sched_host::plugin::Registry;
use sched_host::runtime::{ArrayHandle, Codelet, DeviceChoice, KernelCall, Outcome, Plan, ReadWrite};
use sched_host::runtime::{Runtime, Submitter, Where};
use sched_tests::chains::submit_sums;
use sched_tests::stock::policy;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A codelet with one kernel on devices, with any arguments.
fn kernel(submitter: &Submitter, source: &'static str, entry: &str) -> Codelet<(ReadWrite<[f64]>,)> {
    submitter.codelet(entry).opencl(source, entry, |(), (x,)| KernelCall::over([1]).arg(&x)).build()
}

/// The message of a task with this kernel, which fails; the runtime goes on.
fn message(runtime: &Runtime, source: &'static str, entry: &str) -> String {
    let (codelet, x) = (kernel(runtime, source, entry), runtime.array(vec![1.0; 4]));
    let task = runtime.task(&codelet, (&x,)).submit().expect("it is taken");
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("it fails") };
    assert!(runtime.wait_all().is_err());
    assert!(runtime.read(&x).is_err(), "it was not computed");
    failure.message.clone()
}

#[test]
fn a_kernel_that_fails_says_why_and_the_device_goes_on() {
    let runtime = with_devices("fake:2").build().expect("it starts");
    let failed = message(&runtime, "__kernel void fail(…)", "fail");
    assert_eq!(failed, "the driver failed: the kernel `fail` failed, as it was asked to");
    let built = message(&runtime, "\n__kernel void magic(…)", "magic");
    assert!(built.starts_with("the kernel does not compile: line 2: fake devices have no kernel `magic`"), "{built}");
    let missing = message(&runtime, SOURCE, "gemm");
    assert_eq!(missing, "the call is not valid: the module has no kernel `gemm`");
    let wrong = message(&runtime, SOURCE, "scale");
    assert!(wrong.contains("got 1 buffers and 0 sizes, expected 1 and 2"), "{wrong}");
    let panicked = message(&runtime, "__kernel void panic(…)", "panic");
    assert!(panicked.starts_with("the driver panicked: the kernel `panic` was launched"), "{panicked}");
    let (x, scale) = (runtime.array(vec![1.0; 4]), scale(&runtime, On::Devices));
    runtime.task_with(&scale, 2.0, (&x,)).submit().expect("it is taken");
    assert_eq!(*runtime.read(&x).expect("it was computed"), [2.0; 4]);
}

#[test]
fn without_a_lost_device_the_others_go_on() {
    let runtime = with_devices("fake:3,fake:4").build().expect("it starts");
    let lose = runtime.codelet::<(ReadWrite<[f64]>,), ()>("lose");
    let lose = lose.opencl("__kernel void lose(…)", "lose", |(), (x,)| KernelCall::over([1]).arg(&x)).build();
    let (x, only_there) = (runtime.array(vec![1.0; 4]), runtime.array(vec![1.0; 4]));
    let (on_devices, anywhere) = (scale(&runtime, On::Devices), scale(&runtime, On::Both));
    let worker = runtime.devices()[0].worker;
    let places = || sched_host::runtime::Where::worker(worker);
    runtime.task_with(&on_devices, 2.0, (&only_there,)).only_on(places()).submit().expect("it is taken");
    let task = runtime.task(&lose, (&x,)).only_on(places()).submit().expect("it is taken");
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("it fails") };
    assert_eq!(failure.message, "the device is lost: fake device 3 is gone");
    assert!(runtime.wait_all().is_err());
    assert_eq!(runtime.devices().iter().map(|device| device.lost).collect::<Vec<_>>(), [true, false]);
    // What only the device had is lost with it, and says so.
    let lost = runtime.read(&only_there).map(|_| ()).expect_err("it was on the device");
    assert!(lost.to_string().contains("the only copy of the data was on a device"), "{lost}");
    // Others execute what it would have; what only it may execute fails.
    for on in [&on_devices, &anywhere] {
        let arrays: Vec<_> = (0..20).map(|_| runtime.array(vec![1.0; 4])).collect();
        for y in &arrays {
            runtime.task_with(on, 2.0, (y,)).submit().expect("it is taken");
        }
        runtime.wait_all().expect("no task fails");
        arrays.iter().for_each(|y| assert_eq!(*runtime.read(y).expect("it was computed"), [2.0; 4]));
    }
    let y = runtime.array(vec![1.0; 4]);
    let task = runtime.task_with(&on_devices, 2.0, (&y,)).only_on(places()).submit().expect("it is taken");
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("it fails") };
    assert!(failure.message.contains("no other worker can execute the task"), "{}", failure.message);
    assert!(runtime.wait_all().is_err());
    // What is overwritten is data again.
    runtime.task_with(&fill(&runtime, On::Both), 5.0, (&only_there,)).submit().expect("it is taken");
    assert_eq!(*runtime.read(&only_there).expect("it was computed"), [5.0; 4]);
}

#[test]
fn what_does_not_fit_on_a_device_runs_elsewhere_or_fails() {
    let choice: DeviceChoice = "fake:5".parse().expect("it names a device");
    let runtime = with_devices("none").devices(choice.memory_limit(1000)).build().expect("it starts");
    let (x, y) = (runtime.array(vec![1.0; 100]), runtime.array(vec![1.0; 100]));
    for _ in 0..10 {
        runtime.task_with(&axpy(&runtime, On::Both), 1.0, (&x, &y)).submit().expect("it is taken");
    }
    assert_eq!(*runtime.read(&y).expect("it was computed"), [11.0; 100]);
    let task = runtime.task_with(&axpy(&runtime, On::Devices), 1.0, (&x, &y)).submit().expect("it is taken");
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("it fails") };
    let message = &failure.message;
    assert!(message.starts_with("out of device memory: 800 bytes are needed, and 800 of 1000 are in use"), "{message}");
    assert!(message.ends_with("no other worker can execute the task"), "{message}");
    assert!(runtime.wait_all().is_err());
}

#[test]
fn what_does_not_fit_on_a_device_runs_elsewhere_under_every_policy() {
    for policy in sched_host::policy::library() {
        let choice: DeviceChoice = "fake:5".parse().expect("it names a device");
        let builder = with_devices("none").devices(choice.memory_limit(1000)).policy(policy.name);
        let runtime = builder.build().expect("it starts");
        let axpy = axpy(&runtime, On::Both);
        let chains = [(); 3].map(|()| (runtime.array(vec![1.0; 100]), runtime.array(vec![1.0; 100])));
        for _ in 0..10 {
            for (x, y) in &chains {
                runtime.task_with(&axpy, 1.0, (x, y)).submit().expect("it is taken");
            }
        }
        runtime.wait_all().unwrap_or_else(|end| panic!("{}: {end}", policy.name));
        for (_, y) in &chains {
            assert_eq!(*runtime.read(y).expect("it was computed"), [11.0; 100], "{}", policy.name);
        }
    }
}

/// The first half was copied before it turned out that the second is lost.
#[test]
fn what_is_copied_in_vain_takes_no_memory() {
    let runtime = with_devices("fake:1,fake:27").build().expect("it starts");
    let devices = runtime.devices();
    let on = |device: usize| Where::worker(devices[device].worker);
    let (x, y) = (runtime.array(vec![1.0; 8]), runtime.array(vec![1.0; 4]));
    let halves = x.partition(&Plan::ranges(2)).expect("it can be divided");
    let fill = fill(&runtime, On::Devices);
    let filled = runtime.task_with(&fill, 2.0, (&halves[1],)).only_on(on(1)).submit().expect("it is taken");
    // A kernel that is under way would be lost with the device.
    assert!(matches!(runtime.wait(filled), Ok(Outcome::Done)));
    let lose = kernel(&runtime, "__kernel void lose(…)", "lose");
    runtime.task(&lose, (&y,)).only_on(on(1)).submit().expect("it is taken");
    assert!(runtime.wait_all().is_err());
    let scale = scale(&runtime, On::Devices);
    let task = runtime.task_with(&scale, 2.0, (&x,)).only_on(on(0)).submit().expect("it is taken");
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("half of it is lost") };
    assert!(failure.message.contains("the only copy of the data was on a device"), "{}", failure.message);
    assert!(runtime.wait_all().is_err());
    let there = runtime.memory_nodes().into_iter().find(|node| node.node == devices[0].memory_node);
    assert_eq!(there.map(|node| node.replica_bytes), Some(0));
}

/// Loses the first device of a runtime, which executes nothing.
fn lose_first(runtime: &Runtime) {
    let (lose, x) = (kernel(runtime, "__kernel void lose(…)", "lose"), runtime.array(vec![1.0; 4]));
    let first = Where::worker(runtime.devices()[0].worker);
    runtime.task(&lose, (&x,)).only_on(first).submit().expect("it is taken");
    assert!(runtime.wait_all().is_err());
    assert!(runtime.devices()[0].lost);
}

/// An array of which both devices of a runtime have a copy, and its home an old one.
fn on_both(runtime: &Runtime) -> ArrayHandle<f64> {
    let devices = runtime.devices();
    let on = |device: usize| Where::worker(devices[device].worker);
    let (x, y) = (runtime.array(vec![1.0; 10]), runtime.array(vec![1.0; 10]));
    runtime.task_with(&fill(runtime, On::Devices), 2.0, (&x,)).only_on(on(0)).submit().expect("it is taken");
    runtime.task_with(&axpy(runtime, On::Devices), 1.0, (&x, &y)).only_on(on(1)).submit().expect("it is taken");
    assert_eq!(*runtime.read(&y).expect("it was computed"), [3.0; 10]);
    runtime.wait_all().expect("no task fails");
    x
}

#[test]
fn what_a_lost_device_held_too_is_evicted_to_the_host() {
    let choice: DeviceChoice = "fake:33,fake:1".parse().expect("it names devices");
    let runtime = with_devices("none").devices(choice.memory_limit(160)).build().expect("it starts");
    let x = on_both(&runtime);
    lose_first(&runtime);
    let fill = fill(&runtime, On::Devices);
    let others: Vec<_> = (0..4).map(|_| runtime.array(vec![0.0; 10])).collect();
    for y in &others {
        runtime.task_with(&fill, 3.0, (y,)).submit().expect("it is taken");
    }
    runtime.wait_all().expect("no task fails");
    assert!(runtime.devices()[1].evictions >= 3);
    assert_eq!(*runtime.read(&x).expect("the other device had it"), [2.0; 10]);
}

#[test]
fn the_copy_that_is_kept_is_on_a_device_that_works() {
    let runtime = with_devices("fake:34,fake:1").build().expect("it starts");
    let x = on_both(&runtime);
    lose_first(&runtime);
    runtime.wont_use(&x).expect("it is of this runtime");
    assert_eq!(*runtime.read(&x).expect("the other device had it"), [2.0; 10]);
}

#[test]
fn what_was_lost_is_overwritten_on_any_memory_node() {
    let runtime = with_devices("fake:35").workers(2).memory_nodes(2).build().expect("it starts");
    let device = Where::worker(runtime.devices()[0].worker);
    let x = runtime.array(vec![1.0; 4]);
    let on_device = runtime.task_with(&fill(&runtime, On::Devices), 2.0, (&x,)).only_on(device).submit();
    runtime.wait(on_device.expect("it is taken")).expect("it ends");
    lose_first(&runtime);
    let (fill, beside) = (fill(&runtime, On::Cores), Where::worker(1));
    runtime.task_with(&fill, 5.0, (&x,)).only_on(beside).submit().expect("it is taken");
    runtime.wait_all().expect("the task reads nothing");
    assert_eq!(*runtime.read(&x).expect("it was computed"), [5.0; 4]);
}

#[test]
fn a_closure_that_panics_leaves_no_span_open() {
    let runtime = with_devices("fake:7").build().expect("it starts");
    let panics = runtime.codelet::<(), ()>("panics").device_raw(Arch::OPENCL, "panics", |device, (), ()| {
        device.queue()?;
        assert!(device.number() != 7, "broken on purpose");
        Ok::<(), DriverError>(())
    });
    let task = runtime.task(&panics.build(), ()).submit().expect("it is taken");
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("it fails") };
    assert!(failure.panicked && failure.message == "broken on purpose", "{}", failure.message);
    assert!(runtime.wait_all().is_err());
    assert_eq!(open_spans(7), 0);
}

/// Gives tasks to its first child that can execute them, and panics in the fourth push.
struct Breaks {
    pushes: AtomicU32,
}

impl Build for Breaks {
    const INFO: Info = Info::new("breaks", Family::ResourceMapping, "Breaks.");

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Breaks { pushes: AtomicU32::new(0) })
    }
}

impl Component for Breaks {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        assert!(self.pushes.fetch_add(1, Relaxed) < 3, "broken on purpose");
        let child = node.children().find(|child| node.child_can_execute(*child, &task));
        node.push_to(child.unwrap_or(Child(0)), task)
    }
}

/// Tasks that only a device can execute pass a component that has failed, and do not wait in the queue of a core.
#[test]
fn a_component_that_fails_above_devices_does_no_harm() {
    let tree = r#"breaks { each "worker" { fifo { worker } } }"#;
    let mut registry = Registry::compiled_in();
    registry.add_builtin("test", vec![Offer::of::<Breaks>()]).expect("it is sound");
    registry.add_driver::<FakeDriver>("tests");
    let builder = with_devices("fake:0").registry(Arc::new(registry)).policy_value(policy(tree)).unchecked();
    let runtime = builder.build().expect("it starts");
    let sums = submit_sums(&runtime, 20);
    let (scale, x) = (scale(&runtime, On::Devices), runtime.array(vec![1.0; 4]));
    for _ in 0..10 {
        runtime.task_with(&scale, 2.0, (&x,)).submit().expect("it is taken");
    }
    runtime.wait_all().expect("every task runs");
    sums.assert_once(&runtime, tree);
    assert_eq!(*runtime.read(&x).expect("it was computed"), [1024.0; 4]);
    assert_eq!(runtime.faults().len(), 1);
}
