//! Devices that lack what kernels need do not execute them.

use super::{SOURCE, with_devices};
use sched_host::runtime::{
    Codelet, DeviceNeeds, KernelCall, ReadWrite, Runtime, SubmitError, Submitter, explore_devices,
};

/// x := 10 · x, on devices that have this, and perhaps on cores.
fn scale(submitter: &Submitter, needs: DeviceNeeds, on_cores: bool) -> Codelet<(ReadWrite<[f64]>,), ()> {
    let mut codelet = submitter.codelet::<(ReadWrite<[f64]>,), ()>("scale").device_needs(needs);
    if on_cores {
        codelet = codelet.cpu("scale", |_, (x,)| x.iter_mut().for_each(|value| *value *= 10.0));
    }
    let call = |_: &(), (x,): (sched_host::runtime::DeviceSlice<f64>,)| {
        KernelCall::over([x.len() as usize]).arg(&x).arg(x.offset()).arg(x.len()).arg(10.0)
    };
    codelet.opencl(SOURCE, "scale", call).build()
}

/// Number of tasks by worker, after some of this codelet.
fn shares(runtime: &Runtime, codelet: &Codelet<(ReadWrite<[f64]>,), ()>) -> Vec<u64> {
    let before: Vec<u64> = runtime.stats().iter().map(|worker| worker.tasks).collect();
    let arrays: Vec<_> = (0..20).map(|_| runtime.array(vec![1.0; 4])).collect();
    for array in &arrays {
        runtime.task(codelet, (array,)).submit().expect("somebody can execute it");
    }
    runtime.wait_all().expect("no task fails");
    arrays.iter().for_each(|array| assert_eq!(*runtime.read(array).expect("it was computed"), [10.0; 4]));
    runtime.stats().iter().zip(before).map(|(after, before)| after.tasks - before).collect()
}

#[test]
fn a_device_without_double_precision_is_left_out() {
    // The last fake device is the only one that has none.
    let runtime = with_devices("fake:15,fake:37").policy("tree-ws").workers(1).build().expect("it starts");
    let double = DeviceNeeds::default().double_precision();
    for policy in ["tree-ws", "tree-eager", "tree-heft", "tree-prio"] {
        runtime.default_context().swap_policy(policy).expect("it fits");
        assert_eq!(shares(&runtime, &scale(&runtime, double, true))[2], 0, "{policy}");
        assert_eq!(shares(&runtime, &scale(&runtime, double, false)), [0, 20, 0], "{policy}");
    }
    assert_eq!(runtime.faults(), []);
}

#[test]
fn the_error_says_what_is_lacking_where_nobody_can() {
    let runtime = with_devices("fake:37").build().expect("it starts");
    let array = runtime.array(vec![1.0; 4]);
    let refused = |needs: DeviceNeeds| {
        let codelet = scale(&runtime, needs, false);
        runtime.task(&codelet, (&array,)).submit().expect_err("nobody can execute it")
    };
    let double = refused(DeviceNeeds::default().double_precision());
    assert!(matches!(double, SubmitError::Unable { .. }), "{double}");
    insta::assert_snapshot!(double, @"codelet `scale` needs double precision, which fake:37 has not, and no other worker can execute it");
    let large = refused(DeviceNeeds::default().memory(3 << 20));
    insta::assert_snapshot!(large, @"codelet `scale` needs 3 MiB on the device, and fake:37 has 1 MiB, and no other worker can execute it");
    let enough = DeviceNeeds::default().memory(1 << 20);
    assert_eq!(shares(&runtime, &scale(&runtime, enough, false)), [0, 20]);
    assert_eq!(shares(&runtime, &scale(&runtime, DeviceNeeds::default().memory(3 << 20), true)), [20, 0]);
    let devices = explore_devices(&super::registry(), &"fake:16,fake:37".parse().expect("it names devices"));
    let doubles = devices.expect("they exist").into_iter().map(|device| device.info.double_precision);
    assert_eq!(doubles.collect::<Vec<bool>>(), [true, false]);
}
