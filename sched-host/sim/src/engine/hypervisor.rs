//! The hypervisor of a simulation: it is called at each of its periods of the virtual clock, until no task is left.

use super::{Action, Engine};
use crate::backend::SimBackend;
use crate::context::Change;
use crate::lengths::{NEVER, Row};
use sched_core::{WorkerId, WorkerSet};
use sched_graph::{ContextId, TaskId, Where};
use sched_trace::Event;
use sched_tree::context::ContextError;
use sched_tree::hypervisor::{Governance, Governed, Hypervisor, Progress};
use std::collections::HashMap;
use std::time::Duration;

/// A hypervisor, and what it asks for.
pub(crate) struct Supervision {
    hypervisor: Hypervisor,
    /// The number of each governed context in the engine.
    contexts: Vec<usize>,
    tally: Tally,
    /// [`Tally::changes`] at the last look before which something had changed, or that moved a worker, and its time.
    last_news: (u64, u64),
}

/// Tasks of each context by what they need.
struct Tally {
    sorts: Vec<Sort>,
    /// The place in `sorts` of each task.
    sort_of: Vec<u32>,
    contexts: Vec<Counts>,
}

/// Tasks that the same workers can execute, in the same times.
struct Sort {
    row: Row,
    /// Empty for tasks without work.
    able: WorkerSet,
}

/// Tasks of a context.
#[derive(Clone, Default)]
struct Counts {
    /// Submitted tasks that have not ended, by their sort.
    unfinished: Vec<u64>,
    progress: Progress,
}

impl Supervision {
    /// The supervision of some contexts of the engine, of which there are `count`.
    pub(crate) fn new(hypervisor: Hypervisor, contexts: Vec<usize>, count: usize, backend: &SimBackend) -> Supervision {
        Supervision { hypervisor, contexts, tally: Tally::new(count, backend), last_news: (0, 0) }
    }
}

impl Tally {
    fn new(contexts: usize, backend: &SimBackend) -> Tally {
        let (graph, platform) = (&backend.graph, &backend.platform);
        let mut known: HashMap<(Row, Option<String>), u32> = HashMap::new();
        let (mut sorts, mut sort_of) = (Vec::new(), Vec::with_capacity(graph.tasks.len()));
        for (id, task) in graph.ids().zip(&graph.tasks) {
            let row = backend.lengths.row(id);
            let sort = *known.entry((row, task.only.as_deref().map(Where::to_string))).or_insert_with(|| {
                let archs = backend.lengths.archs(row);
                let (archs, only) = platform.remaining(task, archs).unwrap_or((archs, None));
                let executes = |worker: &WorkerId| {
                    graph.kind_of(task).runs
                        && archs.contains(platform.classes[platform.workers[worker.index()].class].arch)
                        && only.as_ref().is_none_or(|only| only.contains(*worker))
                };
                let able = (0..platform.workers.len() as u32).map(WorkerId).filter(executes).collect();
                sorts.push(Sort { row, able });
                sorts.len() as u32 - 1
            });
            sort_of.push(sort);
        }
        let counts = Counts { unfinished: vec![0; sorts.len()], progress: Progress::default() };
        Tally { contexts: vec![counts; contexts], sorts, sort_of }
    }

    /// Number of times that a task was submitted or ended.
    fn changes(&self) -> u64 {
        self.contexts.iter().map(|counts| counts.progress.unfinished + 2 * counts.progress.ended).sum()
    }
}

/// The time to the next look, in nanoseconds: a period, or several of them where nothing has happened for long. The
/// periods of a kernel may be many more than could be looked at.
fn pause(period: u64, quiet: u64) -> u64 {
    let periods = quiet / period.max(1);
    if periods < LOOKS { period } else { quiet / 4 }
}

/// Number of looks in each period of a time in which nothing happens, before they become rarer.
const LOOKS: u64 = 16;

/// The governed contexts of an engine.
struct Contexts<'s, 'e, 'o> {
    engine: &'e mut Engine<'o>,
    numbers: &'s [usize],
    tally: &'s Tally,
}

