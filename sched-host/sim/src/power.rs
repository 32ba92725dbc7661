//! What workers draw: looked up once, before the simulation begins.

use super::platform::Platform;
use sched_graph::{Task, TaskGraph};

/// Watts of a worker, by kind of task and class of workers.
#[derive(Debug)]
pub(super) struct Draws {
    classes: usize,
    /// No number where it is not said.
    busy: Box<[f64]>,
}

impl Draws {
    pub(super) fn new(graph: &TaskGraph, platform: &Platform) -> Draws {
        let classes = platform.classes.len();
        let of_kind = |name| (0..classes).map(move |class| platform.watts(name, class).unwrap_or(f64::NAN));
        Draws { classes, busy: graph.kinds.iter().flat_map(|kind| of_kind(&kind.name)).collect() }
    }

    /// Joules that a worker takes for its part of a task; no number where that is not said.
    pub(super) fn joules(&self, task: &Task, class: usize, nanos: u64) -> f64 {
        self.busy[task.kind.index() * self.classes + class] * (nanos as f64 / 1e9)
    }
}
