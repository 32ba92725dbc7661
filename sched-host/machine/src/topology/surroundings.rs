//! What else limits or uses the PUs of a plan: the time that a control group allows, and other runtimes.

use super::claims::{self, Claim, Neighbour};
use super::quota;

/// What a process sees around it before it starts workers. Nothing of it prevents a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The time that the control groups of the process allow it, in thousandths of a PU; `None` for no limit.
    pub quota: Option<u64>,
    /// Other runtimes of this user, with the PUs that their workers are bound to.
    pub neighbours: Vec<Neighbour>,
}

impl Surroundings {
    /// Looks around. `own` is the claim of the runtime that asks, which is no neighbour of its own.
    ///
    /// What cannot be read is as if it were not there.
    #[must_use]
    pub fn look(own: Option<&Claim>) -> Self {
        let neighbours = claims::folder().map_or_else(Vec::new, |folder| claims::neighbours(&folder, own));
        Self { quota: quota::of_this_process(), neighbours }
    }
}
