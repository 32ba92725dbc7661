//! `sched run --context … --swap-to …`: the workload in several concurrent contexts, and policies swapped while it
//! runs.

use super::comparison::{Runs, largest};
use super::factorise::Series;
use super::report::{Measured, Report, block};
use crate::beside::start;
use crate::contexts::Wanted;
use crate::hypervisor::HypervisorReport;
use crate::log;
use crate::pictures::PictureFiles;
use crate::table::table;
use miette::{WrapErr, miette};
use sched_runtime::Runtime;
use sched_runtime::context::{Governor, SchedContext};
use sched_workloads::linalg::Precision;
use sched_workloads::workload::{Factored, Figures, Workload};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The run in one context.
#[derive(Serialize)]
pub(super) struct Ran {
    context: String,
    /// The policy at the start.
    policy: String,
    /// The policy swapped in, and the number of tasks ended before.
    swap: Option<Swap>,
    workers: Vec<u32>,
    tasks: u64,
    makespan_s: f64,
    gflops: f64,
    residual: f64,
}

/// A swap while tasks run.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Swap {
    pub(super) policy: String,
    pub(super) after_tasks: u64,
}

impl<W: Workload> Series<'_, W> {
    /// Runs the workload in each context at once.
    pub(super) fn contexts(self, files: PictureFiles, out: &mut dyn Write) -> miette::Result<ExitCode> {
        let options = self.options;
        let [given] = &*self.policies else {
            return Err(miette!(
                help = "set the policy of each context: --context a:policy=tree-eager",
                "several --policy are for comparing runs, and this is one run"
            ));
        };
        let goals = options.contexts.goals()?;
        let of = |wanted: &Wanted| format!("{} ({})", wanted.policy.as_deref().unwrap_or(given), wanted.name);
        let policies: Vec<String> = options.contexts.contexts.iter().map(of).collect();
        log::of_run(&if policies.is_empty() { given.clone() } else { policies.join(", ") });
        let runtime = options.start(&self.registry.borrow(), &self.topology, given, &self.models[0])?;
        let contexts = make(&options.contexts.contexts, &runtime)?;
        options.check_contexts::<W>(&contexts)?;
        let mut tiles = Vec::new();
        for _ in &contexts {
            let cut = || self.helpers.install(|| W::cut(self.matrix, self.problem.tile_size));
            tiles.push(self.progress.phase("making the tiles", cut));
        }
        let tasks = W::tasks(self.problem.tiles as f64) as u64;
        let total = tasks * contexts.len() as u64;
        let governor = goals.map(|goals| runtime.govern(goals)).transpose()?;
        let (before, began) = (runtime.stats(), Instant::now());
        let done = self.progress.tasks(W::NAME, &runtime, 0, total, || {
            self.watching(&runtime, || self.run_all(&runtime, &contexts, tiles, tasks / 2))
        });
        let (makespan, after) = (began.elapsed(), runtime.stats());
        let governance = governor.map(Governor::finish);
        let mut ran = Vec::new();
        for (context, done) in contexts.iter().zip(done) {
            let done = done.map_err(|error| error.wrap_err(format!("context `{}`", context.name())))?;
            ran.push(self.ran(context, done, tasks));
        }
        let flops = ran.iter().map(|ran| ran.gflops * ran.makespan_s * 1e9).sum();
        let residual = largest(ran.iter().map(|ran| ran.residual));
        let measured = Measured {
            contexts: ran,
            hypervisor: governance.map(HypervisorReport::of),
            ..Measured::new(Figures::between(&before, &after, makespan, flops), None, residual, &runtime)
        };
        let mut runs = Runs::new(1);
        runs.add(0, given, &runtime, measured);
        let trace = runtime.take_trace();
        let report = runs.report(self.problem);
        report.write(options.format.is_json(), files.take_the_output(), &self.progress, out)?;
        // The report is printed even if a picture cannot be written.
        let drawn = trace.map_or(Ok(()), |trace| report.problem.draw(&trace, files, out));
        for ran in report.runs.iter().flat_map(|run| &run.measured.contexts) {
            report.problem.check(ran.residual, || W::caveat(self.matrix, report.problem.precision))?;
        }
        drawn?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs the workload in each context, with tiles of its own.
    fn run_all(
        &self,
        runtime: &Runtime,
        contexts: &[SchedContext],
        tiles: Vec<W::Tiles>,
        swap_after: u64,
    ) -> Vec<miette::Result<Done<W>>> {
        let (swap_to, precision) = (self.options.swap_to.as_deref(), self.problem.precision);
        thread::scope(|scope| {
            let runs: Vec<_> = contexts
                .iter()
                .zip(tiles)
                .map(|(context, tiles)| {
                    start(scope, move || run_in::<W>(runtime, context, (tiles, precision), swap_to, swap_after))
                })
                .collect();
            runs.into_iter().map(|run| run?.join().expect("what panics in tasks is caught")).collect()
        })
    }

    /// Result of the run in one context, checked here.
    fn ran(&self, context: &SchedContext, done: Done<W>, tasks: u64) -> Ran {
        let (policy, Factored { factors, figures }, swap) = done;
        let check = || self.helpers.install(|| W::residual(self.matrix, &factors));
        Ran {
            context: context.name().to_owned(),
            policy,
            swap,
            workers: context.workers(),
            tasks,
            makespan_s: figures.makespan.as_secs_f64(),
            gflops: figures.gflops(),
            residual: self.progress.phase("checking the result", check),
        }
    }
}

