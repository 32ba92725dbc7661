//! `sched run --context … --swap-to …`: the workload once in each of several contexts at the same time, and policies that
//! are exchanged while it runs.

use super::factorise::Series;
use super::report::{Problem, block, table, tell_faults, write};
use crate::cli::pictures::PictureFiles;
use crate::context::SchedContext;
use crate::policy::Source;
use crate::runtime::Runtime;
use crate::tree::Fault;
use crate::workload::{Factored, Workload};
use miette::{WrapErr, miette};
use serde::Serialize;
use std::io::Write;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// A context, as `--context` asks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    name: String,
    policy: Option<String>,
    workers: Option<Vec<u32>>,
    priorities: Option<RangeInclusive<i32>>,
}

/// Reads `NAME:policy=POLICY,workers=0-1+3,priorities=0..9`.
pub(super) fn wanted(text: &str) -> Result<Wanted, String> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    if name.is_empty() {
        return Err("a context has a name: NAME:policy=POLICY,workers=0-1".to_owned());
    }
    let mut wanted = Wanted { name: name.to_owned(), policy: None, workers: None, priorities: None };
    for setting in rest.split(',').filter(|setting| !setting.is_empty()) {
        let Some((key, value)) = setting.split_once('=') else {
            return Err(format!("`{setting}` has no value: write policy=POLICY, workers=0-1 or priorities=0..9"));
        };
        match key {
            "policy" => wanted.policy = Some(value.to_owned()),
            "workers" => wanted.workers = Some(workers(value)?),
            "priorities" => wanted.priorities = Some(priorities(value)?),
            _ => return Err(format!("a context has no `{key}`, only policy, workers and priorities")),
        }
    }
    Ok(wanted)
}

/// Reads `0-1+3`.
fn workers(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || format!("`{text}` are no workers: write 0, 0-3, or 0-1+3");
    let mut workers = Vec::new();
    for part in text.split('+') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
        if first > last || last - first > u32::from(u16::MAX) {
            return Err(wrong());
        }
        workers.extend(first..=last);
    }
    Ok(workers)
}

/// Reads `0..9`.
fn priorities(text: &str) -> Result<RangeInclusive<i32>, String> {
    let bounds = text.split_once("..").and_then(|(least, most)| Some(least.parse().ok()?..=most.parse().ok()?));
    bounds.ok_or_else(|| format!("`{text}` is no range of priorities: write 0..9"))
}

/// What came of it. The fields are the keys of the JSON.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    problem: Problem,
    workers_bound: usize,
    contexts: Vec<Ran>,
    /// What components did wrong.
    faults: Vec<Fault>,
}

/// The run in one context.
#[derive(Serialize)]
struct Ran {
    context: String,
    /// The policy at the start.
    policy: String,
    /// The policy that took its place, and after how many tasks.
    swap: Option<Swap>,
    workers: Vec<u32>,
    tasks: u64,
    makespan_s: f64,
    gflops: f64,
    residual: f64,
}

#[derive(Clone, Serialize)]
struct Swap {
    policy: String,
    after_tasks: u64,
}

