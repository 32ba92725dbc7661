//! `sched compare`: simulations of several policies on one graph and machine, as a table and a page.

mod page;
mod references;
mod seeds;
mod table;

use super::simulate::case::{Case, Recording, Simulated};
use super::simulate::report::{Failed, Report, Run};
use super::simulate::setup::Setup;
use crate::contexts::ContextOptions;
use crate::format::{FormatOptions, text_or_json};
use crate::jobs::JobOptions;
use crate::json;
use crate::pictures::{Beside, Pictures};
use crate::policy::{PolicyOptions, without_repetition};
use crate::progress::Progress;
use crate::streams::{self, FileNames, Sink, Target};
use crate::values::up_to;
use miette::{IntoDiagnostic, miette};
use references::Reference;
use sched_trace::Trace;
use sched_tree::plugin::Registry;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Maximum number of seeds.
const MOST_SEEDS: usize = 1_000_000;

/// Names of the static schedules, each with that of its replay.
pub(crate) const STATIC: [[&str; 2]; 3] =
    [["HEFT (static)", "HEFT (replayed)"], ["CPOP (static)", "CPOP (replayed)"], ["PEFT (static)", "PEFT (replayed)"]];

/// Simulate a task graph with several policies, and show them side by side in a table
///
/// Compares all shipped policies by default. The table includes static schedules of the literature (HEFT, CPOP, PEFT),
/// which are computed from the whole graph and assume transfers without contention. With --context the workload runs
/// once in each context; contexts that name no policy use the compared one, and static schedules are left out.
///
/// --seeds runs each policy several times, with other random choices, and with --noise with other execution times: the
/// table has medians and spreads, and names the policies that lose most.
///
/// --html writes a self-contained page: the table, each makespan beside the lower bound, and all schedules on one time
/// axis.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
#[command(after_long_help = "Examples:
  sched compare cholesky --platform cpu9-gpu3 --policy tree-eager,tree-heft,mine.kdl
  sched compare lu --tiles 20 --html lu.html
  sched compare qr --policy tree-ws --policy tree-heft --gantt qr.svg    qr-tree-ws.svg and so on
  sched compare cholesky --platform numa-2x12 --policy tree-eager,tree-ws \\
                         --context a:workers=0-11 --context b:policy=tree-heft,workers=8-23
  sched compare cholesky --platform cpu9-gpu3 --replay    static schedules with all that they leave out
  sched compare cholesky --noise spread=0.1 --seeds 9    which policies depend on exact models
  sched compare tasks.rec --starpu-sampling ~/.starpu/sampling --host mirage --json")]
pub struct Args {
    #[command(flatten)]
    setup: Setup,

    #[command(flatten)]
    policies: PolicyOptions,

    #[command(flatten)]
    contexts: ContextOptions,

    /// Replay the static schedules in the simulator too: each task on its planned worker, in the planned order, with
    /// transfers, contention and overheads
    #[arg(long, conflicts_with_all = ["seeds", "contexts"])]
    replay: bool,

    /// Simulate each policy with this many seeds, from that of --seed, and show medians and spreads
    #[arg(long, value_name = "N", value_parser = up_to(MOST_SEEDS), conflicts_with = "html")]
    seeds: Option<usize>,

    /// Write a page with the table and all schedules; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,

    #[command(flatten)]
    jobs: JobOptions,

    #[command(flatten)]
    pictures: Pictures,

    #[command(flatten)]
    format: FormatOptions,
}

/// Simulates the workload with each policy that `args` name, and writes a table to `out`.
///
/// # Errors
/// If graph, platform or a policy are invalid, no policy completes, or a file cannot be written.
pub fn run(args: &Args, registry: Arc<Registry>, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let case = Case::load(&args.setup, &args.contexts, None, registry)?;
    case.on_one_machine()?;
    let policies = args.policies()?;
    case.check(&policies)?;
    if let Some(count) = args.seeds {
        if args.pictures.wanted() {
            return Err(miette!(help = "leave --seeds out to draw one of them", "a picture shows a single run"));
        }
        let complete = seeds::run(&case, args, &policies, count, out)?;
        return Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let page = args.html.as_ref().map(Target::create).transpose()?;
    let mut names = FileNames::default();
    for policy in &policies {
        // Created before anything runs, to detect errors early, and again when there is something to write.
        args.pictures.open_for(&names.of(policy))?;
    }
    let progress = Progress::new(true, args.format.is_json());
    let trace = args.pictures.wanted() || page.is_some();
    let jobs = args.jobs.start(policies.len())?;
    let (simulated, references) = jobs.beside(
        || case.simulate_all(&policies, (&jobs, &progress), |_| Recording::of_trace(trace)),
        || {
            case.bounds();
            if args.contexts.contexts.is_empty() { references::all(&case.graph, &case.platform) } else { Vec::new() }
        },
    );
    let (simulated, mut failed) = simulated?;
    let mut contenders: Vec<(Run, Option<Trace>)> =
        simulated.into_iter().map(|Simulated { run, trace, .. }| (run, trace)).collect();
    let replayed = jobs.each(references.into_iter(), |Reference { run, trace: planned, replay, pinned }| {
        (run, planned, replay, args.replay.then(|| case.replay(replay, pinned, trace)))
    });
    for (run, planned, replay, replayed) in replayed {
        contenders.push((run, Some(planned)));
        match replayed {
            Some(Ok(Simulated { run, trace, .. })) => contenders.push((run, trace)),
            Some(Err(error)) => failed.push(Failed { policy: replay.to_owned(), why: error.to_string() }),
            None => {}
        }
    }
    // Shortest makespan first.
    contenders.sort_by(|(a, _), (b, _)| a.makespan_s.total_cmp(&b.makespan_s));
    let (runs, traces): (Vec<Run>, Vec<Option<Trace>>) = contenders.into_iter().unzip();
    let report = Report::new(&case, args.setup.settings(), runs, failed);
    streams::report(page.as_ref().is_some_and(Sink::is_standard), out, |out| match args.format.is_json() {
        true => json::write(out, &report),
        false => out.write_all(table::text(&report).as_bytes()).into_diagnostic(),
    })?;
    let traces: Vec<Trace> = traces.into_iter().flatten().collect();
    args.draw(&report, &traces, &mut names, out)?;
    if let Some(sink) = page {
        sink.write(out, |out| out.write_all(page::html(&report, &traces).as_bytes()))?;
    }
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    /// The compared policies without repetitions.
    fn policies(&self) -> miette::Result<Vec<String>> {
        let contexts = &self.contexts.contexts;
        if !contexts.is_empty() && contexts.iter().all(|context| context.policy.is_some()) {
            return Err(miette!(
                help = "leave policy= out of a context to run it with each of the compared policies",
                "every context names its policy, which leaves nothing to compare"
            ));
        }
        Ok(without_repetition(self.policies.several_or("all")?))
    }

    /// Writes the pictures of each run.
    fn draw(
        &self,
        report: &Report,
        traces: &[Trace],
        names: &mut FileNames,
        out: &mut dyn Write,
    ) -> miette::Result<()> {
        if !self.pictures.wanted() {
            return Ok(());
        }
        let bound = report.bound();
        let beside = Beside { workload: &report.workload, bound: bound.as_ref(), until: report.longest() };
        for (run, trace) in report.runs.iter().zip(traces) {
            self.pictures.open_for(&names.of(&run.policy))?.write(trace, beside, out)?;
        }
        Ok(())
    }
}
