//! What workers draw.

use super::Platform;

/// What one worker draws, in watts: the part of it that comes and goes with its work. Whatever the machine draws beside is
/// not simulated.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Power {
    /// While it executes a task of whose kind [nothing else is said](super::Kernels::set_watts), alone or in a team; `None`
    /// where that is not known.
    pub busy: Option<f64>,
    /// While it does not.
    pub idle: f64,
}

impl Platform {
    /// How many watts a worker of a class draws while it executes a task of kind `kind`, if that is said.
    ///
    /// # Panics
    /// When there is no such class.
    #[must_use]
    pub fn watts(&self, kind: &str, class: usize) -> Option<f64> {
        self.kernels.watts(kind, class).or(self.classes[class].power.busy)
    }
}
