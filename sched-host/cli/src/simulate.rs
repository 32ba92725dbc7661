//! `sched simulate`: a task graph on a described machine, under a virtual clock.

pub(super) mod case;
mod explain;
pub(super) mod report;
pub(super) mod settings;
pub(super) mod setup;
mod swap;

use crate::contexts::ContextOptions;
use crate::format::{FormatOptions, text_or_json};
use crate::jobs::JobOptions;
use crate::pictures::{Beside, PictureFiles, Pictures};
use crate::policy::{PolicyOptions, without_repetition};
use crate::progress::Progress;
use crate::reports;
use crate::streams::{self, FileNames, Sink, Target, unwritten};
use case::{Case, Recording, Simulated};
use miette::{IntoDiagnostic, WrapErr};
use report::{Report, Run};
use sched_tree::plugin::Registry;
use setup::Setup;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use swap::{Swap, swap};

/// Simulate a task graph on a described machine, with the same policies and plugins as real runs
///
/// The workload is a generated graph or a file: what `sched graph --json` writes, a StarPU trace (tasks.rec), a
/// WfFormat workflow (.json) or a standard task graph (.stg). The machine is a shipped platform (cpu9-gpu3 by default),
/// a KDL file, a machine of a StarPU performance directory, or one that hwloc describes, with assumed speeds; or a
/// cluster of such machines, where the owner of data executes what writes it (docs/cluster.md has the networks). A
/// repeated command produces the same schedule, event for event, with an equal `digest`. Several policies are simulated
/// at once, each as if alone; `sched compare` shows them side by side.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("format", text_or_json))]
#[command(after_long_help = "Examples:
  sched simulate cholesky --tiles 16 --platform cpu9-gpu3 --policy tree-heft
  sched simulate lu --tiles 20 --platform mine.kdl --policy mine.kdl --json
  sched simulate qr --synthetic \"node:2 core:8 pu:1\" --policy tree-ws
                                 on a synthetic machine
  sched graph layered --json | sched simulate - --policy tree-prio
  sched simulate --graph tasks.rec --starpu-sampling ~/.starpu/sampling --host mirage --policy tree-heft
  sched simulate stencil --width 64 --steps 100 --platform numa-2x12 --policy tree-ws --events events.txt
  sched simulate cholesky --platform numa-2x12 --context a:policy=tree-ws,workers=0-11 \\
                          --context b:policy=tree-heft,workers=8-23
                                 two contexts on one machine, which share four workers
  sched simulate cholesky --platform numa-2x12 --context a:share=0.75 --context b:share=0.25
                                 the hypervisor gives context a three quarters of the machine
  sched simulate cholesky --tiles 40 --platform cluster:16x12,bandwidth=25GB/s --policy tree-prio
                                 16 nodes of 12 cores, each with a scheduler of its own
  sched simulate lu --policy tree-eager --swap-to tree-heft@0.5s
                                 another policy from then on
  sched simulate cholesky --tiles 8 --platform numa-2x12 --policy tree-pheft --parallel 0.95
                                 combined workers execute tasks together
  sched simulate cholesky --policy tree-heft --gantt heft.svg --trace heft.json
                                 a picture for a browser, and a trace for https://ui.perfetto.dev
  sched simulate cholesky --tiles 8 --policy tree-heft --explain \"gemm(5,3,1)\"
                                 why this task ran where it ran
  sched simulate cholesky --tiles 8 --policy tree-heft --explain makespan
                                 why it takes as long as it takes
  sched simulate cholesky --policy tree-eager,tree-heft --json | jq '.runs[] | {policy, makespan_s}'")]
pub struct Args {
    #[command(flatten)]
    setup: Setup,

    #[command(flatten)]
    policies: PolicyOptions,

    #[command(flatten)]
    contexts: ContextOptions,

    /// Swap each context to this policy at a virtual time, such as tree-prio@20ms (units: ns, us, ms, s); by default
    /// when half of its tasks have ended
    #[arg(long, value_name = "POLICY[@TIME]", value_parser = swap)]
    swap_to: Option<Swap>,

    /// Write every event to a file, one line each: time in nanoseconds and event; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    events: Option<Target>,

