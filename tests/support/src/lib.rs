//! What the unit tests of several crates share: the reference data, and a folder of energy counters.

mod powercap;
mod reference_data;

pub use powercap::Powercap;
pub use reference_data::{reference_data, reference_folder};
