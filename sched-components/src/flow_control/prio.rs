//! `prio`: a reservoir that releases the task of the highest priority first.

use super::reservoir::{PARAMS, Reservoir, info, reservoir};

/// A queue ordered by priority, then by arrival; bounded if a threshold is set.
///
/// It behaves like [`Fifo`](super::Fifo), which sorts by priority as well. StarPU's two components differ because of
/// how its fifo stores tasks: it sorts only priorities above 0, and a refused task loses its position among its equals.
/// Here the name tells the reader of a policy that priorities matter, and there is no `ready-first`, which would rank
/// readiness above priority.
#[derive(Debug)]
pub struct Prio(Reservoir);

reservoir!(Prio, info("prio", "Holds tasks, and lets the highest priority go first.", PARAMS));

#[cfg(test)]
mod tests;
