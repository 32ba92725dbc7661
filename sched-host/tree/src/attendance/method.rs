//! What is called.

use sched_core::abi::driver::DriverCall;
use serde::{Serialize, Serializer};
use std::fmt;

/// Numbers from here on are those of a driver's calls.
const OF_DRIVERS: u8 = 64;

/// A method of a component, or of a driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Method {
    /// [`push_task`](sched_core::Component::push_task).
    PushTask,
    /// [`pull_task`](sched_core::Component::pull_task).
    PullTask,
    /// [`can_push`](sched_core::Component::can_push).
    CanPush,
    /// [`can_pull`](sched_core::Component::can_pull).
    CanPull,
    /// [`estimated_end`](sched_core::Component::estimated_end).
    EstimatedEnd,
    /// [`estimated_load`](sched_core::Component::estimated_load).
    EstimatedLoad,
    /// [`notify_change_workers`](sched_core::Component::notify_change_workers).
    NotifyChangeWorkers,
    /// [`drain`](sched_core::Component::drain).
    Drain,
    /// [`describe`](sched_core::Component::describe).
    Describe,
    /// [`task_started`](sched_core::Component::task_started).
    TaskStarted,
    /// [`task_ended`](sched_core::Component::task_ended).
    TaskEnded,
    /// [`export`](sched_core::Component::export).
    Export,
    /// [`import`](sched_core::Component::import).
    Import,
    /// Its constructor, [`Build::build`](sched_core::Build::build).
    Build,
    /// Its destructor.
    Drop,
    /// A call of a driver.
    OfDriver(DriverCall),
}

impl Method {
    const OF_COMPONENTS: [Method; 15] = [
        Method::PushTask,
        Method::PullTask,
        Method::CanPush,
        Method::CanPull,
        Method::EstimatedEnd,
        Method::EstimatedLoad,
        Method::NotifyChangeWorkers,
        Method::Drain,
        Method::Describe,
        Method::TaskStarted,
        Method::TaskEnded,
        Method::Export,
        Method::Import,
        Method::Build,
        Method::Drop,
    ];

    /// A number for desks.
    #[inline]
    pub(super) const fn code(self) -> u8 {
        self.entry().0
    }

    pub(super) fn of_code(code: u8) -> Option<Method> {
        let calls = DriverCall::ALL.into_iter().map(Method::OfDriver);
        Method::OF_COMPONENTS.into_iter().chain(calls).find(|method| method.code() == code)
    }

    pub(super) const fn name(self) -> &'static str {
        self.entry().1
    }

    /// Its number and its name.
    #[inline]
    const fn entry(self) -> (u8, &'static str) {
        match self {
            Method::PushTask => (1, "push_task"),
            Method::PullTask => (2, "pull_task"),
            Method::CanPush => (3, "can_push"),
            Method::CanPull => (4, "can_pull"),
            Method::EstimatedEnd => (5, "estimated_end"),
            Method::EstimatedLoad => (6, "estimated_load"),
            Method::NotifyChangeWorkers => (7, "notify_change_workers"),
            Method::Drain => (8, "drain"),
            Method::Describe => (9, "describe"),
            Method::TaskStarted => (10, "task_started"),
            Method::TaskEnded => (11, "task_ended"),
            Method::Export => (12, "export"),
            Method::Import => (13, "import"),
            Method::Build => (14, "build"),
            Method::Drop => (15, "drop"),
            Method::OfDriver(call) => (OF_DRIVERS + call as u8, call.name()),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
