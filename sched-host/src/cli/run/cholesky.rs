//! `sched run cholesky`.

use super::options::Options;
use super::progress::Progress;
use super::report::{Problem, Report, tell_faults};
use crate::cli::size;
use crate::cli::values::positive;
use crate::linalg::{RandomSpd, ReadLimits, SymmetricEntries, Tiling, cholesky_steps, read_matrix_market, tolerance};
use crate::plugin::Registry;
use crate::runtime::{RunError, Runtime};
use crate::topology::Topology;
use crate::workload::{Factored, WorkloadError, cholesky, cut, residual};
use miette::{IntoDiagnostic, WrapErr};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Factorise a dense symmetric positive definite matrix, tile by tile
///
/// The matrix (f64) is made from the seed, or read from a file, and cut into square tiles. Each kernel (potrf, trsm, syrk,
/// gemm) on tiles is a task: N rows of tiles make N·(N + 1)·(N + 2)/6 of them. The time is that of the tasks, from the
/// first submission to the last end; the residual ‖A − L·Lᵀ‖ / ‖A‖ is computed afterwards, and too large a one is an
/// error.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:
  sched run cholesky                                        order 4096 on all of this machine
  sched run cholesky --policy mine.kdl --workers 4          a policy of your own, 4 workers
  sched run cholesky --tiles 40 --tile-size 192             11480 tasks, on smaller tiles
  sched run cholesky --matrix bcsstk14.mtx --tile-size 64   a matrix from a file
  sched run cholesky --json | jq .gflops                    for programs")]
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

pub(super) fn run(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let topology = Topology::this_machine()?;
    let progress = Progress::new();
    let run = Run { args, registry, topology, progress: &progress };
    match &args.matrix {
        Some(path) => {
            let matrix = progress.phase("reading the matrix", || read_matrix_market(path, ReadLimits::default()))?;
            run.factorise(&matrix, Some(path.display().to_string()), out)
        }
        None => {
            let order = size::order(args.tiles, args.tile_size)?;
            run.factorise(&RandomSpd::new(order, args.options.seed), None, out)
        }
    }
}

struct Run<'a> {
    args: &'a Args,
    registry: Arc<Registry>,
    topology: Topology,
    progress: &'a Progress,
}

impl Run<'_> {
    fn factorise(
        self,
        matrix: &(impl SymmetricEntries + Sync),
        file: Option<String>,
        out: &mut dyn Write,
    ) -> miette::Result<ExitCode> {
        let Run { args, registry, topology, progress } = self;
        let tiling = Tiling::new(matrix.order(), args.tile_size);
        size::check(tiling, 1)?;
        let helpers = helpers(&args.options, &topology)?;
        let runtime = args.options.start(registry, topology)?;
        for warning in runtime.warnings() {
            progress.say(&format!("warning: {warning}"));
        }

        let tiles = progress.phase("making the tiles", || helpers.install(|| cut(matrix, args.tile_size)));
        let tasks = cholesky_steps(tiling.n_tiles()).len() as u64;
        let done = progress.tasks("cholesky", &runtime, tasks, || cholesky(&runtime, tiles));
        let Factored { factor, figures } = match done {
            Ok(factored) => factored,
            Err(error) => return Err(unfinished(error, file, &runtime, progress)),
        };
        let found = progress.phase("checking the result", || helpers.install(|| residual(matrix, &factor)));

        let problem = Problem {
            workload: "cholesky",
            matrix: file,
            order: tiling.order(),
            tiles: tiling.n_tiles(),
            tile_size: args.tile_size,
            seed: args.options.seed,
        };
        let report = Report::new(problem, &runtime, figures, found, tolerance(tiling.order()));
        report.write(args.options.json, progress, out)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The threads that make the matrix and check the result; while the tasks run they sleep.
fn helpers(options: &Options, topology: &Topology) -> miette::Result<ThreadPool> {
    let threads = options.worker_count(topology).min(topology.allowed_pus().len());
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.into_diagnostic().wrap_err("no threads could be started to make the matrix")
}

/// What to say when there is no result.
fn unfinished(error: WorkloadError, file: Option<String>, runtime: &Runtime, progress: &Progress) -> miette::Report {
    // The report of a stall tells the faults itself.
    if !matches!(error, WorkloadError::Run(RunError::Stalled(_))) {
        tell_faults(&runtime.faults(), progress);
    }
    let report = miette::Report::new(error);
    match file {
        Some(file) => report.wrap_err(format!("the matrix of `{file}` was not factorised")),
        None => report,
    }
}
