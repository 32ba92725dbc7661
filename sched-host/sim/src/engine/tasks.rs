//! Tasks: what they wait for, the slots of those that are ready, and what their ends release.

use crate::backend::SimBackend;
use crate::lengths::Lengths;
use sched_graph::{AccessMode, Dependencies, TaskGraph, TaskId};
use sched_tree::{Ledger, Phase, Slot};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// See the [module](self).
pub(super) struct Tasks {
    dependencies: Arc<Dependencies>,
    ledger: Arc<Ledger>,
    free_slots: Vec<u32>,
    /// For each task, how many it waits for; and one more until it is submitted.
    waiting: Vec<u32>,
    next: u32,
    pub(super) ended: usize,
    /// Tasks that have become ready.
    pub(super) ready: VecDeque<u32>,
    /// Data that commuting tasks use now, with those that wait for their turn; tasks have their turns on all or none.
    turns: BTreeMap<u32, VecDeque<u32>>,
    hints: Hints,
}

/// Where the application said that it would not use data any more.
struct Hints {
    /// Tasks that are to end before each hint holds.
    left: Vec<u32>,
    /// For each task, the hints that it holds up.
    holds: Vec<(u32, u32)>,
    /// Next hint to be heard, and the data of each.
    next: usize,
    data: Vec<(u32, u32)>,
    /// Data that nobody will use any more.
    unwanted: Vec<u32>,
}

impl Tasks {
    pub(super) fn new(graph: &TaskGraph, dependencies: Arc<Dependencies>, ledger: Arc<Ledger>) -> Tasks {
        let waiting = graph.ids().map(|task| dependencies.predecessors(task).len() as u32 + 1).collect();
        Tasks {
            dependencies,
            ledger,
            free_slots: Vec::new(),
            waiting,
            next: 0,
            ended: 0,
            ready: VecDeque::new(),
            turns: BTreeMap::new(),
            hints: Hints::new(graph),
        }
    }

    pub(super) fn total(&self) -> usize {
        self.waiting.len()
    }

    /// The next task that the application submits.
    pub(super) fn next_submitted(&mut self) -> Option<u32> {
        let task = self.next;
        (task as usize != self.waiting.len()).then(|| {
            self.next += 1;
            task
        })
    }

    /// The application has submitted `task`; it becomes ready if it waits for nothing.
    pub(super) fn submitted(&mut self, task: u32, graph: &TaskGraph) {
        self.release(task, graph);
        self.hints.heard(task + 1);
    }

    fn release(&mut self, task: u32, graph: &TaskGraph) {
        let waiting = &mut self.waiting[task as usize];
        *waiting -= 1;
        if *waiting == 0 && self.takes_turns(task, graph) {
            self.ready.push_back(task);
        }
    }

    /// Whether the task has its turns on all data that it commutes on; else it waits at the first that is taken.
    fn takes_turns(&mut self, task: u32, graph: &TaskGraph) -> bool {
        let commutes = || commuted(graph, task);
        if let Some(waiting) = commutes().find_map(|data| self.turns.get_mut(&data).map(|_| data)) {
            if let Some(queue) = self.turns.get_mut(&waiting) {
                queue.push_back(task);
            }
            return false;
        }
        for data in commutes() {
            self.turns.insert(data, VecDeque::new());
        }
        true
    }

    /// A task has ended: others become ready.
    pub(super) fn ended(&mut self, task: u32, graph: &TaskGraph) {
        self.ended += 1;
        let dependencies = Arc::clone(&self.dependencies);
        for successor in dependencies.successors(TaskId(task)) {
            self.release(successor.0, graph);
        }
        for data in commuted(graph, task) {
            for waiting in self.turns.remove(&data).into_iter().flatten() {
                if self.takes_turns(waiting, graph) {
                    self.ready.push_back(waiting);
                }
            }
        }
        self.hints.ended(task);
    }

    /// Data that the application will not use any more, since the last time.
    pub(super) fn take_unwanted(&mut self) -> Option<u32> {
        self.hints.unwanted.pop()
    }

