//! Tasks: what they wait for, the slots of those that are ready, and what their ends release.

use crate::allowed::Allowed;
use crate::backend::SimBackend;
use sched_core::abi::TaskHead;
use sched_core::{Arch, WorkerId, WorkerSet};
use sched_graph::{AccessMode, DataId, Dependencies, TaskGraph, TaskId, WontUse};
use sched_tree::{Ledger, Phase, Slot};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// See the [module](self).
pub(super) struct Tasks {
    ledger: Arc<Ledger>,
    free_slots: Vec<&'static Slot>,
    /// For each task, the number of tasks that it waits for, plus one until it is submitted.
    waiting: Vec<u32>,
    next: TaskId,
    pub(super) ended: usize,
    /// Tasks that have become ready.
    pub(super) ready: VecDeque<TaskId>,
    /// Data that commuting tasks use now, with the tasks that wait for it. A task takes its turn on all of its data or
    /// none.
    turns: BTreeMap<DataId, VecDeque<TaskId>>,
    /// Whether any task commutes.
    has_turns: bool,
    hints: Hints,
}

/// A hint of the graph: its place in [`TaskGraph::wont_use`].
#[derive(Clone, Copy, Debug)]
struct HintId(u32);

impl HintId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The application's hints that it will not use data any more.
struct Hints {
    /// The hints, in the order of submission.
    all: Vec<WontUse>,
    /// For each hint, the number of tasks that must end before it holds, plus one until it is submitted, and one until
    /// the last hint before it that names the same data holds.
    left: Vec<u32>,
    /// The next hint that names the same data.
    following: Vec<Option<HintId>>,
    /// Pairs of a task and a hint that waits for it, in the order of the tasks.
    holds: Vec<Hold>,
    /// The hint to be submitted next.
    next: HintId,
    /// Data that will not be used any more, and is not taken yet.
    unwanted: Vec<DataId>,
}

/// A task whose end a hint waits for.
struct Hold {
    task: TaskId,
    hint: HintId,
}

impl Tasks {
    pub(super) fn new(backend: &SimBackend, ledger: Arc<Ledger>) -> Tasks {
        let (graph, dependencies) = (&backend.graph, &backend.dependencies);
        let waiting = graph.ids().map(|task| dependencies.predecessors(task).len() as u32 + 1).collect();
        Tasks {
            ledger,
            free_slots: Vec::new(),
            waiting,
            next: TaskId(0),
            ended: 0,
            ready: VecDeque::new(),
            turns: BTreeMap::new(),
            has_turns: backend.specs.any_commutes,
            hints: Hints::new(graph),
        }
    }

    pub(super) fn total(&self) -> usize {
        self.waiting.len()
    }

    /// The task that the application submits next; there may be none of this number.
    pub(super) fn next(&self) -> TaskId {
        self.next
    }

    /// The next task that the application submits.
    pub(super) fn next_submitted(&mut self) -> Option<TaskId> {
        let task = self.next;
        (task.index() != self.waiting.len()).then(|| {
            self.next = TaskId(task.0 + 1);
            task
        })
    }

    /// Records the submission of `task`, which becomes ready if it waits for nothing.
    pub(super) fn submitted(&mut self, task: TaskId, graph: &TaskGraph) {
        self.release(task, graph);
        self.hints.submitted(task);
    }

    fn release(&mut self, task: TaskId, graph: &TaskGraph) {
        let waiting = &mut self.waiting[task.index()];
        *waiting -= 1;
        if *waiting == 0 && self.takes_turns(task, graph) {
            self.ready.push_back(task);
        }
    }

