//! Submitted tasks that have not ended, as components of a real run see them: the extension `task-graph/1`.
//!
//! # Guarantees
//!
//! Each context has a list of its tasks in order of submission. A component sees the tasks that come to its own tree;
//! of other contexts it sees only that a task waits for something. Accesses of the application itself appear as tasks
//! that end by themselves, in the default context. A task is on the list before it is pushed, so a component that holds
//! a task finds it there. A task that has ended does not appear any more, since its record belongs to the next task.
//! The accesses of a task are known until a worker takes it.
//!
//! Any component may ask at any time, on any thread. Each answer is true at the moment when it is given.
//!
//! # Concurrent reading
//!
//! The list is behind a lock, and holds places and sequences only. The end of a task is not noted there: the sequence
//! in its slot is another one afterwards, which each reader checks. Everything else is read from the record *under the
//! lock of its body*, with the sequence checked under that lock:
//! - a task that ends gives away its job and its dependents, and clears its sequence, under this lock
//!   ([`link`](sched_sync::link)), so the reader sees the task that it asked for;
//! - a dependent in the body waits for this task, so it can neither end nor give its slot to another task meanwhile,
//!   and the sequence in its slot is its own.
//!
//! No lock is held while another is taken, and no code of the application is called.
//!
//! # Cost
//!
//! A runtime without such a component keeps no list: a submission tests one flag, which also says whether a trace is
//! recorded. The first request of a component [creates](Lookahead::begin) the list from the ledger; when no tree is
//! left that asked, it is [dropped](Lookahead::end). In between, each submission locks the list and appends a line.
//! Lines of ended tasks are removed from the front at each request, and everywhere once the list has doubled since the
//! last removal. So the list has at most twice as many lines as there ever were tasks at once, and the cost per task is
//! constant.
//!
//! How the list is created and dropped without missing a task: see [`follow`](sched_sync::follow).

use super::record::Body;
use crate::backend::ThreadBackend;
use crate::core::{Core, NO_CODELET, TaskPlace};
use crate::data::DataHeader;
use crate::recording::OF_RECORDINGS;
use sched_core::{DataAccess, Estimate, MemoryNode, Stage, WorkerId};
use sched_graph::ContextId;
use sched_sync::follow::Follow;
use sched_tree::{Ledger, Lookahead, Phase, Services, Slot};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::Ordering::*;
use std::sync::{Arc, OnceLock, Weak};

/// The tasks of one context; see the [module](self).
pub(crate) struct Ahead {
    /// Number of the context.
    context: ContextId,
    list: Follow<List>,
    backend: Arc<ThreadBackend>,
    ledger: Arc<Ledger>,
    /// The owner of the records. Set before anything is submitted.
    core: OnceLock<Weak<Core>>,
}

/// A task on the list.
#[derive(Clone, Copy)]
struct Line {
    sequence: u64,
    place: TaskPlace,
}

/// See the [module](self).
#[derive(Default)]
struct List {
    /// In order of sequence; some have ended.
    lines: VecDeque<Line>,
    /// Sequence after the last task ever added.
    end: u64,
    /// Length at which ended tasks are removed.
    sweep_at: usize,
    /// For each data: a task that accesses it.
    users: BTreeMap<u64, Line>,
    /// Length of `users` at which entries are removed.
    sweep_users_at: usize,
}

/// Minimum length for a removal.
const FEW: usize = 1024;

impl Line {
    fn has_ended(&self) -> bool {
        self.place.slot.head().sequence.load(Acquire) != self.sequence
    }

    /// Reads the task, unless it has ended; it cannot end meanwhile.
    fn look<T>(&self, look: impl FnOnce(&Body) -> T) -> Option<T> {
        let body = self.place.record.body.lock();
        (!self.has_ended()).then(|| look(&body))
    }
}

impl List {
    fn add(&mut self, line: Line) {
        self.end = self.end.max(line.sequence + 1);
        match self.lines.back() {
            // Concurrent submissions may arrive in another order.
            Some(last) if last.sequence >= line.sequence => {
                if let Err(at) = self.lines.binary_search_by_key(&line.sequence, |line| line.sequence) {
                    self.lines.insert(at, line);
                }
            }
            _ => self.lines.push_back(line),
        }
        if self.lines.len() >= self.sweep_at {
            self.lines.retain(|line| !line.has_ended());
            self.sweep_at = FEW.max(self.lines.len() * 2);
        }
    }

