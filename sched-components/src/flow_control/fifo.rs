//! `fifo`: a reservoir that lets tasks go in the order of their arrival, sorted stably by priority.

use super::reservoir::{Reservoir, info, reservoir};

/// A queue in order of priority, then of arrival; bounded, if a threshold is set.
///
/// A queue that is empty takes one task whatever its length: one that is longer than `exp-len-threshold` would else
/// never run.
///
/// Where nobody sets priorities it is strictly first in, first out. Where somebody does, it sorts by them as
/// [`Prio`](super::Prio) does, as the StarPU handbook has it ("a stable sort is performed according to tasks priorities").
/// StarPU's own sorts priorities above 0 only, and moves a task that was refused below behind its equals; this one sorts
/// all of them, and a refused task keeps its place.
#[derive(Debug)]
pub struct Fifo(Reservoir);

reservoir!(Fifo, info("fifo", "Holds tasks, and lets them go by priority and order of arrival."));

#[cfg(test)]
mod tests;
