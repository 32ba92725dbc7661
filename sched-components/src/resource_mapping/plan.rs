//! `plan`: looks ahead. All tasks that are submitted are planned, with what they wait for and the data that they access; the
//! plan is improved by search; and each task is sent to the worker where the plan has it, when its turn has come.
//!
//! [`Replan`](super::Replan) sees the ready tasks only. It cannot know that a fast worker had better be kept for what comes
//! next, nor that slow workers had better begin now with what is not urgent yet, since there will be too much of it. With the
//! tasks to come in sight ([`Node::submitted`]) both follow from the plan.
//!
//! **One plan** is made as HEFT makes it. Tasks choose in the order of their upward ranks: each takes the worker where it ends
//! first, also in a gap between tasks that chose before, and reckoning with the time that its data takes from where the
//! plan has it then. The result is then followed step by step with transfers that wait for each other (one at a time leaves a
//! memory, one at a time arrives); when all is done in that is what plans are compared by.
//!
//! **The search** changes what decides, not the decisions, so that each try is a sound plan. Four tries of five change how much
//! later a kind of tasks (those that take alike long everywhere) would rather end than be executed by some architecture: a
//! few numbers, which shift hundreds of tasks at once. (Agullo and others gained much by hand with
//! one such rule: `trsm` far from the diagonal goes to the cores.) The others take the best plan's own order, or that of the latest starts that it allows
//! (justification), disturb it, and let single tasks like or dislike an architecture.
//!
//! **The plan is kept.** Each worker gets its tasks in the plan's order, and waits for an urgent one rather than beginning a long
//! one that happens to be ready. Where nothing that was sent is under way, whatever is ready goes. Planned anew is when
//! tasks are ready that no plan has, and workers run out of what is planned or a quarter as many tasks have been submitted as
//! were planned; where more are submitted than the `window` takes, when half of it is gone; and where nothing that was sent is under way, and
//! nothing that is ready is in the plan.
//!
//! What gained how much, over two machines with 9 cores and 3 GPUs (the table is `tests/tests/starpu_better.rs`), as the share of
//! the gap between the best of StarPU's fifty policies and the bound that is closed on average, for Cholesky of 4 to 20
//! tiles. (With LU of 8 tiles it is 43 % instead of 37 %.)
//!
//! | | closed |
//! |---|---|
//! | the best of the other policies here, most often `tree-replan` | 8 % |
//! | the best of three plans, by three kinds of upward rank | 21 % |
//! | 30, 100 and 300 plans | 25 %, 29 % and 37 % |
//! | 1000 and 3000 plans | 38 %, 38 % |
//! | 300, and data fetched as soon as a task is ready | 35 % |
//! | 300, and the rest planned anew when a task is late by 1 % | 34 % |
//! | 300, reckoning with no transfers, and with two thirds, one and a half times of what was expected | 28 %, 38 %, 38 % |
//!
//! Data that is fetched as soon as a task is ready is in the way of data that is needed sooner. A plan that is mended moves
//! tasks away from data that is on its way to them. More plans gain little in the end, since transfers are not known well
//! enough: what comes out is 3 to 9 % longer than planned.
//!
//! **In a real run** a search takes time, in which workers may run out of tasks; so it ends when it has taken `time`, a share of
//! the length of the best plan so far, and all searches together take about that share of one worker's time. Tasks may come
//! out of order where several threads submit. They may wait for something that is no task, such as an access of the
//! application's, so ready tasks behind a full window are planned too. And measured lengths change all the time, and the
//! kinds of tasks with them, so that likings last as long as lengths do.
//!
//! Where the host tells nothing of tasks to come, it does as `replan` does, with the parameters of that.
//!
//! Sources: Topcuoglu, Hariri and Wu, *Performance-effective and low-complexity task scheduling for heterogeneous computing*
//! (2002); Agullo, Beaumont, Eyraud-Dubois and Kumar, *Are static schedules so bad? A case study on Cholesky factorization*
//! (2016); Valls, Ballestín and Quintanilla, *Justification and RCPSP: a technique that pays* (2005).

mod agenda;
mod outlook;
mod schedule;
mod search;

use super::completion::{Weights, least_loaded};
use super::replan::Replan;
use super::turn::Turn;
use crate::queue::{load_here, nanos};
use agenda::{Agenda, Limits};
use outlook::Lane;
use sched_core::*;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::*};