    fn find(&self, sequence: u64) -> Option<Line> {
        let first = self.lines.front()?.sequence;
        // Its position if no task in between is missing.
        let near = usize::try_from(sequence.checked_sub(first)?).ok().and_then(|at| self.lines.get(at));
        if let Some(line) = near.filter(|line| line.sequence == sequence) {
            return Some(*line);
        }
        let at = self.lines.binary_search_by_key(&sequence, |line| line.sequence).ok()?;
        Some(self.lines[at])
    }

    fn note_user(&mut self, data: u64, line: Line) {
        self.users.insert(data, line);
        if self.users.len() >= self.sweep_users_at {
            self.users.retain(|_, line| !line.has_ended());
            self.sweep_users_at = FEW.max(self.users.len() * 2);
        }
    }
}

impl Ahead {
    pub(crate) fn new(context: ContextId, backend: Arc<ThreadBackend>, ledger: Arc<Ledger>) -> Ahead {
        // Traces and captured graphs have submissions, too.
        let list = Follow::new(backend.recorder.is_some() || backend.capture.is_some());
        Ahead { context, list, backend, ledger, core: OnceLock::new() }
    }

    /// Sets the runtime that owns the tasks.
    pub(crate) fn serve(&self, core: &Arc<Core>) {
        let _ = self.core.set(Arc::downgrade(core));
    }

    /// Whether new tasks have to be announced.
    #[inline(always)]
    pub(crate) fn is_attended(&self) -> bool {
        self.list.is_attended()
    }

    /// Announces a task of the context, which has its sequence and is not released yet.
    #[cold]
    pub(crate) fn note(&self, place: TaskPlace, sequence: u64) {
        self.list.add(|list| list.add(Line { sequence, place }));
    }

    fn find(&self, sequence: u64) -> Option<Line> {
        self.list.look(|list| list.find(sequence))
    }

    /// Tasks in the ledger, in order of sequence.
    fn gather(&self) -> List {
        let Some(core) = self.core.get().and_then(Weak::upgrade) else { return List::default() };
        let line = |slot: &Slot| {
            let sequence = slot.head().sequence.load(Acquire);
            (sequence != 0 && sequence & OF_RECORDINGS == 0).then(|| Line { sequence, place: core.place(slot.id()) })
        };
        // The context is read between two reads of the sequence, so it belongs to that task.
        let is_ours = |line: &Line| line.place.record.context() == self.context && !line.has_ended();
        let mut lines: Vec<Line> = self.ledger.slots().filter_map(line).filter(is_ours).collect();
        lines.sort_unstable_by_key(|line| line.sequence);
        let end = lines.last().map_or(0, |last| last.sequence + 1);
        List { sweep_at: FEW.max(lines.len() * 2), lines: lines.into(), end, ..List::default() }
    }

    /// Visits the accesses of a task, until a worker takes it.
    fn visit(line: Line, body: &Body, mut visit: impl FnMut(&DataHeader, DataAccess)) {
        // One that began without a look at its record may end meanwhile, and what it is given may then be changed.
        let replayed = body.rare.as_ref().and_then(|rare| rare.replayed.as_ref());
        if replayed.is_some_and(|replayed| !replayed.will_ask(line.sequence)) {
            return;
        }
        if let Some(job) = &body.job {
            job.visit(&mut |header, mode| {
                let (reads, writes) = (mode.reads(), mode.writes());
                visit(header, DataAccess { data: header.id, bytes: header.bytes, reads, writes });
            });
        }
    }
}

impl Lookahead for Ahead {
    fn begin(&self) {
        self.list.begin(|| self.gather());
    }

    fn end(&self) {
        self.list.end();
    }

    fn range(&self) -> Range<u64> {
        self.list.look(|list| {
            while list.lines.front().is_some_and(Line::has_ended) {
                list.lines.pop_front();
            }
            list.lines.front().map_or(list.end, |first| first.sequence)..list.end
        })
    }

    fn task(&self, task: u64) -> Option<(Stage, bool, usize, usize)> {
        let line = self.find(task)?;
        let slot = line.place.slot;
        line.look(|body| {
            let stage = match slot.phase() {
                Phase::Free | Phase::Waiting => Stage::Waiting,
                Phase::InTree(_) | Phase::Fallback => Stage::Ready,
                Phase::Running => Stage::Taken,
            };
            let passes = slot.head().codelet.load(Relaxed) == NO_CODELET;
            let mut accesses = 0;
            Ahead::visit(line, body, |_, _| accesses += 1);
            (stage, passes, body.dependents.len(), accesses)
        })
    }

