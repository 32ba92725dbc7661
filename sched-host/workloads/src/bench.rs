//! The cost of scheduling: empty tasks through a tree, compared with peers that are measured in the same run.
//!
//! The speed of a machine fluctuates, so a single figure means little: every round measures each contender once, one
//! after the other, and the least time of all rounds counts for each.

mod calibration;
mod cholesky;
mod decision;
mod device;
mod error;
mod granularity;
mod network;
mod peers;
mod shapes;
mod simulation;

pub use calibration::{
    Calibrated, CalibratedDevice, Calibration, CalibrationError, KernelTimes, calibrate, calibrate_on_ranks,
};
pub use cholesky::{CholeskyBench, CholeskyBenchError, CholeskyReport, CholeskyRound, cholesky_bench};
pub use decision::{DecisionBench, DecisionResult, decision_bench};
pub use device::{
    CopyOverlap, DeviceBench, DeviceBenchError, DeviceBenchReport, DeviceCholesky, KernelRate, device_bench,
};
pub use error::BenchError;
pub use granularity::{Granularity, GranularityPeers, GranularityResult, Pattern, granularity};
pub use network::{NetworkFigures, network};
pub use shapes::Shape;
pub use simulation::{SimulationBench, SimulationResult, simulation_bench};

use sched_runtime::{Builder, Codelet, Handle, Read, ReadWrite, Recording, RunError, Runtime, StartError, SubmitError};
use sched_tree::BareTree;
use sched_tree::plugin::Registry;
use serde::Serialize;
use shapes::{BATCH, Graph};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Overhead {
    /// Policies, by name or path.
    pub policies: Vec<String>,
    /// Task graphs.
    pub shapes: Vec<Shape>,
    /// Numbers of workers.
    pub workers: Vec<usize>,
    /// Whether the last worker is the thread that submits, while it waits; see [`Builder::main_worker`].
    pub main_worker: bool,
    /// Number of tasks of the shapes other than the factorisations.
    pub tasks: usize,
    /// Number of rounds; the least time of all counts.
    pub rounds: usize,
}

/// One row: a shape under a policy with a number of workers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OverheadResult {
    /// The task graph.
    pub shape: Shape,
    /// Number of workers.
    pub workers: usize,
    /// The policy.
    pub policy: String,
    /// Number of tasks in the graph.
    pub tasks: usize,
    /// Nanoseconds per task, submission included: the least of all rounds.
    pub ns_per_task: f64,
    /// Nanoseconds per task of each peer.
    pub peer_ns: PeerTimes,
}

/// The times of peers for the same graph, in nanoseconds per task.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PeerTimes {
    /// rayon's `scope.spawn`: the last dependency of each task spawns it. The graph is known beforehand.
    pub rayon: f64,
    /// Threads that share one deque behind a mutex. The graph is known beforehand.
    pub floor: f64,
}

/// The cost of a push and a pull of one task through a tree, and nothing else.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PushPullResult {
    /// The policy.
    pub policy: String,
    /// Nanoseconds per pair: the least of all rounds.
    pub ns_per_pair: f64,
    /// Nanoseconds per pair of a deque behind a mutex.
    pub floor_ns: f64,
}

/// The results of all measurements.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OverheadReport {
    /// Results for each shape, number of workers and policy.
    pub results: Vec<OverheadResult>,
    /// Results for each policy.
    pub push_pull: Vec<PushPullResult>,
}

/// Measures everything, and reports the progress, from 0 to 1, to `progress`. Every round measures each policy and each
/// peer once.
///
/// # Errors
/// If a runtime does not start, a run stalls, or a tree keeps tasks: there are no figures then.
pub fn overhead(
    wanted: &Overhead,
    registry: &Arc<Registry>,
    mut progress: impl FnMut(f64),
) -> Result<OverheadReport, BenchError> {
    let mut results = Vec::new();
    let steps = wanted.policies.len() * wanted.workers.len() * wanted.shapes.len();
    for workers in &wanted.workers {
        for shape in &wanted.shapes {
            results.extend(measure(wanted, registry, *workers, *shape)?);
            progress(results.len() as f64 / steps as f64);
        }
    }
    Ok(OverheadReport { results, push_pull: measure_pairs(wanted, registry)? })
}

fn builder(registry: &Arc<Registry>, policy: &str, workers: usize, main_worker: bool) -> Builder {
    let builder = Runtime::builder().registry(Arc::clone(registry)).policy(policy).workers(workers);
    if main_worker { builder.main_worker() } else { builder }
}

