//! The figures by which this machine is simulated: the costs of scheduling, and the times of kernels.

mod ranks;

pub use ranks::calibrate_on_ranks;

use super::device::bare::Bare;
use super::{BenchError, builder, peers};
use crate::linalg::Entries;
use crate::workload::{Cholesky, Lu, Qr, Workload, WorkloadError};
use sched_cluster::{Cluster, ClusterError};
use sched_core::Arch;
use sched_graph::Where;
use sched_machine::topology::Topology;
use sched_runtime::{Builder, DeviceError, ReadWrite, RunError, Runtime, StartError, SubmitError, Write};
use sched_text::median;
use sched_tree::plugin::Registry;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The policy, by name or path.
    pub policy: String,
    /// Number of workers: kernels are measured while all of them work.
    pub workers: usize,
    /// Numbers of rows of the tiles that kernels are measured with.
    pub tile_sizes: Vec<usize>,
    /// Whether workers are bound to hardware threads.
    pub bind: bool,
    /// Devices whose kernels are measured, each by its name, with the architecture of its worker.
    pub devices: Vec<(String, Arch)>,
}

/// Mean times of kernels, by kind of task and by the size of a task's data in bytes, in one of several runs: that which
/// other programs have disturbed least, or on ranks that in the middle. The makespan is made of their sums, so medians
/// would be too short.
pub type KernelTimes = BTreeMap<String, BTreeMap<u64, Duration>>;

/// What was measured of a device.
#[derive(Clone, PartialEq, Debug)]
pub struct CalibratedDevice {
    /// Whether it computes while the thread of its worker does other things, such as copies.
    pub overlaps: bool,
    /// Times of its kernels.
    pub kernels: KernelTimes,
}

/// The results.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibrated {
    /// The application submits a task with one datum.
    pub submission: Duration,
    /// A ready task is pushed into the tree.
    pub push: Duration,
    /// A worker gets, starts and ends a task with one datum, without its kernel and without pushing the next one.
    pub fetch: Duration,
    /// Time from the submission of a task until a worker that slept executes it.
    pub wake_up: Duration,
    /// Times of kernels on a core.
    pub kernels: KernelTimes,
    /// Each device.
    pub on_devices: Vec<CalibratedDevice>,
    /// Speed of a core over all kernels in GFlop/s.
    pub gflops: f64,
}

/// Why the machine could not be measured.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum CalibrationError {
    /// A runtime does not start.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Start(#[from] StartError),
    /// A workload failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Workload(#[from] WorkloadError),
    /// A device cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Device(#[from] DeviceError),
    /// An empty task was not submitted.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Submit(#[from] SubmitError),
    /// Empty tasks were not executed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    /// The tree keeps empty tasks.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Bench(#[from] BenchError),
    /// Ranks do not go on together.
    #[error(transparent)]
    Ranks(#[from] ClusterError),
}

/// Number of tasks in the chain that shows the costs of scheduling.
const CHAIN: u32 = 5_000;
/// Number of measurements of each cost; the least counts, and the median of wakes.
const ROUNDS: u32 = 20;
/// Number of tiles in a row of tiles of the matrices that kernels are measured with, at least and at most.
const TILES: RangeInclusive<usize> = 6..=16;
/// Rows of these matrices, if the tiles allow that: more than caches hold, as in the runs that are simulated.
const ROWS: usize = 3072;

/// Number of tiles in a row of tiles of this size, of matrices of some rows.
fn tiles(rows: usize, tile_size: usize) -> usize {
    (rows / tile_size.max(1)).clamp(*TILES.start(), *TILES.end())
}

