//! Power of workers.

use super::Platform;

/// Power of one worker in watts, as far as it depends on its work. The rest of the machine's power is not simulated.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Power {
    /// While it executes a task, alone or in a team, unless the task's kind [has another](super::Kernels::set_watts);
    /// `None` if unknown.
    pub busy: Option<f64>,
    /// While it is idle.
    pub idle: f64,
}

impl Platform {
    /// Power in watts of a worker of a class while it executes a task of kind `kind`, if known.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn watts(&self, kind: &str, class: usize) -> Option<f64> {
        self.kernels.watts(kind, class).or(self.classes[class].power.busy)
    }
}
