//! `sched run` on several ranks.

mod recorded;

pub(super) use recorded::Files;

use super::contexts::{Swap, swap};
use super::options::Options;
use super::problem::Problem;
use super::report::block;
use crate::beside::beside;
use crate::json;
use crate::progress::Progress;
use crate::ranks::Ranks;
use crate::size::{self, Place};
use crate::streams;
use crate::table::table;
use miette::{IntoDiagnostic, miette};
use parking_lot::Mutex;
use recorded::Recorded;
use sched_cluster::{Cluster, ClusterError};
use sched_machine::topology::Topology;
use sched_policy::Source;
use sched_tree::plugin::Registry;
use sched_workloads::linalg::{Entries, Tiling};
use sched_workloads::workload::{Factored, OnRanks};
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

/// What a rank did.
#[derive(Serialize, Deserialize)]
struct RankShare {
    rank: usize,
    tasks: u64,
    /// How much of the time its workers were busy, from 0 to 1.
    busy_share: f64,
    /// The policy swapped in there.
    swap: Option<Swap>,
    /// Faults of components there.
    faults: Vec<Value>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    said: Vec<String>,
}

/// The report. Fields are JSON keys.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    problem: Problem,
    policy: String,
    ranks: usize,
    tasks: u64,
    makespan_s: f64,
    gflops: f64,
    residual: f64,
    per_rank: Vec<RankShare>,
}

/// What rank 0 knows at the end.
struct Outcome<F> {
    factored: Factored<Option<F>>,
    per_rank: Vec<RankShare>,
    recorded: Recorded,
}

/// Factorises on one rank.
fn on_rank<W: OnRanks>(
    cluster: &Cluster,
    matrix: &(dyn Entries + Send + Sync),
    problem: &Problem,
    (options, where_it_is): (&Options, Ranks),
) -> Result<Outcome<W::Factors>, ClusterError> {
    let (workload, of) = problem.line();
    cluster.compare("what they factorise", &format!("{workload}, {of}"))?;
    cluster.compare("the policy to swap to", options.swap_to.as_deref().unwrap_or("none"))?;
    let recorded = [("a trace", options.pictures.wanted()), ("the graph", options.is_recorded())];
    let recorded: Vec<&str> = recorded.iter().filter_map(|(what, wanted)| wanted.then_some(*what)).collect();
    cluster.compare("what they record", &format!("[{}]", recorded.join(", ")))?;
    let (here, in_process) = (where_it_is.here(), where_it_is.in_process());
    let place = Place { rank: cluster.rank(), ranks: cluster.ranks(), here, in_process };
    agree(cluster, size::lack_of_rank::<W>(Tiling::new(problem.order, problem.tile_size), place))?;
    let swapped = Mutex::new(Ok(None));
    let work = || W::run_on(cluster, matrix, problem.tile_size);
    let factored = match &options.swap_to {
        None => work(),
        Some(policy) => {
            // Half of the tasks of a rank in the mean.
            let after = W::tasks(problem.tiles as f64) as u64 / (2 * cluster.ranks() as u64);
            let context = cluster.runtime().default_context();
            beside(&|ended| *swapped.lock() = swap(&context, policy, after, ended), work)
        }
    };
    let faults = cluster.runtime().faults();
    let factored = factored.inspect_err(|_| {
        // Nobody reports for this rank.
        let progress = Progress::new(false, false);
        faults.iter().for_each(|fault| progress.warn(&format!("fault on rank {}: {fault}", cluster.rank())));
    })?;
    let swapped = swapped.into_inner();
    agree(cluster, swapped.as_ref().err().map(|error| format!("rank {}: {error}", cluster.rank())))?;
    let share = RankShare {
        rank: cluster.rank(),
        tasks: factored.figures.tasks,
        busy_share: factored.figures.busy_share(),
        swap: swapped.ok().flatten(),
        faults: faults.iter().filter_map(|fault| serde_json::to_value(fault).ok()).collect(),
        said: faults.iter().map(ToString::to_string).collect(),
    };
    let all = cluster.collect(&serde_json::to_vec(&share).unwrap_or_default())?.unwrap_or_default();
    let per_rank = all.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect();
    Ok(Outcome { per_rank, factored, recorded: Recorded::collect(cluster, options)? })
}