impl<W: Workload> Series<'_, W> {
    /// Runs the workload in each context at once.
    pub(super) fn contexts(self, files: PictureFiles, out: &mut dyn Write) -> miette::Result<ExitCode> {
        let options = self.options;
        if options.policies.len() > 1 {
            return Err(miette!(
                help = "name the policy of each context: --context a:policy=tree-eager",
                "several --policy are for comparing runs, and this is one run"
            ));
        }
        if let Some(policy) = &options.swap_to {
            // Before anything runs.
            Source::find(policy)?.policy()?;
        }
        let runtime = options.start(&self.registry, &self.topology, &options.policies[0])?;
        let contexts = self.make(&runtime)?;
        let mut tiles = Vec::new();
        for _ in &contexts {
            let cut = || self.helpers.install(|| W::cut(self.matrix, self.problem.tile_size));
            tiles.push(self.progress.phase("making the tiles", cut));
        }
        let tasks = W::tasks(self.problem.tiles as f64) as u64;
        let total = tasks * contexts.len() as u64;
        let done = self.progress.tasks(W::NAME, &runtime, 0, total, || {
            thread::scope(|scope| {
                let runs: Vec<_> = contexts
                    .iter()
                    .zip(tiles)
                    .map(|(context, tiles)| {
                        let runtime = &runtime;
                        scope.spawn(move || run_in::<W>(runtime, context, tiles, options.swap_to.as_deref(), tasks / 2))
                    })
                    .collect();
                runs.into_iter().map(|run| run.join().expect("what panics in tasks is caught")).collect::<Vec<_>>()
            })
        });
        let mut ran = Vec::new();
        for (context, done) in contexts.iter().zip(done) {
            let (policy, Factored { factors, figures }, swap) = match done {
                Ok(done) => done,
                Err(error) => return Err(error.wrap_err(format!("context `{}`", context.name()))),
            };
            let check = || self.helpers.install(|| W::residual(self.matrix, &factors));
            ran.push(Ran {
                context: context.name().to_owned(),
                policy,
                swap,
                workers: context.workers(),
                tasks,
                makespan_s: figures.makespan.as_secs_f64(),
                gflops: figures.gflops(),
                residual: self.progress.phase("checking the result", check),
            });
        }
        let (workers_bound, faults) = (runtime.bound_workers(), runtime.faults());
        let trace = runtime.take_trace();
        let report = Report { problem: self.problem, workers_bound, contexts: ran, faults };
        write(options.json, &report, &report.text(), &self.progress, out)?;
        if !options.json {
            tell_faults(&report.faults, &self.progress);
        }
        // What cannot be drawn does not take the report with it.
        let drawn = trace.map_or(Ok(()), |trace| report.problem.draw(&trace, files));
        for ran in &report.contexts {
            report.problem.check(ran.residual, || W::caveat(self.matrix))?;
        }
        drawn?;
        Ok(ExitCode::SUCCESS)
    }

    /// The contexts that are asked for; the default one, if none is.
    fn make(&self, runtime: &Runtime) -> miette::Result<Vec<SchedContext>> {
        if self.options.contexts.is_empty() {
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
        self.options.contexts.iter().map(make).collect()
    }
}

/// The policy at the start, the result, and the swap if there was one.
type Done<W> = (String, Factored<<W as Workload>::Factors>, Option<Swap>);

fn run_in<W: Workload>(
    runtime: &Runtime,
    context: &SchedContext,
    tiles: W::Tiles,
    swap_to: Option<&str>,
    after: u64,
) -> miette::Result<Done<W>> {
    let policy = context.policy();
    thread::scope(|scope| {
        // Dropped when the work is done, or panics.
        let (alive, ended) = channel::<()>();
        let swapper = swap_to.map(|to| scope.spawn(move || swap(context, to, after, &ended)));
        let factored = context.with(|| W::run(runtime, tiles));
        drop(alive);
        let swapped = swapper.map(|swapper| swapper.join().expect("a swap does not panic")).transpose()?;
        Ok((policy, factored?, swapped.flatten()))
    })
}

/// Swaps the policy when so many tasks have ended; nothing, if the work ends before.
fn swap(context: &SchedContext, to: &str, after: u64, ended: &Receiver<()>) -> miette::Result<Option<Swap>> {
    const LOOK: Duration = Duration::from_millis(1);
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let finished = context.stats().finished;
        if finished >= after {
            context.swap_policy(to).map_err(miette::Report::new)?;
            return Ok(Some(Swap { policy: context.policy(), after_tasks: finished }));
        }
    }
    Ok(None)
}

impl Report {
    /// The report for people.
    fn text(&self) -> String {
        let block = block(&[self.problem.line(), self.problem.workers_line(self.workers_bound)]);
        let rows = self.contexts.iter().map(|ran| {
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
        format!("{block}\n{}\n", table(header, rows, 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_read() {
        let read = wanted("b:policy=tree-ws,workers=0-1+3,priorities=-5..9").expect("it is right");
        assert_eq!((&*read.name, read.policy.as_deref()), ("b", Some("tree-ws")));
        assert_eq!((read.workers, read.priorities), (Some(vec![0, 1, 3]), Some(-5..=9)));
        let bare = wanted("a").expect("everything has a default");
        assert_eq!((bare.policy, bare.workers, bare.priorities), (None, None, None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| wanted(text).expect_err("it is wrong");
        insta::assert_snapshot!(error(":policy=a"), @"a context has a name: NAME:policy=POLICY,workers=0-1");
        insta::assert_snapshot!(error("a:policy"), @"`policy` has no value: write policy=POLICY, workers=0-1 or priorities=0..9");
        insta::assert_snapshot!(error("a:polcy=b"), @"a context has no `polcy`, only policy, workers and priorities");
        insta::assert_snapshot!(error("a:workers=3-1"), @"`3-1` are no workers: write 0, 0-3, or 0-1+3");
        insta::assert_snapshot!(error("a:workers=x"), @"`x` are no workers: write 0, 0-3, or 0-1+3");
        insta::assert_snapshot!(error("a:priorities=3"), @"`3` is no range of priorities: write 0..9");
    }
}
