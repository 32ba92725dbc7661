//! Shared support for the integration tests.

pub mod bad;
pub mod conformance;
pub mod fixtures;
pub mod program;
pub mod stock;
