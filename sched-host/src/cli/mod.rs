//! The subcommands of `sched`, one file each. The only place that prints.

pub mod policies;
pub mod plugins;
pub mod topology;
pub mod tree;