/// Measures this machine, and reports the progress, from 0 to 1, to `progress`.
///
/// # Errors
/// If a runtime does not start, or a run fails.
pub fn calibrate(
    wanted: &Calibration,
    registry: &Arc<Registry>,
    topology: &Topology,
    mut progress: impl FnMut(f64),
) -> Result<Calibrated, CalibrationError> {
    let places = 1 + wanted.devices.len();
    let steps = (3 * wanted.tile_sizes.len() * places + 1) as f64;
    let costs = Costs::measure(wanted, registry)?;
    let mut step = 1;
    progress(1.0 / steps);
    let mut measure = |device: Option<&(String, Arch)>| -> Result<Kernels, CalibrationError> {
        let mut kernels = Kernels::default();
        let machine = |device| Machine { wanted, registry, topology, device };
        // As many as there are, beside the one that is measured.
        let all = std::iter::once(None).chain(wanted.devices.iter().map(Some));
        let others: Vec<Machine<'_>> = all.filter(|other| *other != device).map(machine).collect();
        let machine = machine(device);
        for tile_size in &wanted.tile_sizes {
            kernels.measure::<Cholesky>(&machine, &others, *tile_size)?;
            kernels.measure::<Lu>(&machine, &others, *tile_size)?;
            kernels.measure::<Qr>(&machine, &others, *tile_size)?;
            step += 3;
            progress(f64::from(step) / steps);
        }
        Ok(kernels)
    };
    let kernels = measure(None)?;
    let on_devices = wanted.devices.iter().map(|device| {
        // Where that cannot be measured, it is as with most devices.
        let overlaps = Bare::open(registry, &device.0).ok().and_then(|bare| bare.launches_early().ok()).unwrap_or(true);
        Ok(CalibratedDevice { overlaps, kernels: measure(Some(device))?.means(Chosen::Least) })
    });
    let on_devices = on_devices.collect::<Result<Vec<CalibratedDevice>, CalibrationError>>()?;
    Ok(kernels.with(costs, Chosen::Least, on_devices))
}

/// The costs of scheduling.
struct Costs {
    submission: Duration,
    push: Duration,
    fetch: Duration,
    wake_up: Duration,
}

impl Costs {
    fn measure(wanted: &Calibration, registry: &Arc<Registry>) -> Result<Costs, CalibrationError> {
        let push = push_cost(wanted, registry)?;
        let (submission, execution) = chain_costs(wanted, registry)?;
        let wake_up = wake_cost(wanted, registry)?.saturating_sub(submission + push);
        Ok(Costs { submission, push, fetch: execution.saturating_sub(push), wake_up })
    }
}

/// Half of a push and a pull through a tree.
fn push_cost(wanted: &Calibration, registry: &Arc<Registry>) -> Result<Duration, CalibrationError> {
    const PAIRS: u32 = 20_000;
    let tree = builder(registry, &wanted.policy, 1, false).bare_tree()?;
    // The machine's clock and memory are warm then.
    peers::deque_pairs(PAIRS);
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        tree.pairs(PAIRS).map_err(BenchError::of(&wanted.policy))?;
        least = began.elapsed().min(least);
    }
    Ok(least / PAIRS / 2)
}

/// Time to submit a task of a chain, and to execute one: by one thread, first one and then the other.
fn chain_costs(wanted: &Calibration, registry: &Arc<Registry>) -> Result<(Duration, Duration), CalibrationError> {
    let runtime = builder(registry, &wanted.policy, 1, true).build()?;
    let update = runtime.codelet::<(ReadWrite<()>,), ()>("update").cpu("empty", |_, _| {}).build();
    let datum = runtime.register(());
    let (mut submission, mut execution) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..CHAIN {
            runtime.task(&update, (&datum,)).submit()?;
        }
        let submitted = Instant::now();
        runtime.wait_all()?;
        submission = submission.min(submitted - began);
        execution = execution.min(submitted.elapsed());
    }
    Ok((submission / CHAIN, execution / CHAIN))
}

/// Median time from the submission of a task until a worker that sleeps executes it.
fn wake_cost(wanted: &Calibration, registry: &Arc<Registry>) -> Result<Duration, CalibrationError> {
    let runtime = builder(registry, &wanted.policy, 1, false).build()?;
    let note = runtime.codelet::<(Write<Instant>,), ()>("note");
    let note = note.cpu("note", |_, (at,)| *at = Instant::now()).build();
    let mut times = Vec::new();
    let mut sleeps = 0;
    for _ in 0..ROUNDS {
        while runtime.stats()[0].sleeps == sleeps {
            std::thread::yield_now();
        }
        sleeps = runtime.stats()[0].sleeps;
        let at = runtime.register(Instant::now());
        let submitted = Instant::now();
        let task = runtime.task(&note, (&at,)).submit()?;
        runtime.wait(task)?;
        let executed = runtime.read(&at).map_or(submitted, |at| *at);
        times.push(executed.saturating_duration_since(submitted).as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(&mut times)))
}

