//! sched-host
pub mod cli;
pub mod plugin;
