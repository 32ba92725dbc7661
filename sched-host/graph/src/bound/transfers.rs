//! The bound with transfers.

use super::crowd;
use super::game::Game;
use super::spans::Spans;
use super::{BoundError, Durations, Pool};
use crate::{AccessMode, Dependencies, Task, TaskGraph, TaskId};
use sched_core::MemoryNode;

/// Maximum number of tasks with which makespans are refuted, the number of them that are tried, the gap that is not
/// worth another, and the moves of the game for one as a share of those of the first.
const MOST_REFUTED: usize = 2048;
const REFUTATIONS: usize = 4;
const NEAR: f64 = 2e-3;
const REFUTING: usize = 4;

/// Where data is before a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// In this memory, where it is at the beginning.
    Home(MemoryNode),
    /// In the memory of a worker of the pool with this index, which wrote it.
    Pool(usize),
}

/// What tasks and transfers take at least, in seconds.
pub trait LeastCosts {
    /// Execution time of a task in a pool; `None` if it cannot run there.
    fn seconds(&self, task: &Task, pool: usize) -> Option<f64>;

    /// Worker time of a task in a pool. It is the execution time, unless several workers may execute a task together.
    fn work(&self, task: &Task, pool: usize) -> Option<f64> {
        self.seconds(task, pool)
    }

    /// Time of a transfer from a place to the nearest memory of a pool, if there is no other.
    fn travel(&self, from: Origin, pool: usize, bytes: u64) -> f64;

    /// Time in which all of these initial values, each with its home and its bytes, arrive in one memory of a pool.
    fn load(&self, values: &[(MemoryNode, u64)], pool: usize) -> f64 {
        values.iter().map(|(home, bytes)| self.travel(Origin::Home(*home), pool, *bytes)).fold(0.0, f64::max)
    }
}

/// Lower bound in seconds of the makespan of `graph` on `pools` of workers, with transfers: see the [module](super).
///
/// Each task *i* has in each pool *p* a head, before which it cannot begin there, and a tail, which must follow its
/// end. With *t(i, p)* the time of the task there, *d(i, j, p, q)* the largest travel time from *p* to *q* of the data
/// that *i* wrote and *j* reads (0 if there is none), and *l(i, p)* the time in which the initial values that *i* reads
/// are loaded:
///
/// ```text
/// head(j, q) = max of l(j, q) and, over predecessors i, min over p of (head(i, p) + t(i, p) + d(i, j, p, q))
/// tail(i, p) = max over successors j of min over q of (d(i, j, p, q) + t(j, q) + tail(j, q))
/// chain      = max over i of min over p of (head(i, p) + t(i, p) + tail(i, p))
/// ```
///
/// The workers of a pool do in the time between *h* and the makespan less *e* all that has been placed there with a
/// head of at least *h* and a tail of at least *e*; and no chain of tasks takes longer than the makespan where it has
/// been placed. The least makespan with which tasks can be placed in fractions, so that this is so for all *h*, *e* and
/// chains, is found up to some per mille from below. The bound is the largest of it, of the chain above, and of
/// `known`, in seconds, which must be a lower bound.
///
/// # Errors
/// As for [`bounds`](super::bounds).
pub fn bound_with_transfers(
    graph: &TaskGraph,
    dependencies: &Dependencies,
    pools: &[Pool],
    costs: &impl LeastCosts,
    known: f64,
) -> Result<f64, BoundError> {
    let values = Values::of(graph);
    let spans = Spans::of(graph, dependencies, pools.len(), &values, costs);
    let work = Durations::of(graph, pools, |task, pool| costs.work(task, pool))?;
    let known = known.max(spans.longest()).max(crowd::bound(&spans, pools));
    let moves = Game::moves(graph.tasks.len(), pools.len());
    let mut known = Game::new(dependencies, &spans, &work, pools, known).play(moves, f64::INFINITY);
    if graph.tasks.len() > MOST_REFUTED {
        return Ok(known);
    }
    // What follows if no schedule is longer than that?
    let consequence = |most: f64, known: f64| {
        let mut spans = spans.clone();
        if !spans.within(most, dependencies, &values, costs) {
            return f64::INFINITY;
        }
        let known = known.max(spans.longest()).max(crowd::bound(&spans, pools));
        Game::new(dependencies, &spans, &work, pools, known).play(moves / REFUTING, most)
    };
    let mut most = consequence(known, known).min(2.0 * known);
    for _ in 0..REFUTATIONS {
        if most <= known * (1.0 + NEAR) {
            break;
        }
        let middle = (known + most) / 2.0;
        let follows = consequence(middle, known);
        known = known.max(follows.min(middle));
        if follows < middle {
            most = middle;
        }
    }
    Ok(known)
}

/// Data that a task wrote and another one reads.
pub(super) struct Flow {
    writer: TaskId,
    pub(super) reader: TaskId,
    /// Bytes of the largest piece of such data.
    pub(super) bytes: u64,
}

/// Which task wrote each value that a task reads.
pub(super) struct Values {
    /// By writer.
    flows: Vec<Flow>,
    /// For each task, home and bytes of the data whose initial value it reads.
    pub(super) initial: Vec<Vec<(MemoryNode, u64)>>,
}

/// Where the current value of a piece of data comes from.
#[derive(Clone, Copy)]
enum Source {
    Home,
    Task(TaskId),
    /// Several tasks, in an order that is open, or a task that does not run.
    Unknown,
}

impl Values {
    pub(super) fn of(graph: &TaskGraph) -> Values {
        let mut sources = vec![Source::Home; graph.data.len()];
        let mut loaded_by = vec![None; graph.data.len()];
        let mut values = Values { flows: Vec::new(), initial: vec![Vec::new(); graph.tasks.len()] };
        for (task, spec) in graph.ids().zip(&graph.tasks) {
            let runs = graph.kind_of(spec).runs;
            for access in spec.accesses.iter().filter(|access| runs && access.mode.reads()) {
                let datum = &graph.data[access.data.index()];
                // A task may name data twice, which is loaded once.
                let is_new = loaded_by[access.data.index()].replace(task) != Some(task);
                match sources[access.data.index()] {
                    Source::Home if is_new => values.initial[task.index()].push((datum.home, datum.bytes)),
                    Source::Home => {}
                    Source::Task(writer) => values.add(Flow { writer, reader: task, bytes: datum.bytes }),
                    Source::Unknown => {}
                }
            }
            for access in spec.accesses.iter().filter(|access| access.mode.writes()) {
                sources[access.data.index()] = match access.mode {
                    AccessMode::Write | AccessMode::ReadWrite if runs => Source::Task(task),
                    _ => Source::Unknown,
                };
            }
        }
        values.flows.sort_by_key(|flow| flow.writer);
        values
    }

    /// Adds a flow of the task that is looked at; several to one reader count as the largest.
    fn add(&mut self, flow: Flow) {
        let of_reader = self.flows.iter_mut().rev().take_while(|other| other.reader == flow.reader);
        match of_reader.into_iter().find(|other| other.writer == flow.writer) {
            Some(known) => known.bytes = known.bytes.max(flow.bytes),
            None => self.flows.push(flow),
        }
    }

    pub(super) fn written_by(&self, writer: TaskId) -> &[Flow] {
        let first = self.flows.partition_point(|flow| flow.writer < writer);
        let count = self.flows[first..].partition_point(|flow| flow.writer == writer);
        &self.flows[first..first + count]
    }
}
