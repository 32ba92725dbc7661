//! The ready tasks where they are planned: each is sent to its worker when its turn comes.

use super::agenda::{Agenda, Caller, Limits};
use crate::queue::nanos;
use crate::resource_mapping::completion::{Weights, least_loaded};
use crate::resource_mapping::turn::Turn;
use sched_core::*;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::*};
use std::time::Duration;

/// See the [module](self).
///
/// One thread plans at a time. Other threads that arrive meanwhile do not wait: the planning thread checks again before
/// it ends.
#[derive(Debug)]
pub(super) struct Planner {
    weights: Weights,
    limits: Limits,
    /// Tasks that the planning thread has not seen yet.
    arrived: Mutex<Vec<Task>>,
    /// Number of tasks in `arrived` and in `agenda`.
    len: AtomicUsize,
    turn: Turn,
    /// Owned by the thread that plans, which takes it out.
    agenda: Mutex<Agenda>,
    /// Tasks that have ended since the planning thread looked, with the nanoseconds that they took.
    ended: Mutex<Vec<(u64, u64)>>,
    /// Tasks that have begun since then, with the time.
    began: Mutex<Vec<(u64, u64)>>,
    /// By child: number of workers that asked for a task and have not got one.
    asking: Mutex<Vec<u32>>,
    /// Priority of the last task sent.
    order: AtomicI32,
}

impl Planner {
    pub(super) fn new(weights: Weights, limits: Limits) -> Planner {
        Planner {
            weights,
            limits,
            arrived: Mutex::default(),
            len: AtomicUsize::new(0),
            turn: Turn::default(),
            agenda: Mutex::default(),
            ended: Mutex::default(),
            began: Mutex::default(),
            asking: Mutex::default(),
            order: AtomicI32::new(i32::MAX),
        }
    }

    /// Number of tasks held.
    pub(super) fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Stores tasks.
    pub(super) fn push(&self, node: Node<'_>, submitted: Submitted<'_>, tasks: impl IntoIterator<Item = Task>) {
        let mut arrived = self.arrived.lock();
        let before = arrived.len();
        arrived.extend(tasks);
        self.len.fetch_add(arrived.len() - before, AcqRel);
        drop(arrived);
        self.turn.take(|| self.work(node, submitted, Caller::Pushes));
    }

    /// Takes the first task of the plan for a worker that pulls for this child.
    pub(super) fn pull(&self, node: Node<'_>, submitted: Submitted<'_>, to: Child) -> Option<Task> {
        let first = || {
            self.work(node, submitted, Caller::Pulls);
            self.take(node, submitted, to)
        };
        self.turn.pull(first, || self.work(node, submitted, Caller::Pulls))
    }

    /// Sends the tasks whose turn has come. Returns whether any was accepted.
    pub(super) fn progress(&self, node: Node<'_>, submitted: Submitted<'_>) -> bool {
        self.turn.take(|| self.work(node, submitted, Caller::Pulls))
    }

    /// Takes note that a child has room.
    pub(super) fn note_room(&self, node: Node<'_>, child: Child) {
        let workers = node.each_child_worker_in_context(child).count();
        let mut asking = self.asking.lock();
        let at = child.0 as usize;
        if asking.len() <= at {
            asking.resize(at + 1, 0);
        }
        asking[at] = (asking[at] + 1).min(u32::try_from(workers).unwrap_or(u32::MAX));
    }

    /// Takes note that a task has begun.
    pub(super) fn note_began(&self, node: Node<'_>, task: TaskId) {
        self.began.lock().push((task.sequence(), node.now().as_nanos()));
    }

    /// Takes note that a task has been executed, in so long.
    pub(super) fn note_ended(&self, task: TaskId, took: Duration) {
        self.ended.lock().push((task.sequence(), nanos(took)));
    }

    /// Takes all tasks. The plan is discarded with them: they may come back.
    pub(super) fn drain(&self) -> Vec<Task> {
        self.len.store(0, Release);
        let mut tasks = std::mem::take(&mut *self.arrived.lock());
        tasks.extend(std::mem::take(&mut *self.agenda.lock()).held.into_values());
        tasks
    }

    /// Sets the fields of a task that the queues below use.
    fn mark(&self, node: Node<'_>, task: &mut Task, worker: WorkerId) {
        task.set_predicted(node.expected_length(worker, task).known());
        task.set_priority(self.order.fetch_sub(1, Relaxed));
    }

