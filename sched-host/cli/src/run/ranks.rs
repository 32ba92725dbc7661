//! `sched run` on several ranks.

mod recorded;

pub(super) use recorded::Files;

use super::comparison::largest;
use super::contexts::{Swap, make, swap_each};
use super::options::Options;
use super::problem::Problem;
use super::report::block;
use crate::beside::{beside, not_started};
use crate::hypervisor::HypervisorReport;
use crate::json;
use crate::log;
use crate::progress::Progress;
use crate::ranks::{Ranks, shared_cores};
use crate::size::{self, Matrices, Place};
use crate::streams;
use crate::table::table;
use miette::{IntoDiagnostic, miette};
use parking_lot::Mutex;
use recorded::Recorded;
use sched_cluster::{Cluster, ClusterError};
use sched_machine::topology::Topology;
use sched_runtime::context::{Governor, SchedContext};
use sched_tree::plugin::Registry;
use sched_workloads::linalg::{Entries, Tiling};
use sched_workloads::workload::{Factored, OnRanks, run_each};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// A run on several ranks.
pub(super) struct Together<'a> {
    pub(super) ranks: Ranks,
    pub(super) options: &'a Options,
    pub(super) policies: Vec<String>,
    pub(super) registry: Arc<Registry>,
    pub(super) topology: Topology,
    pub(super) problem: Problem,
    pub(super) progress: Progress,
}

/// What a rank did in a context.
#[derive(Serialize, Deserialize)]
struct ContextShare {
    context: String,
    /// The policy at the start.
    policy: String,
    workers: Vec<u32>,
    tasks: u64,
    /// The policy swapped in there.
    swap: Option<Swap>,
}

/// What a rank did.
#[derive(Serialize, Deserialize)]
struct RankShare {
    rank: usize,
    tasks: u64,
    /// How much of the time its workers were busy, from 0 to 1.
    busy_share: f64,
    /// The policy swapped in there; those of contexts are theirs.
    swap: Option<Swap>,
    /// Its contexts, if some are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contexts: Vec<ContextShare>,
    /// What its hypervisor did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hypervisor: Option<Value>,
    /// Faults of components there.
    faults: Vec<Value>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    said: Vec<String>,
    /// What was logged there, if it is the only rank of its process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    logged: Vec<Value>,
    /// What its hypervisor did, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    governed: String,
}

/// The result in a context.
#[derive(Serialize)]
struct InContext {
    context: String,
    tasks: u64,
    residual: f64,
}

/// The run. Fields are JSON keys.
#[derive(Serialize)]
struct Run {
    policy: String,
    tasks: u64,
    makespan_s: f64,
    gflops: f64,
    /// The largest, if there are several contexts.
    residual: f64,
    /// Empty unless contexts are asked for.
    contexts: Vec<InContext>,
    per_rank: Vec<RankShare>,
}

/// The report. Fields are JSON keys.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    problem: Problem,
    ranks: usize,
    #[serde(flatten)]
    run: Run,
}

/// The report in JSON. The figures of the only run stand in the report itself, and again in the list that other reports
/// have.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a Report,
    runs: [Listed<'a>; 1],
}

/// The run in the list of runs, with the keys of those on one rank. Fields are JSON keys.
#[derive(Serialize)]
struct Listed<'a> {
    /// Name of the policy on the command line.
    given: &'a str,
    place: usize,
    round: usize,
    /// Mean busy fraction of the workers of all ranks, from 0 to 1.
    busy_share: f64,
    /// Those of all ranks, as the log.
    faults: Vec<&'a Value>,
    log: Vec<Value>,
    #[serde(flatten)]
    run: &'a Run,
}

/// What rank 0 knows at the end.
struct Outcome<F> {
    factored: Factored<Vec<Option<F>>>,
    per_rank: Vec<RankShare>,
    recorded: Recorded,
}

