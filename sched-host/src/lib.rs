//! sched-host
#![allow(non_local_definitions, reason = "abi_stable's macros write them")]

pub mod cli;
pub mod plugin;
mod sync;
pub mod topology;
pub mod tree;