/// Measures a row for each policy.
fn measure(
    wanted: &Overhead,
    registry: &Arc<Registry>,
    workers: usize,
    shape: Shape,
) -> Result<Vec<OverheadResult>, BenchError> {
    let start = |policy: &String| {
        Contest::new(builder(registry, policy, workers, wanted.main_worker), workers, shape, wanted.tasks)
    };
    let contests = wanted.policies.iter().map(start).collect::<Result<Vec<Contest>, StartError>>()?;
    let Some(first) = contests.first() else { return Ok(Vec::new()) };
    let mut ours = vec![Duration::MAX; contests.len()];
    let (mut rayon, mut floor) = (Duration::MAX, Duration::MAX);
    for _ in 0..wanted.rounds.max(1) {
        for (least, contest) in ours.iter_mut().zip(&contests) {
            *least = contest.ours()?.min(*least);
        }
        rayon = rayon.min(first.rayon());
        floor = floor.min(first.floor());
    }
    let per_task = |time: Duration| time.as_nanos() as f64 / first.tasks() as f64;
    let row = |(contest, ours): (&Contest, Duration)| OverheadResult {
        shape,
        workers,
        policy: contest.runtime.policy().to_owned(),
        tasks: contest.tasks(),
        ns_per_task: per_task(ours),
        peer_ns: PeerTimes { rayon: per_task(rayon), floor: per_task(floor) },
    };
    Ok(contests.iter().zip(ours).map(row).collect())
}

/// One graph of empty tasks, on this runtime and on its peers.
pub struct Contest {
    runtime: Runtime,
    rayon: rayon::ThreadPool,
    workers: usize,
    shape: Shape,
    graph: Graph,
    free: Codelet<()>,
    update: Codelet<(ReadWrite<()>,)>,
    combine1: Codelet<(Read<()>, ReadWrite<()>)>,
    combine2: Codelet<(Read<()>, Read<()>, ReadWrite<()>)>,
    data: Vec<Handle<()>>,
    recording: Option<Recording>,
}

impl Contest {
    /// Starts the runtime of `builder`, which has `workers` workers, and peers with as many threads. `tasks` applies to
    /// the shapes of variable size.
    ///
    /// # Errors
    /// If the runtime does not start.
    ///
    /// # Panics
    /// If the system provides rayon no threads.
    pub fn new(builder: Builder, workers: usize, shape: Shape, tasks: usize) -> Result<Contest, StartError> {
        let runtime = builder.build()?;
        let graph = shape.graph(tasks);
        let data = match shape {
            Shape::Independent | Shape::Waited => 0,
            Shape::Chain => 1,
            Shape::Cholesky | Shape::Replayed => shapes::lower_tiles(shapes::tiles_of(graph.len())),
        };
        let mut contest = Contest {
            rayon: rayon::ThreadPoolBuilder::new().num_threads(workers).build().expect("a small pool of threads"),
            workers,
            shape,
            graph,
            free: runtime.codelet("free").cpu("empty", |_, ()| {}).build(),
            update: runtime.codelet("update").cpu("empty", |_, _| {}).build(),
            combine1: runtime.codelet("combine1").cpu("empty", |_, _| {}).build(),
            combine2: runtime.codelet("combine2").cpu("empty", |_, _| {}).build(),
            data: (0..data).map(|_| runtime.register(())).collect(),
            recording: None,
            runtime,
        };
        if shape == Shape::Replayed {
            contest.recording = Some(contest.record());
        }
        Ok(contest)
    }

    /// The factorisation as a recording. Its codelets have parameters, and so functions of their own: the compiler
    /// treats the submissions that are measured as those of a program that records nothing.
    fn record(&self) -> Recording {
        let update = self.runtime.codelet::<(ReadWrite<()>,), usize>("update").cpu("empty", |_, _| {}).build();
        let combine1 =
            self.runtime.codelet::<(Read<()>, ReadWrite<()>), usize>("combine1").cpu("empty", |_, _| {}).build();
        let combine2 = self.runtime.codelet::<(Read<()>, Read<()>, ReadWrite<()>), usize>("combine2");
        let combine2 = combine2.cpu("empty", |_, _| {}).build();
        let recording = self.runtime.record(|recorder| {
            shapes::cholesky(shapes::tiles_of(self.tasks()), |reads, writes| {
                let written = &self.data[writes];
                let captured = match *reads {
                    [] => recorder.task_with(&update, writes, (written,)).submit(),
                    [a] => recorder.task_with(&combine1, writes, (&self.data[a], written)).submit(),
                    [a, b, ..] => {
                        recorder.task_with(&combine2, writes, (&self.data[a], &self.data[b], written)).submit()
                    }
                };
                captured.expect("a task with handles of its own runtime");
            });
            Ok::<(), SubmitError>(())
        });
        recording.expect("nothing fails")
    }