/// Factorises on one rank.
fn on_rank<W: OnRanks>(
    cluster: &Cluster,
    matrix: &(dyn Entries + Send + Sync),
    problem: &Problem,
    (options, where_it_is, topology): (&Options, Ranks, &Topology),
) -> Result<Outcome<W::Factors>, ClusterError> {
    compare(cluster, problem, options)?;
    let wanted = &options.contexts.contexts;
    let (here, in_process) = (where_it_is.here(), where_it_is.in_process());
    let place = Place { rank: cluster.rank(), ranks: cluster.ranks(), here, in_process };
    let tiling = Tiling::new(problem.order, problem.tile_size);
    let matrices = Matrices { tiling, precision: problem.precision, count: wanted.len().max(1) };
    agree(cluster, size::lack_of_rank::<W>(matrices, place))?;
    let (contexts, governor) = contexts(cluster, options)?;
    if options.is_recorded() && shared_cores(cluster, problem.workers, topology)?.is_some() {
        // How long kernels take where each has a core: simulations share cores themselves.
        cluster.runtime().capture_processor_time();
    }
    let policies: Vec<String> = contexts.iter().map(SchedContext::policy).collect();
    let swapped = Mutex::new(Ok(Vec::new()));
    let work = || {
        let spread = |context: &SchedContext| {
            Ok((context.clone(), W::spread(cluster, matrix, problem.tile_size, problem.precision)?))
        };
        run_each(cluster, contexts.iter().map(spread).collect::<Result<_, ClusterError>>()?)
    };
    let factored = match &options.swap_to {
        None => work(),
        Some(policy) => {
            // Half of the tasks of a rank in the mean.
            let after = W::tasks(problem.tiles as f64) as u64 / (2 * cluster.ranks() as u64);
            let (factored, started) =
                beside(&|ended| *swapped.lock() = swap_each(&contexts, policy, after, ended), work);
            if let Err(why) = started {
                *swapped.lock() = Err(not_started(&why));
            }
            factored
        }
    };
    let governed = governor.map(Governor::finish).map(HypervisorReport::of);
    let faults = cluster.runtime().faults();
    let factored = factored.inspect_err(|_| {
        // Nobody reports for this rank.
        let progress = Progress::new(false, false);
        faults.iter().for_each(|fault| progress.warn(&format!("fault on rank {}: {fault}", cluster.rank())));
    })?;
    let swapped = swapped.into_inner();
    agree(cluster, swapped.as_ref().err().map(|error| format!("rank {}: {error}", cluster.rank())))?;
    let mut swapped = swapped.unwrap_or_default();
    swapped.resize(contexts.len(), None);
    let swap = if wanted.is_empty() { swapped.pop().flatten() } else { None };
    // Without contexts there are no more swaps.
    let in_contexts = contexts.iter().zip(policies).zip(swapped).filter(|_| !wanted.is_empty());
    let share = RankShare {
        rank: cluster.rank(),
        tasks: factored.figures.tasks,
        busy_share: factored.figures.busy_share(),
        swap,
        contexts: in_contexts.map(|((context, policy), swap)| ContextShare::of(context, policy, swap)).collect(),
        hypervisor: governed.as_ref().and_then(|report| serde_json::to_value(report).ok()),
        faults: faults.iter().filter_map(|fault| serde_json::to_value(fault).ok()).collect(),
        said: faults.iter().map(ToString::to_string).collect(),
        // Ranks in one process have one log, which the report takes.
        logged: if in_process == 1 { logged() } else { Vec::new() },
        governed: governed.map_or_else(String::new, |report| report.text()),
    };
    let all = cluster.collect(&serde_json::to_vec(&share).unwrap_or_default())?.unwrap_or_default();
    let per_rank = all.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect();
    Ok(Outcome { per_rank, factored, recorded: Recorded::collect(cluster, options)? })
}

/// What was logged in this process, as JSON.
fn logged() -> Vec<Value> {
    log::take().iter().filter_map(|said| serde_json::to_value(said).ok()).collect()
}

/// The lines of several logs, each once, with the sum of its counts.
fn merged(logs: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut merged: Vec<(Value, u64)> = Vec::new();
    for mut line in logs {
        let count = line.as_object_mut().and_then(|line| line.remove("count")?.as_u64()).unwrap_or(1);
        match merged.iter_mut().find(|(known, _)| *known == line) {
            Some((_, sum)) => *sum += count,
            None => merged.push((line, count)),
        }
    }
    let counted = |(mut line, count): (Value, u64)| {
        line["count"] = count.into();
        line
    };
    merged.into_iter().map(counted).collect()
}

/// Checks what processes of `mpirun` could have been told differently.
fn compare(cluster: &Cluster, problem: &Problem, options: &Options) -> Result<(), ClusterError> {
    let (workload, of) = problem.line();
    cluster.compare("what they factorise", &format!("{workload}, {of}"))?;
    cluster.compare("the policy to swap to", options.swap_to.as_deref().unwrap_or("none"))?;
    let recorded = [("a trace", options.pictures.wanted()), ("the graph", options.is_recorded())];
    let recorded: Vec<&str> = recorded.iter().filter_map(|(what, wanted)| wanted.then_some(*what)).collect();
    cluster.compare("what they record", &format!("[{}]", recorded.join(", ")))?;
    let names: Vec<&str> = options.contexts.contexts.iter().map(|wanted| &*wanted.name).collect();
    cluster.compare("the contexts", &format!("[{}]", names.join(", ")))
}

