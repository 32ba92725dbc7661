//! A task runtime whose scheduler is a tree of component plugins, and the `sched` command.
//!
//! An application needs [`runtime`]: it registers data, defines codelets, submits tasks and waits. Which policy schedules
//! them is a [`policy`] text; the components that it names come from [`plugin`]s. What else is here serves the `sched`
//! command, and whoever wants to build on the same parts: [`topology`] explores the machine, [`tree`] is the tree itself,
//! [`bench`](mod@bench) measures it.
//!
//! ```no_run
//! use sched_host::runtime::{ReadWrite, Runtime};
//!
//! fn main() -> miette::Result<()> {
//!     let runtime = Runtime::builder().policy("tree-eager-prefetching").build()?;
//!     let vector = runtime.register(vec![1.0; 1_000_000]);
//!     let scale = runtime
//!         .codelet::<(ReadWrite<Vec<f64>>,), f64>("scale")
//!         .cpu("scale_cpu", |context, (vector,)| vector.iter_mut().for_each(|value| *value *= context.params))
//!         .build();
//!     for factor in [3.0, 0.5] {
//!         runtime.task_with(&scale, factor, (&vector,)).priority(1).submit()?;
//!     }
//!     runtime.wait_all()?;
//!     assert_eq!(runtime.read(&vector)?[0], 1.5);
//!     Ok(())
//! }
//! ```
//!
//! If you are writing a component, you need `sched-core` only.
#![allow(non_local_definitions, reason = "abi_stable's macros write them")]

pub mod bench;
pub mod bound;
pub mod cli;
pub mod context;
pub mod energy;
pub mod graph;
pub mod linalg;
pub mod memory;
pub mod model;
pub mod plugin;
pub mod policy;
pub mod reference;
#[cfg(test)]
mod reference_data;
pub mod runtime;
pub mod sim;
mod sync;
pub mod text;
pub mod topology;
pub mod trace;
pub mod tree;
mod watch;
pub mod workload;
