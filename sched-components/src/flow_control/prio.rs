//! `prio`: a reservoir that lets the task of the highest priority go first.

use super::reservoir::{PARAMS, Reservoir, info, reservoir};

/// A queue in order of priority, then of arrival; bounded, if a threshold is set.
///
/// It behaves as [`Fifo`](super::Fifo) does, which sorts by priority as well. What sets StarPU's two components apart
/// follows from how its fifo stores tasks: that one sorts priorities above 0 only, and a refused task loses its place among
/// its equals. Here the difference is the name, which tells the reader of a policy that priorities matter, and that there is
/// no `ready-first`, which would put something before them.
#[derive(Debug)]
pub struct Prio(Reservoir);

reservoir!(Prio, info("prio", "Holds tasks, and lets the highest priority go first.", PARAMS));

#[cfg(test)]
mod tests;
