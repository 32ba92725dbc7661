//! A device under the runtime, compared with what its driver does without it.
//!
//! Every round measures all contenders, one after the other, and the median of all rounds counts for each.

pub(super) mod bare;

use crate::linalg::{LowerTiles, RandomSpd, flops};
use crate::workload::cholesky::on_arrays::{Choice, by_hand::ByHand, run};
use crate::workload::{Cholesky, Workload, WorkloadError};
use bare::Bare;
use sched_core::driver::DriverError;
use sched_graph::Where;
use sched_runtime::{
    ArrayHandle, Codelet, DeviceChoice, DeviceError, KernelCall, Read, RunError, Runtime, StartError, explore_devices,
};
use sched_text::median;
use sched_tree::plugin::Registry;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The kernels of this project, which the queue that is written by hand has as well.
fn ours(only: Option<&Where>) -> Choice<'_> {
    Choice { only, math: None }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct DeviceBench {
    /// The device; the first one, if several are chosen.
    pub device: DeviceChoice,
    /// The policy, by name or path.
    pub policy: String,
    /// Number of CPU workers beside the device.
    pub workers: usize,
    /// Number of short kernels.
    pub kernels: usize,
    /// Length of a short kernel.
    pub length: Duration,
    /// Size of each array that is copied.
    pub bytes: usize,
    /// Number of tiles in a row of tiles.
    pub tiles: usize,
    /// Number of rows of a tile.
    pub tile_size: usize,
    /// Number of rounds; at least 1.
    pub rounds: usize,
}

/// Short kernels, one after the other.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct KernelRate {
    /// Microseconds per kernel in the queue of the driver.
    pub kernel_us: f64,
    /// Kernels per second in the queue of the driver.
    pub driver_per_s: f64,
    /// Kernels per second as tasks.
    pub runtime_per_s: f64,
    /// The runtime's rate divided by the driver's.
    pub ratio: f64,
}

/// Tasks that each read an array of their own, with kernels about as long as its copy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CopyOverlap {
    /// Seconds of the copies alone, without the runtime.
    pub copies_s: f64,
    /// Seconds of the kernels alone, without the runtime.
    pub kernels_s: f64,
    /// Seconds of the tasks.
    pub tasks_s: f64,
    /// Gigabytes per second of the copies alone.
    pub copies_gb_per_s: f64,
    /// Gigabytes per second of the tasks.
    pub tasks_gb_per_s: f64,
    /// Part of the shorter of copies and kernels that is hidden behind the other.
    pub overlap: f64,
}

/// The Cholesky factorisation.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct DeviceCholesky {
    /// Number of rows of the matrix.
    pub order: usize,
    /// Number of rows of a tile.
    pub tile_size: usize,
    /// GFlop/s of the kernels in one queue, without the runtime; pivots on the host.
    pub queue_gflops: f64,
    /// GFlop/s of the runtime with these kernels on the device; pivots on a core.
    pub device_gflops: f64,
    /// The runtime's speed on the device divided by that of the queue.
    pub ratio: f64,
    /// GFlop/s of the runtime with the cores alone.
    pub cores_gflops: f64,
    /// GFlop/s of cores and device at the same time, each with matrices of its own: what there is to gain at most. A
    /// device that is made of cores, or shares their memory, slows them down.
    pub apart_gflops: f64,
    /// GFlop/s of the runtime with cores and device on one matrix.
    pub both_gflops: f64,
    /// The speed of both divided by that of the better one.
    pub gain: f64,
    /// The speed of both apart divided by that of the better one.
    pub gain_apart: f64,
}

/// The results of all measurements.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceBenchReport {
    /// Name of the device: `opencl:0`.
    pub device: String,
    /// Its model.
    pub model: String,
    /// The policy.
    pub policy: String,
    /// Number of CPU workers beside the device.
    pub workers: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Short kernels.
    pub kernels: KernelRate,
    /// Copies beside kernels.
    pub copies: CopyOverlap,
    /// The factorisation; absent on a device without double precision.
    pub cholesky: Option<DeviceCholesky>,
}

/// Why a measurement failed.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum DeviceBenchError {
    /// There is no device to measure.
    #[error("there is no device to measure: no driver that was found has one")]
    #[diagnostic(
        code(sched::bench::no_device),
        help("`sched plugins` lists the drivers, `sched topology` their devices; `--device fake:0` is for tests only")
    )]
    NoDevice,
    /// The device cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Device(#[from] DeviceError),
    /// The device fails without the runtime.
    #[error("the device fails: {0}")]
    #[diagnostic(code(sched::bench::device_fails), help("{}", .0.kind.fix()))]
    Driver(#[from] DriverError),
    /// The runtime does not start.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Start(#[from] StartError),
    /// A task failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    /// The factorisation failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Cholesky(#[from] WorkloadError),
}