/// The contexts that are `wanted`, or the default one.
pub(super) fn make(wanted: &[Wanted], runtime: &Runtime) -> miette::Result<Vec<SchedContext>> {
    if wanted.is_empty() {
        return Ok(vec![runtime.default_context()]);
    }
    let make = |wanted: &Wanted| {
        let mut builder = runtime.context(&wanted.name);
        if let Some(policy) = &wanted.policy {
            builder = builder.policy(policy);
        }
        if let Some(workers) = &wanted.workers {
            builder = builder.workers(workers.iter().copied());
        }
        if let Some(priorities) = &wanted.priorities {
            builder = builder.priorities(priorities.clone());
        }
        let made = builder.build().map_err(miette::Report::new);
        made.wrap_err_with(|| format!("context `{}` cannot be made", wanted.name))
    };
    wanted.iter().map(make).collect()
}

/// Runs the workload in one context: initial policy, result, and swap if there was one.
type Done<W> = (String, Factored<<W as Workload>::Factors>, Option<Swap>);

fn run_in<W: Workload>(
    runtime: &Runtime,
    context: &SchedContext,
    (tiles, precision): (W::Tiles, Precision),
    swap_to: Option<&str>,
    after: u64,
) -> miette::Result<Done<W>> {
    let policy = context.policy();
    thread::scope(|scope| {
        // Dropped when the work ends or panics.
        let (alive, ended) = channel::<()>();
        let swapper = swap_to.map(|to| start(scope, move || swap(context, to, after, &ended))).transpose()?;
        let factored = context.with(|| W::run_in(runtime, tiles, precision));
        drop(alive);
        let swapped = swapper.map(|swapper| swapper.join().expect("a swap does not panic")).transpose()?;
        Ok((policy, factored?, swapped.flatten()))
    })
}

/// Swaps the policy when `after` tasks have ended; after the last one, if the work is done before this thread checks.
/// Does nothing if the work fails before.
pub(super) fn swap(context: &SchedContext, to: &str, after: u64, ended: &Receiver<()>) -> miette::Result<Option<Swap>> {
    Ok(swap_each(std::slice::from_ref(context), to, after, ended)?.pop().flatten())
}

/// [`swap`] in each context.
pub(super) fn swap_each(
    contexts: &[SchedContext],
    to: &str,
    after: u64,
    ended: &Receiver<()>,
) -> miette::Result<Vec<Option<Swap>>> {
    const LOOK: Duration = Duration::from_millis(1);
    let mut swapped = vec![None; contexts.len()];
    loop {
        let goes_on = ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout);
        for (context, swapped) in contexts.iter().zip(&mut swapped).filter(|(_, swapped)| swapped.is_none()) {
            let finished = context.stats().finished;
            if finished >= after {
                context.swap_policy(to).map_err(miette::Report::new)?;
                *swapped = Some(Swap { policy: context.policy(), after_tasks: finished });
            }
        }
        if !goes_on || swapped.iter().all(Option::is_some) {
            return Ok(swapped);
        }
    }
}

impl Report {
    /// All contexts in a table.
    pub(super) fn table_of_contexts(&self, measured: &Measured) -> String {
        let mut lines = vec![self.problem.line(), self.problem.workers_line(self.workers_bound)];
        lines.extend(measured.moves.lines());
        let block = block(&lines);
        let rows = measured.contexts.iter().map(|ran| {
            let policy = match &ran.swap {
                Some(swap) => format!("{} → {} after {} tasks", ran.policy, swap.policy, swap.after_tasks),
                None => ran.policy.clone(),
            };
            let workers: Vec<String> = ran.workers.iter().map(u32::to_string).collect();
            [
                ran.context.clone(),
                policy,
                workers.join(" "),
                ran.tasks.to_string(),
                format!("{:.4}", ran.makespan_s),
                format!("{:.1}", ran.gflops),
                format!("{:.1e}", ran.residual),
            ]
        });
        let header = ["CONTEXT", "POLICY", "WORKERS", "TASKS", "TIME (S)", "GFLOP/S", "RESIDUAL"];
        let goals = measured.hypervisor.as_ref().map_or(String::new(), |report| format!("\n{}\n", report.text()));
        format!("{block}\n{}\n{goals}", table(header, rows, 3..header.len()))
    }
}
