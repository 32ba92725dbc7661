//! `fifo`: a reservoir that releases tasks in the order of their arrival, stably sorted by priority unless that is off.

use super::reservoir::{PARAMS_OF_FIFO, Reservoir, info, reservoir};

/// A queue ordered by priority, then by arrival; bounded if a threshold is set.
///
/// An empty queue accepts one task of any length: a task longer than `exp-len-threshold` would otherwise never run.
///
/// With `ready`, the task that leaves is the one whose data takes the least time to reach the memory node of the worker
/// that pulls, chosen among the eligible tasks of the highest priority; ties go to the first, and the search stops at
/// the first task whose data is already there. With `ready-first`, all priorities compete, and priority breaks ties.
/// Without data transfers this costs nothing; otherwise a pull examines every competing task until it finds one whose
/// data is complete, so it suits short queues, such as one above a worker.
///
/// The expected length of the queue is always counted, from the tasks whose length a component above predicted; no
/// parameter enables it. (StarPU counts it when `exp` is set.) It bounds the queue when `exp-len-threshold` is set.
///
/// With `sorted=#false`, or where no task has a priority, the order is strictly first in, first out. Else it sorts by
/// priority like [`Prio`](super::Prio), as the StarPU handbook says ("a stable sort is performed according to tasks
/// priorities").
/// StarPU's implementation sorts only priorities above 0, and moves a task that was refused below behind its equals;
/// this one sorts all priorities, and a refused task keeps its position.
#[derive(Debug)]
pub struct Fifo(Reservoir);

reservoir!(Fifo, info("fifo", "Holds tasks, and lets them go by priority and order of arrival.", PARAMS_OF_FIFO));

#[cfg(test)]
mod tests;
