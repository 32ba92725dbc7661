//! `sched run` on several ranks.

mod recorded;

pub(super) use recorded::Files;

use super::options::Options;
use super::problem::Problem;
use super::report::block;
use crate::json;
use crate::progress::Progress;
use crate::ranks::Ranks;
use crate::streams;
use crate::table::table;
use miette::{IntoDiagnostic, miette};
use recorded::Recorded;
use sched_cluster::{Cluster, ClusterError};
use sched_machine::topology::Topology;
use sched_tree::plugin::Registry;
use sched_workloads::linalg::Entries;
use sched_workloads::workload::{Factored, OnRanks};
use serde::Serialize;
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
#[derive(Serialize, Clone, Copy)]
struct RankShare {
    rank: usize,
    tasks: u64,
    /// How much of the time its workers were busy, from 0 to 1.
    busy_share: f64,
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
    options: &Options,
) -> Result<Outcome<W::Factors>, ClusterError> {
    let (workload, of) = problem.line();
    cluster.compare("what they factorise", &format!("{workload}, {of}"))?;
    let recorded = [("a trace", options.pictures.wanted()), ("the graph", options.is_recorded())];
    let recorded: Vec<&str> = recorded.iter().filter_map(|(what, wanted)| wanted.then_some(*what)).collect();
    cluster.compare("what they record", &format!("[{}]", recorded.join(", ")))?;
    let factored = W::run_on(cluster, matrix, problem.tile_size)?;
    let (tasks, busy) = (factored.figures.tasks, factored.figures.busy_share());
    let all = cluster.exchange(&[tasks.to_le_bytes(), busy.to_le_bytes()].concat())?;
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let share = |(rank, bytes): (usize, &Vec<u8>)| RankShare {
        rank,
        tasks: word(bytes, 0),
        busy_share: f64::from_bits(word(bytes, 8)),
    };
    let per_rank = all.iter().enumerate().map(share).collect();
    Ok(Outcome { per_rank, factored, recorded: Recorded::collect(cluster, options)? })
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
        let options = self.options.of_rank(&self.topology, self.ranks.here());
        self.problem.workers = options.worker_count(&self.topology);
        let start = || options.start(&self.registry, &self.topology, &policy);
        let problem = &self.problem;
        let body = |cluster: &Cluster| on_rank::<W>(cluster, matrix, problem, &options);
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
        // The report is printed even if a file cannot be written.
        let written = recorded.write(&report.problem, files, out);
        report.problem.check(residual, || W::caveat(matrix))?;
        written?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Report {
    fn text(&self) -> String {
        let workers = if self.problem.workers == 1 { "worker" } else { "workers" };
        let lines = [
            self.problem.line(),
            ("policy", self.policy.clone()),
            ("ranks", format!("{}, with {} {workers} each", self.ranks, self.problem.workers)),
            ("tasks", self.tasks.to_string()),
            ("time", format!("{:.4} s", self.makespan_s)),
            ("speed", format!("{:.1} GFlop/s", self.gflops)),
            self.problem.residual_line(self.residual),
        ];
        let rows = self.per_rank.iter().map(|RankShare { rank, tasks, busy_share }| {
            [rank.to_string(), tasks.to_string(), format!("{:.1}", 100.0 * busy_share)]
        });
        format!("{}\n{}\n", block(&lines), table(["RANK", "TASKS", "BUSY (%)"], rows, 0..3))
    }
}
