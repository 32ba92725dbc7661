//! The part of `sched run` common to all workloads.

use super::comparison::Runs;
use super::options::Options;
use super::problem::{Problem, graph_of};
use super::ranks::{Files, Together};
use super::report::{Measured, Report, store_models, warn_of_faults};
use super::watch::{start_with_changes, watch};
use crate::beside::beside;
use crate::format::text_or_json;
use crate::log;
use crate::pictures::PictureFiles;
use crate::progress::Progress;
use crate::ranks::Ranks;
use crate::reports;
use crate::size;
use crate::streams::Sink;
use crate::values::positive;
use clap::ValueEnum;
use miette::{IntoDiagnostic, WrapErr};
use rayon::{ThreadPool, ThreadPoolBuilder};
use sched_graph::TaskGraph;
use sched_machine::energy::EnergyMeter;
use sched_machine::topology::Topology;
use sched_model::{ModelError, Models};
use sched_runtime::{RunError, Runtime};
use sched_text::file_name;
use sched_tree::plugin::Registry;
use sched_workloads::linalg::{Entries, Precision, ReadLimits, Tiling};
use sched_workloads::workload::{Factored, OnRanks, Workload, WorkloadError};
use std::cell::RefCell;
use std::io::Write;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
pub(super) struct Args {
    /// Tiles in a row of tiles; the matrix has tiles × tile-size rows
    #[arg(long, short = 'n', value_name = "N", default_value_t = 16, value_parser = positive, conflicts_with = "matrix")]
    tiles: usize,

    /// Rows of a tile: small ones make many short tasks, large ones few long tasks
    #[arg(long, short = 'b', value_name = "B", default_value_t = 256, value_parser = positive)]
    tile_size: usize,

    /// Read the matrix from a Matrix Market file, dense (array) or sparse (coordinate); its order says how many tiles;
    /// `-` is the standard input
    #[arg(long, short, value_name = "FILE.mtx", value_hint = clap::ValueHint::FilePath)]
    matrix: Option<PathBuf>,

    /// Precision of the kernels; what they get is rounded to it, and the result is checked accordingly
    #[arg(long, value_name = "PRECISION", default_value = "double")]
    precision: PrecisionOption,

    #[command(flatten)]
    options: Options,
}

/// Precision of kernels.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum PrecisionOption {
    /// 64 bits a number.
    Double,
    /// 32 bits a number: half of the memory and of the transfers, and twice the speed or more.
    Single,
}

impl From<PrecisionOption> for Precision {
    fn from(option: PrecisionOption) -> Precision {
        match option {
            PrecisionOption::Double => Precision::Double,
            PrecisionOption::Single => Precision::Single,
        }
    }
}

/// Runs `W` as `args` say, and writes a report of the run, or a comparison of several, to `out`.
pub(super) fn factorise<W: OnRanks>(
    args: &Args,
    registry: Arc<Registry>,
    out: &mut dyn Write,
) -> miette::Result<ExitCode> {
    let Args { tiles, tile_size, matrix: file, options, .. } = args;
    // It has all kinds of tasks, and stands for that of any size.
    let graph = graph_of(W::NAME, 3, 1).map(|graph| TaskGraph { name: W::NAME.to_owned(), ..graph });
    let options = options.for_tasks_of(graph.as_ref())?;
    options.check_devices()?;
    let meter = options.meter()?;
    let policies = options.policies()?;
    let runs = options.rounds(policies.len()).saturating_mul(policies.len());
    let ranks = options.ranks()?;
    if ranks.is_some() {
        options.check_for_ranks()?;
    }
    options.check_explained(runs)?;
    // Processes of `mpirun` have the same command line, and one of them writes.
    let writes = ranks.is_none_or(Ranks::is_first);
    let files = if writes { options.pictures.open_alone(runs)? } else { PictureFiles::default() };
    let record = if writes { options.open_record(runs)? } else { None };
    let topology = Topology::this_machine()?;
    let options = if ranks.is_some() { &options } else { &options.of_one_rank(&registry, &topology)? };
    if options.calibrate {
        options.store(&topology)?.prepare()?;
    }
    let progress = Progress::new(runs > 1, options.format.is_json());
    let matrix = match file {
        Some(path) => progress.phase("reading the matrix", || W::read(path, ReadLimits::default()))?,
        None => W::random(size::order(*tiles, *tile_size)?, options.seed()),
    };
    let problem = problem::<W>(args, options, &topology, matrix.order());
    let tiling = Tiling::new(problem.order, *tile_size);
    if let Some(ranks) = ranks {
        let together = Together { ranks, options, policies, registry, topology, problem, progress };
        return together.factorise::<W>(&*matrix, Files { pictures: files, record }, out);
    }
    size::check::<W>(tiling, options.contexts.contexts.len().max(1))?;
    let helpers = helpers(options, &topology)?;
    let tried: Vec<String> = policies.iter().chain(&options.swap_to).cloned().collect();
    for warning in options.try_all(&tried, &registry, &topology)? {
        progress.warn_once(&format!("warning: {warning}"));
    }
    let (matrix, unstored, workload) = (matrix.as_ref(), RefCell::default(), PhantomData);
    let models = options.models(&topology, policies.len());
    let registry = RefCell::new(registry);
    let series = Series::<W> {
        options,
        policies,
        registry,
        topology,
        progress,
        helpers,
        meter,
        problem,
        matrix,
        models,
        unstored,
        workload,
    };
    if options.has_contexts() { series.contexts(files, out) } else { series.in_turn(files, record, out) }
}

