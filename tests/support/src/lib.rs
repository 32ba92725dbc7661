//! Shared support for unit tests of several crates: the reference data, reports of skipped tests, and a folder of
//! energy counters.

mod powercap;
mod reference_data;
mod skipped;

pub use powercap::Powercap;
pub use reference_data::{reference_data, reference_folder};
pub use skipped::{has_compiler, skipped};
