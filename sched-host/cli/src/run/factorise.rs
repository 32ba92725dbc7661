//! What `sched run` does with every workload.

use super::comparison::Runs;
use super::options::Options;
use super::progress::Progress;
use super::report::{Measured, Problem, Report, store_models, tell_faults};
use crate::pictures::PictureFiles;
use crate::size;
use crate::values::positive;
use miette::{IntoDiagnostic, WrapErr};
use rayon::{ThreadPool, ThreadPoolBuilder};
use sched_machine::energy::EnergyMeter;
use sched_machine::topology::Topology;
use sched_runtime::{RunError, Runtime};
use sched_tree::plugin::Registry;
use sched_workloads::linalg::{Entries, ReadLimits, Tiling};
use sched_workloads::workload::{Factored, Workload, WorkloadError};
use std::cell::Cell;
use std::io::Write;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Tiles in a row of tiles; the matrix has tiles × tile-size rows
    #[arg(long, short = 'n', value_name = "N", default_value_t = 16, value_parser = positive, conflicts_with = "matrix")]
    tiles: usize,

    /// Rows of a tile: small ones make many short tasks, large ones few long tasks
    #[arg(long, short = 'b', value_name = "B", default_value_t = 256, value_parser = positive)]
    tile_size: usize,

    /// Read the matrix from a Matrix Market file, dense (array) or sparse (coordinate); its order says how many tiles
    #[arg(long, short, value_name = "FILE.mtx")]
    matrix: Option<PathBuf>,

    #[command(flatten)]
    options: Options,
}

/// Runs `W` as often as `args` say, and writes a report of the run, or a comparison of all runs, to `out`.
pub(super) fn factorise<W: Workload>(
    args: &Args,
    registry: Arc<Registry>,
    out: &mut dyn Write,
) -> miette::Result<ExitCode> {
    let Args { tiles, tile_size, matrix: file, options } = args;
    if options.calibrate {
        options.model_directory()?;
    }
    let meter = options.meter()?;
    let files = options.pictures.open_for(options.runs())?;
    let topology = Topology::this_machine()?;
    let progress = Progress::new(options.runs() > 1);
    let matrix = match file {
        Some(path) => progress.phase("reading the matrix", || W::read(path, ReadLimits::default()))?,
        None => W::random(size::order(*tiles, *tile_size)?, options.seed),
    };
    let problem = Problem {
        workload: W::NAME,
        matrix: file.as_ref().map(|path| path.display().to_string()),
        order: matrix.order(),
        tiles: matrix.order().div_ceil(*tile_size),
        tile_size: *tile_size,
        seed: options.seed,
        residual_tolerance: W::tolerance(matrix.order()),
        workers: options.worker_count(&topology),
    };
    size::check::<W>(Tiling::new(problem.order, *tile_size), options.contexts.len().max(1))?;
    let helpers = helpers(options, &topology)?;
    for warning in options.try_all(&registry, &topology)? {
        progress.say(&format!("warning: {warning}"));
    }
    let matrix = matrix.as_ref();
    let stored = Cell::new(true);
    let workload = PhantomData;
    let series =
        Series::<W> { options, registry, topology, progress, helpers, meter, problem, matrix, stored, workload };
    match options.runs() {
        _ if options.has_contexts() => series.contexts(files, out),
        1 => series.one(files, out),
        _ => series.compare(out),
    }
}

/// Runs of one workload on one matrix.
pub(super) struct Series<'a, W> {
    pub(super) options: &'a Options,
    pub(super) registry: Arc<Registry>,
    pub(super) topology: Topology,
    pub(super) progress: Progress,
    pub(super) helpers: ThreadPool,
    /// Reads energy counters, where that is asked for.
    meter: Option<EnergyMeter>,
    pub(super) problem: Problem,
    pub(super) matrix: &'a (dyn Entries + Send + Sync),
    /// Whether all that was to be stored was.
    pub(super) stored: Cell<bool>,
    workload: PhantomData<fn() -> W>,
}

