//! The description of a component before it is built: enough to list it, to check a policy, and to draw a tree.

mod described;

pub use described::{ComponentInfo, SlotInfo};

use crate::params::Param;
use std::fmt;

/// The family of a component, as in the StarPU handbook.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Family {
    /// Holds tasks back and lets them go: fifo, prio.
    FlowControl,
    /// Chooses among its children: eager, random, work-stealing, mct, heft.
    ResourceMapping,
    /// Neither: for example, chooses an implementation, or a subtree by performance model.
    SpecialPurpose,
    /// A leaf, which hands tasks to a worker.
    Worker,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::FlowControl => "flow-control",
            Family::ResourceMapping => "resource-mapping",
            Family::SpecialPurpose => "special-purpose",
            Family::Worker => "worker",
        })
    }
}

/// Number of children that a component takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Arity {
    /// None: a leaf, which hands tasks to a worker. Components of the worker family have no children, and all others
    /// have some.
    Leaf,
    /// Exactly one.
    One,
    /// One or more.
    Many,
    /// One for each of its [slots](Info::slots).
    Slots,
    /// One or more, and one for each of its [slots beside them](Info::slots_beside_children).
    ManyAndSlots,
}

/// How a component stores tasks between calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Storage {
    /// Stores none: each task is passed on or refused during the call.
    None,
    /// A queue that never refuses.
    Unbounded,
    /// A queue that refuses tasks when full, if one of these parameters is nonzero (a flag that is set, a text that is
    /// not empty); otherwise it never refuses.
    BoundedBy(&'static [&'static str]),
}

/// Words of the policy language, which name no component and no slot.
pub const POLICY_WORDS: [&str; 5] = ["policy", "shared", "override", "each", "use"];

/// A named position for a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The name, as a policy writes it.
    pub name: &'static str,
    /// Which tasks the child receives.
    pub doc: &'static str,
}

/// The description of a component: the constant [`Build::INFO`](crate::Build::INFO).
///
/// ```
/// use sched_core::{Arity, Family, Info, Param, Storage};
/// const INFO: Info = Info::new("fifo", Family::FlowControl, "Holds tasks in the order of their arrival.")
///     .arity(Arity::One)
///     .storage(Storage::BoundedBy(&["ntasks-threshold"]))
///     .params(const { &[Param::int("ntasks-threshold", 0, "maximum number of tasks held; 0 means no limit").at_least(0)] });
/// ```
#[derive(Clone, Debug)]
pub struct Info {
    name: &'static str,
    family: Family,
    doc: &'static str,
    package: &'static str,
    arity: Arity,
    storage: Storage,
    slots: &'static [Slot],
    optional_slots: &'static [&'static str],
    params: &'static [Param],
    lookahead: u32,
    may_refuse: bool,
    needs_models: bool,
    forwards_pull: bool,
    forwards_push: bool,
    wakes_workers: bool,
    pulled_only: bool,
    empty_until_pushed: bool,
    combined: bool,
    pushes_on_pull: bool,
    end_is_noted: bool,
    keeps_state: bool,
    hears_tasks: bool,
    newest_comes_back: bool,
    waits_at_home: bool,
}

impl Info {
    /// Describes a component of this name (lower case, words joined by `-`), family and one-line description. By
    /// default it takes one child (many in the resource-mapping family, none in the worker family), stores no tasks and
    /// has no parameters; the other methods change this.
    #[must_use]
    pub const fn new(name: &'static str, family: Family, doc: &'static str) -> Info {
        let arity = match family {
            Family::ResourceMapping => Arity::Many,
            Family::Worker => Arity::Leaf,
            Family::FlowControl | Family::SpecialPurpose => Arity::One,
        };
        Info {
            name,
            family,
            doc,
            package: "",
            arity,
            storage: Storage::None,
            slots: &[],
            optional_slots: &[],
            params: &[],
            lookahead: 2,
            may_refuse: matches!(family, Family::ResourceMapping | Family::SpecialPurpose),
            needs_models: false,
            forwards_pull: false,
            forwards_push: false,
            wakes_workers: false,
            pulled_only: false,
            empty_until_pushed: false,
            combined: false,
            pushes_on_pull: false,
            end_is_noted: false,
            keeps_state: false,
            hears_tasks: false,
            newest_comes_back: false,
            waits_at_home: false,
        }
    }

