//! Shared support for the integration tests.

pub mod awkward;
pub mod bad;
pub mod by_hand;
pub mod chains;
pub mod conformance;
pub mod cuda;
pub mod fake_services;
pub mod fixtures;
pub mod hold;
pub mod in_c;
/// Components that declare what they do not do, compiled in as those of another package.
#[path = "../fixtures/plugins/misbehaving/src/liars.rs"]
pub mod liars;
pub mod loss;
pub mod meanwhile;
pub mod onlooker;
pub mod plugin_folder;
pub mod program;
pub mod repository;
pub mod starpu;
pub mod stock;

use sched_core::TaskId;

/// Place in its graph of a task that a simulation reports.
///
/// # Panics
/// When no graph can have such a task.
#[must_use]
pub fn place(task: TaskId) -> usize {
    sched_host::graph::TaskId::of_submitted(task).expect("submissions count from 1").index()
}
