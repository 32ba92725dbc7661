//! `sched run`: real work, scheduled by a policy, with a checked result.

mod comparison;
mod contexts;
mod factorise;
mod options;
mod problem;
mod ranks;
mod report;
mod watch;

use clap::Subcommand;
use factorise::factorise;
use sched_tree::plugin::Registry;
use sched_workloads::workload::{Cholesky, Lu, Qr};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Run real work with a policy, check its result and report its speed; or compare policies
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "What the graphs of N × N tiles look like, and what they show:
  cholesky  N³/6 tasks. A panel is a column of independent tasks: short chains, hardly any
            choice. For a first look, and for what scheduling costs.
  lu        N³/3 tasks. A panel is a row and a column of independent tasks, the updates behind it
            a square: twice as wide. For queues that are long, shared or stolen from.
  qr        N³/3 tasks, each twice as long. A panel is a chain, and so is every column of updates:
            narrow. For priorities: a worker without work waits for the panel.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Clone, Debug)]
enum What {
    /// Factorise a symmetric positive definite matrix, tile by tile: A = L·Lᵀ
    ///
    /// The matrix is made from the seed, or read from a file, and cut into square tiles. Each kernel (potrf,
    /// trsm, syrk, gemm) on tiles is a task: N rows of tiles make N·(N + 1)·(N + 2)/6 of them. The time runs from the
    /// first submission to the end of the last task; the residual ‖A − L·Lᵀ‖ / ‖A‖ is computed afterwards; too large a
    /// residual is an error.
    #[command(after_help = "Examples:
  sched run cholesky                                        order 4096 on all of this machine
  sched run cholesky --policy mine.kdl --workers 4          a policy of your own, 4 workers
  sched run cholesky --policy tree-eager --policy tree-ws   two policies side by side
  sched run cholesky --context a:policy=tree-ws,workers=0 \
                     --context b:policy=tree-prio,workers=1
                                                            two contexts at once on one machine
  sched run cholesky --context a:share=0.75 --context b     the hypervisor moves workers to context a
  sched run cholesky --swap-to tree-prio                    swap the policy half-way
  sched run cholesky --tiles 40 --tile-size 192             11480 tasks, on smaller tiles
  sched run cholesky --matrix bcsstk14.mtx --tile-size 64   a matrix from a file
  sched run cholesky --memory-nodes 2 --policy tree-dmdar   tiles are copied between two memories
  sched run cholesky --ranks 2                              two runtimes that exchange tiles
  sched run cholesky --precision single                     f32 in place of f64
  sched run cholesky --devices all --policy tree-heft --calibrate
                                                            on cores and devices; `sched topology` lists them
  sched run cholesky --calibrate                            measure and store kernel durations
  sched run cholesky --policy tree-heft                     decide by the learned durations
  sched run cholesky --json | jq '.runs[].gflops'           for programs")]
    Cholesky(factorise::Args),

    /// Factorise a diagonally dominant matrix, tile by tile and without pivoting: A = L·U
    ///
    /// The matrix is made from the seed, or read from a file, and cut into square tiles. Each kernel (getrf,
    /// trsm_row, trsm_column, gemm) on tiles is a task: N rows of tiles make N·(N + 1)·(2·N + 1)/6 of them. The time
    /// runs from the first submission to the end of the last task; the residual ‖A − L·U‖ / ‖A‖ is computed afterwards;
    /// too large a residual is an error. A zero pivot is an error too: without pivoting, only diagonally dominant
    /// matrices are sure to succeed.
    #[command(after_help = "Examples:
  sched run lu                                              order 4096 on all of this machine
  sched run lu --policy tree-eager --policy tree-prio       two policies side by side
  sched run lu --tiles 40 --tile-size 96 --json             22140 tasks, for programs
  sched run lu --devices opencl --policy tree-heft          on cores and OpenCL devices
  sched run lu --matrix sherman1.mtx --tile-size 64         a matrix from a file")]
    Lu(factorise::Args),

    /// Factorise any matrix, tile by tile: A = Q·R
    ///
    /// The matrix is made from the seed, or read from a file, and cut into square tiles. Each kernel (geqrt,
    /// unmqr, tsqrt, tsmqr) on tiles is a task: N rows of tiles make N·(N + 1)·(2·N + 1)/6 of them. The time is that of
    /// the tasks, from the first submission to the last end. The speed counts the operations of an untiled
    /// factorisation, which are slightly fewer. The residual is computed afterwards: ‖A − Q·R‖ / ‖A‖, or the deviation
    /// of Q from orthogonality if that is larger; too large a residual is an error.
    #[command(after_help = "Examples:
  sched run qr                                              order 4096 on all of this machine
  sched run qr --policy tree-eager --policy tree-prio       two policies side by side
  sched run qr --tiles 8 --repeat 20 --json                 every run of 20, for programs
  sched run qr --devices opencl --policy tree-heft          on cores and OpenCL devices
  sched run qr --matrix sherman1.mtx --tile-size 64         a matrix from a file")]
    Qr(factorise::Args),
}

/// Runs the workload that `args` name and writes its figures to `out`; faults of components go to stderr.
///
/// # Errors
/// If the runtime does not start, the run does not end, the result is missing or wrong, or `out` cannot be written.
pub fn run(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match &args.what {
        What::Cholesky(args) => factorise::<Cholesky>(args, registry, out),
        What::Lu(args) => factorise::<Lu>(args, registry, out),
        What::Qr(args) => factorise::<Qr>(args, registry, out),
    }
}
