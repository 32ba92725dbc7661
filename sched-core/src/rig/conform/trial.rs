//! One trial: a sequence of calls in one environment, and what is wrong with the answers.

mod end;
mod succession;

use super::super::ledger::{Breach, Holder};
use super::super::{Hop, Rig};
use super::declared;
use super::journal::Journal;
use super::property::Property;
use super::setting::Setting;
use super::step::{Step, TaskSpec};
use crate::abi::ComponentObject;
use crate::abi::wire::NO_ID;
use crate::component::Refusal;
use crate::estimate::Time;
use crate::info::{Arity, ComponentInfo};
use crate::node::{Child, Parent};
use crate::params::Value;
use crate::task::{Task, TaskId};
use crate::workers::{WorkerId, WorkerSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What is executed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Trial {
    pub(super) setting: Setting,
    /// The parameters that differ from their defaults.
    pub(super) params: Vec<(String, Value)>,
    pub(super) steps: Vec<Step>,
    /// How the component is emptied at the end.
    pub(super) settles: Settles,
}

/// How the component is emptied at the end of a trial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Settles {
    /// Workers pull, and children have room.
    Both,
    /// Workers pull.
    Pulls,
    /// Children have room.
    Pumps,
    /// Not at all: the drain finds what there is.
    Not,
}

/// A property that does not hold, and why.
pub(super) type Flaw = (Property, String);

/// The answer to a call.
pub(super) enum Answer {
    Pushed(TaskId, Result<(), Refusal>),
    Pulled(Option<TaskId>),
    Told(bool),
    End(Time),
    Load(f64),
    Drained(Vec<TaskId>),
    Left(Option<Vec<u8>>),
    Nothing,
}

/// A call to be made.
type Made = Box<dyn FnOnce(&Rig) -> Answer>;

/// A call that was made.
pub(super) struct Call<'a> {
    pub(super) step: &'a Step,
    pub(super) answer: Answer,
    /// Hops of the component meanwhile.
    pub(super) hops: Vec<Hop>,
    /// Tasks that the component held before.
    pub(super) held_before: Vec<TaskId>,
    /// Whether a worker was woken.
    pub(super) woke: bool,
    /// The task that the worker which calls has pushed in the call before, if none ever had a priority.
    pub(super) comes_back: Option<TaskId>,
}

/// Builds another instance of the component of a trial.
type Again<'a> = dyn Fn() -> Result<ComponentObject, String> + 'a;

/// A trial that is being executed.
pub(super) struct Running<'a> {
    pub(super) info: &'a ComponentInfo,
    /// As of now: workers may leave the context and join it.
    pub(super) setting: Setting,
    pub(super) rig: Rig,
    again: &'a Again<'a>,
    /// What the component has left to its successor.
    left: Option<Vec<u8>>,
    /// Whether every parameter that bounds its storage is zero.
    pub(super) is_unbounded: bool,
    /// Whether a task was pushed to it so far.
    pub(super) was_pushed: bool,
    /// Whether a task had a priority, and the task that a worker pushed in the last call, otherwise.
    pub(super) had_priority: bool,
    newest: Option<(WorkerId, TaskId)>,
    /// The workers that have pushed tasks which are at home nowhere else, and which they can execute.
    pushed_by: BTreeMap<TaskId, WorkerId>,
    /// Whether workers left the context or joined it.
    pub(super) changed: bool,
    /// Whether it asked a parent for tasks since the component is being emptied.
    asked: bool,
    /// Faults of the rig that were reported. Calls after one say nothing: the component is not itself any longer.
    seen: usize,
    journal: &'a Journal<'a>,
    /// Flaws that are known: the trial goes on where it meets them.
    known: &'a BTreeSet<Property>,
}

