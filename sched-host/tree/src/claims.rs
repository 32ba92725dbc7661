//! What components declare of themselves, and what they were seen to do instead.
//!
//! The host and the checks of policies rely on declarations: a false one may stall a run, or let a component keep tasks
//! that nobody looks for. Components of this project are trusted. Calls of others are [witnessed](super::witness) in
//! samples, and a declaration that does not hold is a fault.

use super::attendance::Method;
use super::breach::times;
use parking_lot::Mutex;
use sched_core::{ComponentInfo, Family};
use sched_policy::PlanNode;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Declarations of a component, as [`Info`](sched_core::Info) explains them, for its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a declaration of its own")]
pub struct Claims {
    /// It stores tasks between calls.
    pub stores: bool,
    /// It stores any number of tasks, so that it never refuses one.
    pub stores_any_number: bool,
    /// It may refuse a task for a reason other than a full queue of its own.
    pub may_refuse: bool,
    /// It refuses a task only when a child does.
    pub forwards_push: bool,
    /// A pull only asks its parents, so that pulls may pass it by.
    pub forwards_pull: bool,
    /// Until a task is pushed to it, a pull only asks its parents, so that pulls may pass it by.
    pub empty_until_pushed: bool,
    /// Its estimated end follows from what it notes, so that it need not be asked.
    pub end_is_noted: bool,
    /// Its tasks move only when they are pulled.
    pub pulled_only: bool,
    /// It wakes a child that is a worker instead of pushing to it.
    pub wakes_workers: bool,
    /// It answers a pull by having its parents push.
    pub pushes_on_pull: bool,
    /// It lives on when workers join its context or leave it.
    pub keeps_state: bool,
    /// It hears of the execution of tasks.
    pub hears_tasks: bool,
    /// A worker gets back what it pushes, so that both calls may be saved.
    pub newest_comes_back: bool,
    /// A task waits where it is at home, so that both calls may be saved.
    pub waits_at_home: bool,
    /// Its family.
    pub family: Option<Family>,
}

impl Claims {
    /// The declarations of the component at a node of a plan.
    #[must_use]
    pub fn of(node: &PlanNode) -> Claims {
        Claims { stores_any_number: node.stores_any_number(), ..Claims::from(&*node.info) }
    }
}

impl From<&ComponentInfo> for Claims {
    /// The declarations whatever the parameters: its storage may be bounded.
    fn from(info: &ComponentInfo) -> Claims {
        Claims {
            stores: info.stores,
            stores_any_number: info.stores && info.bounds.is_empty(),
            may_refuse: info.may_refuse,
            forwards_push: info.forwards_push,
            forwards_pull: info.forwards_pull,
            empty_until_pushed: info.empty_until_pushed,
            end_is_noted: info.end_is_noted,
            pulled_only: info.pulled_only,
            wakes_workers: info.wakes_workers,
            pushes_on_pull: info.pushes_on_pull,
            keeps_state: info.keeps_state,
            hears_tasks: info.hears_tasks,
            newest_comes_back: info.newest_comes_back,
            waits_at_home: info.waits_at_home,
            family: Some(info.family),
        }
    }
}

/// A declaration that was seen not to hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Declaration {
    /// [`Storage::None`](sched_core::Storage::None): it kept a task.
    StoresNothing,
    /// Storage without a bound: it refused a task.
    StoresAnyNumber,
    /// [`may_refuse(false)`](sched_core::Info::may_refuse): it refused a task.
    NeverRefuses,
    /// [`forwards_push`](sched_core::Info::forwards_push): it refused a task that no child refused.
    ForwardsPush,
    /// [`forwards_pull`](sched_core::Info::forwards_pull): a pull did not give what its parents gave.
    ForwardsPull,
    /// [`empty_until_pushed`](sched_core::Info::empty_until_pushed): a pull before the first push did not give what its
    /// parents gave.
    EmptyUntilPushed,
    /// [`end_is_noted`](sched_core::Info::end_is_noted): its estimated end was another.
    EndIsNoted,
    /// [`pulled_only`](sched_core::Info::pulled_only): it pushed a task down, or asked its parents for more.
    PulledOnly,
    /// [`wakes_workers`](sched_core::Info::wakes_workers): it pushed a task to a worker.
    WakesWorkers,
    /// [`pushes_on_pull`](sched_core::Info::pushes_on_pull): it gave a task of its parents to the puller.
    PushesOnPull,
    /// [No room](sched_core::Node::note_room): it took a task nevertheless.
    NoRoom,
}

