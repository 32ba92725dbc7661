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
//! links between them took 20 % longer. The close one goes by the starts of the cheap one, before which data is not
//! fetched early, and by those that tasks chose, which know of no other transfers; the better outcome counts.
//!
//! **Another plan** is made by such a simulation itself: tasks choose when they become ready, and account for what
//! their transfers would wait for. It is a dispatcher such as `heft` is, with the whole graph's upward ranks. Some
//! plans charge transfers beyond the delay that they cause, since they delay others. Where all workers are equal and
//! share a memory, a third is made by list scheduling: a worker that is free takes the most urgent ready task.
//!
//! **The order** in which tasks choose is that of one of three kinds of upward rank, by the mean, the least and the
//! harmonic mean of lengths. In tries, and in first plans of all but large graphs, it may also be depth first, where
//! what was made ready last comes first, or that of the submission. By ranks, all lines of tasks go on side by side,
//! and all that they need is allocated and fetched at once. Depth first, one line is done before the next begins, for
//! which that is done meanwhile: 32 lines on eight GPUs, which allocate one after the other, take 0.018 s for 0.028.
//!
//! **The search** varies the inputs of the decisions, not the decisions, so that each try is a valid plan. Four tries
//! out of five change how much later a kind of tasks (those of equal lengths everywhere) prefers to end over being
//! executed by some architecture: a few numbers, which shift hundreds of tasks at once. (Agullo and others gained much
//! by hand with one such rule: `trsm` far from the diagonal goes to the cores.) With more than 32 kinds, where nearly
//! each task may be one, tasks share a preference if the ratios of their lengths are equal, within an eighth of a
//! factor of two. The other tries perturb the order of the best plan, or that of the latest start times that it allows
//! (justification), and let single tasks prefer or avoid an architecture. On equal workers only the order makes a
//! difference, and all tries change that; on workers of one architecture with several memories, most tries let single
//! tasks go to other workers or change places. Where a search takes no time, graphs of up to 768 tasks are searched two
//! to sixteen times, by other random choices each, and the best plan counts.
//!
//! Many changes of preferences change no decision. The search remembers what became of each plan, and follows none twice.
//!
//! In a simulation a search takes no time, and has up to eight threads for graphs of at least 200 tasks: as many as the
//! thread that calls may use. A plan is the same with any number of them.
//!
//! **Owners.** Some of the first plans let the owner of the data compute ([`BlockCyclic`](super::BlockCyclic) has the
//! map and the reasons), and the search goes on from the best of all. Where many devices share links, such a plan moves
//! far less data than one that HEFT makes. How much a task must gain on the owner's workers to stay there is varied
//! too. Half as many owners move less still: where links are slow, that outweighs the devices that have nothing to do.
//!
//! **Memory is allocated** on a device in some time, one piece at a time in the machine ([`Route::allocation`]). What a
//! task reads gets memory when it is fetched, and what a task only writes when a worker takes the task, which is when
//! that begins the one before. In most plans that are made by their execution, tasks count with that when they choose;
//! in some they do not, since memory that was allocated once is there for the tasks that follow.
//!
//! **The plan is kept.** Each worker gets its tasks in the plan's order, and waits for an urgent task rather than
//! starting a long one that happens to be ready. If no sent task is under way, any ready task is sent. It plans again
//! when there are ready tasks outside the plan, and workers run out of planned tasks, one of them is idle and few tasks
//! are planned, or the number of newly submitted tasks reaches a quarter of those planned; when no task has been
//! submitted for a while (`lead`) and some are outside the plan; when half of a full `window` is done; and when no sent
//! task is under way and no ready task is in the plan.
//!
//! A task that was sent stays where it is. So under a virtual clock a worker gets each when it asks for one. In a real
//! run the answer takes time, and tasks are sent `lead` before their planned starts.
//!
//! **What is under way** when a plan is made has begun before it: transfers, the allocations that they wait for, and
//! tasks that were sent, whose ends follow from when they began or when their data will be there. Where tasks begin
//! late by 2 % of the plan's length, the rest is planned again, from the present plan on. Where planning takes no time,
//! it is also searched on after each quarter of its tasks: the same tries go farther with fewer of them.
//!
//! **Where not all data fits** into a memory ([`Node::memory_capacity`]), plans are compared with what is evicted: the
//! replicas that were used least recently, and those that are the only ones are written home first. Tasks get memory in
//! the order in which workers take them, and what is fetched ahead evicts nothing. In some plans that are made by their
//! execution a worker takes the task of which the least data is missing, as `dmdar` does. That the host evicts in this
//! order, and that a worker of a device takes a task while it executes another, is assumed; in a simulation it is so.
//!
//! **The first plan waits** for the end of the submission, where the host says that it goes on
//! ([`Node::submission_goes_on`], in a simulation), as long as the wait is at most half a per cent of the time that the
//! tasks submitted so far take at least. Otherwise, idle workers would begin what comes first, which may not be what is
//! urgent. Small graphs get up to four times as many tries (`effort` is for 8192 tasks).
//!
//! Whoever ends a task pushes the tasks that waited for it one by one, in the order of their submission. Those that
//! come at once are known, so less urgent ones wait for them, and data is fetched in the order of urgency. Where nothing
//! else is under way, a worker is woken to look, in case what should come does not. That is so under a virtual clock
//! only: in a real run pushes take time, in which workers would be idle.
//!
//! **It learns what kernels take.** The ratios of real to expected lengths, by kind of task and worker, correct the
//! lengths of later plans, and the rest of a plan is planned again when they change. Where kernels deviate, it is also
//! planned again after a sixteenth of its tasks, and after each of fewer than 128; plans are compared in the mean of
//! lengths drawn with the deviation seen so far; and a worker whose next task is late takes a short one meanwhile. Most
//! tries let single tasks move then. A plan is rehearsed with all draws side by side, which takes a hundredth of an
//! execution event by event; so a try is made of up to eight moves, out of 64, that make the plan better in a rehearsal
//! one after the other, before it is executed. With lengths that deviate by 20 %, half of it errors of the models,
//! makespans are 2.2 % longer than without deviation in the mean of 163 cases of up to 130 tasks on 25 machines
//! (`tree-dmda` 2.7 %), 4.8 % in that of 99 others of up to 960 tasks on 13 of these (6.3 %), and 2.7 % in that of 89
//! factorisations of 16 to 32 tiles (2.6 %). On two groups of GPUs with a slow link between them it loses more (6.8 and
//! 3.3 %, 26 cases); most of that it would also lose if it knew what each kernel takes (6.8 of 8.2 % in 17 of them).
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
//! **Equal workers in a real run.** Where all workers are of one architecture and one memory and can execute all
//! tasks, and time passes, nothing is planned: there only the order can gain, and it matters late. A worker takes the
//! task that it made ready last, and what is urgent goes first: what has a path to the end that is half as long as the
//! rest takes on all workers. On two cores, workers that kept to a plan lost time in deciding (10 µs a task), and
//! their kernels up to 7 % in caches, since neighbours in a plan share no data. Simulated without deviations, this
//! order is 0.4 % longer than the plan (`eager` 2.2 %, `work-stealing` 2.3 %; 66 cases on 2, 4 and 8 cores, with and
//! without priorities). Lengths are not needed for that, so tasks that a model needs measured may come too, by
//! `unmeasured` of [`PerfmodelSelect`](crate::special_purpose::PerfmodelSelect). With a task that not all workers can
//! execute, all are planned from then on.
//!
//! If the host does not provide the submitted tasks, it behaves like `replan`, with that component's parameters.
//!
//! Sources: Topcuoglu, Hariri and Wu, *Performance-effective and low-complexity task scheduling for heterogeneous
//! computing* (2002); Agullo, Beaumont, Eyraud-Dubois and Kumar, *Are static schedules so bad? A case study on Cholesky
//! factorization* (2016); Valls, Ballestín and Quintanilla, *Justification and RCPSP: a technique that pays* (2005);
//! Blelloch, Gibbons and Matias, *Provably efficient scheduling for languages with fine-grained parallelism* (1999).