impl Running<'_> {
    /// The first flaw that is not known.
    fn unknown(&self, flaw: Flaw) -> Option<Flaw> {
        (!self.known.contains(&flaw.0)).then_some(flaw)
    }

    /// Executes the steps, then empties the component and drains it.
    pub(super) fn run(mut self, trial: &Trial) -> Option<Flaw> {
        for step in &trial.steps {
            if let Some(flaw) = self.step(step) {
                return Some(flaw);
            }
        }
        let flaw = self.settle(trial.settles).or_else(|| self.step(&Step::Drain)).or_else(|| self.logged());
        let dropped = self.drop_component();
        flaw.or(dropped)
    }

    fn task(&self, spec: &TaskSpec) -> TaskId {
        let workers = self.setting.workers();
        let only_for = spec.only_for.and_then(|number| workers.get(number % workers.len().max(1)));
        let mut able: Vec<u64> = (0..).zip(&self.setting.children).map(|(number, _)| number).collect();
        let mut task = self.rig.task().priority(spec.priority).codelet(spec.codelet);
        if let Some(worker) = only_for {
            task = task.archs([self.setting.arch(*worker)]);
            let suits = |child: &u64| {
                let arch = self.setting.arch(*worker);
                self.setting.workers_of(*child as usize).iter().any(|other| self.setting.arch(*other) == arch)
            };
            able.retain(suits);
        } else {
            able.retain(|child| !self.setting.workers_of(*child as usize).is_empty());
        }
        if let Some(length) = spec.predicted {
            task = task.predicted(length);
        }
        if let Some(chosen) = able.get(spec.chosen % able.len().max(1)) {
            task = task.sched_data(*chosen);
        }
        if let Some(home) = spec.home.and_then(|number| workers.get(number % workers.len().max(1))) {
            task = task.home(*home);
        }
        task.width(self.setting.archs.len() as u16).make()
    }

    /// Makes one call and judges it.
    pub(super) fn step(&mut self, step: &Step) -> Option<Flaw> {
        if self.seen > 0 {
            return None;
        }
        self.journal.steps.borrow_mut().push(step.clone());
        self.arrange(step);
        if *step == Step::Replace {
            return self.replace();
        }
        let (words, call) = self.prepared(step)?;
        self.call(step, &words, call)
    }

    /// Makes one call of a step and judges it.
    fn call(&mut self, step: &Step, words: &str, call: Made) -> Option<Flaw> {
        if self.seen > 0 {
            return None;
        }
        self.journal.step(words);
        self.rig.host.changing.lock().awake = WorkerSet::new();
        let (_, _) = (self.rig.woken(), self.rig.hops());
        self.rig.host.called_back.store(false, Relaxed);
        let held_before = self.rig.held();
        let comes_back =
            self.newest.take().filter(|(worker, _)| self.puller(step) == Some(*worker)).map(|(_, task)| task);
        let answer = call(&self.rig);
        self.journal.answer(&shown(&answer));
        if matches!(answer, Answer::Drained(_)) {
            // Without a node, a drain cannot note that nothing is queued any longer.
            self.rig.host.changing.lock().queued = 0;
        }
        let hops = self.rig.hops();
        let woke = !self.rig.woken().is_empty();
        if matches!(answer, Answer::Pushed(..))
            || hops.iter().any(|hop| matches!(hop, Hop::ParentsCanPush { sent: true }))
        {
            self.was_pushed = true;
        }
        self.asked |= hops.iter().any(|hop| matches!(hop, Hop::ParentsCanPush { .. } | Hop::PullFrom { .. }));
        self.note_newest(step, &answer);
        if let Answer::Left(state) = &answer {
            self.left.clone_from(state);
        }
        let call = Call { step, answer, hops, held_before, woke, comes_back };
        self.judge(&call)
    }

    /// The worker that pulls in this step for itself alone.
    pub(super) fn puller(&self, step: &Step) -> Option<WorkerId> {
        let Step::Pull { child, worker } = step else { return None };
        let child = self.child_of(*child);
        let alone =
            self.setting.leaf.is_none() && self.setting.children.get(child).is_some_and(|child| child.is_worker);
        self.worker_of(child, *worker).filter(|_| alone).map(WorkerId)
    }

    /// The worker with which a task is at home.
    pub(super) fn home(&self, task: TaskId) -> Option<WorkerId> {
        self.pushed_by.get(&task).copied().or_else(|| self.rig.read(task, Task::home))
    }

    /// Notes a task that a worker has pushed and can execute itself, if none had a priority.
    fn note_newest(&mut self, step: &Step, answer: &Answer) {
        let Answer::Pushed(task, taken) = answer else { return };
        self.had_priority |= self.rig.read(*task, |task| task.priority()) != 0;
        self.pushed_by.remove(task);
        if let Step::Push(_, Some(number)) = step
            && !self.had_priority
            && taken.is_ok()
        {
            let worker = WorkerId(self.pusher(*number));
            let comes_back =
                |task: &Task| self.rig.host.executable(worker, task) && task.home().is_none_or(|home| home == worker);
            let is_able = self.rig.read(*task, comes_back);
            self.newest = (is_able && self.rig.held().contains(task)).then_some((worker, *task));
            self.pushed_by.extend(self.newest.map(|(worker, task)| (task, worker)));
        }
    }

    fn child_of(&self, number: usize) -> usize {
        if self.setting.leaf.is_some() { 0 } else { number % self.setting.children.len().max(1) }
    }

    fn worker_of(&self, child: usize, number: usize) -> Option<u32> {
        let workers = self.setting.workers_of(child);
        (!workers.is_empty()).then(|| workers[number % workers.len()])
    }

    fn pusher(&self, number: usize) -> u32 {
        let workers = self.setting.workers();
        workers[number % workers.len()]
    }

    /// Changes the environment, if the step does.
    fn arrange(&mut self, step: &Step) {
        match step {
            Step::Give(parent, spec) if self.setting.parents > 0 => {
                let (parent, task) = ((parent % self.setting.parents) as u32, self.task(spec));
                self.rig.give_parent(Parent(parent), task);
                self.journal.note(&format!("parent {parent} gets {}", self.described(task)));
            }
            Step::Room(child, room) if !self.setting.children.is_empty() => {
                let child = child % self.setting.children.len();
                if !self.setting.children[child].is_worker {
                    self.rig.set_room(Child(child as u32), *room);
                    let words = room.map_or("any number of".to_owned(), |room| room.to_string());
                    self.journal.note(&format!("child {child} has room for {words} more"));
                }
            }
            Step::Leave(number) => {
                if let Some(worker) = self.setting.leaves(*number) {
                    self.setting.outside = Some(worker);
                    self.set_context();
                    self.journal.note(&format!("worker {worker} leaves the context"));
                }
            }
            Step::Join => {
                if let Some(worker) = self.setting.outside.take() {
                    self.set_context();
                    self.journal.note(&format!("worker {worker} joins the context"));
                }
            }
            Step::Wait(time) => {
                let now = self.rig.host.now.load(Relaxed);
                self.rig.set_now(Time::from_nanos(now) + *time);
            }
            _ => {}
        }
    }

    /// Lends the component the workers that are in the context by now.
    fn set_context(&mut self) {
        self.changed = true;
        let workers = 0..self.setting.archs.len() as u32;
        let scene = &mut self.rig.host.scene;
        scene.in_context = Some(workers.filter(|worker| Some(*worker) != self.setting.outside).map(WorkerId).collect());
        scene.arrange();
    }

    /// The words of a step, and the call; `None` where it makes no sense, or changes the environment only.
    fn prepared(&self, step: &Step) -> Option<(String, Made)> {
        Some(match step {
            Step::Push(spec, requester) => {
                let task = self.task(spec);
                let requester = requester.map_or(NO_ID, |number| self.pusher(number));
                (format!("push {}", self.described(task)), Box::new(move |rig| push(rig, requester, task)))
            }
            Step::PushAgain(number) => {
                let mine = self.rig.host.ledger.held_by(Holder::Test);
                let task = *mine.get(number % mine.len().max(1))?;
                (format!("push {task} again"), Box::new(move |rig| push(rig, NO_ID, task)))
            }
            Step::Pull { child, worker } => {
                let child = self.child_of(*child);
                let worker = self.worker_of(child, *worker)?;
                let words = match self.setting.leaf {
                    Some(_) => format!("pull for worker {worker}"),
                    None => format!("pull for child {child}, worker {worker}"),
                };
                (words, Box::new(move |rig| Answer::Pulled(rig.pull_for(worker, Child(child as u32)))))
            }
            Step::CanPush { child, worker } => {
                let child = self.child_of(*child);
                let worker = self.worker_of(child, *worker).filter(|_| self.setting.leaf.is_none())?;
                let words = format!("can_push: child {child} has room, for worker {worker}");
                (words, Box::new(move |rig| Answer::Told(rig.can_push_for(worker, Child(child as u32)))))
            }
            Step::CanPull => ("can_pull: there is work above".to_owned(), Box::new(|rig| Answer::Told(rig.can_pull()))),
            Step::End => ("estimated_end".to_owned(), Box::new(|rig| Answer::End(rig.estimated_end()))),
            Step::Load => ("estimated_load".to_owned(), Box::new(|rig| Answer::Load(rig.estimated_load()))),
            Step::Describe => ("describe".to_owned(), Box::new(|rig| nothing(|| _ = rig.describe()))),
            Step::Notify | Step::Leave(_) | Step::Join => {
                ("notify_change_workers".to_owned(), Box::new(|rig| nothing(|| rig.notify_change_workers())))
            }
            Step::Drain => ("drain".to_owned(), Box::new(|rig| Answer::Drained(rig.drain()))),
            Step::Execute { task, worker, failed } => {
                let (mine, workers) = (self.rig.host.ledger.held_by(Holder::Test), self.setting.workers());
                let task = *mine.get(task % mine.len().max(1))?;
                let worker = WorkerId(*workers.get(worker % workers.len().max(1))?);
                let failed = *failed;
                let how = if failed { "fails to execute" } else { "executes" };
                let execute = move |rig: &Rig| {
                    rig.task_started(task, worker);
                    rig.task_ended(task, worker, Duration::from_micros(10), failed);
                };
                (format!("{worker} {how} {task}"), Box::new(move |rig| nothing(|| execute(rig))))
            }
            Step::Replace | Step::Give(..) | Step::Room(..) | Step::Wait(_) => return None,
        })
    }

    fn described(&self, task: TaskId) -> String {
        let mut words = task.to_string();
        let (priority, archs, predicted, home) =
            self.rig.read(task, |task| (task.priority(), task.archs(), task.predicted(), task.home()));
        if priority != 0 {
            words += &format!(", priority {priority}");
        }
        if archs.bits() != u32::MAX {
            let names: Vec<String> = archs.iter().map(|arch| arch.to_string()).collect();
            words += &format!(", for {}", names.join(" and "));
        }
        if let Some(length) = predicted {
            words += &format!(", predicted {length:?}");
        }
        if let Some(home) = home {
            words += &format!(", at home with {home}");
        }
        words
    }

    fn judge(&mut self, call: &Call<'_>) -> Option<Flaw> {
        let faults = self.rig.host.ledger.faults_from(self.seen);
        self.seen += faults.len();
        // A panic unwinds, which drops what the call had in its hands.
        let panicked = faults.iter().find(|(breach, _)| *breach == Breach::Panicked);
        if let Some((_, fault)) = panicked {
            let held = fault.contains("while holding a lock");
            return self.unknown((if held { Property::Locks } else { Property::Panics }, fault.clone()));
        }
        let of = |breach: Breach| match breach {
            Breach::Dropped | Breach::NotHeld => Property::Tasks,
            Breach::OtherRefused => Property::Refusals,
            Breach::HadRoom => Property::Room,
            Breach::NoNeighbour => Property::Neighbours,
            Breach::Unable => Property::Able,
            Breach::Kept => Property::Drain,
            Breach::Panicked => Property::Panics,
        };
        if !faults.is_empty() {
            return faults.into_iter().find_map(|(breach, fault)| self.unknown((of(breach), fault)));
        }
        // Who stores nothing may have no room for another reason, such as tasks that it has passed on.
        if self.info.stores && !self.rig.has_room() && self.rig.held().is_empty() {
            let fault = "the component reports no room, and holds no task: nobody pushes to it any more".to_owned();
            return self.unknown((Property::Room, fault));
        }
        declared::flaws(self, call).into_iter().find_map(|flaw| self.unknown(flaw))
    }
}

