//! Shared support for the integration tests.

pub mod fixtures;
pub mod program;
