//! The subcommands of `sched`, one file each. Only here is anything printed.

pub mod plugins;
