//! A device by its driver alone.

use super::DeviceBenchError;
use sched_core::Arch;
use sched_core::abi::driver::{OpenedDriver, PinnedBytes};
use sched_core::driver::{
    Arg, BufferId, DeviceMemory, DeviceNumber, DriverError, KernelId, Launch, Order, Source, Token,
};
use sched_runtime::DeviceError;
use sched_tree::plugin::Registry;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A kernel that takes time in proportion to its last argument.
pub(super) const OPENCL: &str = "
__kernel void spin(__global float *x, uint steps) {
    float sum = x[0];
    for (uint step = 0; step < steps; step++) sum = sum * 0.5f + 1.0f;
    if (sum == 3.0f) x[0] = sum;
}
";

/// The same kernel in CUDA C.
pub(super) const CUDA: &str = "
extern \"C\" __global__ void spin(float *x, unsigned int steps) {
    float sum = x[0];
    for (unsigned int step = 0; step < steps; step++) sum = sum * 0.5f + 1.0f;
    if (sum == 3.0f) x[0] = sum;
}
";

const KERNELS: Order<'static> = Order { queue: 0, after: &[] };

/// See the [module](self).
pub(crate) struct Bare {
    driver: Arc<OpenedDriver>,
    device: DeviceNumber,
    arch: Arch,
    /// The queue that the runtime copies in.
    copies: u32,
    spin: KernelId,
    buffer: BufferId,
}

impl Bare {
    /// Opens a device by its name, which exists, and compiles the kernel.
    pub(crate) fn open(registry: &Registry, name: &str) -> Result<Bare, DeviceBenchError> {
        let (kind, number) = name.split_once(':').unwrap_or((name, "0"));
        let driver = registry.driver(kind).ok_or(DeviceBenchError::NoDevice)?;
        let open = driver.open().map_err(DeviceError::Problem)?;
        let device = DeviceNumber(number.parse().unwrap_or(0));
        let info = open.devices.get(device.0 as usize).ok_or(DeviceBenchError::NoDevice)?;
        let arch = open.summary.arch;
        let text = if arch == Arch::CUDA { CUDA } else { OPENCL };
        let module = open.driver.load(device, Source::Text { text, options: "" })?;
        let spin = open.driver.kernel(device, module, "spin")?;
        let (copies, driver) = (info.queues.max(1) - 1, open.driver);
        let buffer = driver.allocate(device, 64)?;
        driver.write(&[0; 64], DeviceMemory { device, buffer, offset: 0, pitch: 0 }, KERNELS)?;
        Ok(Bare { driver, device, arch, copies, spin, buffer })
    }

    pub(super) fn driver(&self) -> &OpenedDriver {
        &self.driver
    }

    pub(super) fn device(&self) -> DeviceNumber {
        self.device
    }

    pub(super) fn arch(&self) -> Arch {
        self.arch
    }

    /// Time of kernels that are launched one behind the other.
    pub(super) fn kernels(&self, count: usize, steps: u32) -> Result<Duration, DriverError> {
        let args = [Arg::Buffer(self.buffer), steps.into()];
        let launch = Launch { kernel: self.spin, items: [1, 1, 1], group: [0; 3], args: &args };
        let began = Instant::now();
        let launched: Result<Vec<Token>, DriverError> =
            (0..count).map(|_| self.driver.launch(self.device, launch, KERNELS)).collect();
        for token in launched? {
            self.driver.wait(self.device, token)?;
        }
        Ok(began.elapsed())
    }

    /// Whether a launch returns while its kernel runs: a device without threads of its own executes it in the call.
    pub(crate) fn launches_early(&self) -> Result<bool, DriverError> {
        const ROUNDS: usize = 5;
        let steps = self.kernel_of(Duration::from_millis(2))?;
        let args = [Arg::Buffer(self.buffer), steps.into()];
        let launch = Launch { kernel: self.spin, items: [1, 1, 1], group: [0; 3], args: &args };
        let mut early = 0;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let token = self.driver.launch(self.device, launch, KERNELS)?;
            let returned = began.elapsed();
            self.driver.wait(self.device, token)?;
            early += usize::from(returned * 2 < began.elapsed());
        }
        Ok(2 * early > ROUNDS)
    }

    /// Number of steps of a kernel that takes this time, launch included.
    pub(super) fn kernel_of(&self, length: Duration) -> Result<u32, DriverError> {
        const LAUNCHES: usize = 100;
        // Other programs only make it longer.
        let each = |steps: u32| -> Result<f64, DriverError> {
            let times =
                (0..5).map(|_| self.kernels(LAUNCHES, steps)).collect::<Result<Vec<Duration>, DriverError>>()?;
            Ok(times.into_iter().min().unwrap_or_default().as_secs_f64() / LAUNCHES as f64)
        };
        let empty = each(1)?;
        let missing = length.as_secs_f64() - empty;
        if missing <= 0.0 {
            return Ok(1);
        }
        let mut steps = 1000;
        loop {
            let spent = each(steps)? - empty;
            if spent * 4.0 >= missing || steps > u32::MAX / 8 {
                return Ok((f64::from(steps) * missing / spent.max(1e-9)).max(1.0) as u32);
            }
            steps *= 4;
        }
    }

    /// Time to copy arrays of this size to the device, one after the other, each to a buffer that is there.
    pub(super) fn copies(&self, count: usize, bytes: usize) -> Result<Duration, DriverError> {
        let mut values = vec![vec![1u8; bytes.max(4)]; count];
        // As the memory of arrays.
        let pinned = |values| self.driver.pinned(self.device, values);
        let values: Vec<PinnedBytes<'_>> = values.iter_mut().map(|values| pinned(values)).collect();
        let allocate = |values: &PinnedBytes<'_>| self.driver.allocate(self.device, values.len() as u64);
        let buffers = values.iter().map(allocate).collect::<Result<Vec<BufferId>, DriverError>>()?;
        let order = Order { queue: self.copies, after: &[] };
        let copy = || {
            let began = Instant::now();
            for (values, buffer) in values.iter().zip(&buffers) {
                let to = DeviceMemory { device: self.device, buffer: *buffer, offset: 0, pitch: 0 };
                self.driver.write(values, to, order)?;
            }
            Ok(began.elapsed())
        };
        // The first use of memory takes longer.
        let copied: Result<Duration, DriverError> = copy().and_then(|_| copy());
        for buffer in buffers {
            self.driver.free(self.device, buffer)?;
        }
        copied
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // Nothing uses it any more; what a lost device holds is gone anyway.
        let _ = self.driver.free(self.device, self.buffer);
    }
}
