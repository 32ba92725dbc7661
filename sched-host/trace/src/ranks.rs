//! One trace of those that several ranks have recorded.

use super::event::{CodeletId, Event, Note, NoteId, RankMessage, Stamped, Transfer};
use super::track::{Trace, WorkerTrack};
use sched_core::{MemoryNode, TaskId, WorkerId};
use sched_graph::ContextId;
use sched_tree::ObservedNode;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The trace of a rank, and how it fits those of the others.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RankTrace {
    /// What was recorded there. Times are those of its own clock, from [`Trace::origin`] on.
    pub trace: Trace,
    /// Nanoseconds to be added to its clock for that of the first rank.
    pub behind: i64,
    /// Numbers of its tasks in the order in which all ranks submit them. Tasks without one come after all of these.
    pub tasks: HashMap<TaskId, TaskId>,
}

impl Trace {
    /// One trace of those of several ranks, which are shown apart: a process each in Perfetto, with an arrow for each
    /// message, and a group of rows in a Gantt chart.
    ///
    /// Clocks of ranks are known up to some microseconds. A message arrives after it was sent all the same: its arrival
    /// is moved where the clocks say otherwise.
    ///
    /// ```
    /// use sched_trace::{Event, RankMessage, RankTrace, Stamped, Trace};
    /// let message = RankMessage { data: None, from: 0, to: 1, bytes: 8 };
    /// let trace = |nanos, event, behind| {
    ///     let trace = Trace::default().with_events(vec![Stamped { nanos, event }]);
    ///     RankTrace { trace, behind, ..RankTrace::default() }
    /// };
    /// // The clock of rank 1 began 400 ns earlier.
    /// let ranks = vec![trace(1000, Event::Sent(message), 0), trace(1900, Event::Received(message), -400)];
    /// let both = Trace::of_ranks(ranks);
    /// assert_eq!(both.ranks, ["rank 0", "rank 1"]);
    /// assert_eq!(both.events.iter().map(|event| event.nanos).collect::<Vec<_>>(), [0, 500]);
    /// ```
    #[must_use]
    pub fn of_ranks(ranks: Vec<RankTrace>) -> Trace {
        let title = ranks.first().map_or_else(String::new, |rank| rank.trace.title.clone());
        let mut all = Merged { trace: Trace { title, ..Trace::default() }, next_task: 0, events: Vec::new() };
        let shared = ranks.iter().flat_map(|rank| rank.tasks.values()).map(|task| task.sequence() + 1);
        all.next_task = shared.max().unwrap_or(0);
        for (rank, of) in (0..).zip(ranks) {
            all.add(rank, of);
        }
        all.finish()
    }
}

/// The ranks so far.
struct Merged {
    trace: Trace,
    /// The number of the next task that has none.
    next_task: u64,
    /// With times on the clock of the first rank.
    events: Vec<(i128, Event)>,
}

impl Merged {
    fn add(&mut self, rank: u32, of: RankTrace) {
        let RankTrace { trace, behind, tasks } = of;
        let all = &mut self.trace;
        let mut numbers = Numbers {
            first_worker: all.workers.len() as u32,
            first_memory: all.memories.len() as u32,
            first_node: all.nodes.len() as u32,
            first_note: all.notes.last_key_value().map_or(0, |(last, _)| last.0 + 1),
            codelets: trace.codelets.iter().map(|codelet| CodeletId(place(&mut all.codelets, codelet))).collect(),
            contexts: trace.contexts.iter().map(|name| ContextId(place(&mut all.contexts, name) as u16)).collect(),
            next_task: self.next_task,
            tasks,
        };
        let name = format!("rank {rank}");
        let track = |(id, worker): (usize, &WorkerTrack)| WorkerTrack::of_rank(rank, &name, id, &worker.group);
        all.workers.extend(trace.workers.iter().enumerate().map(track));
        all.memories.extend(trace.memories.iter().map(|memory| format!("{rank}:{memory}")));
        all.nodes.extend(trace.nodes.iter().map(|path| format!("{name}: {path}")));
        all.ranks.push(name);
        all.dropped += trace.dropped;
        let note = |(id, note): (NoteId, Note)| {
            (NoteId(numbers.first_note + id.0), Note { node: ObservedNode(numbers.first_node + note.node.0), ..note })
        };
        all.notes.extend(trace.notes.into_iter().map(note));
        all.names.extend(trace.names.into_iter().map(|(task, name)| (numbers.task(task), name)));
        let began = i128::from(trace.origin) + i128::from(behind);
        self.events.extend(trace.events.iter().map(|of| (began + i128::from(of.nanos), numbers.event(of.event))));
        self.next_task = numbers.next_task;
    }

