//! A task runtime whose scheduler is a tree of component plugins.
//!
//! An application needs [`runtime`]: it registers data, defines codelets, submits tasks and waits. Which policy
//! schedules them is a [`policy`] text; the components that it names come from [`plugin`]s. The other modules serve the
//! program `sched` and similar ones: [`topology`] explores the machine, [`tree`] is the tree itself; the features
//! `simulation` and `workloads` add simulated machines, factorisations and benchmarks, `cluster` programs on several
//! ranks.
//!
//! ```
//! use sched_host::runtime::{ReadWrite, Runtime};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let runtime = Runtime::builder().build()?;
//!     let vector = runtime.register(vec![1.0; 1_000_000]);
//!     let scale = runtime
//!         .codelet::<(ReadWrite<Vec<f64>>,), f64>("scale")
//!         .cpu("scale_cpu", |context, (vector,)| vector.iter_mut().for_each(|value| *value *= context.params))
//!         .build();
//!     for factor in [3.0, 0.5] {
//!         runtime.task_with(&scale, factor, (&vector,)).priority(1).submit()?;
//!     }
//!     runtime.wait_all()?;
//!     let first = runtime.read(&vector)?[0];
//!     println!("{first}");
//!     assert_eq!(first, 1.5);
//!     Ok(())
//! }
//! ```
//!
//! The policy is the one that [`Builder::policy`](runtime::Builder::policy) names, or else the environment variable
//! `SCHED_POLICY`, or else `tree-ws`. The stock components are compiled in where the feature `stock` is on, as it is
//! by default; [`plugin`] has the rules by which plugin files come on top. The `Debug` of errors is their text for
//! people, since that is what a program prints whose `main` returns one.
//!
//! # What is logged
//!
//! Libraries print nothing. What components log and what cannot be returned as an error are events of the crate
//! `tracing`; a program sees them with a subscriber of its choice, such as `tracing_subscriber::fmt::init()`:
//!
//! - target `sched::component` ([`LogLine::TARGET`](tree::LogLine::TARGET)): a line that a component wrote with
//!   `Node::log` (of `sched-core`), at its level, with the fields `node` (the path in the tree), `component` and
//!   `plugin`. Simulations have the same events as runs.
//! - targets that begin with `sched_runtime`, `sched_memory` and `sched_tree`: the host's own, such as tasks or a
//!   thread that are left behind when a runtime is dropped, measurements that are not stored, and workers that cannot
//!   be bound.
//!
//! What components do wrong is no event but a [`Fault`](tree::Fault): see
//! [`Runtime::faults`](runtime::Runtime::faults).
//!
//! If you are writing a component, you need `sched-core` only.

/// What programs name of the machine: the architecture of an implementation, a worker, a memory.
pub use sched_core::{Arch, MemoryNode, WorkerId};

#[cfg(feature = "cluster")]
pub use sched_cluster as cluster;
#[cfg(feature = "cublas")]
pub use sched_cublas as cublas;
pub use sched_graph as graph;
#[cfg(feature = "simulation")]
pub use sched_graph::bound;
pub use sched_graph::reference;
pub use sched_machine::{energy, topology};
pub use sched_memory as memory;
pub use sched_model as model;
pub use sched_policy as policy;
pub use sched_runtime as runtime;
pub use sched_runtime::context;
#[cfg(feature = "simulation")]
pub use sched_sim as sim;
pub use sched_text as text;
pub use sched_trace as trace;
pub use sched_tree as tree;
pub use sched_tree::plugin;
#[cfg(feature = "workloads")]
pub use sched_workloads::{bench, linalg, workload};