impl Declaration {
    /// What is declared.
    const fn declared(self) -> &'static str {
        match self {
            Declaration::StoresNothing => "no storage",
            Declaration::StoresAnyNumber => "storage without a bound",
            Declaration::NeverRefuses => "`may_refuse(false)`",
            Declaration::ForwardsPush => "`forwards_push`",
            Declaration::ForwardsPull => "`forwards_pull`",
            Declaration::EmptyUntilPushed => "`empty_until_pushed`",
            Declaration::EndIsNoted => "`end_is_noted`",
            Declaration::PulledOnly => "`pulled_only`",
            Declaration::WakesWorkers => "`wakes_workers`",
            Declaration::PushesOnPull => "`pushes_on_pull`",
            Declaration::NoRoom => "at times that it has no room",
        }
    }

    /// What a method did instead.
    const fn happened(self) -> &'static str {
        match self {
            Declaration::StoresNothing => "kept a task",
            Declaration::StoresAnyNumber | Declaration::NeverRefuses => "refused a task that workers below can execute",
            Declaration::ForwardsPush => "refused a task that no child had refused",
            Declaration::ForwardsPull => "did not give what its parents gave",
            Declaration::EmptyUntilPushed => "did not give what its parents gave, before any task was pushed to it",
            Declaration::EndIsNoted => "gave another time than the one that follows from the length it noted",
            Declaration::PulledOnly => "pushed a task down, or asked its parents for more",
            Declaration::WakesWorkers => "pushed a task to a worker",
            Declaration::PushesOnPull => "gave a task of its parents to the child that pulled",
            Declaration::NoRoom => "took a task then",
        }
    }

    /// In words: what is declared, what `method` did, and how often it was seen.
    pub(super) fn describe(self, method: Method, count: u64) -> String {
        let (declared, happened, times) = (self.declared(), self.happened(), times(count));
        format!("declares {declared}, but `{method}` {happened} (seen {times})")
    }
}

/// Declarations of one component that did not hold, counted among the calls that were witnessed.
#[derive(Default)]
pub(super) struct Lies(Mutex<BTreeMap<(Declaration, Method), u64>>);

impl Lies {
    /// Counts a declaration that did not hold. Returns whether it is the first time.
    #[cold]
    pub(super) fn add(&self, declaration: Declaration, method: Method) -> bool {
        let mut lies = self.0.lock();
        let count = lies.entry((declaration, method)).or_insert(0);
        *count += 1;
        *count == 1
    }

    /// Each declaration, the method, and how often.
    pub(super) fn all(&self) -> Vec<(Declaration, Method, u64)> {
        self.0.lock().iter().map(|((declaration, method), count)| (*declaration, *method, *count)).collect()
    }
}

/// A method that was seen to pass nothing on, although somebody waited for it: a worker below slept, or a component
/// above has tasks. That may be meant: only a stall shows that it was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Silence {
    /// The method.
    pub method: Method,
    /// How often that was seen.
    pub count: u64,
}

/// The silences of one component.
#[derive(Default)]
pub(super) struct Silences(Mutex<BTreeMap<Method, u64>>);

impl Silences {
    #[cold]
    pub(super) fn add(&self, method: Method) {
        *self.0.lock().entry(method).or_insert(0) += 1;
    }

    pub(super) fn all(&self) -> Vec<Silence> {
        self.0.lock().iter().map(|(method, count)| Silence { method: *method, count: *count }).collect()
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did = match self.method {
            Method::PushTask => "kept a task and woke nobody, while workers below slept",
            Method::CanPull => "woke nobody, while workers below slept",
            Method::PullTask => "gave nothing and asked nobody above",
            _ => "asked nobody above for tasks, when there was room below",
        };
        write!(f, "`{}` {did} (seen {})", self.method, times(self.count))
    }
}
