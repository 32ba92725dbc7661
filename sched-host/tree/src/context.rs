//! Scheduling contexts for every back end: each is a tree with a name, a policy and workers.

mod config;
mod error;
mod lay;
mod report;

pub use config::{ContextConfig, NewPolicy, exchange, worker_ids};
pub use error::ContextError;
pub use lay::{WantedPolicy, build_parts, lay};
pub use report::{faults_of, survey_of};
