//! Power of workers, looked up once before the simulation.

use super::platform::Platform;
use sched_graph::{KindId, TaskGraph};

/// Watts of a worker while it executes a task, by kind of task and class of workers.
#[derive(Debug)]
pub(super) struct Draws {
    classes: usize,
    /// NaN where the platform does not give it.
    busy: Box<[f64]>,
}

impl Draws {
    pub(super) fn new(graph: &TaskGraph, platform: &Platform) -> Draws {
        let classes = platform.classes.len();
        let of_kind = |name| (0..classes).map(move |class| platform.watts(name, class).unwrap_or(f64::NAN));
        Draws { classes, busy: graph.kinds.iter().flat_map(|kind| of_kind(&kind.name)).collect() }
    }

    /// Energy of a worker for its share of a task of this kind in joules; NaN if the platform does not give its power.
    #[inline]
    pub(super) fn joules(&self, kind: KindId, class: usize, nanos: u64) -> f64 {
        let watts = self.busy[kind.index() * self.classes + class];
        // Most platforms do not give it, and a division takes long.
        if watts.is_nan() { watts } else { watts * (nanos as f64 / 1e9) }
    }
}