/// The contexts of this rank, and who governs them, if they have goals.
fn contexts(cluster: &Cluster, options: &Options) -> Result<(Vec<SchedContext>, Option<Governor>), ClusterError> {
    let runtime = cluster.runtime();
    let made = make(&options.contexts.contexts, runtime).and_then(|contexts| {
        let goals = options.contexts.goals()?;
        Ok((contexts, goals.map(|goals| runtime.govern(goals)).transpose()?))
    });
    agree(cluster, made.as_ref().err().map(|error| format!("rank {}: {}", cluster.rank(), in_words(error))))?;
    made.map_err(|error| ClusterError::Failed(vec![in_words(&error)]))
}

impl ContextShare {
    fn of(context: &SchedContext, policy: String, swap: Option<Swap>) -> ContextShare {
        let (name, workers, tasks) = (context.name().to_owned(), context.workers(), context.stats().finished);
        ContextShare { context: name, policy, workers, tasks, swap }
    }
}

/// An error with its causes, in one line.
fn in_words(error: &miette::Report) -> String {
    let words: Vec<String> = error.chain().map(ToString::to_string).collect();
    words.join(": ")
}

/// Fails on all ranks what failed on one.
fn agree(cluster: &Cluster, problem: Option<String>) -> Result<(), ClusterError> {
    let words = cluster.exchange(problem.unwrap_or_default().as_bytes())?;
    let words = words.iter().filter(|word| !word.is_empty()).map(|word| String::from_utf8_lossy(word).into_owned());
    let words: Vec<String> = words.collect();
    if words.is_empty() { Ok(()) } else { Err(ClusterError::Failed(words)) }
}