/// Fails on all ranks what failed on one.
fn agree(cluster: &Cluster, problem: Option<String>) -> Result<(), ClusterError> {
    let words = cluster.exchange(problem.unwrap_or_default().as_bytes())?;
    let words = words.iter().filter(|word| !word.is_empty()).map(|word| String::from_utf8_lossy(word).into_owned());
    let words: Vec<String> = words.collect();
    if words.is_empty() { Ok(()) } else { Err(ClusterError::Failed(words)) }
}

impl Together<'_> {
    /// Runs, and writes the report to `out` where rank 0 is. A failure is reported there too; other processes only fail.
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
        if let Some(policy) = &self.options.swap_to {
            // Checked before anything runs.
            Source::find(policy)?.policy()?;
        }
        let options = self.options.of_rank(&self.topology, self.ranks.here());
        self.problem.workers = options.worker_count(&self.topology);
        let start = || options.start(&self.registry, &self.topology, &policy);
        let (problem, ranks) = (&self.problem, self.ranks);
        let body = |cluster: &Cluster| on_rank::<W>(cluster, matrix, problem, (&options, ranks));
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
        let factors = factors.expect("rank 0 has the factors");
        let residual = self.progress.phase("checking the result", || W::residual(matrix, &factors));
        let mut per_rank = per_rank;
        let said = |share: &mut RankShare| {
            let rank = share.rank;
            std::mem::take(&mut share.said).into_iter().map(move |fault| format!("fault on rank {rank}: {fault}"))
        };
        let said: Vec<String> = per_rank.iter_mut().flat_map(said).collect();
        let report = Report {
            problem: self.problem,
            policy,
            ranks: per_rank.len(),
            tasks: per_rank.iter().map(|rank| rank.tasks).sum(),
            makespan_s: figures.makespan.as_secs_f64(),
            gflops: figures.gflops(),
            residual,
            per_rank,
        };
        self.progress.clear();
        let is_json = self.options.format.is_json();
        streams::report(files.take_the_output(), out, |out| {
            if is_json {
                json::write(out, &report)?;
            } else {
                out.write_all(report.text().as_bytes()).into_diagnostic()?;
            }
            out.flush().into_diagnostic()
        })?;
        if !is_json {
            said.iter().for_each(|line| self.progress.warn_once(line));
        }
        // The report is printed even if a file cannot be written.
        let written = recorded.write(&report.problem, files, out);
        report.problem.check(residual, || W::caveat(matrix))?;
        written?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Report {
    /// The policy, and on which ranks another has taken its place after how many tasks there.
    fn policy_line(&self) -> String {
        let swapped = self.per_rank.iter().filter_map(|share| share.swap.as_ref().zip(Some(share.rank)));
        let swapped: Vec<(&Swap, usize)> = swapped.collect();
        let Some((first, _)) = swapped.first() else { return self.policy.clone() };
        let after = |(swap, rank): &(&Swap, usize)| format!("{} tasks on rank {rank}", swap.after_tasks);
        let after = swapped.iter().map(after).collect::<Vec<_>>().join(", ");
        format!("{} → {} after {after}", self.policy, first.policy)
    }

    fn text(&self) -> String {
        let workers = if self.problem.workers == 1 { "worker" } else { "workers" };
        let lines = [
            self.problem.line(),
            ("policy", self.policy_line()),
            ("ranks", format!("{}, with {} {workers} each", self.ranks, self.problem.workers)),
            ("tasks", self.tasks.to_string()),
            ("time", format!("{:.4} s", self.makespan_s)),
            ("speed", format!("{:.1} GFlop/s", self.gflops)),
            self.problem.residual_line(self.residual),
        ];
        let rows = self.per_rank.iter().map(|RankShare { rank, tasks, busy_share, .. }| {
            [rank.to_string(), tasks.to_string(), format!("{:.1}", 100.0 * busy_share)]
        });
        format!("{}\n{}\n", block(&lines), table(["RANK", "TASKS", "BUSY (%)"], rows, 0..3))
    }
}
