//! `sched simulate`: a task graph on a described machine, under a virtual clock.

pub(super) mod report;
pub(super) mod setup;
mod swap;

use crate::contexts::{Wanted, wanted};
use crate::pictures::{Pictures, unwritten};
use miette::{IntoDiagnostic, WrapErr};
use report::Report;
use sched_graph::TaskGraph;
use sched_sim::{Context, SimRecorder, Simulation, When};
use sched_trace::{Digest, Event, Observer};
use sched_tree::plugin::Registry;
use setup::Setup;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use swap::{Swap, swap};

/// Simulate a task graph on a described machine, with the same policies and plugins as real runs
///
/// The workload is a generated graph or a file: a StarPU trace (tasks.rec), a WfFormat workflow (.json) or a standard task
/// graph (.stg). The platform is a shipped one (numa-2x12, cpu9-gpu3, fat-1024), a KDL file, or a machine of a StarPU
/// performance directory. The same command gives the same schedule, event for event; `digest` tells whether it did.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = "Examples:
  sched simulate cholesky --tiles 16 --platform cpu9-gpu3 --policy tree-heft
  sched simulate lu --tiles 20 --platform mine.kdl --policy mine.kdl --json
  sched simulate --graph tasks.rec --starpu-sampling ~/.starpu/sampling --host mirage --policy tree-heft
  sched simulate stencil --width 64 --steps 100 --platform numa-2x12 --policy tree-ws --events events.txt
  sched simulate cholesky --platform numa-2x12 --context a:policy=tree-ws,workers=0-11 \
                          --context b:policy=tree-heft,workers=8-23
                                 two contexts on one machine, which share four workers
  sched simulate lu --policy tree-eager --swap-to tree-heft@0.5s
                                 another policy from then on
  sched simulate cholesky --tiles 8 --platform numa-2x12 --policy tree-pheft --parallel 0.95
                                 combined workers execute tasks together
  sched simulate cholesky --policy tree-heft --gantt heft.svg --trace heft.json
                                 a picture for a browser, and a trace for https://ui.perfetto.dev")]
pub struct Args {
    #[command(flatten)]
    setup: Setup,

    /// The policy: a name that `sched policies` lists, or the path of a KDL file
    #[arg(long, short, value_name = "POLICY", default_value = "tree-eager", env = "SCHED_POLICY")]
    policy: String,

    /// Simulate the workload once in each of these contexts at the same time: workers=0-3+8 are those that it has, which it may
    /// share with other contexts (all, if it is left out); priorities=0..9 are those that its tasks may have
    #[arg(long = "context", short, value_name = "NAME:policy=POLICY,workers=…", value_parser = wanted)]
    contexts: Vec<Wanted>,

    /// Swap to this policy, in each context: at a virtual time, such as tree-prio@20ms (units: ns, us, ms, s), or else when
    /// half of its tasks have ended
    #[arg(long, value_name = "POLICY[@TIME]", value_parser = swap)]
    swap_to: Option<Swap>,

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
    let graph = args.in_contexts(graph);
    let files = args.pictures.open()?;
    let recorder = files.wanted().then(|| SimRecorder::new(Arc::clone(&graph), Arc::clone(&platform)));
    let mut observer = Watcher { digest: Digest::default(), lines: None, error: None, recorder };
    if let Some(path) = &args.events {
        let file = File::create(path).into_diagnostic();
        let file = file.wrap_err_with(|| unwritten(path))?;
        observer.lines = Some(BufWriter::new(file));
    }
    let simulation = Simulation::new(Arc::clone(&graph), Arc::clone(&platform));
    let mut simulation = args.with_contexts(simulation.policy(&args.policy), &graph);
    simulation = simulation.registry(registry).seed(args.setup.seed);
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
    let trace = recorder.map(|recorder| recorder.finish(&args.policies()));
    let drawn = trace.map_or(Ok(()), |trace| files.write(&trace, &graph.name, report.bound()));
    if let Some(path) = &args.events {
        written.into_diagnostic().wrap_err_with(|| unwritten(path))?;
    }
    drawn?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Which policies are at work, in words.
    fn policies(&self) -> String {
        let of = |wanted: &Wanted| format!("{} ({})", wanted.policy.as_ref().unwrap_or(&self.policy), wanted.name);
        let policies: Vec<String> = self.contexts.iter().map(of).collect();
        let policies = if policies.is_empty() { self.policy.clone() } else { policies.join(", ") };
        match &self.swap_to {
            Some(swap) => format!("{policies} → {}", swap.policy),
            None => policies,
        }
    }

    /// Whether contexts are to be seen at work.
    fn has_contexts(&self) -> bool {
        !self.contexts.is_empty() || self.swap_to.is_some()
    }

    /// The workload, once in each context that is asked for.
    fn in_contexts(&self, graph: Arc<TaskGraph>) -> Arc<TaskGraph> {
        if self.contexts.is_empty() {
            return graph;
        }
        let copies = vec![&*graph; self.contexts.len()];
        Arc::new(TaskGraph::side_by_side(graph.name.clone(), &copies))
    }

    fn with_contexts(&self, mut simulation: Simulation, graph: &TaskGraph) -> Simulation {
        for wanted in &self.contexts {
            let mut context = Context::new(&wanted.name);
            if let Some(policy) = &wanted.policy {
                context = context.policy(policy);
            }
            if let Some(workers) = &wanted.workers {
                context = context.workers(workers.iter().copied());
            }
            if let Some(priorities) = &wanted.priorities {
                context = context.priorities(priorities.clone());
            }
            simulation = simulation.context(context);
        }
        let Some(Swap { policy, at }) = &self.swap_to else { return simulation };
        let names: Vec<&str> = self.contexts.iter().map(|wanted| &*wanted.name).collect();
        let names = if names.is_empty() { vec![Context::DEFAULT] } else { names };
        let half = graph.tasks.len() as u64 / names.len() as u64 / 2;
        let when = at.map_or(When::AfterTasks(half), When::At);
        names.into_iter().fold(simulation, |simulation, name| simulation.swap_policy(name, policy, when))
    }
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