    /// Takes the turn of a task on all data that it commutes on, or queues it at the first that is taken. Returns
    /// whether it has its turn.
    fn takes_turns(&mut self, task: TaskId, graph: &TaskGraph) -> bool {
        if !self.has_turns {
            return true;
        }
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

    /// Records the end of a task, which makes others ready.
    pub(super) fn ended(&mut self, task: TaskId, graph: &TaskGraph, dependencies: &Dependencies) {
        self.ended += 1;
        for successor in dependencies.successors(task) {
            self.release(*successor, graph);
        }
        if self.has_turns {
            for data in commuted(graph, task) {
                self.pass_turn_on(data, graph);
            }
        }
        self.hints.ended(task);
    }

    /// The tasks that may become ready when `task` ends: those that wait for one other task at most.
    pub(super) fn nearly_ready<'a>(
        &'a self,
        task: TaskId,
        dependencies: &'a Dependencies,
    ) -> impl Iterator<Item = TaskId> + 'a {
        dependencies.successors(task).iter().copied().filter(|successor| self.waiting[successor.index()] <= 2)
    }

    /// Gives the turn at data to the first task that waits for it and needs no other turn that is taken. The others
    /// stay, so that an end costs the same however many wait.
    fn pass_turn_on(&mut self, data: DataId, graph: &TaskGraph) {
        let mut queue = self.turns.remove(&data).unwrap_or_default();
        while let Some(next) = queue.pop_front() {
            if self.takes_turns(next, graph) {
                self.ready.push_back(next);
                self.turns.insert(data, queue);
                return;
            }
        }
    }

    /// Takes a piece of data that the application will not use any more.
    pub(super) fn take_unwanted(&mut self) -> Option<DataId> {
        self.hints.unwanted.pop()
    }

    /// A slot with a ready task of this priority.
    pub(super) fn slot_for(&mut self, task: TaskId, priority: i32, backend: &SimBackend) -> &'static Slot {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            let ledger = &self.ledger;
            self.free_slots.extend(ledger.grow().iter().rev());
            self.free_slots.pop().expect("the ledger grows by one slot at least")
        });
        let (head, row) = (slot.head(), backend.lengths.row(task));
        slot.set_phase(Phase::Waiting);
        head.reset();
        head.sequence.store(task.submitted().sequence(), Relaxed);
        head.priority.store(priority, Relaxed);
        let archs = backend.lengths.archs(row);
        head.archs.store(archs.bits(), Relaxed);
        head.codelet.store(row.0, Relaxed);
        if backend.lengths.width(row) > 1 {
            head.width.store(backend.lengths.width(row), Relaxed);
        }
        head.footprint.store(u64::from(backend.lengths.footprint(row)), Relaxed);
        if backend.spec(task).is_special() {
            let task = backend.graph.task(task);
            if let Some((archs, workers)) = backend.platform.remaining(task, archs) {
                head.archs.store(archs.bits(), Relaxed);
                workers.iter().for_each(|workers| self.ledger.restrict(head, workers));
            }
            if task.sched_data != 0 {
                head.set_sched_data(task.sched_data);
            }
        }
        slot
    }

    /// Whether the restrictions of a ready task allow a worker of this architecture.
    pub(super) fn allows(&self, head: &TaskHead, arch: Arch, worker: WorkerId) -> bool {
        self.ledger.allows(head, arch, worker, None)
    }

    /// Makes a task that was pulled wait again, for some of the workers, with the priority that it came with. What a
    /// component decided about it is out of date.
    pub(super) fn renew(&self, slot: &'static Slot, workers: &WorkerSet, priority: i32) {
        slot.head().priority.store(priority, Relaxed);
        slot.head().predicted.store(u64::MAX, Relaxed);
        slot.head().implementation.store(u16::MAX, Relaxed);
        self.ledger.restrict(slot.head(), workers);
        slot.set_phase(Phase::Waiting);
    }

    /// Frees the slot of a task that has ended.
    pub(super) fn give_back(&mut self, slot: &'static Slot) {
        slot.renew(Phase::Free);
        self.free_slots.push(slot);
    }

    /// Length of the critical path, with each task where it is fastest.
    pub(super) fn critical_path(&self, backend: &SimBackend) -> Duration {
        let allowed = Allowed::new(&backend.platform);
        let shortest = |task: TaskId| match backend.spec(task).is_special() {
            true => backend.lengths.shortest_on(backend.lengths.row(task), &allowed.by_class(backend.graph.task(task))),
            false => backend.lengths.shortest(task),
        };
        let mut ends = vec![0u64; self.total()];
        for task in (0..self.total() as u32).map(TaskId) {
            let before = backend.dependencies.predecessors(task);
            let start = before.iter().map(|before| ends[before.index()]).max().unwrap_or(0);
            ends[task.index()] = start.saturating_add(shortest(task));
        }
        Duration::from_nanos(ends.into_iter().max().unwrap_or(0))
    }
}

/// Data that the task commutes on, without repetition.
fn commuted(graph: &TaskGraph, task: TaskId) -> impl Iterator<Item = DataId> {
    let accesses = &graph.task(task).accesses;
    let commute = accesses.iter().enumerate().filter(|(_, access)| access.mode == AccessMode::Commute);
    let first = |(at, access): &(usize, &sched_graph::Access)| {
        !accesses[..*at].iter().any(|other| other.data == access.data && other.mode == AccessMode::Commute)
    };
    commute.filter(first).map(|(_, access)| access.data)
}

impl Hints {
    fn new(graph: &TaskGraph) -> Hints {
        let mut hints = Hints {
            all: graph.wont_use.clone(),
            // One for the submission.
            left: vec![1; graph.wont_use.len()],
            following: vec![None; graph.wont_use.len()],
            holds: Vec::new(),
            next: HintId(0),
            unwanted: Vec::new(),
        };
        if graph.wont_use.is_empty() {
            return hints;
        }
        // For each piece of data, its hints in the order of submission.
        let mut by_data: BTreeMap<DataId, Vec<HintId>> = BTreeMap::new();
        for (hint, spec) in (0..).map(HintId).zip(&graph.wont_use) {
            let of_data = by_data.entry(spec.data).or_default();
            if let Some(before) = of_data.last() {
                hints.following[before.index()] = Some(hint);
                hints.left[hint.index()] += 1;
            }
            of_data.push(hint);
        }
        for (task, spec) in graph.ids().zip(&graph.tasks) {
            for access in &spec.accesses {
                let of_data = by_data.get(&access.data).map_or(&[][..], Vec::as_slice);
                if let Some(hint) = of_data.iter().find(|hint| hints.all[hint.index()].submitted > task.0) {
                    hints.holds.push(Hold { task, hint: *hint });
                    hints.left[hint.index()] += 1;
                }
            }
        }
        hints
    }

    fn settle(&mut self, hint: HintId) {
        let mut settled = Some(hint);
        while let Some(hint) = settled {
            let left = &mut self.left[hint.index()];
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.unwanted.push(self.all[hint.index()].data);
            settled = self.following[hint.index()];
        }
    }

    /// Records the submission of `task`, and of the hints that follow it.
    fn submitted(&mut self, task: TaskId) {
        while self.all.get(self.next.index()).is_some_and(|hint| hint.submitted <= task.0 + 1) {
            self.settle(self.next);
            self.next = HintId(self.next.0 + 1);
        }
    }

    /// Records the end of `task`.
    fn ended(&mut self, task: TaskId) {
        let mut at = self.holds.partition_point(|hold| hold.task < task);
        while let Some(hold) = self.holds.get(at).filter(|hold| hold.task == task) {
            self.settle(hold.hint);
            at += 1;
        }
    }
}
