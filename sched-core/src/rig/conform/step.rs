//! The calls of a trial.

use super::dice::Dice;
use super::setting::{CODELETS, Setting};
use crate::info::{Arity, ComponentInfo};
use std::time::Duration;

/// A new task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct TaskSpec {
    pub(super) priority: i32,
    /// Number of the worker for whose architecture it has its only implementation; every architecture has one
    /// otherwise.
    pub(super) only_for: Option<usize>,
    pub(super) codelet: u32,
    pub(super) predicted: Option<Duration>,
    /// Number of the child that the application chooses.
    pub(super) chosen: usize,
    /// Number of the worker that it is at home with.
    pub(super) home: Option<usize>,
}

/// One call, or a change of the environment. Numbers are taken modulo what there is, so that every sequence of steps
/// can be executed in every setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// A new task is pushed, on behalf of nobody or of a worker.
    Push(TaskSpec, Option<usize>),
    /// A task that was refused, pulled or drained is pushed again.
    PushAgain(usize),
    /// A parent gets a new task.
    Give(usize, TaskSpec),
    Pull {
        child: usize,
        worker: usize,
    },
    CanPush {
        child: usize,
        worker: usize,
    },
    CanPull,
    End,
    Load,
    Describe,
    Notify,
    /// A worker leaves the context.
    Leave(usize),
    /// The worker that is not in the context joins it.
    Join,
    Drain,
    /// Another instance takes its place: it gets what this one leaves, and this one is drained and dropped.
    Replace,
    /// A worker executes a task that was pulled.
    Execute {
        task: usize,
        worker: usize,
        failed: bool,
    },
    /// A child takes this many more tasks.
    Room(usize, Option<usize>),
    /// Time passes.
    Wait(Duration),
}

/// A sequence of calls for a component.
pub(super) fn steps(info: &ComponentInfo, setting: &Setting, count: usize, dice: &mut Dice) -> Vec<Step> {
    (0..count).map(|_| step(info, setting, dice)).collect()
}

fn step(info: &ComponentInfo, setting: &Setting, dice: &mut Dice) -> Step {
    let (child, worker) = (dice.below(4), dice.below(4));
    let is_leaf = info.arity == Arity::Leaf;
    match dice.below(100) {
        0..32 => Step::Push(task(info, dice), dice.chance(40).then_some(worker)),
        32..38 => Step::PushAgain(dice.below(8)),
        38..46 if setting.parents > 0 => Step::Give(dice.below(2), task(info, dice)),
        38..62 => Step::Pull { child, worker },
        62..76 if !is_leaf => Step::CanPush { child, worker },
        62..80 => Step::CanPull,
        80..84 => Step::End,
        84..87 => Step::Load,
        87..89 if info.hears_tasks && dice.chance(80) => {
            Step::Execute { task: dice.below(8), worker, failed: dice.chance(20) }
        }
        87..89 => Step::Describe,
        // Only such components live on when workers join or leave.
        89..91 if info.keeps_state && dice.chance(80) => match dice.below(2) {
            0 => Step::Leave(worker),
            _ => Step::Join,
        },
        89..91 => Step::Notify,
        91..93 if dice.chance(50) => Step::Replace,
        91..93 => Step::Drain,
        93..97 if !is_leaf => Step::Room(child, dice.chance(50).then(|| dice.below(3))),
        _ => Step::Wait(Duration::from_micros(1 << dice.below(14))),
    }
}

fn task(info: &ComponentInfo, dice: &mut Dice) -> TaskSpec {
    // What is declared of tasks at home holds until one has a priority.
    let plain = if info.waits_at_home { 90 } else { 50 };
    TaskSpec {
        priority: if dice.chance(plain) { 0 } else { dice.below(5) as i32 - 2 },
        only_for: dice.chance(40).then(|| dice.below(4)),
        codelet: dice.below(CODELETS as usize) as u32,
        predicted: dice.chance(30).then(|| Duration::from_micros(5 + dice.below(50) as u64)),
        chosen: dice.below(4),
        home: (info.waits_at_home && dice.chance(80)).then(|| dice.below(4)),
    }
}

impl Step {
    /// Simpler ones.
    pub(super) fn simpler(&self) -> Vec<Step> {
        let plain = |task: &TaskSpec| TaskSpec { chosen: task.chosen, home: task.home, ..TaskSpec::default() };
        let mut all = match self {
            Step::Push(task, worker) => vec![
                Step::Push(TaskSpec::default(), None),
                Step::Push(plain(task), *worker),
                Step::Push(TaskSpec { only_for: None, ..task.clone() }, *worker),
                Step::Push(TaskSpec { priority: 0, codelet: 0, ..task.clone() }, *worker),
                Step::Push(TaskSpec { predicted: None, ..task.clone() }, *worker),
                Step::Push(task.clone(), None),
            ],
            Step::PushAgain(number) if *number > 0 => vec![Step::PushAgain(0)],
            Step::Give(parent, task) => vec![
                Step::Push(TaskSpec::default(), None),
                Step::Push(task.clone(), None),
                Step::Give(0, plain(task)),
                Step::Give(*parent, plain(task)),
            ],
            Step::Pull { child, worker } => {
                vec![Step::Pull { child: 0, worker: 0 }, Step::Pull { child: *child, worker: *worker % 2 }]
            }
            Step::CanPush { .. } => vec![Step::CanPush { child: 0, worker: 0 }],
            Step::Replace => vec![Step::Drain],
            Step::Execute { .. } => vec![Step::Execute { task: 0, worker: 0, failed: false }],
            _ => Vec::new(),
        };
        all.retain(|step| step != self);
        all
    }
}