/// Measurements of a run that went well are lost.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the run is complete, and its measurements are not stored")]
#[diagnostic(code(sched::run::unstored))]
struct Unstored(#[related] Vec<ModelError>);

/// What is computed, with a matrix of this order.
fn problem<W: Workload>(args: &Args, options: &Options, topology: &Topology, order: usize) -> Problem {
    let (tile_size, precision) = (args.tile_size, Precision::from(args.precision));
    Problem {
        workload: W::NAME,
        matrix: args.matrix.as_deref().map(file_name),
        order,
        tiles: order.div_ceil(tile_size),
        tile_size,
        seed: options.seed(),
        precision,
        residual_tolerance: W::tolerance_in(order, precision),
        workers: options.worker_count(topology),
    }
}

/// Runs of one workload on one matrix.
pub(super) struct Series<'a, W> {
    pub(super) options: &'a Options,
    /// At least one.
    pub(super) policies: Vec<String>,
    /// Components of the next run: with `--watch-plugins`, those of the last one that changed.
    pub(super) registry: RefCell<Arc<Registry>>,
    pub(super) topology: Topology,
    pub(super) progress: Progress,
    pub(super) helpers: ThreadPool,
    /// Reader of energy counters, if requested.
    meter: Option<EnergyMeter>,
    pub(super) problem: Problem,
    pub(super) matrix: &'a (dyn Entries + Send + Sync),
    /// What the runs with each policy have learned.
    pub(super) models: Vec<Arc<Models>>,
    /// What was not stored.
    pub(super) unstored: RefCell<Vec<ModelError>>,
    workload: PhantomData<fn() -> W>,
}

