//! What a node reports, in the numbers of the whole cluster.

use sched_core::{MemoryNode, Refusal, TaskId, WorkerId};
use sched_graph::DataId;
use sched_graph::ranks::Role;
use sched_trace::{Event, Observer, Transfer};
use sched_tree::{Choice, NoteKind, ObservedNode, TreeObserver};
use std::cell::RefCell;
use std::sync::Arc;

/// The numbers of a node in the whole cluster.
#[derive(Clone)]
pub(super) struct Numbers {
    pub(super) rank: u32,
    pub(super) first_worker: u32,
    pub(super) first_memory: u32,
    /// What each task stands for.
    pub(super) roles: Arc<[Role]>,
    pub(super) data: Arc<[DataId]>,
}

impl Numbers {
    fn worker(&self, worker: WorkerId) -> WorkerId {
        WorkerId(self.first_worker + worker.0)
    }

    /// The task of the whole graph; `None` for one that sends or receives.
    fn task(&self, task: TaskId) -> Option<TaskId> {
        let here = sched_graph::TaskId::of_submitted(task)?;
        match self.roles.get(here.index())? {
            Role::Task(task) => Some(task.submitted()),
            Role::Send(_) | Role::Receive(_) => None,
        }
    }

    fn transfer(&self, transfer: Transfer) -> Transfer {
        let memory = |memory: MemoryNode| MemoryNode(self.first_memory + memory.0);
        let data = self.data.get(transfer.data.index()).copied().unwrap_or(transfer.data);
        Transfer { data, from: memory(transfer.from), to: memory(transfer.to), ..transfer }
    }

    fn event(&self, event: Event) -> Option<Event> {
        Some(match event {
            Event::Submitted { task } => Event::Submitted { task: self.task(task)? },
            Event::Ready { task, by } => Event::Ready { task: self.task(task)?, by: by.map(|by| self.worker(by)) },
            Event::Pulled { task, worker } => Event::Pulled { task: self.task(task)?, worker: self.worker(worker) },
            Event::Started { task, worker, codelet } => {
                Event::Started { task: self.task(task)?, worker: self.worker(worker), codelet }
            }
            Event::Ended { task, worker } => Event::Ended { task: self.task(task)?, worker: self.worker(worker) },
            Event::Passed { task } => Event::Passed { task: self.task(task)? },
            Event::Idle { worker } => Event::Idle { worker: self.worker(worker) },
            Event::Woken { worker } => Event::Woken { worker: self.worker(worker) },
            Event::TransferStarted(transfer) => Event::TransferStarted(self.transfer(transfer)),
            Event::TransferEnded(transfer) => Event::TransferEnded(self.transfer(transfer)),
            other => other,
        })
    }
}

/// The observer of one node, which passes everything on to that of the cluster.
pub(super) struct NodeObserver<'o, 'x> {
    pub(super) numbers: Numbers,
    pub(super) observer: &'o RefCell<&'x mut dyn Observer>,
}

impl Observer for NodeObserver<'_, '_> {
    fn event(&mut self, nanos: u64, event: &Event) {
        if let Some(event) = self.numbers.event(*event) {
            self.observer.borrow_mut().event(nanos, &event);
        }
    }
}

/// The observer of the tree of one node, likewise.
pub(super) struct NodeTreeObserver {
    pub(super) numbers: Numbers,
    pub(super) observer: Arc<dyn TreeObserver>,
}

impl NodeTreeObserver {
    fn by(&self, by: Option<WorkerId>) -> Option<WorkerId> {
        by.map(|by| self.numbers.worker(by))
    }
}

impl TreeObserver for NodeTreeObserver {
    fn nodes(&self, paths: &[&str]) -> ObservedNode {
        let paths: Vec<String> = paths.iter().map(|path| format!("node {}: {path}", self.numbers.rank)).collect();
        self.observer.nodes(&paths.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn ready(&self, nanos: u64, by: Option<WorkerId>, task: TaskId) {
        if let Some(task) = self.numbers.task(task) {
            self.observer.ready(nanos, self.by(by), task);
        }
    }

    fn held(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, node: ObservedNode) {
        if let Some(task) = self.numbers.task(task) {
            self.observer.held(nanos, self.by(by), task, node);
        }
    }

    fn refused(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, node: ObservedNode, why: Refusal) {
        if let Some(task) = self.numbers.task(task) {
            self.observer.refused(nanos, self.by(by), task, node, why);
        }
    }

    fn noted(&self, nanos: u64, by: Option<WorkerId>, node: ObservedNode, kind: NoteKind, text: &str) {
        self.observer.noted(nanos, self.by(by), node, kind, text);
    }

    fn wants_choices(&self, task: TaskId) -> bool {
        self.numbers.task(task).is_some_and(|task| self.observer.wants_choices(task))
    }

    fn chose(&self, nanos: u64, by: Option<WorkerId>, task: TaskId, mut choice: Choice) {
        let workers = choice.children.iter_mut().flat_map(|child| &mut child.workers);
        workers.for_each(|worker| *worker = self.numbers.worker(*worker));
        if let Some(task) = self.numbers.task(task) {
            self.observer.chose(nanos, self.by(by), task, choice);
        }
    }
}