/// Where kernels are measured.
struct Machine<'a> {
    wanted: &'a Calibration,
    registry: &'a Arc<Registry>,
    topology: &'a Topology,
    /// The device, by its name; the cores without one.
    device: Option<&'a (String, Arch)>,
}

impl Machine<'_> {
    /// A runtime in which the kernels of `W` run there, as far as there are such kernels.
    fn start<W: Workload>(&self) -> Result<Runtime, CalibrationError> {
        let mut builder = Runtime::builder()
            .registry(Arc::clone(self.registry))
            .policy(&self.wanted.policy)
            .workers(self.wanted.workers)
            .bind(self.wanted.bind)
            .topology(self.topology.clone())
            .capture_graph();
        if let Some((name, arch)) = self.device {
            let only = |builder: Builder, kernel: &&str| builder.only_on(*kernel, Where::arch(*arch));
            // One core is enough for the kernels that the device has not.
            builder = W::ON_DEVICES.iter().fold(builder.workers(1).devices(name.parse()?), only);
        }
        Ok(builder.build()?)
    }
}

/// Which of several runs counts.
#[derive(Clone, Copy)]
enum Chosen {
    /// That with the least mean.
    Least,
    /// That with the mean in the middle.
    Middle,
}

/// Adds the times of a workload on ranks, for this size of tiles.
type WorkloadStep = fn(&mut Kernels, &Cluster, usize) -> Result<(), CalibrationError>;

/// Number of runs of each workload by which kernels are measured.
const RUNS: usize = 3;

/// Seconds of each kernel of a workload with data of a size, in each of its runs.
type Runs = BTreeMap<&'static str, Vec<Vec<f64>>>;

/// The times of kernels.
#[derive(Default)]
struct Kernels {
    times: BTreeMap<String, BTreeMap<u64, Runs>>,
    flops: f64,
    seconds: f64,
}

