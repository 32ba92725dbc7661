//! sched-host
#![allow(non_local_definitions, reason = "abi_stable's macros write them")]

pub mod bench;
pub mod cli;
pub mod linalg;
pub mod plugin;
pub mod policy;
pub mod runtime;
mod sync;
pub mod topology;
pub mod tree;
mod watch;
pub mod workload;
