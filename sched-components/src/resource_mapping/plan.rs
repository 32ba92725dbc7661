//! `plan`: looks ahead. It plans all submitted tasks, with their dependencies and data accesses; improves the plan by
//! search; and sends each task to its planned worker when its turn comes.
//!
//! [`Replan`](super::Replan) sees only the ready tasks. It cannot know that a fast worker should be reserved for a
//! coming task, nor that slow workers should start tasks now that are not urgent yet, because there will be too many of
//! them. Both follow from a plan that includes the submitted tasks ([`Node::submitted`]).
//!
//! **One plan** is made by HEFT. Tasks choose in the order of their upward ranks: each takes the worker on which it
//! ends first, possibly in a gap between tasks that chose before, and accounts for transfers from where the plan has
//! its data then. The result is then simulated event by event, with transfers that share the links of the machine
//! ([`Node::route`]), and allocations that follow each other; where the host does not know the links, one transfer at a
//! time leaves a memory and one arrives. Plans are compared by the resulting makespan.
//!
//! There are two predictions of transfers. In the cheap one, a link serves them one after the other. In the close one,
//! they share it at each moment. Plans that are promising by the cheap one are compared by the close one, except in
//! graphs of which only few plans can be tried for the number of their tasks. Compared by the cheap one alone, plans
//! were 4 to 8 % too optimistic where links are the bottleneck, and LU of 24 tiles on two islands of GPUs with slow
//! links between them took 20 % longer.
//!
//! **Another plan** is made by such a simulation itself: tasks choose when they become ready, and account for what
//! their transfers would wait for. It is a dispatcher such as `heft` is, with the whole graph's upward ranks. Some
//! plans charge transfers beyond the delay that they cause, since they delay others.
//!
//! **The search** varies the inputs of the decisions, not the decisions, so that each try is a valid plan. Four tries
//! out of five change how much later a kind of tasks (those of equal lengths everywhere) prefers to end over being
//! executed by some architecture: a few numbers, which shift hundreds of tasks at once. (Agullo and others gained much
//! by hand with one such rule: `trsm` far from the diagonal goes to the cores.) The other tries perturb the order of
//! the best plan, or that of the latest start times that it allows (justification), and let single tasks prefer or
//! avoid an architecture.
//!
//! **Owners.** Some of the first plans let the owner of the data compute ([`BlockCyclic`](super::BlockCyclic) has the
//! map and the reasons), and the search goes on from the best of all. Where many devices share links, such a plan moves
//! far less data than one that HEFT makes. How much a task must gain on the owner's workers to stay there is varied
//! too.
//!
//! **The plan is kept.** Each worker gets its tasks in the plan's order, and waits for an urgent task rather than
//! starting a long one that happens to be ready. If no sent task is under way, any ready task is sent. It plans again
//! when there are ready tasks outside the plan, and workers run out of planned tasks, one of them is idle and few tasks
//! are planned, or the number of newly submitted tasks reaches a quarter of those planned; when no task has been
//! submitted for a while (`lead`) and some are outside the plan; when half of a full `window` is done; and when no sent
//! task is under way and no ready task is in the plan.
//!
//! **The first plan waits** for the end of the submission, where the host says that it goes on
//! ([`Node::submission_goes_on`], in a simulation), as long as the wait is at most half a per cent of the time that the
//! tasks submitted so far take at least. Otherwise, idle workers would begin what comes first, which may not be what is
//! urgent. Small graphs get up to four times as many tries (`effort` is for 8192 tasks).
//!
//! Whoever ends a task pushes the tasks that waited for it one by one, in the order of their submission. Those that
//! come at once are known, so less urgent ones wait for them, and data is fetched in the order of urgency. That is so
//! under a virtual clock only: in a real run pushes take time, in which workers would be idle.
//!
//! **It learns what kernels take.** The ratios of real to expected lengths, by kind of task and worker, correct the
//! lengths of later plans, and the rest of a plan is planned again when they change. Where kernels deviate, it is also
//! planned again now and then; plans are compared in the mean of lengths drawn with the deviation seen so far; and a
//! worker whose next task is late takes a short one meanwhile. With lengths that deviate by 20 %, half of it errors of
//! the models, makespans are 3.1 % longer than without deviation, in the mean of 14 cases that no figure here was chosen
//! on (`tree-dmda` 4.1 %).
//!
//! The gains of each part, on two machines with 9 cores and 3 GPUs (the table is `tests/tests/starpu_better.rs`), as
//! the share of the gap between the best of StarPU's fifty policies and the bound that is closed, on average over
//! Cholesky of 4 to 20 tiles. (With LU of 8 tiles it is 43 % instead of 37 %.)
//!
//! | | closed |
//! |---|---|
//! | the best of the other policies here, most often `tree-replan` | 8 % |
//! | the best of three plans, by three kinds of upward rank | 21 % |
//! | 30, 100 and 300 plans | 25 %, 29 % and 37 % |
//! | 1000 and 3000 plans | 38 %, 38 % |
//! | 300, and data fetched as soon as a task is ready | 35 % |
//! | 300, and the rest planned again when a task is late by 1 % | 34 % |
//! | 300, with the links of the machine | 52 % |
//! | 300 without links, assuming no transfers, and 2/3, 3/2 of the expected ones | 28 %, 38 %, 38 % |
//!
//! Plans with owners change none of these: on such machines one of the others is best. On a machine with 4 cores and 8
//! GPUs on two PCI trees, Cholesky of 16 tiles takes 0.54 s with them and 0.93 s without.
//!
//! Data that is fetched as soon as a task is ready delays data that is needed sooner. Repairing a plan moves tasks away
//! from data that is already on its way to them. (The figures other than 52 % are from before the links were known.)
//!
//! **In a real run** a search takes time, in which workers may run out of tasks. It therefore ends after `time`, a
//! share of the best plan's makespan so far, and all searches together take about that share of one worker's time.
//! Tasks may arrive out of order if several threads submit. They may wait for something other than a task, such as an
//! access by the application, so ready tasks behind a full window are planned too. Measured lengths change all the
//! time, and the kinds of tasks with them, so preferences last only as long as the lengths do.
//!
//! If the host does not provide the submitted tasks, it behaves like `replan`, with that component's parameters.
//!
//! Sources: Topcuoglu, Hariri and Wu, *Performance-effective and low-complexity task scheduling for heterogeneous
//! computing* (2002); Agullo, Beaumont, Eyraud-Dubois and Kumar, *Are static schedules so bad? A case study on Cholesky
//! factorization* (2016); Valls, Ballestín and Quintanilla, *Justification and RCPSP: a technique that pays* (2005).

