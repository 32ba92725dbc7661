//! `sched run` on several ranks.

use super::options::Options;
use super::problem::Problem;
use super::report::block;
use crate::json;
use crate::progress::Progress;
use crate::table::table;
use miette::{IntoDiagnostic, miette};
use sched_cluster::{Cluster, ClusterError};
use sched_machine::topology::Topology;
use sched_tree::plugin::Registry;
use sched_workloads::linalg::Entries;
use sched_workloads::workload::{Factored, OnRanks};
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Where ranks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ranks {
    /// Threads of this process.
    Here(usize),
    /// Processes that `mpirun` has started; `here` is the number of those on this machine.
    #[cfg(feature = "mpi")]
    Mpi { here: usize },
}

/// Variables by which Open MPI and MPICH tell a process the number of all, and of those on its machine.
const SIZES: [(&str, &str); 2] =
    [("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"), ("PMI_SIZE", "MPI_LOCALNRANKS")];

impl Ranks {
    /// The ranks that are asked for, or that the environment tells of.
    pub(super) fn of(asked: Option<usize>, variable: impl Fn(&str) -> Option<String>) -> miette::Result<Option<Ranks>> {
        let number = |name: &str| variable(name).and_then(|text| text.parse::<usize>().ok());
        let found = SIZES.iter().find_map(|(all, here)| Some((number(all)?, number(here))));
        let Some((all, here)) = found.filter(|(all, _)| *all > 1) else { return Ok(asked.map(Ranks::Here)) };
        if let Some(asked) = asked {
            return Err(miette!(
                help = "leave --ranks out: each process is a rank",
                "--ranks {asked} is for a program that is not started by `mpirun`, and this is one of its {all} processes"
            ));
        }
        Ranks::of_processes(all, here)
    }

    /// Number of ranks on this machine.
    fn here(self) -> usize {
        match self {
            Ranks::Here(ranks) => ranks,
            #[cfg(feature = "mpi")]
            Ranks::Mpi { here } => here,
        }
    }

    #[cfg(feature = "mpi")]
    #[allow(clippy::unnecessary_wraps, reason = "without MPI it is an error")]
    fn of_processes(all: usize, here: Option<usize>) -> miette::Result<Option<Ranks>> {
        Ok(Some(Ranks::Mpi { here: here.unwrap_or(all) }))
    }

    #[cfg(not(feature = "mpi"))]
    fn of_processes(all: usize, _here: Option<usize>) -> miette::Result<Option<Ranks>> {
        Err(miette!(
            help = format!(
                "build it with `cargo build --release --features mpi`, which needs an MPI library and libclang; or leave \
                 `mpirun` out, and say --ranks {all}"
            ),
            "this is one of {all} processes of `mpirun`, and the program was built without MPI"
        ))
    }
}

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
}

/// Factorises on one rank.
fn on_rank<W: OnRanks>(
    cluster: &Cluster,
    matrix: &(dyn Entries + Send + Sync),
    problem: &Problem,
) -> Result<Outcome<W::Factors>, ClusterError> {
    let (workload, of) = problem.line();
    cluster.compare("what they factorise", &format!("{workload}, {of}"))?;
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
    Ok(Outcome { per_rank: all.iter().enumerate().map(share).collect(), factored })
}

impl Together<'_> {
    /// Runs, and writes the report to `out` where rank 0 is. A failure is reported there too; other processes only fail.
    pub(super) fn factorise<W: OnRanks>(
        mut self,
        matrix: &(dyn Entries + Send + Sync),
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
        let start = |_| options.start(&self.registry, &self.topology, &policy);
        let problem = &self.problem;
        let outcome = match self.ranks {
            Ranks::Here(ranks) => {
                let all = Cluster::local(ranks, start, |cluster| on_rank::<W>(cluster, matrix, problem));
                all.into_diagnostic()?.into_iter().next().expect("there is rank 0").into_diagnostic()?
            }
            #[cfg(feature = "mpi")]
            Ranks::Mpi { .. } => {
                let cluster = Cluster::mpi(start(0)?).into_diagnostic()?;
                match (on_rank::<W>(&cluster, matrix, problem), cluster.rank()) {
                    (Ok(outcome), 0) => outcome,
                    (Err(error), 0) => return Err(error).into_diagnostic(),
                    (Ok(_), _) => return Ok(ExitCode::SUCCESS),
                    (Err(_), _) => return Ok(ExitCode::FAILURE),
                }
            }
        };
        self.report::<W>(policy, outcome, matrix, out)
    }

    fn report<W: OnRanks>(
        self,
        policy: String,
        outcome: Outcome<W::Factors>,
        matrix: &(dyn Entries + Send + Sync),
        out: &mut dyn Write,
    ) -> miette::Result<ExitCode> {
        let Outcome { factored: Factored { factors, figures }, per_rank } = outcome;
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
        if self.options.format.is_json() {
            json::write(out, &report)?;
        } else {
            out.write_all(report.text().as_bytes()).into_diagnostic()?;
        }
        out.flush().into_diagnostic()?;
        report.problem.check(residual, || W::caveat(matrix))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(asked: Option<usize>, variables: &[(&str, &str)]) -> Result<Option<Ranks>, String> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Ranks::of(asked, variable).map_err(|error| error.to_string())
    }

    #[test]
    fn ranks_are_asked_for_or_started_by_mpirun() {
        assert_eq!(of(None, &[]), Ok(None));
        assert_eq!(of(Some(3), &[]), Ok(Some(Ranks::Here(3))));
        // A program may be started alone by `mpirun`, and by one that tells nothing.
        assert_eq!(of(Some(3), &[("PMI_SIZE", "1")]), Ok(Some(Ranks::Here(3))));
        assert_eq!(of(None, &[("OMPI_COMM_WORLD_SIZE", "many")]), Ok(None));
        let both = of(Some(3), &[("PMI_SIZE", "4")]).expect_err("which ranks?");
        assert_eq!(
            both,
            "--ranks 3 is for a program that is not started by `mpirun`, and this is one of its 4 processes"
        );
    }

    #[cfg(not(feature = "mpi"))]
    #[test]
    fn a_program_without_mpi_does_not_run_once_for_each_process() {
        let error = of(None, &[("OMPI_COMM_WORLD_SIZE", "4")]).expect_err("it knows no MPI");
        assert_eq!(error, "this is one of 4 processes of `mpirun`, and the program was built without MPI");
    }
}