/// Number of arrays that are copied.
const ARRAYS: usize = 16;

/// Measures everything, and reports the progress, from 0 to 1, to `progress`. One round before the first is not
/// counted: in it kernels are compiled, and the runtime learns how long they take.
///
/// # Errors
/// See [`DeviceBenchError`].
pub fn device_bench(
    wanted: &DeviceBench,
    registry: &Arc<Registry>,
    mut progress: impl FnMut(f64),
) -> Result<DeviceBenchReport, DeviceBenchError> {
    let found = explore_devices(registry, &wanted.device)?.into_iter().next().ok_or(DeviceBenchError::NoDevice)?;
    let bare = Bare::open(registry, &found.name)?;
    let start = |devices: DeviceChoice| {
        let builder = Runtime::builder().registry(Arc::clone(registry)).policy(&wanted.policy).workers(wanted.workers);
        builder.devices(devices).build()
    };
    let with_device = start(found.name.parse()?)?;
    let cores = start(DeviceChoice::default())?;
    let mut contest = Contest { wanted, bare: &bare, with_device, cores, rounds: Vec::new() };
    let short = bare.kernel_of(wanted.length)?;
    let long = bare.kernel_of(bare.copies(ARRAYS, wanted.bytes)? / ARRAYS as u32)?;
    let rounds = wanted.rounds.max(1);
    for round in 0..=rounds {
        contest.round(short, long, found.info.double_precision, round > 0)?;
        progress((round + 1) as f64 / (rounds + 1) as f64);
    }
    let (model, policy) = (found.model, contest.with_device.policy().to_owned());
    let (kernels, copies, cholesky) = contest.medians();
    let (workers, device) = (wanted.workers, found.name);
    let cholesky = cholesky.filter(|_| found.info.double_precision);
    Ok(DeviceBenchReport { device, model, policy, workers, rounds, kernels, copies, cholesky })
}

/// What one round measures: seconds, and GFlop/s.
#[derive(Clone, Copy, Default, Debug)]
struct Round {
    driver_s: f64,
    runtime_s: f64,
    copies_s: f64,
    kernels_s: f64,
    tasks_s: f64,
    queue_gflops: f64,
    device_gflops: f64,
    cores_gflops: f64,
    apart_gflops: f64,
    both_gflops: f64,
}

struct Contest<'a> {
    wanted: &'a DeviceBench,
    bare: &'a Bare,
    with_device: Runtime,
    cores: Runtime,
    rounds: Vec<Round>,
}