    /// Explain what happens to a task: when it becomes ready, where components put it, what they could know of each
    /// child when they chose one, and who executes it. END is when the task would end below a child by the other
    /// columns; components may weigh more. TASK is its name, or its number in traces and messages; may be repeated.
    /// `makespan` explains the whole schedule by the chain of tasks that ends last: what each of them waited for
    #[arg(long, value_name = "TASK")]
    explain: Vec<String>,

    #[command(flatten)]
    jobs: JobOptions,

    #[command(flatten)]
    pictures: Pictures,

    #[command(flatten)]
    format: FormatOptions,
}

/// Simulates the workload that `args` name and writes its figures to `out`.
///
/// # Errors
/// If graph, platform or policy are invalid, no policy completes, or a file cannot be written.
pub fn run(args: &Args, registry: Arc<Registry>, out: &mut (dyn Write + Send)) -> miette::Result<ExitCode> {
    let case = Case::load(&args.setup, &args.contexts, args.swap_to.as_ref(), registry)?;
    let policies = without_repetition(args.policies.several()?);
    // One policy alone is checked when it starts; one to swap to would be found wrong when its time comes, or never.
    match &args.swap_to {
        Some(swap) => case.check(&[&policies[..], std::slice::from_ref(&swap.policy)].concat())?,
        None if policies.len() > 1 => case.check(&policies)?,
        None => {}
    }
    let explain = explain::find(&args.explain, &case.graph)?;
    case.can_explain(&explain)?;
    let (pictures, mut events) = args.open(&policies)?;
    let targets: Vec<Option<Target>> = events.iter().map(|sink| sink.as_ref().map(|it| it.target().clone())).collect();
    let takes_output =
        pictures.iter().any(PictureFiles::take_the_output) || events.iter().flatten().any(Sink::is_standard);
    let progress = Progress::new(policies.len() > 1, args.format.is_json());
    let mut standard = Some(&mut *out);
    let jobs = args.jobs.start(policies.len())?;
    let simulate = || {
        case.simulate_all(&policies, (&jobs, &progress), |place| Recording {
            trace: pictures[place].wanted(),
            events: events[place].take().map(|sink| sink.writer(&mut standard)),
            explain: &explain,
        })
    };
    let (simulated, _) = jobs.beside(simulate, || case.bounds());
    let (simulated, failed) = simulated?;
    let recorded = simulated.into_iter().map(|Simulated { run, trace, written }| (run, (trace, written)));
    let (runs, recorded): (Vec<Run>, Vec<_>) = recorded.unzip();
    if let Some(swap) = &args.swap_to {
        runs.iter().flat_map(|run| run.missed(swap)).for_each(|missed| reports::warn(&missed));
    }
    let report = Report::new(&case, args.setup.settings(), runs, failed);
    streams::report(takes_output, out, |out| report.write(args.format.is_json(), out))?;
    // The report is printed even if a file cannot be written.
    let until = report.longest().filter(|_| policies.len() > 1);
    let bound = report.bound();
    let beside = Beside { workload: &case.graph.name, bound: bound.as_ref(), until };
    let mut ended = report.runs.iter().zip(recorded).peekable();
    for ((policy, files), target) in policies.iter().zip(pictures).zip(targets) {
        let Some((_, (trace, written))) = ended.next_if(|(run, _)| run.policy == *policy) else { continue };
        if let Some(target) = target {
            written.into_diagnostic().wrap_err_with(|| unwritten(&target))?;
        }
        trace.map_or(Ok(()), |trace| files.write(&trace, beside, out))?;
    }
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    /// Creates the files recorded for each policy.
    fn open(&self, policies: &[String]) -> miette::Result<(Vec<PictureFiles>, Vec<Option<Sink>>)> {
        if policies.len() == 1 {
            return Ok((vec![self.pictures.open()?], vec![self.events.as_ref().map(Target::create).transpose()?]));
        }
        let mut names = FileNames::default();
        let parts: Vec<String> = policies.iter().map(|policy| names.of(policy)).collect();
        let events = |part: &String| {
            let target = self.events.as_ref().map(|target| target.of_several(part)).transpose()?;
            target.as_ref().map(Target::create).transpose()
        };
        let pictures = parts.iter().map(|part| self.pictures.open_for(part)).collect::<Result<_, _>>()?;
        Ok((pictures, parts.iter().map(events).collect::<Result<_, _>>()?))
    }
}