mod agenda;
mod burst;
mod coming;
mod execution;
mod experience;
mod flows;
mod network;
mod outlook;
mod samples;
mod schedule;
mod search;
mod under_way;

use super::completion::{Weights, least_loaded};
use super::replan::Replan;
use super::turn::Turn;
use crate::queue::{load_here, nanos};
use agenda::{Agenda, Limits};
use outlook::Lane;
use sched_core::*;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::*};

/// Plans all submitted tasks, keeps the best of many plans, and sends each task to its worker when its turn comes.
///
/// It stores tasks and never refuses one. It should stand above a queue for each worker: a child that is itself a
/// worker is woken, and takes the first task planned for it.
///
/// Tasks get a priority from their position in the plan before they are sent, so that the queues below keep its order.
///
/// One thread plans at a time. Other threads that arrive meanwhile do not wait: the planning thread checks again before
/// it ends. A plan takes time proportional to `effort`, to the number of tasks, and to the number of workers, within
/// `time`.
#[derive(Debug)]
pub struct Plan {
    weights: Weights,
    limits: Limits,
    /// Decides if the host does not provide the submitted tasks.
    blind: Replan,
    /// Tasks that the planning thread has not seen yet.
    arrived: Mutex<Vec<Task>>,
    /// Number of tasks in `arrived` and in `agenda`.
    len: AtomicUsize,
    turn: Turn,
    /// Owned by the thread that plans, which takes it out.
    agenda: Mutex<Agenda>,
    /// Tasks that have ended since the planning thread looked, with the nanoseconds that they took.
    ended: Mutex<Vec<(u64, u64)>>,
    /// By child: number of workers that asked for a task and have not got one.
    asking: Mutex<Vec<u32>>,
    /// Priority of the last task sent.
    order: AtomicI32,
}

