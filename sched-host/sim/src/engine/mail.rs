//! Messages from and to other ranks, on a node of a cluster: tasks that no worker executes.
//!
//! One that sends is ready when the value is computed; it is posted once the value is in the memory where it is at
//! home, and ends when the interface has sent it. One that receives is ready when nobody reads the earlier value any
//! more; it ends when the message has arrived, and a core has received it. A core without a task does that; where all
//! have one, the next kernel takes longer by that time.
//!
//! Where nodes share cores, neither kernels nor what is received end at a time that the node knows: it asks for work of
//! a core, and learns when that has ended.

use super::moves::Waiter;
use super::workers::Worker;
use super::{Action, Engine};
use sched_core::{Arch, WorkerId};
use sched_graph::TaskId;
use sched_graph::ranks::{MessageId, Role};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// See the [module](self).
pub(crate) struct Mail {
    /// What each task stands for.
    roles: Arc<[Role]>,
    /// For each task, the number of tasks of other ranks before it.
    passed_over: Vec<u32>,
    /// What these, and messages, take of the node's cores.
    costs: RankCosts,
    /// Time until which a core receives messages.
    receives_until: u64,
    /// Nanoseconds that the next kernel takes longer.
    debt: u64,
    /// Tasks that receive and are ready.
    awaited: HashSet<TaskId>,
    /// Tasks whose message came before they were ready.
    early: HashSet<TaskId>,
    /// Messages that are posted, and not taken yet.
    posted: VecDeque<MessageId>,
    /// Whether the node shares its cores with others.
    pub(crate) shares_cores: bool,
    /// Work for cores that is asked for, and not taken yet.
    asked: VecDeque<CoreWork>,
    /// End of the last task of any rank.
    pub(crate) until: u64,
}

/// What a core does for a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    /// The kernel of a worker's first flight.
    Kernel(WorkerId),
    /// It receives a message for a task.
    Receipt(TaskId),
}

/// Work for cores that nodes share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CoreWork {
    pub(crate) job: Job,
    /// Nanoseconds that it takes alone.
    pub(crate) nanos: u64,
    /// Number of cores that it has at once.
    pub(crate) cores: u32,
}

/// What a rank's cores do for the others.
#[derive(Clone, Copy)]
pub(crate) struct RankCosts {
    /// Nanoseconds to pass over a task of another rank.
    pub(crate) foreign_task: u64,
    /// Nanoseconds to receive a message.
    pub(crate) receive: u64,
    /// Nanoseconds for each byte of it.
    pub(crate) copy: f64,
}

impl Mail {
    pub(crate) fn new(roles: Arc<[Role]>, passed_over: Vec<u32>, costs: RankCosts) -> Mail {
        Mail {
            roles,
            passed_over,
            costs,
            receives_until: 0,
            debt: 0,
            awaited: HashSet::new(),
            early: HashSet::new(),
            posted: VecDeque::new(),
            shares_cores: false,
            asked: VecDeque::new(),
            until: 0,
        }
    }
}

