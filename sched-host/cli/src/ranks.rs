//! Where the ranks of a command are, and how they start.

#[cfg(feature = "mpi")]
use crate::beside::beside;
#[cfg(feature = "mpi")]
use crate::progress::Progress;
use miette::{IntoDiagnostic, miette};
use sched_cluster::{Cluster, ClusterError};
use sched_machine::topology::Topology;
use sched_runtime::{Runtime, StartError};
use std::collections::HashSet;
use std::process::ExitCode;
#[cfg(any(feature = "mpi", test))]
use std::sync::mpsc::{Receiver, RecvTimeoutError};
#[cfg(any(feature = "mpi", test))]
use std::time::Duration;

/// Where ranks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ranks {
    /// Threads of this process.
    Here(usize),
    /// Processes that `mpirun` has started; `here` is the number of those on this machine, and this may be the first.
    #[cfg(feature = "mpi")]
    Mpi { here: usize, is_first: bool },
}

/// Variables by which Open MPI and MPICH tell a process the number of all, and of those on its machine.
const SIZES: [(&str, &str); 2] =
    [("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"), ("PMI_SIZE", "MPI_LOCALNRANKS")];

/// Variables by which they tell a process its number.
#[cfg(feature = "mpi")]
const NUMBERS: [&str; 2] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"];

impl Ranks {
    /// The ranks that are asked for, or that the environment tells of.
    pub(crate) fn of(asked: Option<usize>, variable: impl Fn(&str) -> Option<String>) -> miette::Result<Option<Ranks>> {
        let number = |name: &str| variable(name).and_then(|text| text.parse::<usize>().ok());
        let found = SIZES.iter().find_map(|(all, here)| Some((number(all)?, number(here))));
        let Some((all, here)) = found.filter(|(all, _)| *all > 1) else { return Ok(asked.map(Ranks::Here)) };
        if let Some(asked) = asked {
            return Err(miette!(
                help = "leave --ranks out: each process is a rank",
                "--ranks {asked} is for a program that is not started by `mpirun`, and this is one of its {all} processes"
            ));
        }
        Ranks::of_processes(all, here, number)
    }

    /// Whether this process has rank 0.
    pub(crate) fn is_first(self) -> bool {
        match self {
            Ranks::Here(_) => true,
            #[cfg(feature = "mpi")]
            Ranks::Mpi { is_first, .. } => is_first,
        }
    }

    /// Number of ranks in this process.
    pub(crate) fn in_process(self) -> usize {
        match self {
            Ranks::Here(ranks) => ranks,
            #[cfg(feature = "mpi")]
            Ranks::Mpi { .. } => 1,
        }
    }

    /// Number of ranks on this machine.
    pub(crate) fn here(self) -> usize {
        match self {
            Ranks::Here(ranks) => ranks,
            #[cfg(feature = "mpi")]
            Ranks::Mpi { here, .. } => here,
        }
    }

    #[cfg(feature = "mpi")]
    #[allow(clippy::unnecessary_wraps, reason = "without MPI it is an error")]
    fn of_processes(
        all: usize,
        here: Option<usize>,
        number: impl Fn(&str) -> Option<usize>,
    ) -> miette::Result<Option<Ranks>> {
        let is_first = NUMBERS.iter().find_map(|name| number(name)).is_none_or(|number| number == 0);
        Ok(Some(Ranks::Mpi { here: here.unwrap_or(all), is_first }))
    }

    #[cfg(not(feature = "mpi"))]
    fn of_processes(
        all: usize,
        _here: Option<usize>,
        _number: impl Fn(&str) -> Option<usize>,
    ) -> miette::Result<Option<Ranks>> {
        Err(miette!(
            help = format!(
                "build it with `cargo build --release --features mpi`, which needs an MPI library and libclang; or leave \
                 `mpirun` out, and say --ranks {all}"
            ),
            "this is one of {all} processes of `mpirun`, and the program was built without MPI"
        ))
    }
}