    /// Number of tasks in the graph.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.graph.len()
    }

    /// Measures this runtime: each task names its data, and nothing is known beforehand, except where a recording is
    /// replayed.
    ///
    /// # Errors
    /// If the run stalls.
    ///
    /// # Panics
    /// If a task is not executed exactly once.
    pub fn ours(&self) -> Result<Duration, RunError> {
        let executed = || self.runtime.stats().iter().map(|worker| worker.tasks).sum::<u64>();
        let before = executed();
        let began = Instant::now();
        match self.shape {
            Shape::Independent => (0..self.tasks()).for_each(|_| {
                self.runtime.task(&self.free, ()).submit().expect("a task without data");
            }),
            Shape::Waited => {
                for task in 1..=self.tasks() {
                    self.runtime.task(&self.free, ()).submit().expect("a task without data");
                    if task.is_multiple_of(BATCH) {
                        self.runtime.wait_all()?;
                    }
                }
            }
            Shape::Chain => (0..self.tasks()).for_each(|_| {
                self.runtime.task(&self.update, (&self.data[0],)).submit().expect("a task with one handle");
            }),
            Shape::Cholesky => shapes::cholesky(shapes::tiles_of(self.tasks()), |reads, writes| {
                let submitted = match *reads {
                    [] => self.runtime.task(&self.update, (&self.data[writes],)).submit(),
                    [a] => self.runtime.task(&self.combine1, (&self.data[a], &self.data[writes])).submit(),
                    [a, b, ..] => {
                        self.runtime.task(&self.combine2, (&self.data[a], &self.data[b], &self.data[writes])).submit()
                    }
                };
                submitted.expect("a task with handles of its own runtime");
            }),
            Shape::Replayed => {
                let recording = self.recording.as_ref().expect("it is made with the contest");
                self.runtime.replay(recording).expect("the last replay has ended");
            }
        }
        self.runtime.wait_all()?;
        let took = began.elapsed();
        assert_eq!(executed() - before, self.tasks() as u64, "every task is executed once");
        Ok(took)
    }

    /// Measures rayon's `scope.spawn`.
    #[must_use]
    pub fn rayon(&self) -> Duration {
        match self.shape {
            Shape::Waited => {
                let batch = Graph::independent(BATCH);
                (0..self.tasks() / BATCH).map(|_| peers::on_rayon(&self.rayon, &batch)).sum()
            }
            _ => peers::on_rayon(&self.rayon, &self.graph),
        }
    }

    /// Measures threads that share a deque behind a mutex.
    #[must_use]
    pub fn floor(&self) -> Duration {
        match self.shape {
            Shape::Waited => peers::on_deque_by_batches(self.workers, self.tasks(), BATCH),
            _ => peers::on_deque(self.workers, &self.graph),
        }
    }
}

/// Measures a row for each policy.
fn measure_pairs(wanted: &Overhead, registry: &Arc<Registry>) -> Result<Vec<PushPullResult>, BenchError> {
    const PAIRS: u32 = 20_000;
    let start = |policy: &String| builder(registry, policy, 1, false).bare_tree();
    let trees = wanted.policies.iter().map(start).collect::<Result<Vec<BareTree>, StartError>>()?;
    let (mut least, mut floor) = (vec![Duration::MAX; trees.len()], Duration::MAX);
    for _ in 0..wanted.rounds.max(1) {
        for ((least, tree), policy) in least.iter_mut().zip(&trees).zip(&wanted.policies) {
            let began = Instant::now();
            tree.pairs(PAIRS).map_err(BenchError::of(policy))?;
            *least = began.elapsed().min(*least);
        }
        floor = floor.min(peers::deque_pairs(PAIRS));
    }
    let per_pair = |time: Duration| time.as_nanos() as f64 / f64::from(PAIRS);
    let row = |(policy, least): (&String, Duration)| PushPullResult {
        policy: policy.clone(),
        ns_per_pair: per_pair(least),
        floor_ns: per_pair(floor),
    };
    Ok(wanted.policies.iter().zip(least).map(row).collect())
}
