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
//! `single-only=1`, the last device says that it has no double precision. With `without-threads=1`, launches on the
//! first device return when the kernel has ended. `too-old=1` adds a device that is left out. Of the operations of a
//! device from its first kernel on, the call that starts the second does not come back with `hangs-at=2`, and ends the
//! process with `exits-at=2` and `aborts-at=2`.
//!
//! Libraries that compute on the host when they are called, as those of tests do, can take the place of kernels: a
//! buffer's handle is its address.

mod hold;
mod kernels;
mod pins;
mod queue;
mod settings;
mod spans;

pub use hold::{Held, hold_copies, hold_kernels};
pub use pins::pinned;
pub use settings::Settings;
pub use spans::open_spans;

use kernels::Kernel;
use queue::{Operation, Queues, Work};
use sched_core::Arch;
use sched_core::driver::{
    BufferId, DeviceInfo, DeviceMemory, DeviceNumber, Devices, Direction, DriverError, DriverErrorKind, DriverInfo,
    DriverOf, Finished, Found, HostMemory, KernelId, Launch, ModuleId, Order, RawObject, Rows, Source, SpanId, Token,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The driver; see the [crate](self).
pub type FakeDriver = DriverOf<FakeDevices>;

/// What finds the devices: threads do not have to be looked for, so it makes them.
#[derive(Debug)]
pub struct FakeDevices;

/// Number of queues of a device.
const QUEUES: u32 = 2;

/// One device.
#[derive(Clone, Debug)]
pub struct FakeDevice(Arc<Device>);

/// What a device and the threads of its queues share.
#[derive(Debug)]
struct Device {
    number: DeviceNumber,
    info: DeviceInfo,
    settings: Settings,
    is_lost: AtomicBool,
    /// Number of operations that were to start, from the first kernel on.
    starts: AtomicU64,
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

impl Devices for FakeDevices {
    const INFO: DriverInfo = DriverInfo {
        note: "its devices are threads of the host",
        on_request: true,
        ..DriverInfo::new("fake", Arch::OPENCL, "Devices for tests, which fail on demand.")
    };

    type Device = FakeDevice;

    fn find() -> Result<Found<FakeDevice>, DriverError> {
        let settings = Settings::current()?;
        let device = |number| FakeDevice::new(DeviceNumber(number), &settings);
        let too_old = |number: u32| {
            let message = format!("found version 0.{number}, expected 1.0 or later; update its driver");
            (format!("old fake device {number}"), Err(DriverError::new(DriverErrorKind::Unsupported, message)))
        };
        let usable = (0..settings.devices).map(|number| (format!("fake device {number}"), Ok(device(number))));
        Found::of(usable.chain((0..settings.too_old).map(too_old)))
    }
}

impl Device {
    fn check(&self) -> Result<(), DriverError> {
        match self.is_lost.load(Ordering::SeqCst) {
            false => Ok(()),
            true => Err(DriverError::new(DriverErrorKind::Lost, format!("fake device {} is gone", self.number.0))),
        }
    }

    /// Does what the settings ask of a call that starts an operation.
    fn misbehave(&self, work: &Work) {
        if self.starts.load(Ordering::Relaxed) == 0 && !matches!(work, Work::Kernel(_)) {
            return;
        }
        let number = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        let Settings { hangs_at, exits_at, aborts_at, .. } = self.settings;
        if number == exits_at {
            std::process::exit(0);
        }
        if number == aborts_at {
            std::process::abort();
        }
        if number == hangs_at {
            loop {
                std::thread::park();
            }
        }
    }

    fn buffer(&self, buffer: BufferId) -> Result<Arc<Mutex<Vec<u8>>>, DriverError> {
        let found = locked(&self.memory).buffers.get(&buffer).cloned();
        found.ok_or_else(|| invalid(format!("there is no buffer {} on fake device {}", buffer.0, self.number.0)))
    }

    /// The buffer, if these rows are inside it.
    fn rows(&self, memory: DeviceMemory, rows: Rows) -> Result<Arc<Mutex<Vec<u8>>>, DriverError> {
        self.check()?;
        let buffer = self.buffer(memory.buffer)?;
        let end = memory.offset + memory.pitch * rows.count.saturating_sub(1) + rows.bytes;
        let length = locked(&buffer).len() as u64;
        if rows.count > 0 && end > length {
            return Err(invalid(format!("a copy ends at byte {end} of a buffer of {length}")));
        }
        Ok(buffer)
    }
}

impl FakeDevice {
    fn new(number: DeviceNumber, settings: &Settings) -> FakeDevice {
        let info = DeviceInfo {
            name: format!("fake device {}", number.0),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            memory: settings.memory,
            largest_buffer: settings.memory,
            compute_units: 1,
            queues: QUEUES,
            double_precision: number.0 + settings.single_only < settings.devices,
            ..DeviceInfo::default()
        };
        FakeDevice(Arc::new(Device {
            number,
            info,
            settings: settings.clone(),
            is_lost: AtomicBool::new(false),
            starts: AtomicU64::new(0),
            memory: Mutex::default(),
            modules: Mutex::default(),
            queues: Queues::default(),
        }))
    }

    fn start(&self, order: Order<'_>, work: Work) -> Result<Token, DriverError> {
        self.0.check()?;
        if order.queue >= QUEUES {
            return Err(invalid(format!("there is no queue {}, expected 0 to {}", order.queue, QUEUES - 1)));
        }
        self.0.misbehave(&work);
        Ok(self.0.queues.add(&self.0, order.queue, Operation { after: order.after.to_vec(), work }))
    }
}

impl sched_core::driver::Device for FakeDevice {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn allocate(&self, bytes: u64) -> Result<BufferId, DriverError> {
        self.0.check()?;
        let mut memory = locked(&self.0.memory);
        let limit = self.0.settings.memory;
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

    fn free(&self, buffer: BufferId) {
        let mut memory = locked(&self.0.memory);
        if let Some(gone) = memory.buffers.remove(&buffer) {
            memory.used -= locked(&gone).len() as u64;
        }
    }

    fn copy(
        &self,
        host: HostMemory,
        memory: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
        direction: Direction,
    ) -> Result<Token, DriverError> {
        let (host, buffer) = (queue::HostRows::of(host, rows)?, self.0.rows(memory, rows)?);
        let work = match direction {
            Direction::In => Work::In { from: host, to: memory, buffer, rows },
            Direction::Out => Work::Out { from: memory, to: host, buffer, rows },
        };
        self.start(order, work)
    }

    fn copy_to(
        &self,
        target: &FakeDevice,
        from: DeviceMemory,
        to: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let (source, target) = (self.0.rows(from, rows)?, target.0.rows(to, rows)?);
        self.start(order, Work::Across { from, source, to, target, rows })
    }

    fn load(&self, source: Source<'_>) -> Result<ModuleId, DriverError> {
        self.0.check()?;
        let Source::Text { text, options } = source else {
            return Err(DriverError::new(DriverErrorKind::Unsupported, "fake devices compile texts only"));
        };
        let kernels = Kernel::declared_in(text).map_err(|log| DriverError::new(DriverErrorKind::Build, log))?;
        let mut modules = locked(&self.0.modules);
        modules.push(Module { kernels, is_double: !options.contains("REAL=float") });
        Ok(ModuleId(modules.len() as u64 - 1))
    }

    fn kernel(&self, module: ModuleId, entry: &str) -> Result<KernelId, DriverError> {
        self.0.check()?;
        let modules = locked(&self.0.modules);
        let found = modules.get(module.0 as usize).and_then(|of| {
            let kernel = of.kernels.iter().find(|kernel| kernel.name() == entry)?;
            Some(kernel.id(of.is_double))
        });
        found.ok_or_else(|| invalid(format!("the module has no kernel `{entry}`")))
    }

    fn launch(&self, launch: Launch<'_>, order: Order<'_>) -> Result<Token, DriverError> {
        self.0.check()?;
        let (kernel, is_double) =
            Kernel::of_id(launch.kernel).ok_or_else(|| invalid(format!("there is no kernel {}", launch.kernel.0)))?;
        if launch.items.contains(&0) {
            return Err(invalid(format!("{:?} work items are none", launch.items)));
        }
        assert!(kernel != Kernel::Panic, "the kernel `panic` was launched");
        let call = kernels::Call::read(kernel, is_double, launch.args, |buffer| self.0.buffer(buffer))?;
        let started = self.start(order, Work::Kernel(call))?;
        if self.0.number.0 < self.0.settings.without_threads {
            self.0.queues.wait_for_all(&[started]);
        }
        Ok(started)
    }

    fn mark(&self, queue: u32) -> Result<Token, DriverError> {
        self.start(Order { queue, after: &[] }, Work::Nothing)
    }

    /// Libraries compute on the host when they are called, so what they put into a queue takes no time there.
    fn begin_span(&self, _queue: u32) -> Result<SpanId, DriverError> {
        self.0.check().map(|()| spans::begin(self.0.number))
    }

    fn end_span(&self, queue: u32, span: SpanId) -> Result<Token, DriverError> {
        spans::end(self.0.number, span);
        self.mark(queue)
    }

    fn pin(&self, memory: HostMemory, bytes: u64) -> Result<(), DriverError> {
        self.0.check().and_then(|()| pins::pin(self.0.number, memory.first().addr(), bytes))
    }

    fn unpin(&self, memory: HostMemory) {
        pins::unpin(self.0.number, memory.first().addr());
    }

    fn poll(&self, token: Token) -> Result<Option<Finished>, DriverError> {
        self.0.check()?;
        self.0.queues.poll(token)
    }

    fn wait(&self, token: Token) -> Result<Finished, DriverError> {
        // What has begun on a device that is lost ends with an error too, so there is an end to wait for.
        self.0.queues.wait(token)
    }

    /// A buffer is its memory, for libraries that compute on the host when they are called; who asks for a queue is
    /// about to call one, and gets it when what is in it has ended.
    fn raw(&self, object: RawObject) -> Option<u64> {
        match object {
            RawObject::Context => Some(u64::from(self.0.number.0) + 1),
            RawObject::Device => None,
            RawObject::Queue(queue) => {
                let before = self.mark(queue).ok()?;
                self.0.queues.wait(before).ok()?;
                Some(u64::from(queue) + 1)
            }
            RawObject::Buffer(buffer) => Some(locked(&*self.0.buffer(buffer).ok()?).as_mut_ptr().addr() as u64),
        }
    }
}

#[cfg(not(test))]
sched_core::export_driver!(FakeDriver);

#[cfg(test)]
mod tests;
