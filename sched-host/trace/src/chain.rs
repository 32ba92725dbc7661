//! The chain of tasks that a makespan consists of: what each of them waited for last.

use super::event::Event;
use super::timeline::{Activity, Span, Timeline};
use super::track::Trace;
use sched_core::{TaskId, WorkerId};
use std::collections::BTreeMap;

/// The tasks that a makespan consists of, in the order of time. The last one ends last; each began as soon as the one
/// before it had ended, but for data and for the scheduler.
///
/// ```
/// use sched_graph::generate::cholesky;
/// use sched_sim::{SimRecorder, Simulation, platform::find};
/// use sched_trace::Chain;
/// use std::sync::Arc;
/// # let registry = sched_tree::plugin::Registry::compiled_in();
///
/// let (graph, platform) = (Arc::new(cholesky(6, 960)), Arc::new(find("cpu9-gpu3")?));
/// let mut recorder = SimRecorder::new(Arc::clone(&graph), Arc::clone(&platform));
/// let makespan = Simulation::new(graph, platform).registry(registry.into()).observe(&mut recorder)?.makespan;
/// let chain = Chain::of(&recorder.finish("")).expect("tasks have run");
/// assert_eq!(chain.total(), u64::try_from(makespan.as_nanos())?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// In the order of time.
    pub links: Vec<Link>,
}

/// A task of a chain. Times are in nanoseconds. From the end of the one before to the begin of this one, all time is in
/// `unassigned` or in `data`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The task.
    pub task: TaskId,
    /// The worker that executed it; of a team, the member that it waited for.
    pub worker: WorkerId,
    /// What it waited for last, apart from data and from the scheduler.
    pub behind: Behind,
    /// Time after that in which it was not with a worker, including that until it was ready.
    pub unassigned: u64,
    /// Time after that in which its worker waited for its data.
    pub data: u64,
    /// Begin of its execution.
    pub begin: u64,
    /// End of its execution.
    pub end: u64,
}

/// What a task waited for last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Behind {
    /// The program, which had not submitted it.
    Program,
    /// The task before it in the chain, which made it ready.
    Task,
    /// Its worker, which executed the task before it in the chain.
    Worker,
}

/// The parts of a makespan, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// Before the first task was ready and its worker free.
    pub before: u64,
    /// Execution of tasks that made the next one ready, and of the last one.
    pub needed: u64,
    /// Execution of tasks that kept the worker of the next one from it.
    pub in_the_way: u64,
    /// A worker waited for data.
    pub data: u64,
    /// A task was ready or about to be, the worker that got it later was free, and it was not there yet.
    pub unassigned: u64,
}

impl Chain {
    /// The chain of a trace; `None` if no task has ended.
    #[must_use]
    pub fn of(trace: &Trace) -> Option<Chain> {
        let timeline = Timeline::of(trace);
        let (ready, executions) = (ready(trace), executions(&timeline));
        let last = |of: &&[(usize, usize)]| of.iter().map(|(worker, at)| timeline.workers[*worker][*at].end).max();
        let (mut task, mut on) = executions.iter().map(|(task, on)| (*task, &on[..])).max_by_key(|(_, on)| last(on))?;
        let mut links: Vec<Link> = Vec::new();
        while links.len() < executions.len() {
            // A team begins when its last member is free.
            let (worker, at) = *on.iter().max_by_key(|(worker, at)| busy_until(&timeline.workers[*worker], *at).0)?;
            let (spans, span) = (&timeline.workers[worker], timeline.workers[worker][at]);
            let (busy, before) = busy_until(spans, at);
            let (since, by) = ready.get(&task).copied().unwrap_or_default();
            let from = busy.max(since).min(span.begin);
            let fetching = spans[..at].last().filter(|last| matches!(last.activity, Activity::Fetching { .. }));
            let data = fetching.map_or(0, |fetching| fetching.end.saturating_sub(fetching.begin.max(from)));
            let next = if busy > since { before } else { by };
            let behind = match next {
                None => Behind::Program,
                Some(_) if busy > since => Behind::Worker,
                Some(_) => Behind::Task,
            };
            let unassigned = (span.begin - from).saturating_sub(data);
            let worker = WorkerId(worker as u32);
            links.push(Link { task, worker, behind, unassigned, data, begin: span.begin, end: span.end });
            let known = next.and_then(|next| executions.get_key_value(&next));
            // The clocks of threads may differ by a little.
            let Some((next, earlier)) = known.filter(|(_, on)| last(&&on[..]) <= Some(span.begin)) else { break };
            (task, on) = (*next, &earlier[..]);
        }
        links.reverse();
        let mut chain = Chain { links };
        chain.close_gaps();
        Some(chain)
    }

    /// Counts the time until a task is ready as unassigned: the end of the one before it has yet to be seen.
    fn close_gaps(&mut self) {
        let mut end = None;
        for link in &mut self.links {
            if let Some(end) = end {
                let gap = link.begin.saturating_sub(end);
                link.data = link.data.min(gap);
                link.unassigned = gap - link.data;
            }
            end = Some(link.end);
        }
    }

    /// The parts of the time until its end.
    #[must_use]
    pub fn parts(&self) -> Parts {
        let before = self.links.first().map_or(0, |first| first.begin - first.data - first.unassigned);
        let mut parts = Parts { before, ..Parts::default() };
        for (place, link) in self.links.iter().enumerate() {
            parts.data += link.data;
            parts.unassigned += link.unassigned;
            let next = self.links.get(place + 1).map(|next| next.behind);
            let took = link.end - link.begin;
            *if next == Some(Behind::Worker) { &mut parts.in_the_way } else { &mut parts.needed } += took;
        }
        parts
    }

    /// The end of its last task.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.links.last().map_or(0, |last| last.end)
    }
}

/// For each task, when it was ready, and the task that made it so.
fn ready(trace: &Trace) -> BTreeMap<TaskId, (u64, Option<TaskId>)> {
    let (mut ready, mut ended) = (BTreeMap::new(), BTreeMap::new());
    for stamped in &trace.events {
        match stamped.event {
            Event::Ended { task, worker } => _ = ended.insert(worker, task),
            Event::Ready { task, by } => {
                let by = by.and_then(|worker| ended.get(&worker).copied());
                ready.insert(task, (stamped.nanos, by));
            }
            _ => {}
        }
    }
    ready
}

/// For each task, the workers that executed it, with the places of their spans.
fn executions(timeline: &Timeline) -> BTreeMap<TaskId, Vec<(usize, usize)>> {
    let mut all: BTreeMap<TaskId, Vec<(usize, usize)>> = BTreeMap::new();
    for (worker, spans) in timeline.workers.iter().enumerate() {
        for (at, span) in spans.iter().enumerate() {
            if let Activity::Task { task, .. } = span.activity {
                all.entry(task).or_default().push((worker, at));
            }
        }
    }
    all
}

/// When a worker had executed the task before the one at this place, and that task.
fn busy_until(spans: &[Span], at: usize) -> (u64, Option<TaskId>) {
    let task = |span: &Span| match span.activity {
        Activity::Task { task, .. } => Some((span.end, Some(task))),
        Activity::Fetching { .. } | Activity::Idle => None,
    };
    spans[..at].iter().rev().find_map(task).unwrap_or_default()
}
