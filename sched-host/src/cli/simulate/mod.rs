//! `sched simulate`: a task graph on a described machine, under a virtual clock.

pub(super) mod report;
pub(super) mod setup;

use crate::cli::pictures::Pictures;
use crate::plugin::Registry;
use crate::sim::{Digest, Event, Observer, Simulation};
use crate::trace::SimRecorder;
use miette::{Context, IntoDiagnostic};
use report::Report;
use setup::Setup;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Simulate a task graph on a described machine, with the same policies and plugins as real runs
///
/// The workload is a generated graph or a file: a StarPU trace (tasks.rec), a WfFormat workflow (.json) or a standard task
/// graph (.stg). The platform is a shipped one (numa-2x12, cpu9-gpu3, fat-1024), a KDL file, or a machine of a StarPU
/// performance directory. The same command gives the same schedule, event for event; `digest` tells whether it did.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = "Examples:
  sched simulate cholesky --tiles 16 --platform cpu9-gpu3 --policy tree-heft
  sched simulate lu --tiles 20 --platform mine.kdl --policy mine.kdl --json
  sched simulate tasks.rec --starpu-sampling ~/.starpu/sampling --host mirage --policy tree-heft
  sched simulate stencil --width 64 --steps 100 --platform numa-2x12 --policy tree-ws --events events.txt
  sched simulate cholesky --policy tree-heft --gantt heft.svg --trace heft.json
                                 a picture for a browser, and a trace for https://ui.perfetto.dev")]
pub struct Args {
    #[command(flatten)]
    setup: Setup,

    /// The policy: a name that `sched policies` lists, or the path of a KDL file
    #[arg(long, short, value_name = "POLICY", default_value = "tree-eager", env = "SCHED_POLICY")]
    policy: String,

    /// Write every event to a file, a line each: nanoseconds, and what happened
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    #[command(flatten)]
    pictures: Pictures,

    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Simulates the workload that `args` name and writes its figures to `out`.
///
/// # Errors
/// When graph, platform or policy are wrong, the policy leaves tasks behind, or a file cannot be written.
pub fn run(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (graph, platform) = args.setup.load()?;
    let files = args.pictures.open()?;
    let recorder = files.wanted().then(|| SimRecorder::new(Arc::clone(&graph), Arc::clone(&platform)));
    let mut observer = Watcher { digest: Digest::default(), lines: None, error: None, recorder };
    if let Some(path) = &args.events {
        let file = File::create(path).into_diagnostic();
        let file = file.wrap_err_with(|| format!("`{}` cannot be written", path.display()))?;
        observer.lines = Some(BufWriter::new(file));
    }
    let simulation = Simulation::new(Arc::clone(&graph), Arc::clone(&platform));
    let mut simulation = simulation.policy(&args.policy).registry(registry).seed(args.setup.seed);
    if let Some(recorder) = &observer.recorder {
        simulation = simulation.witness(recorder.witness());
    }
    let began = Instant::now();
    let outcome = simulation.observe(&mut observer)?;
    let wall = began.elapsed();
    let (digest, recorder, written) = observer.finish();
    let report = Report::new(args, &graph, &platform, outcome, digest, wall);
    report.write(args.json, out)?;
    // What cannot be written does not take the report with it.
    let trace = recorder.map(|recorder| recorder.finish(&args.policy));
    let drawn = trace.map_or(Ok(()), |trace| files.write(&trace, &graph.name, report.bound()));
    written.into_diagnostic().wrap_err("the events cannot be written")?;
    drawn?;
    Ok(ExitCode::SUCCESS)
}

/// Folds all events, and writes them down if that is asked for.
struct Watcher {
    digest: Digest,
    lines: Option<BufWriter<File>>,
    error: Option<std::io::Error>,
    recorder: Option<SimRecorder>,
}

impl Watcher {
    /// The number of all events, what makes a trace of them, and whether they were written down.
    fn finish(mut self) -> (u64, Option<SimRecorder>, std::io::Result<()>) {
        let flushed = self.lines.as_mut().map_or(Ok(()), Write::flush);
        (self.digest.value(), self.recorder, self.error.map_or(flushed, Err))
    }
}

impl Observer for Watcher {
    fn event(&mut self, nanos: u64, event: &Event) {
        self.digest.event(nanos, event);
        if let Some(recorder) = &mut self.recorder {
            recorder.event(nanos, event);
        }
        if let Some(lines) = &mut self.lines
            && let Err(error) = writeln!(lines, "{nanos} {event}")
        {
            self.error.get_or_insert(error);
        }
    }
}
