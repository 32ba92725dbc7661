//! What else limits or uses the PUs of a plan: control groups' CPU time limits, and other runtimes.

use super::claims::{self, Claim, Neighbour};
use super::quota;

/// The environment of a process before it starts workers. Nothing in it prevents a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The CPU time that control groups allow the process, in thousandths of a PU; `None` for no limit.
    pub quota: Option<u64>,
    /// Other runtimes of this user, with the PUs that their workers are bound to.
    pub neighbours: Vec<Neighbour>,
}

impl Surroundings {
    /// Inspects the environment. `own` is the claim of the calling runtime, which is not its own neighbour.
    ///
    /// What cannot be read is ignored.
    #[must_use]
    pub fn look(own: Option<&Claim>) -> Self {
        let neighbours = claims::folder().map_or_else(Vec::new, |folder| claims::neighbours(&folder, own));
        Self { quota: quota::of_this_process(), neighbours }
    }
}