fn push(rig: &Rig, requester: u32, task: TaskId) -> Answer {
    let had_room = rig.has_room();
    let answer = rig.push_for(requester, task);
    if answer.is_ok() && !had_room {
        rig.host.ledger.fault(Breach::HadRoom, format!("the component took {task} where it had reported no room"));
    }
    Answer::Pushed(task, answer)
}

fn nothing(call: impl FnOnce()) -> Answer {
    call();
    Answer::Nothing
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Pushed(_, Ok(())) => "taken".to_owned(),
        Answer::Pushed(_, Err(why)) => format!("refused: {why}"),
        Answer::Pulled(Some(task)) => task.to_string(),
        Answer::Pulled(None) => "none".to_owned(),
        Answer::Told(told) => told.to_string(),
        Answer::End(end) => end.to_string(),
        Answer::Load(load) => load.to_string(),
        Answer::Drained(tasks) if tasks.is_empty() => "no tasks".to_owned(),
        Answer::Drained(tasks) => tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        Answer::Left(Some(state)) => format!("{} bytes", state.len()),
        Answer::Left(None) => "nothing".to_owned(),
        Answer::Nothing => String::new(),
    }
}

impl Trial {
    /// Executes it. Gives the first flaw that is not known, and whether the end was not reached.
    pub(super) fn run(
        &self,
        examined: &super::Examined<'_>,
        journal: &Journal<'_>,
        known: &BTreeSet<Property>,
    ) -> Option<Flaw> {
        journal.trial(&self.setting_words());
        journal.step("build");
        let component = match examined.build(&self.params) {
            Ok(component) => component,
            // Values may contradict each other; the defaults may not.
            Err(_) if !self.params.is_empty() => return None,
            Err(why) => return Some((Property::Builds, why)).filter(|_| !known.contains(&Property::Builds)),
        };
        journal.answer("");
        let info = examined.info;
        let is_zero = |name: &String| match self.params.iter().find(|(known, _)| known == name) {
            Some((_, value)) => is_zero(value),
            None => info.param(name).is_none_or(|param| is_zero(&param.default)),
        };
        let running = Running {
            info,
            setting: self.setting.clone(),
            rig: self.setting.rig(component),
            again: &|| examined.build(&self.params),
            left: None,
            is_unbounded: info.stores && info.bounds.iter().all(is_zero),
            was_pushed: false,
            had_priority: false,
            newest: None,
            pushed_by: BTreeMap::new(),
            changed: false,
            asked: false,
            seen: 0,
            journal,
            known,
        };
        running.run(self)
    }

    /// Parameters and environment, in one line.
    pub(super) fn setting_words(&self) -> String {
        let params: String = self.params.iter().map(|(name, value)| format!("{name}={value}; ")).collect();
        format!("{params}{}", self.setting)
    }

    /// How the end suits the component.
    pub(super) fn settles(info: &ComponentInfo, number: usize) -> Settles {
        let is_reservoir = info.stores && info.arity != Arity::Leaf;
        match number {
            _ if !is_reservoir && number < 3 => Settles::Both,
            0 => Settles::Both,
            1 if !info.pushes_on_pull => Settles::Pulls,
            2 if !info.pulled_only => Settles::Pumps,
            3 => Settles::Not,
            _ => Settles::Both,
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::Bool(flag) => !flag,
        Value::Text(_) => true,
    }
}