const LEAD: &str = "how long before its planned start a task is sent, and its data fetched";
const EFFORT: &str = "number of plans tried when all planned tasks are new";
const TIME: &str = "time limit of the search, as a share of the plan's length; the first plan is always made";

impl Build for Plan {
    const INFO: Info = Info::new(
        "plan",
        Family::ResourceMapping,
        "Plans all submitted tasks, by the best of many plans, and sends each when its turn comes.",
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
                Param::int("window", 8192, "maximum number of tasks planned, in the order of submission")
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
    .needs_models()
    .hears_tasks();

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Plan {
            weights: Weights::read(params)?,
            limits: Limits {
                effort: u64::try_from(params.int("effort")?).unwrap_or(1),
                window: usize::try_from(params.int("window")?).unwrap_or(usize::MAX),
                time: params.float("time")?,
                lead: params.micros("lead")?.map_or(0, nanos),
            },
            blind: Replan::build(params)?,
            arrived: Mutex::default(),
            len: AtomicUsize::new(0),
            turn: Turn::default(),
            agenda: Mutex::default(),
            ended: Mutex::default(),
            asking: Mutex::default(),
            order: AtomicI32::new(i32::MAX),
        })
    }
}

impl Plan {
    /// Sends at most one task. Returns whether to continue, and whether the task was accepted.
    fn step(&self, node: Node<'_>, submitted: Submitted<'_>, agenda: &mut Agenda) -> (bool, bool) {
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
        match agenda.next(now, self.limits.lead, asks) {
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
        self.mark(node, &mut task, &agenda.lanes[lane]);
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

    /// Sets the fields of a task that the queues below use.
    fn mark(&self, node: Node<'_>, task: &mut Task, lane: &Lane) {
        task.set_predicted(node.expected_length(lane.worker, task).known());
        task.set_priority(self.order.fetch_sub(1, Relaxed));
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

    fn work(&self, node: Node<'_>, submitted: Submitted<'_>) -> bool {
        if self.len.load(Acquire) == 0 {
            return false;
        }
        let mut agenda = std::mem::take(&mut *self.agenda.lock());
        agenda.full.fill(false);
        agenda.learn(std::mem::take(&mut *self.ended.lock()), node.now().as_nanos());
        agenda.forget_ended(submitted);
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

    /// The task for a worker that pulls: the next one planned for it, or one that cannot be planned.
    fn take(&self, node: Node<'_>, submitted: Submitted<'_>, child: Child) -> Option<Task> {
        let mut agenda = std::mem::take(&mut *self.agenda.lock());
        let mut taken = None;
        if let Some((sequence, lane)) = agenda.next_for(node, child) {
            taken = agenda.take(sequence);
            if let Some(task) = &mut taken {
                self.mark(node, task, &agenda.lanes[lane]);
                self.note_sent(node, submitted, &mut agenda, sequence, lane);
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
            self.take(node, submitted, to)
        };
        let pull = || self.turn.pull(first, || self.work(node, submitted));
        pull().or_else(|| if node.parents_can_push() { pull() } else { None })
    }

    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        let Some(submitted) = node.submitted() else { return self.blind.can_push(node, to) };
        self.note_room(node, to);
        let moved = self.progress(node, submitted);
        // The tasks here are not urgent. The parents may have others to send now.
        node.parents_can_push() || moved
    }

    fn task_ended(&self, node: Node<'_>, execution: &Execution, end: &ExecutionEnd) {
        if !end.failed && node.submitted().is_some() {
            self.ended.lock().push((execution.task.sequence(), nanos(end.length)));
        }
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        let blind = self.blind.estimated_load(node);
        blind + load_here(node, self.len.load(Relaxed))
    }

    fn drain(&self) -> Vec<Task> {
        self.len.store(0, Release);
        let mut tasks = std::mem::take(&mut *self.arrived.lock());
        // The plan is discarded with them: they may come back.
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
