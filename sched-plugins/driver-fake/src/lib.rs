//! A device driver without devices: its devices are threads of the host, with memory of their own that only copies
//! reach. It shows how a driver is written, and stands in for hardware in tests: operations can be slow, kernels fail,
//! and devices be lost, on demand.
//!
//! A module is any text with OpenCL C kernels of names that the driver knows; their bodies are not read. Beside those
//! of dense linear algebra there are kernels for tests:
//!
//! | kernel | arguments | effect |
//! |---|---|---|
//! | `fill` | x, offset, n, value | x := value |
//! | `scale` | x, offset, n, factor | x := factor · x |
//! | `axpy` | x, offset, y, offset, n, factor | y := y + factor · x |
//! | `gemm` | a, offset, ld, b, offset, ld, c, offset, ld, m, n, k | C := C − A·Bᵀ |
//! | `syrk` | a, offset, ld, c, offset, ld, n, k | lower triangle of C := C − A·Aᵀ |
//! | `trsm` | l, offset, ld, b, offset, ld, m, n | B := B·L⁻ᵀ |
//! | `gemm_nn` | a, offset, ld, b, offset, ld, c, offset, ld, m, n, k | C := C − A·B |
//! | `trsm_row` | l, offset, ld, b, offset, ld, m, n | B := L⁻¹·B with ones on the diagonal of L |
//! | `trsm_column` | u, offset, ld, b, offset, ld, m, n | B := B·U⁻¹ |
//! | `unmqr` | v, offset, ld, t, offset, ld, c, offset, ld, n, columns | C := Qᵀ·C |
//! | `tsmqr` | v, offset, ld, t, offset, ld, c₁, offset, ld, c₂, offset, ld, m, n, columns | (C₁; C₂) := Qᵀ·(C₁; C₂) |
//! | `fail` | any | the kernel fails |
//! | `lose` | any | the device is lost, now and for ever |
//! | `panic` | any | the driver panics at the launch |
//!
//! Offsets, leading dimensions and sizes are 32-bit unsigned integers, in elements. Matrices are column-major. Elements
//! are `double`, or `float` where the compiler's options contain `REAL=float`.
//!
//! `SCHED_FAKE_DEVICES` sets what there is: `devices=2 memory=1048576 latency-us=20 bytes-per-us=1000`; with
//! `single-only=1`, the last device says that it has no double precision. With `without-threads=1`, launches on the first
//! device return when the kernel has ended.

mod hold;
mod kernels;
mod queue;
mod settings;

pub use hold::{Held, hold_copies, hold_kernels};
pub use settings::Settings;