    fn next(&self, task: u64) -> u64 {
        self.list.look(|list| {
            let from = list.lines.partition_point(|line| line.sequence <= task);
            // Of many that have ended, none is worth a question of its own.
            list.lines.range(from..).find(|line| !line.has_ended()).map_or(list.end, |line| line.sequence)
        })
    }

    fn successor(&self, task: u64, index: usize) -> Option<u64> {
        let of = |body: &Body| {
            let dependent = body.dependents.get(index)?;
            Some(self.ledger.slot(dependent.slot()).head().sequence.load(Relaxed))
        };
        self.find(task)?.look(of).flatten()
    }

    fn access(&self, task: u64, index: usize) -> Option<DataAccess> {
        let line = self.find(task)?;
        let found = line.look(|body| {
            let (mut at, mut found) = (0, None);
            Ahead::visit(line, body, |_, access| {
                if at == index {
                    found = Some(access);
                }
                at += 1;
            });
            found
        });
        let access = found.flatten()?;
        if self.backend.memories.is_some() {
            self.list.look(|list| list.note_user(access.data, line));
        }
        Some(access)
    }

    fn length(&self, task: u64, worker: WorkerId) -> Estimate {
        let Some(line) = self.find(task) else { return Estimate::NoModel };
        let head = line.place.slot.head();
        let executes = self
            .backend
            .arch_and_size(worker)
            .is_some_and(|(arch, _)| self.ledger.allows(head, arch, worker, self.backend.members(worker)));
        if executes { self.backend.expected_length(worker, head, None) } else { Estimate::NoModel }
    }

    fn copies(&self, data: u64) -> u64 {
        let user = self.list.look(|list| list.users.get(&data).copied());
        let places = user.and_then(|line| {
            line.look(|body| {
                let mut valid = 0;
                Ahead::visit(line, body, |header, access| {
                    if access.data == data {
                        valid = header.places.valid();
                    }
                });
                valid
            })
        });
        // Data without a known location does not favour any worker.
        places.filter(|valid| *valid != 0).unwrap_or(u64::MAX)
    }

    fn transfer(&self, from: MemoryNode, to: MemoryNode, bytes: u64) -> u64 {
        self.backend.memories.as_ref().map_or(0, |memories| memories.transfer_nanos(from, to, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Records;
    use super::*;

    /// Places for tasks, which start and end on request.
    fn places(count: usize) -> Vec<TaskPlace> {
        let (ledger, records) = (Box::leak(Box::new(Ledger::new())), Box::leak(Box::new(Records::default())));
        let mut places = Vec::new();
        while places.len() < count {
            let grown = ledger.grow();
            records.grow(grown);
            places.extend(grown.iter().map(|slot| TaskPlace { slot, record: records.get(slot.id()) }));
        }
        places
    }

    fn begin(place: TaskPlace, sequence: u64) -> Line {
        place.slot.head().sequence.store(sequence, Relaxed);
        Line { sequence, place }
    }

    #[test]
    fn there_are_no_more_lines_than_twice_the_tasks() {
        let (places, mut list) = (places(10), List::default());
        // The first never ends, and behind it one hundred thousand others do.
        list.add(begin(places[0], 1));
        for sequence in 2..100_000 {
            let place = places[1 + sequence as usize % 9];
            list.note_user(sequence, begin(place, sequence));
            list.add(begin(place, sequence));
            assert!(list.lines.len() <= FEW && list.users.len() <= FEW, "{sequence}");
        }
        assert_eq!((list.find(1).map(|line| line.sequence), list.end), (Some(1), 100_000));
        assert!(list.find(99_999).is_some());
    }

    #[test]
    fn tasks_that_come_out_of_order_are_found() {
        let (places, mut list) = (places(6), List::default());
        for (at, sequence) in [3, 9, 5, 4, 9, 20].into_iter().enumerate() {
            list.add(begin(places[at], sequence));
        }
        let found: Vec<u64> = list.lines.iter().map(|line| line.sequence).collect();
        assert_eq!((found, list.end), (vec![3, 4, 5, 9, 20], 21));
        let is_found = |sequence: &u64| list.find(*sequence).is_some_and(|line| line.sequence == *sequence);
        assert_eq!((0..30).filter(is_found).collect::<Vec<_>>(), [3, 4, 5, 9, 20]);
    }
}