    /// The package whose source defines the component: `env!("CARGO_PKG_NAME")`, never a literal, so that a copy of the
    /// source belongs to the package that it was copied to.
    ///
    /// Components of one name and one package are one component, wherever they come from: the file of a plugin takes
    /// the place of the component that is compiled into the host. A component that states no package, or another one,
    /// has to be chosen by the user (`override`). (Since 1.1: an older host does not ask.)
    #[must_use]
    pub const fn package(mut self, package: &'static str) -> Info {
        self.package = package;
        self
    }

    /// Sets the number of children that it takes.
    #[must_use]
    pub const fn arity(mut self, arity: Arity) -> Info {
        self.arity = arity;
        self
    }

    /// Sets how it stores tasks between calls.
    #[must_use]
    pub const fn storage(mut self, storage: Storage) -> Info {
        self.storage = storage;
        self
    }

    /// Declares named children; sets the arity to [`Arity::Slots`].
    #[must_use]
    pub const fn slots(mut self, slots: &'static [Slot]) -> Info {
        self.slots = slots;
        self.arity = Arity::Slots;
        self
    }

    /// Declares named children beside others: sets the arity to [`Arity::ManyAndSlots`]. The children that are in no
    /// slot come first; [`Node::slot`](crate::Node::slot) has the others. (Since 1.1: in an older host policies have no
    /// such slots, and the component does without.)
    #[must_use]
    pub const fn slots_beside_children(mut self, slots: &'static [Slot]) -> Info {
        self.slots = slots;
        self.arity = Arity::ManyAndSlots;
        self
    }