impl Engine<'_> {
    /// The next message that is posted.
    pub(crate) fn take_posted(&mut self) -> Option<MessageId> {
        self.mail.as_mut()?.posted.pop_front()
    }

    /// The next work for cores that is asked for.
    pub(crate) fn take_asked(&mut self) -> Option<CoreWork> {
        self.mail.as_mut()?.asked.pop_front()
    }

    /// Whether kernels of workers of a class are work for cores that the node shares.
    pub(super) fn shares_cores(&self, class: usize) -> bool {
        self.mail.as_ref().is_some_and(|mail| mail.shares_cores)
            && self.backend.platform.classes[class].arch == Arch::CPU
    }

    /// Asks for work of shared cores.
    pub(super) fn ask(&mut self, work: CoreWork) {
        if let Some(mail) = &mut self.mail {
            mail.asked.push_back(work);
        }
    }

    /// A shared core has done some work.
    pub(crate) fn core_ended(&mut self, now: u64, job: Job) {
        self.set_now(now);
        self.events += 1;
        match job {
            Job::Kernel(worker) => self.end(worker),
            Job::Receipt(task) => self.deliver(task),
        }
    }

    /// End of the last task here.
    pub(crate) fn end_of_tasks(&self) -> u64 {
        self.end
    }

    /// End of the last task anywhere.
    pub(super) fn until(&self) -> u64 {
        self.mail.as_ref().map_or(self.end, |mail| mail.until.max(self.end))
    }

    /// Nanoseconds that the application takes for the tasks of other ranks before the task that it submits next.
    pub(super) fn passed_over(&self) -> u64 {
        let Some(mail) = &self.mail else { return 0 };
        mail.passed_over.get(self.tasks.next().index()).map_or(0, |count| u64::from(*count) * mail.costs.foreign_task)
    }

    /// Begins to send or receive, if that is what a ready task does, which may make others ready. Returns whether it
    /// was one.
    pub(super) fn takes_message(&mut self, task: TaskId) -> bool {
        let Some(mail) = &mut self.mail else { return false };
        match mail.roles[task.index()] {
            Role::Task(_) => return false,
            Role::Send(_) => self.send(task),
            Role::Receive(_) => {
                if mail.early.remove(&task) {
                    self.end_message(task);
                } else {
                    mail.awaited.insert(task);
                }
            }
        }
        true
    }

    /// Posts a message once its data is at home.
    fn send(&mut self, task: TaskId) {
        let missing = self.replicas.as_ref().zip(self.backend.accesses(task).get(0)).and_then(|(replicas, access)| {
            let home = replicas.home(access.data);
            (!replicas.is_valid(access.data, home)).then_some((access.data, home))
        });
        match missing {
            Some((data, home)) => self.request_for(Waiter::Send(task), data, home),
            None => self.post(task),
        }
    }

    pub(super) fn post(&mut self, task: TaskId) {
        if let Some(mail) = &mut self.mail
            && let Role::Send(message) = mail.roles[task.index()]
        {
            mail.posted.push_back(message);
        }
    }

    /// Ends a task whose message has been sent, or has arrived and is awaited, which may make others ready.
    fn end_message(&mut self, task: TaskId) {
        if let Some(replicas) = &mut self.replicas {
            for access in self.backend.accesses(task).iter().filter(|access| access.mode.writes()) {
                let home = replicas.home(access.data);
                replicas.write(access.data, home);
            }
        }
        self.changes += 1;
        self.end_without_worker(task);
    }

    /// A message has been sent by this task, or has arrived for it, at this time.
    pub(crate) fn message(&mut self, now: u64, task: TaskId) {
        self.set_now(now);
        self.events += 1;
        let has_idle = self.workers.iter().any(Worker::is_idle);
        let Some(mail) = &mut self.mail else { return };
        let RankCosts { receive, copy, .. } = mail.costs;
        let cost = receive + (copy * self.graph.bytes_of(self.graph.task(task)) as f64).round() as u64;
        if matches!(mail.roles[task.index()], Role::Send(_)) || cost == 0 {
            return self.deliver(task);
        }
        if mail.shares_cores {
            return self.ask(CoreWork { job: Job::Receipt(task), nanos: cost, cores: 1 });
        }
        mail.receives_until = mail.receives_until.max(now) + cost;
        mail.debt += if has_idle { 0 } else { cost };
        let at = mail.receives_until;
        self.plan(at, Action::Deliver(task));
    }

    /// Nanoseconds that a kernel which begins now takes longer, since its core has received messages.
    pub(super) fn take_debt(&mut self) -> u64 {
        self.mail.as_mut().map_or(0, |mail| std::mem::take(&mut mail.debt))
    }

    /// A message has been sent by this task, or received for it.
    pub(super) fn deliver(&mut self, task: TaskId) {
        let Some(mail) = &mut self.mail else { return };
        let receives = matches!(mail.roles[task.index()], Role::Receive(_));
        if receives && !mail.awaited.remove(&task) {
            mail.early.insert(task);
            return;
        }
        self.end_message(task);
        while let Some(task) = self.next_to_push() {
            self.push(task, None, None);
        }
        self.settle_unwanted();
    }
}