mod agenda;
mod burst;
mod coming;
mod dice;
mod execution;
mod experience;
mod flows;
mod idle;
mod kinds;
mod list;
mod network;
mod outlook;
mod planner;
mod pool;
mod replicas;
mod samples;
mod schedule;
mod search;
mod stop;
mod tried;
mod under_way;

use super::completion::Weights;
use super::replan::Replan;
use crate::LARGEST;
use crate::queue::{load_here, nanos};
use agenda::Limits;
use planner::Planner;
use pool::Pool;
use sched_core::*;
use std::sync::OnceLock;

/// Plans all submitted tasks, keeps the best of many plans, and sends each task to its worker when its turn comes.
///
/// It stores tasks and never refuses one. It should stand above a queue for each worker: a child that is itself a
/// worker is woken, and takes the first task planned for it.
///
/// Tasks get a priority from their position in the plan before they are sent, so that the queues below keep its order.
///
/// One thread plans at a time, with others of its own in a simulation, and no thread of the host waits for it. A plan
/// takes time proportional to `effort`, to the number of tasks, and to the number of workers that it uses, within
/// `time`.
#[derive(Debug)]
pub struct Plan {
    limits: Limits,
    /// Decides if the host does not provide the submitted tasks.
    blind: Replan,
    planner: Planner,
    /// Holds the tasks while nothing is planned, because all workers are equal and time passes.
    pool: OnceLock<Option<Pool>>,
}