/// Plans all tasks that are submitted, the best of many plans, and sends each to its worker when its turn has come.
///
/// It stores tasks and never refuses one. Below it there should be a queue for each worker: a child that is a worker itself
/// is woken, and takes the first task that is planned for it.
///
/// Tasks that are sent get a priority by their place in the plan, so that the queues below keep its order.
///
/// One thread plans at a time. Others who come meanwhile do not wait: the one at work looks again before it ends. A plan takes
/// time in proportion to `effort`, to the number of tasks, and to the number of workers, as far as `time` allows.
#[derive(Debug)]
pub struct Plan {
    weights: Weights,
    limits: Limits,
    /// Nanoseconds before its planned start at which the data of a task is fetched, and before its worker is free at which it
    /// is sent.
    lead: u64,
    /// Decides where the host tells nothing of tasks to come.
    blind: Replan,
    /// Tasks that the one who plans has not seen.
    arrived: Mutex<Vec<Task>>,
    /// Number of tasks in `arrived` and in `agenda`.
    len: AtomicUsize,
    turn: Turn,
    /// Belongs to who has the turn, who takes it out.
    agenda: Mutex<Agenda>,
    /// By child: workers that asked for a task and got none yet.
    asking: Mutex<Vec<u32>>,
    /// Priority of the task that was sent last.
    order: AtomicI32,
}

const LEAD: &str = "how long before its planned start a task is sent, and its data fetched";
const EFFORT: &str = "plans that are tried for as many new tasks as are planned at once";
const TIME: &str =
    "what the search for a plan may take, as a share of the plan's length; the first try is made in any case";

impl Build for Plan {
    const INFO: Info = Info::new(
        "plan",
        Family::ResourceMapping,
        "Plans all tasks that are submitted, the best of many plans, and sends each when its turn has come.",
    )
    .package(env!("CARGO_PKG_NAME"))
    .storage(Storage::Unbounded)
    .params(
        const {
            &[
                Weights::ALPHA,
                Weights::BETA,
                Weights::GAMMA,
                Weights::IDLE_POWER,
                Weights::TRANSFERS,
                Param::int("effort", 300, EFFORT).at_least(1).unit("plans"),
                Param::int("window", 8192, "tasks that are planned at most, in the order of submission")
                    .at_least(1)
                    .unit("tasks"),
                Param::float("time", 0.02, TIME).at_least(0),
                Param::float("lead", 20_000.0, LEAD).at_least(0).unit("µs"),
                super::replan::SPARE,
            ]
        },
    )
    .lookahead(30)
    .may_refuse(false)
    .needs_models();

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Plan {
            weights: Weights::read(params)?,
            limits: Limits {
                effort: u64::try_from(params.int("effort")?).unwrap_or(1),
                window: usize::try_from(params.int("window")?).unwrap_or(usize::MAX),
                time: params.float("time")?,
            },
            lead: params.micros("lead")?.map_or(0, nanos),
            blind: Replan::build(params)?,
            arrived: Mutex::default(),
            len: AtomicUsize::new(0),
            turn: Turn::default(),
            agenda: Mutex::default(),
            asking: Mutex::default(),
            order: AtomicI32::new(i32::MAX),
        })
    }
}

impl Plan {
    /// Sends one task at most. Whether to go on, and whether it was taken.
    fn step(&self, node: Node<'_>, submitted: Submitted<'_>, agenda: &mut Agenda) -> (bool, bool) {
        let arrived = std::mem::take(&mut *self.arrived.lock());
        agenda.receive(arrived);
        if agenda.held.is_empty() {
            return (false, false);
        }
        let now = node.now().as_nanos();
        agenda.settle(node, submitted, now);
        agenda.keep_planned(node, submitted, &self.weights, self.limits);
        if node.has_transfers() {
            agenda.fetch(node, now.saturating_add(self.lead));
        }
        let asking = self.asking.lock().clone();
        let asks = |child: Child| asking.get(child.0 as usize).is_some_and(|asking| *asking > 0);
        match agenda.next(now, self.lead, asks) {
            Some((sequence, lane)) => self.send(node, agenda, sequence, lane),
            None => self.send_unpredicted(node, agenda),
        }
    }

