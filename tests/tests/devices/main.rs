//! Devices as workers: what tasks compute on them, and what becomes of tasks when devices fail.

mod ahead;
mod bench;
mod choices;
mod cublas;
mod cuda;
mod errors;
mod factorisations;
mod failures;
mod kernel_cache;
mod misbehaving;
mod needs;
mod overlap;
mod pinning;
mod programs;
mod ranks;
mod room;
mod swaps;

use sched_driver_fake::{FakeDriver, Settings};
use sched_host::plugin::Registry;
use sched_host::runtime::{Builder, Codelet, DeviceChoice, KernelCall, Read, ReadWrite, Runtime, Submitter, Write};
use std::sync::{Arc, OnceLock};

/// Source of the kernels, as a fake device compiles it and an OpenCL device would.
const SOURCE: &str = "
__kernel void fill(__global double *x, uint offset, uint n, double value) {
    if (get_global_id(0) < n) x[offset + get_global_id(0)] = value;
}
__kernel void scale(__global double *x, uint offset, uint n, double factor) {
    if (get_global_id(0) < n) x[offset + get_global_id(0)] *= factor;
}
__kernel void axpy(__global const double *x, uint from, __global double *y, uint to, uint n, double factor) {
    if (get_global_id(0) < n) y[to + get_global_id(0)] += factor * x[from + get_global_id(0)];
}
";

/// The drivers of the tests: fake devices, enough that each test which loses one, or holds what is under way on it, has
/// its own.
fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    let registry = REGISTRY.get_or_init(|| {
        Settings { devices: 38, memory: 1 << 20, single_only: 1, without_threads: 1, ..Settings::default() }.install();
        let mut registry = Registry::compiled_in();
        registry.add_driver::<FakeDriver>("tests");
        Arc::new(registry)
    });
    Arc::clone(registry)
}

/// A runtime with one core and these devices.
fn with_devices(devices: &str) -> Builder {
    let choice: DeviceChoice = devices.parse().expect("it names devices");
    Runtime::builder().registry(registry()).workers(1).devices(choice)
}

/// Accesses of `axpy`.
type FromTo = (Read<[f64]>, ReadWrite<[f64]>);

/// Where a codelet has implementations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    Cores,
    Devices,
    Both,
}

/// x := value.
fn fill(submitter: &Submitter, on: On) -> Codelet<(Write<[f64]>,), f64> {
    let mut codelet = submitter.codelet::<(Write<[f64]>,), f64>("fill");
    if on != On::Devices {
        codelet = codelet.cpu("fill", |context, (x,)| x.fill(*context.params));
    }
    if on != On::Cores {
        codelet = codelet.opencl(SOURCE, "fill", |value, (x,)| {
            KernelCall::over([x.len() as usize]).arg(&x).arg(x.offset()).arg(x.len()).arg(*value)
        });
    }
    codelet.build()
}

/// x := factor · x.
fn scale(submitter: &Submitter, on: On) -> Codelet<(ReadWrite<[f64]>,), f64> {
    let mut codelet = submitter.codelet::<(ReadWrite<[f64]>,), f64>("scale");
    if on != On::Devices {
        codelet = codelet.cpu("scale", |context, (x,)| x.iter_mut().for_each(|value| *value *= context.params));
    }
    if on != On::Cores {
        codelet = codelet.opencl(SOURCE, "scale", |factor, (x,)| {
            KernelCall::over([x.len() as usize]).arg(&x).arg(x.offset()).arg(x.len()).arg(*factor)
        });
    }
    codelet.build()
}

/// y := y + factor · x, over the shorter of both.
fn axpy(submitter: &Submitter, on: On) -> Codelet<FromTo, f64> {
    let mut codelet = submitter.codelet::<FromTo, f64>("axpy");
    if on != On::Devices {
        codelet = codelet.cpu("axpy", |context, (x, y)| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y += context.params * x);
        });
    }
    if on != On::Cores {
        codelet = codelet.opencl(SOURCE, "axpy", |factor, (x, y)| {
            let n = x.len().min(y.len());
            let call = KernelCall::over([n as usize]).arg(&x).arg(x.offset());
            call.arg(&y).arg(y.offset()).arg(n).arg(*factor)
        });
    }
    codelet.build()
}
