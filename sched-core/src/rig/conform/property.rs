//! What a component is examined for.

use crate::info::ComponentInfo;
use std::fmt;

/// A property that every component has, or that one declares in its [`Info`](crate::Info).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Property {
    /// The constructor accepts the defaults.
    Builds,
    /// Every call comes back.
    Returns,
    /// No call panics.
    Panics,
    /// No lock is held across a hop.
    Locks,
    /// Tasks are neither dropped nor made up.
    Tasks,
    /// A refused task goes back itself.
    Refusals,
    /// Who reports that it has no room refuses.
    Room,
    /// Children and parents that are named exist.
    Neighbours,
    /// Workers get what they can execute.
    Able,
    /// A drain gives up everything.
    Drain,
    /// Storage and refusals are as declared.
    Storage,
    /// A task that waits wakes a worker.
    Wakes,
    /// Tasks move.
    Flow,
    /// Ends and loads are numbers, and asking has no effect.
    Estimates,
    /// A choice by ends is predicted.
    Predictions,
    /// Equal calls have equal results.
    Repeats,
    /// The log is readable.
    Log,
    /// [`Info::forwards_pull`](crate::Info::forwards_pull).
    ForwardsPull,
    /// [`Info::forwards_push`](crate::Info::forwards_push).
    ForwardsPush,
    /// [`Info::wakes_workers`](crate::Info::wakes_workers).
    WakesWorkers,
    /// [`Info::pulled_only`](crate::Info::pulled_only).
    PulledOnly,
    /// [`Info::empty_until_pushed`](crate::Info::empty_until_pushed).
    EmptyUntilPushed,
    /// [`Info::pushes_on_pull`](crate::Info::pushes_on_pull).
    PushesOnPull,
    /// [`Info::end_is_noted`](crate::Info::end_is_noted).
    EndIsNoted,
    /// [`Info::keeps_state`](crate::Info::keeps_state).
    KeepsState,
    /// [`Info::newest_comes_back`](crate::Info::newest_comes_back).
    NewestComesBack,
    /// [`Info::waits_at_home`](crate::Info::waits_at_home).
    WaitsAtHome,
    /// Several threads may call it.
    Threads,
}

impl Property {
    /// All, in the order of a report.
    pub const ALL: [Property; 28] = [
        Property::Builds,
        Property::Returns,
        Property::Panics,
        Property::Locks,
        Property::Tasks,
        Property::Refusals,
        Property::Room,
        Property::Neighbours,
        Property::Able,
        Property::Drain,
        Property::Storage,
        Property::Wakes,
        Property::Flow,
        Property::Estimates,
        Property::Predictions,
        Property::Repeats,
        Property::Log,
        Property::ForwardsPull,
        Property::ForwardsPush,
        Property::WakesWorkers,
        Property::PulledOnly,
        Property::EmptyUntilPushed,
        Property::PushesOnPull,
        Property::EndIsNoted,
        Property::KeepsState,
        Property::NewestComesBack,
        Property::WaitsAtHome,
        Property::Threads,
    ];

    /// Short name: `tasks`, `forwards-pull`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Property::Builds => "builds",
            Property::Returns => "returns",
            Property::Panics => "panics",
            Property::Locks => "locks",
            Property::Tasks => "tasks",
            Property::Refusals => "refusals",
            Property::Room => "room",
            Property::Neighbours => "neighbours",
            Property::Able => "able",
            Property::Drain => "drain",
            Property::Storage => "storage",
            Property::Wakes => "wakes",
            Property::Flow => "flow",
            Property::Estimates => "estimates",
            Property::Predictions => "predictions",
            Property::Repeats => "repeats",
            Property::Log => "log",
            Property::ForwardsPull => "forwards-pull",
            Property::ForwardsPush => "forwards-push",
            Property::WakesWorkers => "wakes-workers",
            Property::PulledOnly => "pulled-only",
            Property::EmptyUntilPushed => "empty-until-pushed",
            Property::PushesOnPull => "pushes-on-pull",
            Property::EndIsNoted => "end-is-noted",
            Property::KeepsState => "keeps-state",
            Property::NewestComesBack => "newest-comes-back",
            Property::WaitsAtHome => "waits-at-home",
            Property::Threads => "threads",
        }
    }

    /// The property of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Property> {
        Property::ALL.into_iter().find(|property| property.name() == name)
    }

    /// What holds of a sound component.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Property::Builds => "it is built from its default parameters",
            Property::Returns => "every call comes back, and none ends the process",
            Property::Panics => "no call panics",
            Property::Locks => "no lock is held across a hop",
            Property::Tasks => "no task is dropped, made up or given away twice",
            Property::Refusals => "a refusal hands back the task that was pushed",
            Property::Room => "where it reports that it has no room, it refuses tasks, and holds some if it can",
            Property::Neighbours => "the children and parents that it names exist",
            Property::Able => "a worker gets tasks that it can execute",
            Property::Drain => "a drain gives up every task, after whatever calls",
            Property::Storage => "it stores and refuses tasks as declared",
            Property::Wakes => "work that waits wakes a worker",
            Property::Flow => "tasks come, and go to workers that pull and children that have room",
            Property::Estimates => "ends and loads are usable, and asking for them moves nothing",
            Property::Predictions => "tasks that are placed by ends are predicted",
            Property::Repeats => "the same calls have the same results",
            Property::Log => "warnings are few, and lines are plain text",
            Property::ForwardsPull => "declared: a pull is passed to the parents, and does nothing else",
            Property::ForwardsPush => "declared: it refuses a task only when its children do",
            Property::WakesWorkers => "declared: it pushes no task to a child that is a worker",
            Property::PulledOnly => "declared: tasks leave it only when they are pulled",
            Property::EmptyUntilPushed => "declared: before a first push, a pull is passed to the parents",
            Property::PushesOnPull => "declared: it answers a pull by having its parents push",
            Property::EndIsNoted => "declared: its end follows from the length that it notes",
            Property::KeepsState => "declared: its tasks stay and leave it later when workers join or leave",
            Property::NewestComesBack => {
                "declared: without priorities, a worker that pushes a task, and pulls, gets that task"
            }
            Property::WaitsAtHome => {
                "declared: without priorities, a worker gets what is at home with it, or was pushed by it, first"
            }
            Property::Threads => "calls from several threads lose no task",
        }
    }

    /// Whether a component of this description is examined for it.
    #[must_use]
    pub fn concerns(self, info: &ComponentInfo) -> bool {
        match self {
            Property::ForwardsPull => info.forwards_pull,
            Property::ForwardsPush => info.forwards_push,
            Property::WakesWorkers => info.wakes_workers,
            Property::PulledOnly => info.pulled_only,
            Property::EmptyUntilPushed => info.empty_until_pushed,
            Property::PushesOnPull => info.pushes_on_pull,
            Property::EndIsNoted => info.end_is_noted,
            Property::KeepsState => info.keeps_state,
            Property::NewestComesBack => info.newest_comes_back,
            Property::WaitsAtHome => info.waits_at_home,
            Property::Predictions => !matches!(info.arity, crate::Arity::Leaf | crate::Arity::One),
            _ => true,
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
