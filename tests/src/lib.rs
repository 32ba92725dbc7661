//! Shared support for the integration tests.

pub mod awkward;
pub mod bad;
pub mod by_hand;
pub mod chains;
pub mod conformance;
pub mod fixtures;
pub mod hold;
pub mod onlooker;
pub mod plugin_folder;
pub mod program;
pub mod reference_data;
pub mod stock;
