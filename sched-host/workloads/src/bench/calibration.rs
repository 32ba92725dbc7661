//! The figures by which this machine is simulated: the costs of scheduling, and the times of kernels.

use super::{builder, peers};
use crate::workload::{Cholesky, Lu, Qr, Workload, WorkloadError};
use sched_core::Arch;
use sched_machine::topology::Topology;
use sched_runtime::{ReadWrite, RunError, Runtime, StartError, SubmitError, Write};
use sched_text::median;
use sched_tree::plugin::Registry;
use std::collections::BTreeMap;
use std::sync::Arc;
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
    /// Median times of kernels on a core, by kind of task and by the size of a task's data in bytes.
    pub kernels: BTreeMap<String, BTreeMap<u64, Duration>>,
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
    /// An empty task was not submitted.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Submit(#[from] SubmitError),
    /// Empty tasks were not executed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
}

/// Number of tasks in the chain that shows the costs of scheduling.
const CHAIN: u32 = 5_000;
/// Number of measurements of each cost; the least counts, and the median of wakes.
const ROUNDS: u32 = 20;
/// Number of tiles in a row of tiles of the matrices that kernels are measured with.
const TILES: usize = 6;

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
    let steps = (3 * wanted.tile_sizes.len() + 2) as f64;
    let push = push_cost(wanted, registry)?;
    let (submission, execution) = chain_costs(wanted, registry)?;
    progress(1.0 / steps);
    let wake_up = wake_cost(wanted, registry)?.saturating_sub(submission + push);
    progress(2.0 / steps);
    let mut kernels = Kernels::default();
    for (number, tile_size) in wanted.tile_sizes.iter().enumerate() {
        let mut done = |kind: usize| progress((2 + 3 * number + kind) as f64 / steps);
        kernels.measure::<Cholesky>(wanted, registry, topology, *tile_size)?;
        done(1);
        kernels.measure::<Lu>(wanted, registry, topology, *tile_size)?;
        done(2);
        kernels.measure::<Qr>(wanted, registry, topology, *tile_size)?;
        done(3);
    }
    let median_of = |times: Vec<f64>| Duration::from_secs_f64(median(&mut { times }));
    let by_size = |(kind, times): (String, BTreeMap<u64, Vec<f64>>)| {
        (kind, times.into_iter().map(|(bytes, times)| (bytes, median_of(times))).collect())
    };
    Ok(Calibrated {
        submission,
        push,
        fetch: execution.saturating_sub(push),
        wake_up,
        gflops: kernels.flops / kernels.seconds.max(f64::MIN_POSITIVE) / 1e9,
        kernels: kernels.times.into_iter().map(by_size).collect(),
    })
}

/// Half of a push and a pull through a tree.
fn push_cost(wanted: &Calibration, registry: &Arc<Registry>) -> Result<Duration, StartError> {
    const PAIRS: u32 = 20_000;
    let tree = builder(registry, &wanted.policy, 1, false).bare_tree()?;
    let once = |_| {
        let began = Instant::now();
        tree.pairs(PAIRS);
        began.elapsed()
    };
    // The machine's clock and memory are warm then.
    peers::deque_pairs(PAIRS);
    Ok((0..ROUNDS).map(once).min().unwrap_or_default() / PAIRS / 2)
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

/// The times of kernels.
#[derive(Default)]
struct Kernels {
    times: BTreeMap<String, BTreeMap<u64, Vec<f64>>>,
    flops: f64,
    seconds: f64,
}

impl Kernels {
    /// Runs a workload, and adds the times of its tasks.
    fn measure<W: Workload>(
        &mut self,
        wanted: &Calibration,
        registry: &Arc<Registry>,
        topology: &Topology,
        tile_size: usize,
    ) -> Result<(), CalibrationError> {
        let runtime = Runtime::builder()
            .registry(Arc::clone(registry))
            .policy(&wanted.policy)
            .workers(wanted.workers)
            .topology(topology.clone())
            .capture_graph()
            .build()?;
        let matrix = W::random(TILES * tile_size, 42);
        // The first run makes the memory that kernels keep.
        W::run(&runtime, W::cut(&*matrix, tile_size))?;
        drop(runtime.take_graph());
        self.flops += W::run(&runtime, W::cut(&*matrix, tile_size))?.figures.flops;
        let graph = runtime.take_graph().unwrap_or_default();
        for task in &graph.tasks {
            let Some(length) = task.lengths.get(Arch::CPU) else { continue };
            self.seconds += length.as_secs_f64();
            let of_kind = self.times.entry(graph.kind_of(task).name.clone()).or_default();
            of_kind.entry(graph.bytes_of(task)).or_default().push(length.as_secs_f64());
        }
        Ok(())
    }
}