    /// A slot with a ready task in it, of this priority.
    pub(super) fn slot_for(&mut self, task: u32, priority: i32, backend: &SimBackend) -> &'static Slot {
        let index = self.free_slots.pop().unwrap_or_else(|| {
            self.free_slots.extend(self.ledger.grow().rev());
            self.free_slots.pop().expect("the ledger grows by one slot at least")
        });
        let (slot, spec) = (self.ledger.slot(index), backend.graph.task(TaskId(task)));
        let (head, row) = (slot.head(), backend.lengths.row(task));
        slot.set_phase(Phase::Waiting);
        head.reset();
        head.sequence.store(u64::from(task) + 1, Relaxed);
        head.priority.store(priority, Relaxed);
        head.archs.store(backend.lengths.archs(row).bits(), Relaxed);
        head.codelet.store(row, Relaxed);
        if backend.lengths.width(row) > 1 {
            head.width.store(backend.lengths.width(row), Relaxed);
        }
        head.footprint.store(spec.footprint.map_or(0, u64::from), Relaxed);
        slot
    }

    /// The task in this slot has ended.
    pub(super) fn give_back(&mut self, index: u32) {
        self.ledger.slot(index).renew(Phase::Free);
        self.free_slots.push(index);
    }

    /// The longest chain of tasks that wait for each other, each on the fastest workers.
    pub(super) fn critical_path(&self, lengths: &Lengths) -> Duration {
        let mut ends = vec![0u64; self.total()];
        for task in 0..self.total() as u32 {
            let before = self.dependencies.predecessors(TaskId(task));
            let start = before.iter().map(|before| ends[before.index()]).max().unwrap_or(0);
            ends[task as usize] = start.saturating_add(lengths.shortest(task));
        }
        Duration::from_nanos(ends.into_iter().max().unwrap_or(0))
    }
}

/// Data that the task commutes on, each once.
fn commuted(graph: &TaskGraph, task: u32) -> impl Iterator<Item = u32> {
    let accesses = &graph.task(TaskId(task)).accesses;
    let commute = accesses.iter().enumerate().filter(|(_, access)| access.mode == AccessMode::Commute);
    let first = |(at, access): &(usize, &sched_graph::Access)| {
        !accesses[..*at].iter().any(|other| other.data == access.data && other.mode == AccessMode::Commute)
    };
    commute.filter(first).map(|(_, access)| access.data.0)
}

impl Hints {
    fn new(graph: &TaskGraph) -> Hints {
        let mut hints = Hints { left: Vec::new(), holds: Vec::new(), next: 0, data: Vec::new(), unwanted: Vec::new() };
        if graph.wont_use.is_empty() {
            return hints;
        }
        // Of each piece of data: its hints, by when they are said.
        let mut said: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for (number, hint) in graph.wont_use.iter().enumerate() {
            said.entry(hint.data.0).or_default().push((hint.submitted, number as u32));
            hints.data.push((hint.submitted, hint.data.0));
            // One for being said.
            hints.left.push(1);
        }
        for (task, spec) in graph.tasks.iter().enumerate() {
            for access in &spec.accesses {
                let of = said.get(&access.data.0).map_or(&[][..], Vec::as_slice);
                if let Some((_, hint)) = of.iter().find(|(submitted, _)| *submitted > task as u32) {
                    hints.holds.push((task as u32, *hint));
                    hints.left[*hint as usize] += 1;
                }
            }
        }
        hints
    }

    fn settle(&mut self, hint: u32) {
        let left = &mut self.left[hint as usize];
        *left -= 1;
        if *left == 0 {
            self.unwanted.push(self.data[hint as usize].1);
        }
    }

    /// So many tasks are submitted.
    fn heard(&mut self, submitted: u32) {
        while self.data.get(self.next).is_some_and(|(at, _)| *at <= submitted) {
            self.settle(self.next as u32);
            self.next += 1;
        }
    }

    fn ended(&mut self, task: u32) {
        let from = self.holds.partition_point(|(of, _)| *of < task);
        let mut at = from;
        while self.holds.get(at).is_some_and(|(of, _)| *of == task) {
            self.settle(self.holds[at].1);
            at += 1;
        }
    }
}