    /// Declares that policies may leave these slots out. (Since 1.1: an older host asks for all slots.)
    #[must_use]
    pub const fn optional_slots(mut self, names: &'static [&'static str]) -> Info {
        self.optional_slots = names;
        self
    }

    /// Declares the parameters that a policy may set.
    #[must_use]
    pub const fn params(mut self, params: &'static [Param]) -> Info {
        self.params = params;
        self
    }

    /// Sets the number of tasks that a queue below should hold for this component to decide well: 2 by default, more
    /// for a component that plans ahead (StarPU uses 30 for mct and heft).
    #[must_use]
    pub const fn lookahead(mut self, tasks: u32) -> Info {
        self.lookahead = tasks;
        self
    }

    /// Sets whether it may refuse a task, or forward a child's refusal. Queues described by [`Storage`] need not set
    /// it.
    #[must_use]
    pub const fn may_refuse(mut self, may_refuse: bool) -> Info {
        self.may_refuse = may_refuse;
        self
    }

    /// Declares that it decides by performance models, and belongs below a component that sorts out tasks without one.
    #[must_use]
    pub const fn needs_models(mut self) -> Info {
        self.needs_models = true;
        self
    }

    /// Declares that its [`pull_task`](crate::Component::pull_task) is the default one. The host then pulls from the
    /// parents itself and saves the call. (Since 1.1; an older host calls the component.)
    #[must_use]
    pub const fn forwards_pull(mut self) -> Info {
        self.forwards_pull = true;
        self
    }

    /// Declares that it stores no tasks and refuses one only when a child refuses it, or is a worker that it
    /// [wakes](Self::wakes_workers) instead. A policy then needs no queue above it if the children never refuse, and a
    /// task that no child [has room](crate::Node::note_room) for is refused without a call: so it passes reports of
    /// room on to its parents, whatever it has refused itself. (Since 1.1; ignored by an older host.)
    #[must_use]
    pub const fn forwards_push(mut self) -> Info {
        self.forwards_push = true;
        self
    }

    /// Declares that it does not push to a child that is a worker, but wakes the worker to pull and refuses the task: a
    /// queue above it must keep the task. (Since 1.1; ignored by an older host.)
    #[must_use]
    pub const fn wakes_workers(mut self) -> Info {
        self.wakes_workers = true;
        self
    }

    /// Declares that its tasks move only when they are pulled: it neither sends them down when a child has room
    /// ([`Node::pump`](crate::Node::pump)), nor asks its parents for more
    /// ([`Node::parents_can_push`](crate::Node::parents_can_push)), apart from the default
    /// [`can_push`](crate::Component::can_push), which passes a child's request on. No other queue works directly above
    /// or below it. A component that stores tasks without this declaration is assumed to do both. (Since 1.1; ignored
    /// by an older host.)
    #[must_use]
    pub const fn pulled_only(mut self) -> Info {
        self.pulled_only = true;
        self
    }

    /// Declares that until a first task is pushed to it, its [`pull_task`](crate::Component::pull_task) only pulls from
    /// the parents, at least where the host knows when workers are free
    /// ([`Node::worker_busy_until`](crate::Node::worker_busy_until)). Such a host then pulls from the parents itself
    /// and saves the call. (Since 1.1; an older host calls the component.)
    #[must_use]
    pub const fn empty_until_pushed(mut self) -> Info {
        self.empty_until_pushed = true;
        self
    }

    /// Declares a leaf that hands tasks to a combined worker, whose members execute them together: it stands in an
    /// `each "combined-worker"`. (Since 1.1; an older host has no combined workers.)
    #[must_use]
    pub const fn combined(mut self) -> Info {
        self.combined = true;
        self
    }

    /// Declares that it answers a pull by asking its parents to push, and gives the tasks that arrive to the child that
    /// each is for; it never passes a parent's task directly to the puller. Below it, tasks have to be pushed all the
    /// way to a queue or a worker: no component that [wakes workers](Self::wakes_workers) to pull may stand directly
    /// above them. (Since 1.1; ignored by an older host.)
    ///
    /// The host has its parents push as soon as a component above [reports](crate::Node::children_can_pull) a task,
    /// even while no worker sleeps: where the task goes is decided, and its data fetched, before a worker asks for it.
    #[must_use]
    pub const fn pushes_on_pull(mut self) -> Info {
        self.pushes_on_pull = true;
        self
    }

    /// Declares that its [`estimated_end`](crate::Component::estimated_end) equals
    /// [`Node::end_below_with_queued`](crate::Node::end_below_with_queued) for the length that it last
    /// [reported](crate::Node::note_queued) (zero if it never did); at a leaf, that it equals
    /// [`Node::worker_free_at`](crate::Node::worker_free_at). The default method does so where nothing is reported. A
    /// host that knows when workers are free then computes the end itself and saves the call. (Since 1.1; an older host
    /// calls the component.)
    #[must_use]
    pub const fn end_is_noted(mut self) -> Info {
        self.end_is_noted = true;
        self
    }

    /// Fails to compile where it is evaluated by an [`Offer`](crate::Offer) for a description that no host accepts.
    /// (Hosts check what they read all the same.)
    pub(crate) const fn assert_sound(&self) {
        assert!(is_name(self.name), "the name of a component is not lower-case words joined by `-`");
        assert!(!is_policy_word(self.name), "the name of a component is a word of the policy language");
        let is_worker = matches!(self.family, Family::Worker);
        assert!(
            matches!(self.arity, Arity::Leaf) == is_worker,
            "a component of the worker family takes children, or one of another family takes none"
        );
        let mut place = 0;
        while place < self.params.len() {
            self.params[place].assert_sound();
            let mut other = 0;
            while other < place {
                let equal = equal(self.params[place].name(), self.params[other].name());
                assert!(!equal, "a component has two parameters of one name");
                other += 1;
            }
            place += 1;
        }
        if let Storage::BoundedBy(bounds) = self.storage {
            let mut place = 0;
            while place < bounds.len() {
                assert!(
                    self.has_param(bounds[place]),
                    "the storage of a component is bounded by a parameter that it does not declare"
                );
                place += 1;
            }
        }
        self.assert_sound_slots();
    }

    const fn assert_sound_slots(&self) {
        let with_slots = matches!(self.arity, Arity::Slots | Arity::ManyAndSlots);
        assert!(!with_slots || !self.slots.is_empty(), "a component has a child for each slot, and no slots");
        assert!(with_slots || self.slots.is_empty(), "a component has slots, and its children do not go into slots");
        let mut place = 0;
        while place < self.slots.len() {
            let name = self.slots[place].name;
            assert!(is_name(name), "the name of a slot is not lower-case words joined by `-`");
            assert!(!is_policy_word(name), "the name of a slot is a word of the policy language");
            let mut other = 0;
            while other < place {
                assert!(!equal(name, self.slots[other].name), "a component has two slots of one name");
                other += 1;
            }
            place += 1;
        }
        let mut place = 0;
        while place < self.optional_slots.len() {
            assert!(self.has_slot(self.optional_slots[place]), "an optional slot of a component is no slot of it");
            place += 1;
        }
    }

    const fn has_slot(&self, name: &str) -> bool {
        let mut place = 0;
        while place < self.slots.len() {
            if equal(self.slots[place].name, name) {
                return true;
            }
            place += 1;
        }
        false
    }

    const fn has_param(&self, name: &str) -> bool {
        let mut place = 0;
        while place < self.params.len() {
            if equal(self.params[place].name(), name) {
                return true;
            }
            place += 1;
        }
        false
    }

    /// Declares that it lives on when workers join its context or leave it, with its tasks and all that it has learnt,
    /// as long as its node is still there. Its neighbours may be others afterwards, in another order:
    /// [`notify_change_workers`](crate::Component::notify_change_workers) is called before anything else, and has to
    /// bring what it keeps of [children](crate::Node::children) and workers up to date. Without this declaration a new
    /// component is built, which gets the tasks. (Since 1.1; an older host builds a new one.)
    #[must_use]
    pub const fn keeps_state(mut self) -> Info {
        self.keeps_state = true;
        self
    }

    /// Declares that it hears of tasks that workers below execute: [`task_started`](crate::Component::task_started) and
    /// [`task_ended`](crate::Component::task_ended) are called. Where no component of any tree declares this, tasks pay
    /// nothing for it. (Since 1.1; an older host calls neither.)
    #[must_use]
    pub const fn hears_tasks(mut self) -> Info {
        self.hears_tasks = true;
        self
    }

    /// Declares that a worker gets back what it pushes, as long as no task has had a priority other than 0: a pull for
    /// a child that is a worker gives the task that this worker has pushed just before, if it can execute it and the
    /// task has no other [home](crate::Task::home). A host may then keep such a task for a worker that is about to
    /// pull, and save both calls: the component hears nothing of the task. Of several tasks that a worker makes ready at
    /// once the host chooses the one, as if it was pushed last. (Since 1.1; an older host calls the component.)
    #[must_use]
    pub const fn newest_comes_back(mut self) -> Info {
        self.newest_comes_back = true;
        self
    }

    /// Declares that a task waits where it is [at home](crate::Task::home), or else, if it is at home nowhere, with the
    /// worker that pushes it, as long as no task has had a priority other than 0: it is stored until a pull for the
    /// child that is this worker gives it, or one for another child finds nothing else. Where [what was pushed
    /// last](Self::newest_comes_back) comes back too, a host may then keep such a task for its worker, or for one that
    /// has nothing else to do, and save both calls: the component hears nothing of the task. (Since 1.1; an older host
    /// calls the component.)
    #[must_use]
    pub const fn waits_at_home(mut self) -> Info {
        self.waits_at_home = true;
        self
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The parameters it declares.
    #[must_use]
    pub const fn declared_params(&self) -> &'static [Param] {
        self.params
    }
}

/// Whether a name is one of the [`POLICY_WORDS`].
const fn is_policy_word(name: &str) -> bool {
    let mut place = 0;
    while place < POLICY_WORDS.len() {
        if equal(name, POLICY_WORDS[place]) {
            return true;
        }
        place += 1;
    }
    false
}

/// Whether a name is lower-case words of letters and digits, joined by `-`; the first one starts with a letter.
pub(crate) const fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    if bytes.is_empty() || !bytes[0].is_ascii_lowercase() || bytes[bytes.len() - 1] == b'-' {
        return false;
    }
    let mut place = 0;
    while place < bytes.len() {
        let (byte, is_plain) = (bytes[place], bytes[place].is_ascii_lowercase() || bytes[place].is_ascii_digit());
        let joins = byte == b'-' && bytes[place - 1] != b'-';
        if !is_plain && !joins {
            return false;
        }
        place += 1;
    }
    true
}

/// `==` of texts, for constants.
pub(crate) const fn equal(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut place = 0;
    while place < one.len() {
        if one[place] != other[place] {
            return false;
        }
        place += 1;
    }
    true
}

#[cfg(test)]
mod tests;
