//! Energy counters: how many joules the machine's processors take while something runs.
//!
//! The kernel of Linux counts the energy of each package in folders called *powercap*, as Intel's and AMD's processors tell
//! it (RAPL). An [`EnergyMeter`] reads those counters before and after. They count for the whole package: whatever runs on
//! it, and what it takes without any work at all. They move about once a millisecond, so that short work is measured in
//! batches: see `Runtime::measure_energy`.

mod counter;
mod error;
mod meter;

pub use counter::Counter;
pub use error::EnergyError;
pub use meter::{Consumption, EnergyMeter};

#[cfg(test)]
mod tests;
