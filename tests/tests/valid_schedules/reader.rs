//! A reader of the events of a simulation, which finds what cannot be.

use sched_core::{MemoryNode, WorkerId};
use sched_host::graph::{AccessMode, DataId, Task, TaskGraph, TaskId};
use sched_host::sim::{Platform, SimOutcome};
use sched_host::trace::{Event, EventLog, Transfer};
use sched_tests::place;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What the events said so far.
pub(crate) struct Reader<'a> {
    graph: &'a TaskGraph,
    machine: &'a Platform,
    /// Whether kernels take what the machine says.
    is_certain: bool,
    now: u64,
    ran: Vec<Ran>,
    /// What each worker executes.
    running: BTreeMap<WorkerId, usize>,
    /// By data: the memories with a valid copy, perhaps evicted since, and the number of writes.
    valid: Vec<BTreeSet<MemoryNode>>,
    writes: Vec<u32>,
    /// Copies under way, with the number of writes before.
    under_way: Vec<(Transfer, u64, u32)>,
    arrived: Vec<Flow>,
}

/// The execution of a task.
#[derive(Clone, Default)]
struct Ran {
    workers: Vec<WorkerId>,
    start: Option<u64>,
    end: Option<u64>,
}

/// A copy that has arrived.
struct Flow {
    of: Transfer,
    began: u64,
    /// When its first byte was under way at the earliest.
    begin: u64,
    end: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(graph: &'a TaskGraph, machine: &'a Platform, is_certain: bool) -> Reader<'a> {
        Reader {
            graph,
            machine,
            is_certain,
            now: 0,
            ran: vec![Ran::default(); graph.tasks.len()],
            running: BTreeMap::new(),
            valid: graph.data.iter().map(|datum| BTreeSet::from([datum.home])).collect(),
            writes: vec![0; graph.data.len()],
            under_way: Vec::new(),
            arrived: Vec::new(),
        }
    }

    /// Reads all events of a simulation that came to this.
    pub(crate) fn read(mut self, log: &EventLog, outcome: &SimOutcome) {
        for stamped in &log.events {
            assert!(stamped.nanos >= self.now, "time goes on");
            self.now = stamped.nanos;
            match stamped.event {
                Event::Started { task, worker, .. } => self.start(place(task), worker),
                Event::Ended { task, worker } => self.end(place(task), worker),
                Event::Passed { task } => self.pass(place(task)),
                Event::TransferStarted(transfer) => self.depart(transfer),
                Event::TransferEnded(transfer) => self.arrive(transfer),
                _ => {}
            }
        }
        self.check_times(outcome);
        self.check_links(outcome);
        assert_eq!(outcome.faults, []);
        if self.is_certain {
            let bounds = self.machine.bounds(self.graph, &self.graph.dependencies()).expect("it was simulated");
            let makespan = outcome.makespan.as_secs_f64();
            assert!(makespan >= bounds.best().max(bounds.transfers) * (1.0 - 1e-9), "{makespan} s, and {bounds}");
        }
    }

    fn task(&self, task: usize) -> &'a Task {
        &self.graph.tasks[task]
    }

    fn memory_of(&self, worker: WorkerId) -> MemoryNode {
        self.machine.workers[worker.index()].memory
    }

    fn check_order(&self, task: usize) {
        for before in self.graph.dependencies().predecessors(TaskId(task as u32)) {
            let end = self.ran[before.index()].end;
            assert!(end.is_some_and(|end| end <= self.now), "task {task} does not wait for {}", before.0);
        }
    }

    fn start(&mut self, task: usize, worker: WorkerId) {
        let other = self.running.insert(worker, task);
        assert_eq!(other, None, "{worker} executes two tasks, one of them {task}");
        self.ran[task].workers.push(worker);
        if let Some(start) = self.ran[task].start {
            return assert_eq!(start, self.now, "a team begins at once");
        }
        self.ran[task].start = Some(self.now);
        self.check_order(task);
        let memory = self.memory_of(worker);
        for access in &self.task(task).accesses {
            let DataId(data) = access.data;
            let is_there = self.valid[access.data.index()].contains(&memory);
            assert!(is_there || !access.mode.reads(), "task {task} reads data {data}, which is not there");
            let commutes = |other: &usize| {
                let mut accesses = self.task(*other).accesses.iter();
                *other != task && accesses.any(|other| other.data == access.data && other.mode == AccessMode::Commute)
            };
            let at_once = access.mode == AccessMode::Commute && self.running.values().any(commutes);
            assert!(!at_once, "task {task} and another one commute on data {data} at once");
        }
        for access in self.task(task).accesses.iter().filter(|access| access.mode.writes()) {
            self.writes[access.data.index()] += 1;
            self.valid[access.data.index()] = BTreeSet::from([memory]);
        }
    }

    fn end(&mut self, task: usize, worker: WorkerId) {
        assert_eq!(self.running.remove(&worker), Some(task), "{worker} ends what it executes");
        let end = *self.ran[task].end.get_or_insert(self.now);
        assert_eq!(end, self.now, "a team ends at once");
    }

    fn pass(&mut self, task: usize) {
        self.check_order(task);
        let before = (self.ran[task].start.replace(self.now), self.ran[task].end.replace(self.now));
        assert_eq!(before, (None, None), "task {task} runs once");
    }

    fn depart(&mut self, transfer: Transfer) {
        let Transfer { data, from, to, bytes, .. } = transfer;
        assert!(from != to && bytes == self.graph.data[data.index()].bytes, "{transfer}");
        assert!(self.valid[data.index()].contains(&from), "{transfer}: nothing valid is there");
        let writes = |task: &usize| {
            let mut accesses = self.task(*task).accesses.iter();
            accesses.any(|access| access.data == data && access.mode.writes())
        };
        assert!(!self.running.values().any(writes), "{transfer}: it is being written");
        self.under_way.push((transfer, self.now, self.writes[data.index()]));
    }

    fn arrive(&mut self, transfer: Transfer) {
        let at = self.under_way.iter().position(|(other, ..)| *other == transfer).expect("it has begun");
        let (_, began, writes) = self.under_way.remove(at);
        if writes == self.writes[transfer.data.index()] {
            self.valid[transfer.data.index()].insert(transfer.to);
        }
        let queueing = self.machine.overheads.transfer_queueing.as_nanos() as u64;
        let begin = began + self.machine.route(transfer.from, transfer.to).latency + queueing;
        self.arrived.push(Flow { of: transfer, began, begin, end: self.now });
    }

    /// Checks that each task took as long as it should, and what is said of workers.
    fn check_times(&self, outcome: &SimOutcome) {
        let mut busy = vec![Duration::ZERO; self.machine.workers.len()];
        let mut joules = 0.0;
        for (number, (task, ran)) in self.graph.tasks.iter().zip(&self.ran).enumerate() {
            let (Some(start), Some(end)) = (ran.start, ran.end) else { panic!("task {number} did not end") };
            let took = Duration::from_nanos(end - start);
            let class = |worker: &WorkerId| self.machine.workers[worker.index()].class;
            let team = ran.workers.len() as u16;
            let lengths =
                ran.workers.iter().map(|worker| self.machine.team_length(self.graph, task, class(worker), team));
            let expected = lengths.max().unwrap_or(Some(Duration::ZERO));
            if self.is_certain || expected.is_none_or(|length| length.is_zero()) {
                assert_eq!(Some(took), expected, "task {number} on {:?}", ran.workers);
            }
            for worker in &ran.workers {
                let watts = self.machine.watts(&self.graph.kind_of(task).name, class(worker));
                joules += watts.expect("each class has power") * took.as_secs_f64();
                busy[worker.index()] += took;
            }
        }
        let makespan = self.ran.iter().filter_map(|ran| ran.end).max().unwrap_or(0);
        assert_eq!(outcome.makespan, Duration::from_nanos(makespan));
        for (worker, busy) in outcome.workers.iter().zip(busy) {
            assert_eq!((worker.busy, worker.busy + worker.idle), (busy, outcome.makespan), "{worker:?}");
            joules += worker.idle.as_secs_f64() * self.machine.class(worker.id).power.idle;
        }
        let energy = outcome.energy.expect("each class has power");
        assert!((energy - joules).abs() <= 1e-9 * joules.max(1.0), "{energy} J, and {joules} J");
    }

    /// Checks what links carried, in each time from the beginning of a copy to the end of one.
    fn check_links(&self, outcome: &SimOutcome) {
        assert!(self.under_way.is_empty());
        let bytes: u64 = self.arrived.iter().map(|flow| flow.of.bytes).sum();
        assert_eq!((outcome.transfers, outcome.bytes), (self.arrived.len() as u64, bytes));
        let mut free: BTreeMap<(MemoryNode, MemoryNode), u64> = BTreeMap::new();
        for Flow { of, began, end, .. } in &self.arrived {
            let before = free.insert((of.from, of.to), *end);
            assert!(before.is_none_or(|before| before <= *began), "{of}: another copy is on the way");
        }
        for (number, link) in self.machine.links.iter().enumerate() {
            let passes = |flow: &&Flow| self.machine.route(flow.of.from, flow.of.to).links.contains(&number);
            let flows: Vec<&Flow> = self.arrived.iter().filter(passes).collect();
            assert_eq!(outcome.links[number].bytes, flows.iter().map(|flow| flow.of.bytes).sum::<u64>());
            for (first, last) in flows.iter().flat_map(|first| flows.iter().map(move |last| (first, last))) {
                let inside = flows.iter().filter(|flow| first.begin <= flow.begin && flow.end <= last.end);
                let (count, carried) = inside.fold((0, 0), |(count, sum), flow| (count + 1, sum + flow.of.bytes));
                // Ends are whole nanoseconds.
                let time = last.end.saturating_sub(first.begin) as f64 + f64::from(count) + 1.0;
                assert!(carried as f64 <= link.bandwidth * time + 1.0, "{} carries {carried} bytes", link.name);
            }
        }
        for (memory, stats) in self.machine.memories.iter().zip(&outcome.memories) {
            assert!(memory.capacity.is_none_or(|capacity| stats.peak <= capacity), "{stats:?}");
        }
    }
}