impl<W: Workload> Series<'_, W> {
    fn one(self, files: PictureFiles, out: &mut dyn Write) -> miette::Result<ExitCode> {
        let (runtime, measured) = self.run(&self.options.policies[0], W::NAME, 0)?;
        let (policy, workers_bound) = (runtime.policy().to_owned(), runtime.bound_workers());
        let trace = runtime.take_trace();
        let report = Report { problem: self.problem, policy, workers_bound, measured };
        report.write(self.options.json, &self.progress, out)?;
        // What cannot be drawn does not take the report with it.
        let drawn = trace.map_or(Ok(()), |trace| report.problem.draw(&trace, files));
        report.problem.check(report.measured.residual, || W::caveat(self.matrix))?;
        drawn?;
        Ok(if self.stored.get() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Each policy in turn, and that again, so that whatever else the machine does meets all of them alike.
    fn compare(self, out: &mut dyn Write) -> miette::Result<ExitCode> {
        let (policies, rounds) = (&self.options.policies, self.options.rounds());
        let mut runs = Runs::new(rounds);
        for round in 0..rounds {
            for (place, given) in policies.iter().enumerate() {
                let what = format!("{} round {} of {rounds}, {given}", W::NAME, round + 1);
                let ran = self.run(given, &what, round * policies.len() + place);
                let (runtime, measured) = ran.wrap_err_with(|| format!("{given}, round {} of {rounds}", round + 1))?;
                runs.add(place, given, &runtime, measured);
            }
        }
        let comparison = runs.compare(self.problem);
        comparison.write(self.options.json, &self.progress, out)?;
        comparison.problem.check(comparison.residual(), || W::caveat(self.matrix))?;
        Ok(if self.stored.get() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// A run by a runtime of its own, after `before` others.
    fn run(&self, policy: &str, what: &str, before: usize) -> miette::Result<(Runtime, Measured)> {
        let Series { progress, helpers, matrix, problem, .. } = self;
        let matrix: &(dyn Entries + Sync) = *matrix;
        let runtime = self.options.start(&self.registry, &self.topology, policy)?;
        let tiles = progress.phase("making the tiles", || helpers.install(|| W::cut(matrix, problem.tile_size)));
        // Far beyond what memory holds, this would be wrong.
        let tasks = W::tasks(problem.tiles as f64) as u64;
        let total = tasks * self.options.runs() as u64;
        let work = || progress.tasks(what, &runtime, tasks * before as u64, total, || W::run(&runtime, tiles));
        let (done, consumption) = match &self.meter {
            Some(meter) => meter.measure(work).map(|(done, consumption)| (done, Some(consumption)))?,
            None => (work(), None),
        };
        let Factored { factors, figures } = match done {
            Ok(factored) => factored,
            Err(error) => return Err(self.unfinished(error, &runtime)),
        };
        if !store_models(&runtime, progress) {
            self.stored.set(false);
        }
        let residual = progress.phase("checking the result", || helpers.install(|| W::residual(matrix, &factors)));
        let measured = Measured::new(figures, consumption, residual, &runtime);
        Ok((runtime, measured))
    }

    /// What to say when there is no result.
    fn unfinished(&self, error: WorkloadError, runtime: &Runtime) -> miette::Report {
        // The report of a stall tells the faults itself.
        if !matches!(error, WorkloadError::Run(RunError::Stalled(_))) {
            tell_faults(&runtime.faults(), &self.progress);
        }
        let report = miette::Report::new(error);
        match &self.problem.matrix {
            Some(file) => report.wrap_err(format!("the matrix of `{file}` was not factorised")),
            None => report,
        }
    }
}

/// The threads that make the matrix and check the result; while the tasks run they sleep.
fn helpers(options: &Options, topology: &Topology) -> miette::Result<ThreadPool> {
    let threads = options.worker_count(topology).min(topology.allowed_pus().len());
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.into_diagnostic().wrap_err("no threads could be started to make the matrix")
}