impl Together<'_> {
    /// Runs, and writes the report to `out` where rank 0 is. A failure is reported there too; other processes only
    /// fail.
    pub(super) fn factorise<W: OnRanks>(
        mut self,
        matrix: &(dyn Entries + Send + Sync),
        files: Files,
        out: &mut dyn Write,
    ) -> miette::Result<ExitCode> {
        let [policy] = &*self.policies else {
            return Err(miette!(
                help = "give one policy: each rank has a tree of its own of it",
                "several ranks run one policy, and there are {}",
                self.policies.len()
            ));
        };
        let policy = policy.clone();
        let options = self.options.of_rank(&self.topology, self.ranks.here());
        // Checked before anything runs.
        options.try_all(self.options.swap_to.as_slice(), &self.registry, &self.topology)?;
        self.problem.workers = options.worker_count(&self.topology);
        let models = options.models(&self.topology, 1).swap_remove(0);
        log::of_run(&policy);
        let start = || options.start(&self.registry, &self.topology, &policy, &models);
        let (problem, ranks, topology) = (&self.problem, self.ranks, &self.topology);
        let body = |cluster: &Cluster| on_rank::<W>(cluster, matrix, problem, (&options, ranks, topology));
        let outcome = match self.ranks.launch(start, body)? {
            Ok(outcome) => outcome,
            Err(code) => return Ok(code),
        };
        self.report::<W>(policy, outcome, matrix, (files, out))
    }

    fn report<W: OnRanks>(
        self,
        policy: String,
        outcome: Outcome<W::Factors>,
        matrix: &(dyn Entries + Send + Sync),
        (files, out): (Files, &mut dyn Write),
    ) -> miette::Result<ExitCode> {
        let Outcome { factored: Factored { factors, figures }, per_rank, recorded } = outcome;
        let check = |factors: &Option<W::Factors>| {
            let factors = factors.as_ref().expect("rank 0 has the factors");
            self.progress.phase("checking the result", || W::residual(matrix, factors))
        };
        let residuals: Vec<f64> = factors.iter().map(check).collect();
        let residual = largest(residuals.iter().copied());
        let mut per_rank = per_rank;
        let wanted = self.options.contexts.contexts.iter().zip(residuals).enumerate();
        let contexts = wanted.map(|(place, (wanted, residual))| {
            let tasks = per_rank.iter().filter_map(|rank| rank.contexts.get(place)).map(|of| of.tasks).sum();
            InContext { context: wanted.name.clone(), tasks, residual }
        });
        let contexts: Vec<InContext> = contexts.collect();
        let said = |share: &mut RankShare| {
            let rank = share.rank;
            std::mem::take(&mut share.said).into_iter().map(move |fault| format!("fault on rank {rank}: {fault}"))
        };
        let said: Vec<String> = per_rank.iter_mut().flat_map(said).collect();
        let governed = per_rank.iter_mut().map(|share| (share.rank, std::mem::take(&mut share.governed)));
        let governed: Vec<(usize, String)> = governed.filter(|(_, text)| !text.is_empty()).collect();
        let log = per_rank.iter_mut().flat_map(|share| std::mem::take(&mut share.logged)).chain(logged());
        let log = merged(log);
        let run = Run {
            policy,
            tasks: per_rank.iter().map(|rank| rank.tasks).sum(),
            makespan_s: figures.makespan.as_secs_f64(),
            gflops: figures.gflops(),
            residual,
            contexts,
            per_rank,
        };
        let report = Report { problem: self.problem, ranks: run.per_rank.len(), run };
        self.progress.clear();
        let is_json = self.options.format.is_json();
        streams::report(files.take_the_output(), out, |out| {
            if is_json {
                json::write(out, &report.document(log))?;
            } else {
                out.write_all(report.text().as_bytes()).into_diagnostic()?;
                for (rank, text) in &governed {
                    write!(out, "\nrank {rank}\n{text}\n").into_diagnostic()?;
                }
            }
            out.flush().into_diagnostic()
        })?;
        if !is_json {
            said.iter().for_each(|line| self.progress.warn_once(line));
        }
        // The report is printed even if a file cannot be written.
        let written = recorded.write(&report.problem, files, out);
        report.problem.check(residual, || W::caveat(matrix, report.problem.precision))?;
        written?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Report {
    fn document(&self, log: Vec<Value>) -> Document<'_> {
        let Run { policy, per_rank, .. } = &self.run;
        let busy: f64 = per_rank.iter().map(|rank| rank.busy_share).sum();
        let busy_share = busy / per_rank.len().max(1) as f64;
        let faults = per_rank.iter().flat_map(|rank| &rank.faults).collect();
        let run = Listed { given: policy, place: 0, round: 1, busy_share, faults, log, run: &self.run };
        Document { report: self, runs: [run] }
    }

    /// The policy, and on which ranks another has taken its place after how many tasks there.
    fn policy_line(&self) -> String {
        let swapped = self.run.per_rank.iter().filter_map(|share| share.swap.as_ref().zip(Some(share.rank)));
        let swapped: Vec<(&Swap, usize)> = swapped.collect();
        let Some((first, _)) = swapped.first() else { return self.run.policy.clone() };
        let after = |(swap, rank): &(&Swap, usize)| format!("{} tasks on rank {rank}", swap.after_tasks);
        let after = swapped.iter().map(after).collect::<Vec<_>>().join(", ");
        format!("{} → {} after {after}", self.run.policy, first.policy)
    }

    fn text(&self) -> String {
        let workers = if self.problem.workers == 1 { "worker" } else { "workers" };
        let lines = [
            self.problem.line(),
            ("policy", self.policy_line()),
            ("ranks", format!("{}, with {} {workers} each", self.ranks, self.problem.workers)),
            ("tasks", self.run.tasks.to_string()),
            ("time", format!("{:.4} s", self.run.makespan_s)),
            ("speed", format!("{:.1} GFlop/s", self.run.gflops)),
            self.problem.residual_line(self.run.residual),
        ];
        let rows = self.run.per_rank.iter().map(|RankShare { rank, tasks, busy_share, .. }| {
            [rank.to_string(), tasks.to_string(), format!("{:.1}", 100.0 * busy_share)]
        });
        let ranks = table(["RANK", "TASKS", "BUSY (%)"], rows, 0..3);
        if self.run.contexts.is_empty() {
            return format!("{}\n{ranks}\n", block(&lines));
        }
        format!("{}\n{ranks}\n\n{}\n", block(&lines), self.table_of_contexts())
    }

    /// A row for each context on each rank.
    fn table_of_contexts(&self) -> String {
        let row = |(rank, place): (&RankShare, usize)| {
            let (share, of_all) = (rank.contexts.get(place)?, &self.run.contexts[place]);
            let policy = match &share.swap {
                Some(swap) => format!("{} → {} after {} tasks", share.policy, swap.policy, swap.after_tasks),
                None => share.policy.clone(),
            };
            let workers: Vec<String> = share.workers.iter().map(u32::to_string).collect();
            let (rank, tasks) = (rank.rank.to_string(), share.tasks.to_string());
            Some([share.context.clone(), rank, policy, workers.join(" "), tasks, format!("{:.1e}", of_all.residual)])
        };
        let places = 0..self.run.contexts.len();
        let rows = places.flat_map(|place| self.run.per_rank.iter().map(move |rank| (rank, place))).filter_map(row);
        table(["CONTEXT", "RANK", "POLICY", "WORKERS", "TASKS", "RESIDUAL"], rows, 4..6)
    }
}