impl Kernels {
    /// Runs a workload, and adds the times of its tasks. The others run it as well meanwhile, since cores and devices
    /// share memory and caches.
    fn measure<W: Workload>(
        &mut self,
        machine: &Machine<'_>,
        others: &[Machine<'_>],
        tile_size: usize,
    ) -> Result<(), CalibrationError> {
        let (runtime, arch) = (machine.start::<W>()?, machine.device.map_or(Arch::CPU, |(_, arch)| *arch));
        let matrix = W::random(tiles(ROWS, tile_size) * tile_size, 42);
        // The first run makes the memory that kernels keep.
        W::run(&runtime, W::cut(&*matrix, tile_size))?;
        drop(runtime.take_graph());
        let others = others.iter().map(Machine::start::<W>).collect::<Result<Vec<Runtime>, CalibrationError>>()?;
        let runs = || -> Result<Vec<f64>, WorkloadError> {
            (0..RUNS).map(|_| Ok(W::run(&runtime, W::cut(&*matrix, tile_size))?.figures.flops)).collect()
        };
        let flops = beside::<W, _>(&others, &*matrix, tile_size, runs)?;
        self.flops += flops.iter().sum::<f64>();
        let graph = runtime.take_graph().unwrap_or_default();
        let a_run = graph.tasks.len().div_ceil(RUNS).max(1);
        for (number, task) in graph.tasks.iter().enumerate() {
            let Some(length) = task.lengths.get(arch) else { continue };
            let (kind, bytes) = (&graph.kind_of(task).name, graph.bytes_of(task));
            self.add(kind, bytes, (W::NAME, number / a_run), length.as_secs_f64());
        }
        Ok(())
    }

    /// Adds the time of a task with data of this size in a run of a workload.
    fn add(&mut self, kind: &str, bytes: u64, (workload, run): (&'static str, usize), seconds: f64) {
        self.seconds += seconds;
        let of_kind = self.times.entry(kind.to_owned()).or_default();
        let of_size = of_kind.entry(bytes).or_default().entry(workload).or_default();
        of_size.resize(RUNS, Vec::new());
        of_size[run].push(seconds);
    }

    /// All figures.
    fn with(self, costs: Costs, chosen: Chosen, on_devices: Vec<CalibratedDevice>) -> Calibrated {
        let Costs { submission, push, fetch, wake_up } = costs;
        let gflops = self.flops / self.seconds.max(f64::MIN_POSITIVE) / 1e9;
        Calibrated { submission, push, fetch, wake_up, gflops, kernels: self.means(chosen), on_devices }
    }

    /// Mean times.
    fn means(self, chosen: Chosen) -> KernelTimes {
        let by_size = |(kind, times): (String, BTreeMap<u64, Runs>)| {
            let of_size = |(bytes, runs)| (bytes, Duration::from_secs_f64(mean_of_workloads(runs, chosen)));
            (kind, times.into_iter().map(of_size).collect())
        };
        self.times.into_iter().map(by_size).collect()
    }
}

/// Mean of a kernel that several workloads have: each counts as often as it runs the kernel.
fn mean_of_workloads(runs: Runs, chosen: Chosen) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for runs in runs.into_values() {
        let tasks = runs.iter().map(Vec::len).sum::<usize>() as f64;
        let mut means: Vec<f64> = runs.into_iter().filter(|run| !run.is_empty()).map(mean).collect();
        let mean = match chosen {
            Chosen::Least => means.iter().copied().fold(f64::INFINITY, f64::min),
            Chosen::Middle => median(&mut means),
        };
        sum += tasks * mean;
        count += tasks;
    }
    sum / f64::max(count, 1.0)
}

/// Times that other programs have made far longer count as this many times the median.
const LONGEST: f64 = 3.0;

/// Mean of times, of which far longer ones count as [`LONGEST`] medians.
fn mean(mut times: Vec<f64>) -> f64 {
    let most = LONGEST * median(&mut times);
    times.iter().map(|time| time.min(most)).sum::<f64>() / times.len().max(1) as f64
}

/// Does something while other runtimes factorise the same matrix again and again.
fn beside<W: Workload, R>(
    others: &[Runtime],
    matrix: &(dyn Entries + Send + Sync),
    tile_size: usize,
    work: impl FnOnce() -> R,
) -> R {
    // Tiles that are made meanwhile would take a core.
    const STOCK: usize = 2 * RUNS;
    let (busy, has_ended) = (&Barrier::new(others.len() + 1), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        for runtime in others {
            scope.spawn(move || {
                let cut = || W::cut(matrix, tile_size);
                // Kernels of devices are compiled in the first run.
                let mut goes_on = W::run(runtime, cut()).is_ok();
                let mut stock: Vec<W::Tiles> = (0..STOCK).map(|_| cut()).collect();
                busy.wait();
                while goes_on && !has_ended.load(Ordering::Relaxed) {
                    goes_on = W::run(runtime, stock.pop().unwrap_or_else(cut)).is_ok();
                    drop(runtime.take_graph());
                }
            });
        }
        busy.wait();
        let done = work();
        has_ended.store(true, Ordering::Relaxed);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_of_each_workload_counts() {
        let runs = || {
            Runs::from([
                ("cholesky", vec![vec![1.0, 1.0], vec![1.0, 2.0], vec![1.0, 100.0]]),
                ("lu", vec![vec![4.0], vec![3.0], vec![5.0]]),
            ])
        };
        // Six tasks of 1 and three of 3.
        assert!((mean_of_workloads(runs(), Chosen::Least) - 15.0 / 9.0).abs() < 1e-9);
        // Six tasks of 1.5 and three of 4.
        assert!((mean_of_workloads(runs(), Chosen::Middle) - 21.0 / 9.0).abs() < 1e-9);
    }

    #[test]
    fn what_takes_far_longer_than_others_counts_as_three_medians() {
        assert!((mean(vec![1.0, 1.0, 100.0]) - 5.0 / 3.0).abs() < 1e-9);
    }
}
