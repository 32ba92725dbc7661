//! A task runtime whose scheduler is a tree of component plugins, and the `sched` command.
//!
//! An application needs [`runtime`]: it registers data, defines codelets, submits tasks and waits. Which policy schedules
//! them is a [`policy`] text; the components that it names come from [`plugin`]s. What else is here serves the `sched`
//! command, and whoever wants to build on the same parts: [`topology`] explores the machine, [`tree`] is the tree itself,
//! [`bench`](mod@bench) measures it.
//!
//! If you are writing a component, you need `sched-core` only.
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
