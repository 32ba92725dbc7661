//! The option for the location of the energy counters.

use sched_machine::energy::{EnergyError, EnergyMeter};
use std::path::PathBuf;

/// Energy counters.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct CounterOptions {
    /// Folder of the kernel's energy counters, for containers that mount it elsewhere [default: /sys/class/powercap]
    #[arg(long, value_name = "DIR", env = "SCHED_POWERCAP", hide_env_values = true)]
    powercap: Option<PathBuf>,
}

impl CounterOptions {
    /// The counters of all packages.
    pub(super) fn open(&self) -> Result<EnergyMeter, EnergyError> {
        self.powercap.as_ref().map_or_else(EnergyMeter::open, EnergyMeter::open_at)
    }
}