impl Governed for Contexts<'_, '_, '_> {
    fn workers(&self, context: usize) -> WorkerSet {
        self.engine.contexts[self.numbers[context]].workers().clone()
    }

    fn progress(&mut self, context: usize) -> Progress {
        self.tally.contexts[self.numbers[context]].progress
    }

    fn able(&mut self, context: usize) -> Vec<WorkerSet> {
        let counts = &self.tally.contexts[self.numbers[context]];
        let sorts = self.tally.sorts.iter().zip(&counts.unfinished);
        let mut able: Vec<WorkerSet> = Vec::new();
        for (sort, _) in sorts.filter(|(sort, count)| **count > 0 && !sort.able.is_empty()) {
            if !able.contains(&sort.able) {
                able.push(sort.able.clone());
            }
        }
        able
    }

    fn remaining(&mut self, context: usize, pool: &WorkerSet) -> Option<f64> {
        let (backend, counts) = (&self.engine.backend, &self.tally.contexts[self.numbers[context]]);
        let mut nanos = 0.0;
        for (sort, count) in self.tally.sorts.iter().zip(&counts.unfinished).filter(|(_, count)| **count > 0) {
            let length =
                |worker: WorkerId| backend.lengths.nanos(sort.row, backend.platform.workers[worker.index()].class);
            let able = pool.iter().filter(|worker| sort.able.contains(*worker)).map(length);
            let rate: f64 = able.filter(|nanos| *nanos != NEVER).map(|nanos| 1.0 / nanos.max(1) as f64).sum();
            if rate > 0.0 {
                nanos += *count as f64 / rate;
            }
        }
        Some(nanos * 1e-9)
    }

    fn change(&mut self, context: usize, added: &WorkerSet, removed: &WorkerSet) -> Result<(), ContextError> {
        let change = Change::Workers { added: added.clone(), removed: removed.clone() };
        self.engine.exchange(self.numbers[context], change)
    }

    fn moved(&mut self, worker: WorkerId, from: Option<usize>, to: usize) {
        let id = |context: usize| ContextId(self.numbers[context] as u16);
        let event = Event::Moved { worker, from: from.map(id), to: id(to) };
        self.engine.report(event);
    }
}

impl Engine<'_> {
    /// Plans the first look of the hypervisor.
    pub(super) fn begin_supervision(&mut self) {
        if self.supervision.is_some() {
            self.plan(0, Action::Supervise);
        }
    }

    /// Lets the hypervisor look at the contexts, and plans its next look while tasks are left.
    pub(super) fn supervise(&mut self) {
        if self.tasks.ended == self.tasks.total() {
            return;
        }
        let Some(mut supervision) = self.supervision.take() else { return };
        let now = Duration::from_nanos(self.now);
        // Where nothing else is planned, only another worker can help.
        let stands = self.agenda.peek().is_none();
        let Supervision { hypervisor, contexts, tally, last_news } = &mut supervision;
        let mut machine = Contexts { engine: self, numbers: contexts, tally };
        let moved = if stands { hypervisor.rescue(now, &mut machine) } else { hypervisor.step(now, &mut machine) };
        if !stands || moved {
            let changes = tally.changes();
            if moved || changes != last_news.0 {
                *last_news = (changes, self.now);
            }
            let period = u64::try_from(hypervisor.period().as_nanos()).unwrap_or(u64::MAX);
            let pause = pause(period, self.now - last_news.1);
            self.plan(self.now.saturating_add(pause), Action::Supervise);
        }
        self.supervision = Some(supervision);
    }

    /// Ends the supervision, if there is one.
    pub(super) fn end_supervision(&mut self) -> Option<Governance> {
        let Supervision { hypervisor, contexts, tally, .. } = self.supervision.take()?;
        let now = Duration::from_nanos(self.end);
        Some(hypervisor.finish(now, &mut Contexts { engine: self, numbers: &contexts, tally: &tally }))
    }

    /// Counts a submitted task for the hypervisor.
    pub(super) fn tally_submitted(&mut self, context: usize, task: TaskId) {
        if let Some(Supervision { tally, .. }) = &mut self.supervision {
            let counts = &mut tally.contexts[context];
            counts.unfinished[tally.sort_of[task.index()] as usize] += 1;
            counts.progress.unfinished += 1;
        }
    }

    /// Counts a task that has ended for the hypervisor.
    pub(super) fn tally_ended(&mut self, context: usize, task: TaskId) {
        if let Some(Supervision { tally, .. }) = &mut self.supervision {
            let counts = &mut tally.contexts[context];
            counts.unfinished[tally.sort_of[task.index()] as usize] -= 1;
            counts.progress.unfinished -= 1;
            counts.progress.ended += 1;
            counts.progress.flops += self.graph.task(task).flops;
            counts.progress.last_end = Some(Duration::from_nanos(self.now));
        }
    }
}