impl Ranks {
    /// Runs `body` on each rank here, with the runtimes that `start` makes. Returns what rank 0 gives; in processes of
    /// other ranks, the exit code.
    pub(crate) fn launch<T: Send>(
        self,
        start: impl Fn() -> Result<Runtime, StartError>,
        body: impl Fn(&Cluster) -> Result<T, ClusterError> + Sync,
    ) -> miette::Result<Result<T, ExitCode>> {
        match self {
            Ranks::Here(ranks) => {
                let all = Cluster::local(ranks, |_| start(), body).into_diagnostic()?;
                all.into_iter().next().expect("there is rank 0").into_diagnostic().map(Ok)
            }
            #[cfg(feature = "mpi")]
            Ranks::Mpi { .. } => {
                let runtime = start()?;
                let say = |words: &str| Progress::new(false, json_is_wanted()).warn(words);
                // Where no thread can be started for the warning, there is none.
                let (met, _) = beside(&|met| warn_of_absence(met, MEETING, &say), || Cluster::mpi(runtime));
                let cluster = met.into_diagnostic()?;
                let result = body(&cluster).inspect_err(|error| cluster.end_others(&error.to_string()));
                match (result, cluster.rank()) {
                    (Ok(given), 0) => Ok(Ok(given)),
                    (Ok(_), _) => Ok(Err(ExitCode::SUCCESS)),
                    // Reported before any process ends: `mpirun` ends all then.
                    (Err(error), rank) if rank == 0 || !is_shared(&error) => Ok(Err(report(error))),
                    (Err(_), _) => Ok(Err(ExitCode::FAILURE)),
                }
            }
        }
    }
}

/// The number of cores that the ranks of this machine share, if they have fewer hardware threads than workers. All
/// ranks call it: `mpirun` may have bound each to some.
pub(crate) fn shared_cores(
    cluster: &Cluster,
    workers: usize,
    topology: &Topology,
) -> Result<Option<usize>, ClusterError> {
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let here = here.trim();
    let mine: Vec<String> = topology.allowed_pus().iter().map(|pu| format!("{here} {pu}")).collect();
    let all = cluster.exchange(mine.join("\n").as_bytes())?;
    let all: Vec<String> = all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    // Those of other machines have hardware threads of their own.
    let beside: Vec<&String> = all.iter().filter(|pus| pus.starts_with(&format!("{here} "))).collect();
    let pus: HashSet<&str> = beside.iter().flat_map(|pus| pus.lines()).collect();
    Ok((beside.len() * workers > pus.len()).then_some(pus.len()))
}

/// How long ranks may take to meet until there is a warning.
#[cfg(feature = "mpi")]
const MEETING: Duration = Duration::from_secs(10);

/// Warns if the ranks have not met within this time, of which `met` tells when it is closed. MPI starts when every
/// process of `mpirun` does so, however long that takes, and `mpirun` does not mind one that ends with exit code 0 before.
#[cfg(any(feature = "mpi", test))]
fn warn_of_absence(met: &Receiver<()>, within: Duration, warn: &dyn Fn(&str)) {
    if met.recv_timeout(within) == Err(RecvTimeoutError::Timeout) {
        warn(&format!(
            "warning: the ranks have not met for {} s: each waits for all processes of `mpirun`, also for one that is still \
             starting, that runs another command, or that has ended (look which ones run; Ctrl-C ends them all)",
            within.as_secs()
        ));
    }
}

/// Whether all ranks have the same word, so that rank 0 reports it.
#[cfg(feature = "mpi")]
fn is_shared(error: &ClusterError) -> bool {
    matches!(error, ClusterError::Failed(_) | ClusterError::Unequal { .. } | ClusterError::Differ(_))
}

#[cfg(feature = "mpi")]
fn report(error: ClusterError) -> ExitCode {
    crate::reports::failed(&miette::Report::msg(error), json_is_wanted())
}

#[cfg(feature = "mpi")]
fn json_is_wanted() -> bool {
    let words: Vec<std::ffi::OsString> = std::env::args_os().collect();
    crate::reports::json_is_wanted(&words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::sync::mpsc::channel;

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

    #[test]
    fn ranks_that_do_not_meet_are_warned_of() {
        let (here, met) = channel();
        let said = RefCell::new(Vec::new());
        let warn = |words: &str| said.borrow_mut().push(words.to_owned());
        warn_of_absence(&met, Duration::ZERO, &warn);
        assert!(said.borrow()[0].starts_with("warning: the ranks have not met for 0 s: "), "{said:?}");
        drop(here);
        warn_of_absence(&met, Duration::from_secs(3600), &warn);
        assert_eq!(said.borrow().len(), 1, "they have met");
    }

    #[cfg(not(feature = "mpi"))]
    #[test]
    fn a_program_without_mpi_does_not_run_once_for_each_process() {
        let error = of(None, &[("OMPI_COMM_WORLD_SIZE", "4")]).expect_err("it knows no MPI");
        assert_eq!(error, "this is one of 4 processes of `mpirun`, and the program was built without MPI");
    }
}
