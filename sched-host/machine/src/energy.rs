//! Energy counters: the joules that the machine's processors consume while something runs.
//!
//! Linux exposes the energy of each package, as counted by Intel's and AMD's processors (RAPL), in directories called
//! *powercap*. An [`EnergyMeter`] reads these counters before and after some work. They count the whole package:
//! everything that runs on it, and its idle consumption. They advance about once a millisecond, so short work is
//! measured in batches: see `Runtime::measure_energy`.

mod counter;
mod error;
mod meter;

pub use counter::Counter;
pub use error::EnergyError;
pub use meter::{Consumption, EnergyMeter};

#[cfg(test)]
mod tests;
