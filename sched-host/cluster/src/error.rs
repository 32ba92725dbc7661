//! What goes wrong among ranks.

use sched_runtime::{DataError, RunError, StartError, SubmitError};

/// Why the ranks cannot go on together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A rank that does not exist.
    #[error("there is no rank {rank}: there are {ranks}, from 0")]
    NoRank {
        /// The rank.
        rank: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// Data that was not registered with the cluster.
    #[error("{}no rank owns: register it with `Cluster::register_on`", named_text(.codelet, *.data))]
    NotShared {
        /// The codelet; empty if no task names the data.
        codelet: String,
        /// Number of the data.
        data: u64,
    },
    /// An array of which the ranks share the parts, or one of these parts, was to be taken out by itself.
    #[error(
        "data {data} is divided among the ranks, or a part of such an array: take it out with `Cluster::gather_array`"
    )]
    Divided {
        /// Number of the data.
        data: u64,
    },
    /// More data than messages can name.
    #[error("there are {most} data already, and messages can name no more")]
    TooMany {
        /// The largest number.
        most: u32,
    },
    /// A value that no message can hold.
    #[error("data {data} has {bytes} bytes, and a message holds {most} at most: register it in parts")]
    TooLong {
        /// Number of the data among those of the cluster.
        data: u32,
        /// Its size.
        bytes: u64,
        /// Maximum size of a message.
        most: u64,
    },
    /// The ranks differ in what all must have in common.
    #[error("the ranks differ in {what}: {each}")]
    Unequal {
        /// What it is.
        what: String,
        /// What each of them has.
        each: String,
    },
    /// The ranks did not submit the same tasks.
    #[error("the ranks do not submit the same tasks in the same order: {0}")]
    Differ(String),
    /// Tasks failed on some rank.
    #[error("{}", .0.join("; "))]
    Failed(Vec<String>),
    /// A rank's own runtime refuses.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// Data of this rank.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The runtime of this rank.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The runtime of a rank does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The runtime of a rank has a hook of the program that ranks need themselves.
    #[error("the runtime has a {0} already, and ranks need theirs: start it without one")]
    Hooked(&'static str),
    /// The thread for messages does not start.
    #[error("the thread for messages does not start: {0}")]
    Thread(#[from] std::io::Error),
    /// MPI does not start.
    #[error("MPI does not start: {0}")]
    Mpi(&'static str),
}

fn named_text(codelet: &str, data: u64) -> String {
    match codelet {
        "" => format!("the program names data {data}, which "),
        _ => format!("codelet `{codelet}` names data {data}, which "),
    }
}

/// Why data was not computed, in the words that another rank gets for its copy.
pub(crate) fn reason(error: &DataError) -> String {
    match error {
        DataError::Bad(why) => why.to_string(),
        _ => error.to_string(),
    }
}