const LEAD: &str = "how long before its planned start the data of a task is fetched, and in a real run the task sent";
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
                Param::float("time", 0.02, TIME).at_least(0).at_most(LARGEST),
                Param::float("lead", 20_000.0, LEAD).at_least(0).at_most(LARGEST).unit("µs"),
                super::replan::SPARE,
            ]
        },
    )
    .lookahead(30)
    .may_refuse(false)
    .needs_models()
    .hears_tasks();

    fn build(params: &Params) -> Result<Self, BuildError> {
        let limits = Limits {
            effort: u64::try_from(params.int("effort")?).unwrap_or(1),
            window: usize::try_from(params.int("window")?).unwrap_or(usize::MAX),
            time: params.float("time")?,
            lead: params.micros("lead")?.map_or(0, nanos),
        };
        Ok(Plan {
            limits,
            blind: Replan::build(params)?,
            planner: Planner::new(Weights::read(params)?, limits),
            pool: OnceLock::new(),
        })
    }
}

impl Plan {
    /// Number of tasks held.
    fn len(&self) -> usize {
        self.planner.len() + self.pool.get().into_iter().flatten().map(Pool::len).sum::<usize>()
    }

    /// Where the tasks are if the host provides the submitted ones, and nothing is planned.
    fn pool(&self, node: Node<'_>) -> Option<&Pool> {
        let pool = self.pool.get_or_init(|| node.submitted().and_then(|_| Pool::new(node)));
        pool.as_ref().filter(|pool| !pool.is_closed())
    }

    /// Stores a task, which goes into the pool by `add`. With one that not every worker can execute it matters who gets
    /// which, so that all are planned.
    fn keep(&self, node: Node<'_>, task: Task, add: impl FnOnce(&Pool, Task) -> Result<(), Task>) -> Push {
        let (task, others) = match self.pool(node) {
            Some(pool) => match add(pool, task) {
                Ok(()) => {
                    node.children_can_pull();
                    return Ok(());
                }
                Err(task) => (task, pool.drain(true)),
            },
            None => (task, Vec::new()),
        };
        let mut tasks = others.into_iter().chain([task]);
        let Some(submitted) = node.submitted() else {
            return tasks.try_for_each(|task| self.blind.push_task(node, task));
        };
        self.planner.push(node, submitted, tasks);
        Ok(())
    }

    /// Sends the next task for the requesting worker, where nothing is planned, to a child that has room. Returns
    /// whether there was one that the child accepted.
    fn send_from_pool(&self, node: Node<'_>, pool: &Pool, to: Child) -> bool {
        let Some(task) = pool.next(node, self.limits) else { return false };
        let Err(Refused { task, .. }) = node.push_to(to, task) else { return true };
        // Another worker may have found nothing meanwhile.
        let _ = self.keep(node, task, Pool::put_back);
        false
    }
}

impl Component for Plan {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.keep(node, task, |pool, task| pool.push(node, task))
    }

    fn pull_task(&self, node: Node<'_>, to: Child) -> Option<Task> {
        if let Some(pool) = self.pool(node) {
            let take = || pool.next(node, self.limits);
            return take().or_else(|| if node.parents_can_push() { take() } else { None });
        }
        let Some(submitted) = node.submitted() else { return self.blind.pull_task(node, to) };
        self.planner.note_room(node, to);
        let pull = || self.planner.pull(node, submitted, to);
        pull().or_else(|| if node.parents_can_push() { pull() } else { None })
    }

    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        if let Some(pool) = self.pool(node) {
            let send = || self.send_from_pool(node, pool, to);
            return send()
                || (node.parents_can_push() && {
                    send();
                    true
                });
        }
        let Some(submitted) = node.submitted() else { return self.blind.can_push(node, to) };
        self.planner.note_room(node, to);
        let moved = self.planner.progress(node, submitted);
        // The tasks here are not urgent. The parents may have others to send now.
        node.parents_can_push() || moved
    }

    fn task_started(&self, node: Node<'_>, execution: &Execution) {
        if self.pool(node).is_none() && node.submitted().is_some() {
            self.planner.note_began(node, execution.task);
        }
    }

    fn task_ended(&self, node: Node<'_>, execution: &Execution, end: &ExecutionEnd) {
        if let Some(pool) = self.pool(node) {
            pool.note_ended(node, nanos(end.length));
        } else if !end.failed && node.submitted().is_some() {
            self.planner.note_ended(execution.task, end.length);
        }
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        let blind = self.blind.estimated_load(node);
        blind + load_here(node, self.len())
    }

    fn drain(&self) -> Vec<Task> {
        let mut tasks = self.planner.drain();
        tasks.extend(self.pool.get().into_iter().flatten().flat_map(|pool| pool.drain(false)));
        tasks.extend(self.blind.drain());
        tasks
    }

    fn describe(&self, report: &mut Report) {
        match self.len() {
            0 => self.blind.describe(report),
            tasks => report.fact("tasks", tasks),
        }
    }
}

#[cfg(test)]
mod tests;
