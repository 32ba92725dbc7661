//! The chain bound with transfers.

use crate::{AccessMode, Dependencies, Task, TaskGraph, TaskId};
use sched_core::MemoryNode;

/// Where data is before a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// In this memory, where it is at the beginning.
    Home(MemoryNode),
    /// In the memory of a worker of the pool with this index, which wrote it.
    Pool(usize),
}

/// Lower bound in seconds of the makespan of `graph` on a number of `pools`, from the chains of its tasks and the
/// transfers between them: see the [module](super). `seconds` is as for [`bounds`](super::bounds), and `travel` gives
/// the least time in seconds that a transfer of a number of bytes takes from a place to the nearest memory of a pool.
///
/// With *t(i, p)* the time of task *i* in pool *p*, *d(i, j, p, q)* the largest travel time from *p* to *q* of the data
/// that *i* wrote and *j* reads (0 if there is none), and *h(i, p)* the largest travel time from home to *p* of the
/// initial values that *i* reads:
///
/// ```text
/// rest(i, p) = t(i, p) + max over successors j of min over q of (d(i, j, p, q) + rest(j, q))
/// bound      = max over i of min over p of (h(i, p) + rest(i, p))
/// ```
///
/// With transfers that take no time this is the critical path.
pub fn chain_with_transfers(
    graph: &TaskGraph,
    dependencies: &Dependencies,
    pools: usize,
    seconds: impl Fn(&Task, usize) -> Option<f64>,
    travel: impl Fn(Origin, usize, u64) -> f64,
) -> f64 {
    let values = Values::of(graph);
    let mut rest = vec![0.0; graph.tasks.len() * pools];
    let mut longest = 0.0_f64;
    let row = |task: TaskId| task.index() * pools..(task.index() + 1) * pools;
    for task in graph.ids().rev() {
        let spec = graph.task(task);
        let runs = graph.kind_of(spec).runs;
        let mut whole = f64::INFINITY;
        for pool in 0..pools {
            let length = if runs { seconds(spec, pool) } else { Some(0.0) };
            let Some(length) = length.filter(|length| *length >= 0.0) else {
                rest[row(task).start + pool] = f64::INFINITY;
                continue;
            };
            let waits = |next: TaskId, bytes: u64| {
                let all = rest[row(next)].iter().enumerate();
                let all = all.map(|(other, rest)| match bytes {
                    0 => *rest,
                    _ => rest + travel(Origin::Pool(pool), other, bytes),
                });
                all.fold(f64::INFINITY, f64::min)
            };
            let order = dependencies.successors(task).iter().map(|next| waits(*next, 0));
            let flow = values.written_by(task).iter().map(|flow| waits(flow.reader, flow.bytes));
            let after = length + order.chain(flow).fold(0.0, f64::max);
            rest[row(task).start + pool] = after;
            let initial = values.initial[task.index()].iter();
            let arrives = initial.map(|(home, bytes)| travel(Origin::Home(*home), pool, *bytes)).fold(0.0, f64::max);
            whole = whole.min(arrives + after);
        }
        // A task that can run nowhere is an error of the other bounds.
        if whole.is_finite() {
            longest = longest.max(whole);
        }
    }
    longest
}

/// Data that a task wrote and another one reads.
struct Flow {
    writer: TaskId,
    reader: TaskId,
    /// Bytes of the largest piece of such data.
    bytes: u64,
}

/// Which task wrote each value that a task reads.
struct Values {
    /// By writer.
    flows: Vec<Flow>,
    /// For each task, home and bytes of the data whose initial value it reads.
    initial: Vec<Vec<(MemoryNode, u64)>>,
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
    fn of(graph: &TaskGraph) -> Values {
        let mut sources = vec![Source::Home; graph.data.len()];
        let mut values = Values { flows: Vec::new(), initial: vec![Vec::new(); graph.tasks.len()] };
        for (task, spec) in graph.ids().zip(&graph.tasks) {
            let runs = graph.kind_of(spec).runs;
            for access in spec.accesses.iter().filter(|access| runs && access.mode.reads()) {
                let datum = &graph.data[access.data.index()];
                match sources[access.data.index()] {
                    Source::Home => values.initial[task.index()].push((datum.home, datum.bytes)),
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

    fn written_by(&self, writer: TaskId) -> &[Flow] {
        let first = self.flows.partition_point(|flow| flow.writer < writer);
        let count = self.flows[first..].partition_point(|flow| flow.writer == writer);
        &self.flows[first..first + count]
    }
}