impl Contest<'_> {
    /// Measures each contender once. `short` and `long` are numbers of steps of the kernels.
    fn round(&mut self, short: u32, long: u32, has_double: bool, counts: bool) -> Result<(), DeviceBenchError> {
        let (wanted, bare) = (self.wanted, self.bare);
        let codelet = spin(&self.with_device);
        let mut round = Round {
            driver_s: bare.kernels(wanted.kernels, short)?.as_secs_f64(),
            runtime_s: self.tasks(&codelet, short, &[self.with_device.array(vec![0f32; 16])], wanted.kernels)?,
            copies_s: bare.copies(ARRAYS, wanted.bytes)?.as_secs_f64(),
            kernels_s: bare.kernels(ARRAYS, long)?.as_secs_f64(),
            ..Round::default()
        };
        let array = || self.with_device.array(vec![1f32; (wanted.bytes / 4).max(1)]);
        let arrays: Vec<ArrayHandle<f32>> = (0..ARRAYS).map(|_| array()).collect();
        round.tasks_s = self.tasks(&codelet, long, &arrays, ARRAYS)?;
        drop(arrays);
        if has_double {
            let matrix = RandomSpd::new(wanted.tiles * wanted.tile_size, 42);
            let cut = || Cholesky::cut(&matrix, wanted.tile_size);
            round.queue_gflops = ByHand::new(bare.driver(), bare.device(), bare.arch())?.run(cut())?.0;
            let gflops = |runtime: &Runtime, tiles: LowerTiles, only: Option<&Where>| {
                run::<f64>(runtime, tiles, ours(only)).map(|factored| factored.figures.gflops())
            };
            let device = Where::arch(bare.arch());
            round.device_gflops = gflops(&self.with_device, cut(), Some(&device))?;
            round.cores_gflops = gflops(&self.cores, cut(), None)?;
            round.apart_gflops = self.apart(&device, cut)?;
            round.both_gflops = gflops(&self.with_device, cut(), None)?;
        }
        if counts {
            self.rounds.push(round);
        }
        Ok(())
    }

    /// GFlop/s of the device and of the cores at the same time, each with matrices of its own. Who has ended goes on
    /// with another matrix until both have ended one, so that neither has the machine for itself.
    fn apart(&self, device: &Where, cut: impl Fn() -> LowerTiles + Sync) -> Result<f64, DeviceBenchError> {
        let ended = AtomicUsize::new(0);
        let speed = |runtime: &Runtime, only: Option<&Where>| -> Result<f64, WorkloadError> {
            let (mut flops, mut seconds) = (0.0, 0.0);
            loop {
                let factored = run::<f64>(runtime, cut(), ours(only));
                if seconds == 0.0 {
                    ended.fetch_add(1, Ordering::Relaxed);
                }
                let figures = factored?.figures;
                (flops, seconds) = (flops + figures.flops, seconds + figures.makespan.as_secs_f64());
                if ended.load(Ordering::Relaxed) > 1 {
                    return Ok(flops / seconds.max(f64::MIN_POSITIVE) / 1e9);
                }
            }
        };
        let (on_device, on_cores) = std::thread::scope(|scope| {
            let on_device = scope.spawn(|| speed(&self.with_device, Some(device)));
            let on_cores = speed(&self.cores, None);
            (on_device.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)), on_cores)
        });
        Ok(on_device? + on_cores?)
    }

    /// Seconds for tasks that read these arrays in turn.
    fn tasks(
        &self,
        codelet: &Codelet<(Read<[f32]>,), u32>,
        steps: u32,
        arrays: &[ArrayHandle<f32>],
        count: usize,
    ) -> Result<f64, DeviceBenchError> {
        let began = Instant::now();
        for array in arrays.iter().cycle().take(count) {
            self.with_device.task_with(codelet, steps, (array,)).submit().expect("the handle is of this runtime");
        }
        self.with_device.wait_all()?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn medians(&self) -> (KernelRate, CopyOverlap, Option<DeviceCholesky>) {
        let of = |part: fn(&Round) -> f64| median(&mut self.rounds.iter().map(part).collect::<Vec<f64>>());
        let kernels = self.wanted.kernels.max(1) as f64;
        let (driver_s, runtime_s) = (of(|round| round.driver_s), of(|round| round.runtime_s));
        let rate = KernelRate {
            kernel_us: driver_s * 1e6 / kernels,
            driver_per_s: kernels / driver_s,
            runtime_per_s: kernels / runtime_s,
            ratio: driver_s / runtime_s,
        };
        let (copies_s, kernels_s) = (of(|round| round.copies_s), of(|round| round.kernels_s));
        let tasks_s = of(|round| round.tasks_s);
        let gigabytes = (ARRAYS * self.wanted.bytes) as f64 / 1e9;
        let copies = CopyOverlap {
            copies_s,
            kernels_s,
            tasks_s,
            copies_gb_per_s: gigabytes / copies_s,
            tasks_gb_per_s: gigabytes / tasks_s,
            overlap: ((copies_s + kernels_s - tasks_s) / copies_s.min(kernels_s)).clamp(0.0, 1.0),
        };
        let (queue_gflops, device_gflops) = (of(|round| round.queue_gflops), of(|round| round.device_gflops));
        let (cores_gflops, both_gflops) = (of(|round| round.cores_gflops), of(|round| round.both_gflops));
        let apart_gflops = of(|round| round.apart_gflops);
        let order = self.wanted.tiles * self.wanted.tile_size;
        let cholesky = (flops::cholesky(order) > 0.0).then(|| DeviceCholesky {
            order,
            tile_size: self.wanted.tile_size,
            queue_gflops,
            device_gflops,
            ratio: device_gflops / queue_gflops,
            cores_gflops,
            apart_gflops,
            both_gflops,
            gain_apart: apart_gflops / device_gflops.max(cores_gflops),
            gain: both_gflops / device_gflops.max(cores_gflops),
        });
        (rate, copies, cholesky)
    }
}

/// Reads an array and does nothing for some time.
fn spin(runtime: &Runtime) -> Codelet<(Read<[f32]>,), u32> {
    let call = |steps: &u32, (x,): (sched_runtime::DeviceSlice<f32>,)| KernelCall::over([1]).arg(&x).arg(*steps);
    let codelet = runtime.codelet::<(Read<[f32]>,), u32>("spin");
    codelet.opencl(bare::OPENCL, "spin", call).cuda(bare::CUDA, "spin", call).build()
}