use kernels::Kernel;
use queue::{Operation, Queues, Work};
use sched_core::Arch;
use sched_core::driver::{
    BufferId, DeviceInfo, DeviceMemory, DeviceNumber, Driver, DriverError, DriverErrorKind, DriverInfo, Finished,
    HostMemory, KernelId, Launch, ModuleId, Order, RawObject, Rows, Source, Token,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the [crate](self).
#[derive(Debug)]
pub struct FakeDriver {
    devices: Vec<Arc<Device>>,
}

/// Number of queues of a device.
const QUEUES: u32 = 2;

/// One device.
#[derive(Debug)]
struct Device {
    number: DeviceNumber,
    settings: Settings,
    is_lost: AtomicBool,
    memory: Mutex<Memory>,
    modules: Mutex<Vec<Module>>,
    queues: Queues,
}

/// Contents of buffers. They are behind locks of their own, since operations of different queues use them.
#[derive(Debug, Default)]
struct Memory {
    used: u64,
    buffers: HashMap<BufferId, Arc<Mutex<Vec<u8>>>>,
}

#[derive(Debug)]
struct Module {
    kernels: Vec<Kernel>,
    is_double: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A kernel that panics leaves its buffer as it is.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn invalid(message: impl Into<String>) -> DriverError {
    DriverError::new(DriverErrorKind::Invalid, message)
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Device {
    fn new(number: DeviceNumber, settings: Settings) -> Device {
        Device {
            number,
            settings,
            is_lost: AtomicBool::new(false),
            memory: Mutex::default(),
            modules: Mutex::default(),
            queues: Queues::default(),
        }
    }

    fn check(&self) -> Result<(), DriverError> {
        match self.is_lost.load(Ordering::SeqCst) {
            false => Ok(()),
            true => Err(DriverError::new(DriverErrorKind::Lost, format!("fake device {} is gone", self.number.0))),
        }
    }

    fn buffer(&self, buffer: BufferId) -> Result<Arc<Mutex<Vec<u8>>>, DriverError> {
        let found = locked(&self.memory).buffers.get(&buffer).cloned();
        found.ok_or_else(|| invalid(format!("there is no buffer {} on fake device {}", buffer.0, self.number.0)))
    }

    /// The buffer, if these rows are inside it.
    fn rows(&self, memory: DeviceMemory, rows: Rows) -> Result<Arc<Mutex<Vec<u8>>>, DriverError> {
        let buffer = self.buffer(memory.buffer)?;
        let end = memory.offset + memory.pitch * rows.count.saturating_sub(1) + rows.bytes;
        let length = locked(&buffer).len() as u64;
        if rows.count > 0 && end > length {
            return Err(invalid(format!("a copy ends at byte {end} of a buffer of {length}")));
        }
        Ok(buffer)
    }
}

impl FakeDriver {
    fn device(&self, number: DeviceNumber) -> Result<&Arc<Device>, DriverError> {
        let device = self.devices.get(number.0 as usize).ok_or_else(|| {
            DriverError::new(DriverErrorKind::NoDevice, format!("there is no fake device {}", number.0))
        })?;
        device.check().map(|()| device)
    }

    fn start(&self, number: DeviceNumber, order: Order<'_>, work: Work) -> Result<Token, DriverError> {
        let device = self.device(number)?;
        if order.queue >= QUEUES {
            return Err(invalid(format!("there is no queue {}, expected 0 to {}", order.queue, QUEUES - 1)));
        }
        Ok(device.queues.add(device, order.queue, Operation { after: order.after.to_vec(), work }))
    }
}

impl Driver for FakeDriver {
    const INFO: DriverInfo = DriverInfo {
        note: "its devices are threads of the host",
        on_request: true,
        ..DriverInfo::new("fake", Arch::OPENCL, "Devices for tests, which fail on demand.")
    };

    fn open() -> Result<FakeDriver, DriverError> {
        let settings = Settings::current()?;
        let device = |number| Arc::new(Device::new(DeviceNumber(number), settings.clone()));
        Ok(FakeDriver { devices: (0..settings.devices).map(device).collect() })
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        let info = |device: &Arc<Device>| DeviceInfo {
            name: format!("fake device {}", device.number.0),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            memory: device.settings.memory,
            largest_buffer: device.settings.memory,
            compute_units: 1,
            queues: QUEUES,
            double_precision: device.number.0 + device.settings.single_only < device.settings.devices,
            ..DeviceInfo::default()
        };
        self.devices.iter().map(info).collect()
    }

    fn allocate(&self, number: DeviceNumber, bytes: u64) -> Result<BufferId, DriverError> {
        let device = self.device(number)?;
        let mut memory = locked(&device.memory);
        let limit = device.settings.memory;
        if memory.used + bytes > limit {
            let message = format!("{bytes} bytes were asked for, and {} of {limit} are used", memory.used);
            return Err(DriverError::new(DriverErrorKind::OutOfMemory, message));
        }
        memory.used += bytes;
        let id = BufferId(next_number());
        // What nobody has written is no zero.
        memory.buffers.insert(id, Arc::new(Mutex::new(vec![0xA5; bytes as usize])));
        Ok(id)
    }

    fn free(&self, number: DeviceNumber, buffer: BufferId) {
        let Some(device) = self.devices.get(number.0 as usize) else { return };
        let mut memory = locked(&device.memory);
        if let Some(gone) = memory.buffers.remove(&buffer) {
            memory.used -= locked(&gone).len() as u64;
        }
    }

    fn copy_in(&self, from: HostMemory, to: DeviceMemory, rows: Rows, order: Order<'_>) -> Result<Token, DriverError> {
        let buffer = self.device(to.device)?.rows(to, rows)?;
        self.start(to.device, order, Work::In { from: queue::HostRows(from), to, buffer, rows })
    }

    fn copy_out(&self, from: DeviceMemory, to: HostMemory, rows: Rows, order: Order<'_>) -> Result<Token, DriverError> {
        let buffer = self.device(from.device)?.rows(from, rows)?;
        self.start(from.device, order, Work::Out { from, to: queue::HostRows(to), buffer, rows })
    }

    fn copy_across(
        &self,
        from: DeviceMemory,
        to: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let source = self.device(from.device)?.rows(from, rows)?;
        let target = self.device(to.device)?.rows(to, rows)?;
        self.start(from.device, order, Work::Across { from, source, to, target, rows })
    }

    fn load(&self, number: DeviceNumber, source: Source<'_>) -> Result<ModuleId, DriverError> {
        let device = self.device(number)?;
        let Source::Text { text, options } = source else {
            return Err(DriverError::new(DriverErrorKind::Unsupported, "fake devices compile texts only"));
        };
        let kernels = Kernel::declared_in(text).map_err(|log| DriverError::new(DriverErrorKind::Build, log))?;
        let mut modules = locked(&device.modules);
        modules.push(Module { kernels, is_double: !options.contains("REAL=float") });
        Ok(ModuleId(modules.len() as u64 - 1))
    }

    fn kernel(&self, number: DeviceNumber, module: ModuleId, entry: &str) -> Result<KernelId, DriverError> {
        let device = self.device(number)?;
        let modules = locked(&device.modules);
        let found = modules.get(module.0 as usize).and_then(|of| {
            let kernel = of.kernels.iter().find(|kernel| kernel.name() == entry)?;
            Some(kernel.id(of.is_double))
        });
        found.ok_or_else(|| invalid(format!("the module has no kernel `{entry}`")))
    }

    fn launch(&self, number: DeviceNumber, launch: Launch<'_>, order: Order<'_>) -> Result<Token, DriverError> {
        let device = self.device(number)?;
        let (kernel, is_double) =
            Kernel::of_id(launch.kernel).ok_or_else(|| invalid(format!("there is no kernel {}", launch.kernel.0)))?;
        if launch.items.contains(&0) {
            return Err(invalid(format!("{:?} work items are none", launch.items)));
        }
        assert!(kernel != Kernel::Panic, "the kernel `panic` was launched");
        let call = kernels::Call::read(kernel, is_double, launch.args, |buffer| device.buffer(buffer))?;
        let started = self.start(number, order, Work::Kernel(call))?;
        if number.0 < device.settings.without_threads {
            device.queues.wait_for_all(&[started]);
        }
        Ok(started)
    }

    fn mark(&self, number: DeviceNumber, queue: u32) -> Result<Token, DriverError> {
        self.start(number, Order { queue, after: &[] }, Work::Nothing)
    }

    fn poll(&self, number: DeviceNumber, token: Token) -> Result<Option<Finished>, DriverError> {
        match self.device(number) {
            Ok(device) => device.queues.poll(token),
            Err(error) => Err(error),
        }
    }

    fn wait(&self, number: DeviceNumber, token: Token) -> Result<Finished, DriverError> {
        // What has begun on a device that is lost ends with an error too, so there is an end to wait for.
        match self.devices.get(number.0 as usize) {
            Some(device) => device.queues.wait(token),
            None => self.device(number).map(|_| Finished::default()),
        }
    }

    fn raw(&self, _: DeviceNumber, object: RawObject) -> Option<u64> {
        match object {
            RawObject::Buffer(buffer) => Some(buffer.0),
            RawObject::Queue(queue) => Some(u64::from(queue) + 1),
            _ => None,
        }
    }
}

#[cfg(not(test))]
sched_core::export_driver!(FakeDriver);

#[cfg(test)]
mod tests;