    fn send(&self, node: Node<'_>, agenda: &mut Agenda, sequence: u64, lane: usize) -> (bool, bool) {
        let child = agenda.lanes[lane].child;
        if node.child_worker(child).is_some() {
            agenda.full[lane] = true;
            node.child_can_pull(child);
            return (true, false);
        }
        let Some(mut task) = agenda.take(sequence) else { return (false, false) };
        let priority = task.priority();
        self.mark(node, &mut task, &agenda.lanes[lane]);
        match node.push_to(child, task) {
            Ok(()) => {
                self.note_sent(node, agenda, sequence, lane);
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

    /// Notes on a task what the queues below go by.
    fn mark(&self, node: Node<'_>, task: &mut Task, lane: &Lane) {
        task.set_predicted(node.expected_length(lane.worker, task).known());
        task.set_priority(self.order.fetch_sub(1, Relaxed));
    }

    fn note_sent(&self, node: Node<'_>, agenda: &mut Agenda, sequence: u64, lane: usize) {
        self.len.fetch_sub(1, AcqRel);
        if let Some(asking) = self.asking.lock().get_mut(agenda.lanes[lane].child.0 as usize) {
            *asking = asking.saturating_sub(1);
        }
        agenda.note_sent(sequence, lane, node.now().as_nanos());
    }

    /// Tasks of which nobody knows how long they take go to the least load.
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

    fn work(&self, node: Node<'_>, submitted: Submitted<'_>) -> bool {
        if self.len.load(Acquire) == 0 {
            return false;
        }
        let mut agenda = std::mem::take(&mut *self.agenda.lock());
        agenda.full.fill(false);
        let mut moved = false;
        loop {
            let (go_on, taken) = self.step(node, submitted, &mut agenda);
            moved |= taken;
            if !go_on {
                break;
            }
        }
        *self.agenda.lock() = agenda;
        moved
    }

    fn progress(&self, node: Node<'_>, submitted: Submitted<'_>) -> bool {
        self.turn.take(|| self.work(node, submitted))
    }

    /// The task for a worker that pulls: the next one that is planned for it, or one that nobody can plan.
    fn take(&self, node: Node<'_>, child: Child) -> Option<Task> {
        let mut agenda = std::mem::take(&mut *self.agenda.lock());
        let mut taken = None;
        if let Some((sequence, lane)) = agenda.next_for(node, child) {
            taken = agenda.take(sequence);
            if let Some(task) = &mut taken {
                self.mark(node, task, &agenda.lanes[lane]);
                self.note_sent(node, &mut agenda, sequence, lane);
            }
        } else if let Some((sequence, ())) = agenda.unpredicted(|task| node.requester_can_execute(task).then_some(())) {
            taken = agenda.take(sequence);
            self.len.fetch_sub(1, AcqRel);
        }
        *self.agenda.lock() = agenda;
        taken
    }

    fn note_room(&self, node: Node<'_>, child: Child) {
        let workers = node.each_child_worker_in_context(child).count();
        let mut asking = self.asking.lock();
        let at = child.0 as usize;
        if asking.len() <= at {
            asking.resize(at + 1, 0);
        }
        asking[at] = (asking[at] + 1).min(u32::try_from(workers).unwrap_or(u32::MAX));
    }
}

impl Component for Plan {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let Some(submitted) = node.submitted() else { return self.blind.push_task(node, task) };
        self.arrived.lock().push(task);
        self.len.fetch_add(1, AcqRel);
        self.progress(node, submitted);
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        let Some(submitted) = node.submitted() else { return self.blind.pull_task(node, to) };
        self.note_room(node, to);
        let first = || {
            self.work(node, submitted);
            self.take(node, to)
        };
        let pull = || self.turn.pull(first, || self.work(node, submitted));
        pull().or_else(|| if node.parents_can_push() { pull() } else { None })
    }

    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        let Some(submitted) = node.submitted() else { return self.blind.can_push(node, to) };
        self.note_room(node, to);
        let moved = self.progress(node, submitted);
        // What is here has its time. Something else of the parents' may go now.
        node.parents_can_push() || moved
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        let blind = self.blind.estimated_load(node);
        blind + load_here(node, self.len.load(Relaxed))
    }

    fn drain(&self) -> Vec<Task> {
        self.len.store(0, Release);
        let mut tasks = std::mem::take(&mut *self.arrived.lock());
        // The plan goes with them: they may come again.
        tasks.extend(std::mem::take(&mut *self.agenda.lock()).held.into_values());
        tasks.extend(self.blind.drain());
        tasks
    }

    fn describe(&self, report: &mut Report) {
        match self.len.load(Relaxed) {
            0 => self.blind.describe(report),
            tasks => report.fact("tasks", tasks),
        }
    }
}

#[cfg(test)]
mod tests;