    fn work(&self, node: Node<'_>, submitted: Submitted<'_>, caller: Caller) -> bool {
        if self.len.load(Acquire) == 0 {
            return false;
        }
        let mut agenda = std::mem::take(&mut *self.agenda.lock());
        agenda.full.fill(false);
        for (sequence, at) in std::mem::take(&mut *self.began.lock()) {
            agenda.note_began(sequence, at);
        }
        agenda.learn(std::mem::take(&mut *self.ended.lock()), node.now().as_nanos());
        agenda.forget_ended(submitted);
        let mut moved = false;
        loop {
            let (go_on, taken) = self.step(node, submitted, &mut agenda, caller);
            moved |= taken;
            if !go_on {
                break;
            }
        }
        let withheld = if caller == Caller::Pushes { agenda.withheld(|| node.now().as_nanos()) } else { None };
        *self.agenda.lock() = agenda;
        if let Some(child) = withheld {
            node.child_can_pull(child);
        }
        moved
    }

    /// Sends at most one task. Returns whether to continue, and whether the task was accepted.
    fn step(&self, node: Node<'_>, submitted: Submitted<'_>, agenda: &mut Agenda, caller: Caller) -> (bool, bool) {
        let arrived = std::mem::take(&mut *self.arrived.lock());
        agenda.receive(arrived);
        if agenda.held.is_empty() {
            return (false, false);
        }
        let now = node.now().as_nanos();
        agenda.settle(node, submitted, now);
        if agenda.awaits_more(submitted, now) {
            return (false, false);
        }
        agenda.keep_planned(node, submitted, &self.weights, self.limits);
        // While tasks are being submitted, none is sent to a busy worker: better places may show up soon.
        let settled = agenda.is_settled(now, self.limits.lead);
        if node.has_transfers() {
            agenda.fetch(node, submitted, now.saturating_add(self.limits.lead));
        }
        let asking = self.asking.lock().clone();
        let asks = |child: Child| settled && asking.get(child.0 as usize).is_some_and(|asking| *asking > 0);
        match agenda.next(now, self.limits.lead, caller, asks) {
            Some((sequence, lane)) => self.send(node, submitted, agenda, sequence, lane),
            None => self.send_unpredicted(node, agenda),
        }
    }

    fn send(
        &self,
        node: Node<'_>,
        submitted: Submitted<'_>,
        agenda: &mut Agenda,
        sequence: u64,
        lane: usize,
    ) -> (bool, bool) {
        let child = agenda.lanes[lane].child;
        if node.child_worker(child).is_some() {
            agenda.full[lane] = true;
            node.child_can_pull(child);
            return (true, false);
        }
        let Some(mut task) = agenda.take(sequence) else { return (false, false) };
        let priority = task.priority();
        self.mark(node, &mut task, agenda.lanes[lane].worker);
        match node.push_to(child, task) {
            Ok(()) => {
                self.note_sent(node, submitted, agenda, sequence, lane);
                (true, true)
            }
            Err(refused) => {
                let mut task = refused.task;
                task.set_priority(priority);
                agenda.receive([task]);
                agenda.full[lane] = true;
                (true, false)
            }
        }
    }

    fn note_sent(&self, node: Node<'_>, submitted: Submitted<'_>, agenda: &mut Agenda, sequence: u64, lane: usize) {
        self.len.fetch_sub(1, AcqRel);
        if let Some(asking) = self.asking.lock().get_mut(agenda.lanes[lane].child.0 as usize) {
            *asking = asking.saturating_sub(1);
        }
        agenda.note_sent(submitted, sequence, lane, node.now().as_nanos());
    }

    /// Sends a task of unknown length to the child with the least load.
    fn send_unpredicted(&self, node: Node<'_>, agenda: &mut Agenda) -> (bool, bool) {
        let place = |task: &Task| least_loaded(node, task);
        let Some((sequence, child)) = agenda.unpredicted(place) else { return (false, false) };
        if node.child_worker(child).is_some() {
            node.child_can_pull(child);
            return (false, false);
        }
        let Some(mut task) = agenda.take(sequence) else { return (false, false) };
        task.set_predicted(None);
        match node.push_to(child, task) {
            Ok(()) => {
                self.len.fetch_sub(1, AcqRel);
                (true, true)
            }
            Err(refused) => {
                agenda.receive([refused.task]);
                (false, false)
            }
        }
    }

    /// The task for a worker that pulls: the next one planned for it, or one that cannot be planned.
    fn take(&self, node: Node<'_>, submitted: Submitted<'_>, child: Child) -> Option<Task> {
        let mut agenda = std::mem::take(&mut *self.agenda.lock());
        let mut taken = None;
        if let Some((sequence, lane)) = agenda.next_for(node, child) {
            taken = agenda.take(sequence);
            if let Some(task) = &mut taken {
                self.mark(node, task, agenda.lanes[lane].worker);
                self.note_sent(node, submitted, &mut agenda, sequence, lane);
            }
        } else if let Some((sequence, ())) = agenda.unpredicted(|task| node.requester_can_execute(task).then_some(())) {
            taken = agenda.take(sequence);
            self.len.fetch_sub(1, AcqRel);
        }
        *self.agenda.lock() = agenda;
        taken
    }
}