impl<W: Workload> Series<'_, W> {
    /// Runs policies alternately, so that other load of the machine affects all of them.
    fn in_turn(self, files: PictureFiles, record: Option<Sink>, out: &mut dyn Write) -> miette::Result<ExitCode> {
        let rounds = self.options.rounds(self.policies.len());
        let warm_up = self.options.warm_up;
        let alone = rounds * self.policies.len() == 1;
        let (mut runs, mut trace, mut graph) = (Runs::new(rounds), None, None);
        for round in 0..warm_up + rounds {
            let name = match round.checked_sub(warm_up) {
                None => format!("warm-up {} of {warm_up}", round + 1),
                Some(round) => format!("round {} of {rounds}", round + 1),
            };
            for (place, given) in self.policies.iter().enumerate() {
                let before = round * self.policies.len() + place;
                let (runtime, measured) = match alone && round >= warm_up {
                    true => self.run(place, W::NAME, before)?,
                    false => self
                        .run(place, &format!("{} {name}, {given}", W::NAME), before)
                        .wrap_err_with(|| format!("{given}, {name}"))?,
                };
                if round < warm_up {
                    continue;
                }
                runs.add(place, given, &runtime, measured);
                (trace, graph) = (runtime.take_trace(), runtime.take_graph());
            }
        }
        let mut report: Report = runs.report(self.problem);
        if self.options.explains() {
            report.explain(trace.as_mut());
        }
        let takes_output = files.take_the_output() || record.as_ref().is_some_and(Sink::is_standard);
        report.write(self.options.format.is_json(), takes_output, &self.progress, out)?;
        // The report is printed even if a file cannot be written.
        let recorded = record.zip(graph).map_or(Ok(()), |(sink, graph)| report.problem.record(graph, sink, out));
        let drawn = trace.map_or(Ok(()), |trace| report.problem.draw(&trace, files, out));
        report.problem.check(report.residual, || W::caveat(self.matrix, report.problem.precision))?;
        drawn.and(recorded)?;
        match self.unstored.into_inner() {
            errors if errors.is_empty() => Ok(ExitCode::SUCCESS),
            errors => Err(Unstored(reports::without_repetition(errors)).into()),
        }
    }

    /// A run with a policy and its own runtime, after `before` others.
    fn run(&self, place: usize, what: &str, before: usize) -> miette::Result<(Runtime, Measured)> {
        let Series { progress, helpers, matrix, problem, .. } = self;
        let policy = &*self.policies[place];
        let matrix: &(dyn Entries + Sync) = *matrix;
        log::of_run(policy);
        let start =
            |registry: &Arc<Registry>| self.options.start(registry, &self.topology, policy, &self.models[place]);
        let runtime = match self.options.watch_plugins && before > 0 {
            true => start_with_changes(&self.registry, policy, progress, start)?,
            false => start(&self.registry.borrow())?,
        };
        let tiles = progress.phase("making the tiles", || helpers.install(|| W::cut(matrix, problem.tile_size)));
        // Sizes far beyond memory would overflow.
        let tasks = W::tasks(problem.tiles as f64) as u64;
        let rounds = self.options.warm_up + self.options.rounds(self.policies.len());
        let total = tasks * (rounds * self.policies.len()) as u64;
        let work = || {
            progress.tasks(what, &runtime, tasks * before as u64, total, || {
                self.watching(&runtime, || W::run_in(&runtime, tiles, problem.precision))
            })
        };
        let (done, consumption) = match &self.meter {
            Some(meter) => meter.measure(work).map(|(done, consumption)| (done, Some(consumption)))?,
            None => (work(), None),
        };
        let Factored { factors, figures } = match done {
            Ok(factored) => factored,
            Err(error) => return Err(self.unfinished(error, &runtime)),
        };
        self.unstored.borrow_mut().extend(store_models(&runtime, progress));
        let residual = progress.phase("checking the result", || helpers.install(|| W::residual(matrix, &factors)));
        let measured = Measured::new(figures, consumption, residual, &runtime);
        Ok((runtime, measured))
    }

    /// Does the work, and takes plugins into use meanwhile that change, if that is asked for.
    pub(super) fn watching<R>(&self, runtime: &Runtime, work: impl FnOnce() -> R) -> R {
        if !self.options.watch_plugins {
            return work();
        }
        let (registry, progress) = (Arc::clone(&self.registry.borrow()), &self.progress);
        let (result, started) = beside(&|ended| watch(runtime, &registry, progress, ended), work);
        if let Err(why) = started {
            progress.warn(&format!("plugins are not watched, since a thread could not be started: {why}"));
        }
        result
    }

    /// The error when there is no result.
    fn unfinished(&self, error: WorkloadError, runtime: &Runtime) -> miette::Report {
        // The report of a stall includes the faults.
        if !matches!(error, WorkloadError::Run(RunError::Stalled(_))) {
            warn_of_faults(&runtime.faults(), &self.progress);
        }
        let report = miette::Report::new(error);
        match &self.problem.matrix {
            Some(file) => report.wrap_err(format!("the matrix of `{file}` was not factorised")),
            None => report,
        }
    }
}

/// Threads that make the matrix and check the result; they sleep while tasks run.
fn helpers(options: &Options, topology: &Topology) -> miette::Result<ThreadPool> {
    let threads = options.worker_count(topology).min(topology.allowed_pus().len());
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.into_diagnostic().wrap_err("no threads could be started to make the matrix")
}
