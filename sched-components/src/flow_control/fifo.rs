//! `fifo`: a reservoir that lets tasks go in the order of their arrival, sorted stably by priority.

use super::reservoir::{PARAMS_READY_FIRST, Reservoir, info, reservoir};

/// A queue in order of priority, then of arrival; bounded, if a threshold is set.
///
/// A queue that is empty takes one task whatever its length: one that is longer than `exp-len-threshold` would else
/// never run.
///
/// With `ready`, the task that leaves is, of those of the highest priority that may, the one whose data takes the shortest
/// to the memory node of the worker that pulls; the first of several, and the first at all whose data is there. With
/// `ready-first`, all priorities compete, and priority decides between equals. Where data is never moved this costs
/// nothing; elsewhere a pull looks at every task that competes until it finds one that is complete, so it is for short
/// queues, such as one above a worker.
///
/// The expected length of the queue is always counted, of tasks whose length somebody above predicted: it needs no
/// parameter. (StarPU counts it when `exp` is set.) It bounds the queue when `exp-len-threshold` is set.
///
/// Where nobody sets priorities it is strictly first in, first out. Where somebody does, it sorts by them as
/// [`Prio`](super::Prio) does, as the StarPU handbook has it ("a stable sort is performed according to tasks priorities").
/// StarPU's own sorts priorities above 0 only, and moves a task that was refused below behind its equals; this one sorts
/// all of them, and a refused task keeps its place.
#[derive(Debug)]
pub struct Fifo(Reservoir);

reservoir!(Fifo, info("fifo", "Holds tasks, and lets them go by priority and order of arrival.", PARAMS_READY_FIRST));

#[cfg(test)]
mod tests;
