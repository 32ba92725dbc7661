//! Which devices a runtime has.

use super::{On, SOURCE, registry, scale, with_devices};
use sched_host::runtime::{DeviceChoice, DeviceError, KernelCall, ReadWrite, Runtime, StartError};
use sched_host::topology::{BindingPlan, Topology};
use std::sync::{Arc, OnceLock};

/// The error of a runtime with these devices.
fn refused(devices: &str) -> String {
    match devices.parse::<DeviceChoice>() {
        Err(error) => error.to_string(),
        Ok(choice) => match Runtime::builder().registry(registry()).workers(1).devices(choice).build() {
            Err(StartError::Devices(error)) => error.to_string(),
            other => panic!("{devices}: {:?}", other.map(|runtime| runtime.devices())),
        },
    }
}

#[test]
fn mistakes_are_named() {
    assert_eq!(
        refused("fake:x"),
        "found `fake:x`, expected `none` alone, `all`, or drivers like `opencl` and devices like `cuda:0`, joined by commas"
    );
    assert_eq!(refused("fke"), "there is no driver `fke`: those that were found are fake");
    assert_eq!(refused("fake:38"), "there is no device `fake:38`: the driver `fake` has 38");
    let error = "fke".parse().map(|choice| Runtime::builder().registry(registry()).devices(choice).build());
    let Ok(Err(StartError::Devices(error @ DeviceError::NoDriver { .. }))) = error else { panic!("{:?}", error.err()) };
    let help = miette::Diagnostic::help(&error).expect("what to do").to_string();
    assert!(help.ends_with("did you mean `fake`?"), "{help}");
}

#[test]
fn devices_come_after_cores_with_memory_of_their_own() {
    let runtime = with_devices("fake:1,fake:0,fake:1").workers(2).build().expect("it starts");
    let found: Vec<(String, u32, u32)> =
        runtime.devices().into_iter().map(|of| (of.name, of.worker, of.memory_node)).collect();
    assert_eq!(found, [("fake:1".to_owned(), 2, 1), ("fake:0".to_owned(), 3, 2)]);
    assert_eq!(runtime.workers(), 4);
}

/// The PUs on which this thread may run.
fn allowed_here() -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("it is in the status");
    let number = |text: &str| -> u32 { text.parse().expect("it is a number") };
    let pus = line.trim().split(',').flat_map(|range| match range.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(range)..=number(range),
    });
    pus.collect()
}

/// A core worker that is bound to its PU could not give way to the thread of a device that is made of cores.
#[test]
fn devices_are_driven_from_where_no_core_worker_is() {
    let topology = Topology::this_machine().expect("it is one");
    for workers in [1, topology.allowed_pus().len()] {
        let runtime = with_devices("fake:1").topology(topology.clone()).workers(workers).build().expect("it starts");
        let (seen, array) = (Arc::new(OnceLock::new()), runtime.array(vec![1.0; 4]));
        let note = Arc::clone(&seen);
        let scale = runtime.codelet::<(ReadWrite<[f64]>,), ()>("scale").opencl(SOURCE, "scale", move |(), (x,)| {
            note.get_or_init(allowed_here);
            KernelCall::over([x.len() as usize]).arg(&x).arg(x.offset()).arg(x.len()).arg(2.0)
        });
        runtime.task(&scale.build(), (&array,)).submit().expect("it is taken");
        runtime.wait_all().expect("no task fails");
        let plan = BindingPlan::new(&topology, workers).expect("there are PUs");
        let free = plan.free_pus(None);
        let expected = if free.is_empty() { allowed_here() } else { free };
        assert_eq!(seen.get(), Some(&expected), "{workers} workers");
    }
}

/// Fake devices are used on request only.
#[test]
fn without_devices_all_is_none_and_says_so() {
    let runtime = with_devices("all").build().expect("it starts");
    assert_eq!(runtime.devices(), []);
    let warning = "no device is used: no driver finds a device";
    assert!(runtime.warnings().iter().any(|line| line == warning), "{:?}", runtime.warnings());
    assert!(Runtime::builder().registry(registry()).build().expect("it starts").devices().is_empty());
}

#[test]
fn every_shipped_policy_uses_devices() {
    for policy in sched_host::policy::library().iter().map(|shipped| shipped.name) {
        let Ok(runtime) = with_devices("fake:0,fake:1").policy(policy).build() else { continue };
        let (scale, values) = (scale(&runtime, On::Both), vec![1.0; 16]);
        let arrays: Vec<_> = (0..8).map(|_| runtime.array(values.clone())).collect();
        for x in arrays.iter().cycle().take(40) {
            runtime.task_with(&scale, 2.0, (x,)).submit().expect("it is taken");
        }
        runtime.wait_all().unwrap_or_else(|error| panic!("{policy}: {error}"));
        arrays.iter().for_each(|x| assert_eq!(*runtime.read(x).expect("it was computed"), [32.0; 16], "{policy}"));
    }
}

#[test]
fn another_search_for_plugins_keeps_the_drivers_of_the_program() {
    assert!(registry().rescan().driver("fake").is_some());
}