    fn finish(self) -> Trace {
        let Merged { mut trace, mut events, .. } = self;
        events.sort_by_key(|(time, _)| *time);
        put_arrivals_after_sends(&mut events);
        events.sort_by_key(|(time, _)| *time);
        let began = events.first().map_or(0, |(time, _)| *time);
        let stamped = |(time, event)| Stamped { nanos: u64::try_from(time - began).unwrap_or(u64::MAX), event };
        trace.events = events.into_iter().map(stamped).collect();
        trace.end = trace.last_end();
        trace
    }
}

/// Moves what arrives too early behind its sending: messages of one datum between two ranks keep their order.
fn put_arrivals_after_sends(events: &mut [(i128, Event)]) {
    let mut sent: BTreeMap<RankMessage, VecDeque<i128>> = BTreeMap::new();
    for (time, event) in events.iter() {
        if let Event::Sent(message) = event {
            sent.entry(*message).or_default().push_back(*time);
        }
    }
    for (time, event) in events.iter_mut() {
        if let Event::Received(message) = event
            && let Some(sent) = sent.get_mut(message).and_then(VecDeque::pop_front)
        {
            *time = (*time).max(sent + 1);
        }
    }
}

/// The place of a name in a list, to which it is added if it is not there.
fn place(names: &mut Vec<String>, name: &str) -> u32 {
    let known = names.iter().position(|known| known == name);
    known.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    }) as u32
}

/// The numbers of a rank among those of all.
struct Numbers {
    first_worker: u32,
    first_memory: u32,
    first_node: u32,
    first_note: u32,
    codelets: Vec<CodeletId>,
    contexts: Vec<ContextId>,
    /// The number of the next task that has none.
    next_task: u64,
    tasks: HashMap<TaskId, TaskId>,
}

impl Numbers {
    fn task(&mut self, task: TaskId) -> TaskId {
        *self.tasks.entry(task).or_insert_with(|| {
            self.next_task += 1;
            TaskId::new(self.next_task - 1)
        })
    }

    fn worker(&self, worker: WorkerId) -> WorkerId {
        WorkerId(self.first_worker + worker.0)
    }

    fn node(&self, node: ObservedNode) -> ObservedNode {
        ObservedNode(self.first_node + node.0)
    }

    fn codelet(&self, codelet: CodeletId) -> CodeletId {
        self.codelets.get(codelet.index()).copied().unwrap_or(codelet)
    }

    fn context(&self, context: ContextId) -> ContextId {
        self.contexts.get(context.index()).copied().unwrap_or(context)
    }

    fn transfer(&self, transfer: Transfer) -> Transfer {
        let memory = |memory: MemoryNode| MemoryNode(self.first_memory + memory.0);
        Transfer { from: memory(transfer.from), to: memory(transfer.to), ..transfer }
    }

    fn event(&mut self, event: Event) -> Event {
        match event {
            Event::Submitted { task } => Event::Submitted { task: self.task(task) },
            Event::Ready { task, by } => Event::Ready { task: self.task(task), by: by.map(|by| self.worker(by)) },
            Event::Pulled { task, worker } => Event::Pulled { task: self.task(task), worker: self.worker(worker) },
            Event::Started { task, worker, codelet } => {
                let (worker, codelet) = (self.worker(worker), self.codelet(codelet));
                Event::Started { task: self.task(task), worker, codelet }
            }
            Event::Ended { task, worker } => Event::Ended { task: self.task(task), worker: self.worker(worker) },
            Event::Passed { task } => Event::Passed { task: self.task(task) },
            Event::Idle { worker } => Event::Idle { worker: self.worker(worker) },
            Event::Woken { worker } => Event::Woken { worker: self.worker(worker) },
            Event::Moved { worker, from, to } => {
                let (from, to) = (from.map(|from| self.context(from)), self.context(to));
                Event::Moved { worker: self.worker(worker), from, to }
            }
            Event::TransferStarted(transfer) => Event::TransferStarted(self.transfer(transfer)),
            Event::TransferEnded(transfer) => Event::TransferEnded(self.transfer(transfer)),
            // They name ranks, and data whose numbers are the same on all ranks.
            Event::Sent(_) | Event::Received(_) => event,
            Event::Refused { task, node, why } => Event::Refused { task: self.task(task), node: self.node(node), why },
            Event::Held { task, node } => Event::Held { task: self.task(task), node: self.node(node) },
            Event::Noted { note } => Event::Noted { note: NoteId(self.first_note + note.0) },
            Event::QueueLength { node, length } => Event::QueueLength { node: self.node(node), length },
        }
    }
}
