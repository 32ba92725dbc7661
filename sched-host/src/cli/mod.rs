//! The `sched` command: one file for each subcommand.

pub mod policies;
pub mod tree;
