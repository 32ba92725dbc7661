//! What a component says of itself before it is built: enough to list it, to check a policy, and to draw a tree.

use crate::params::{Param, ParamInfo};
use std::fmt;

/// The family of a component, as the StarPU handbook groups them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Family {
    /// Holds tasks back and lets them go: fifo, prio.
    FlowControl,
    /// Chooses among children: eager, random, work-stealing, mct, heft.
    ResourceMapping,
    /// Neither: selects an implementation, a sub-tree by performance model.
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

/// How many children a component takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Arity {
    /// None: a worker.
    Leaf,
    /// Exactly one.
    One,
    /// One or more.
    Many,
    /// Exactly one for each of its [slots](Info::slots).
    Slots,
}

/// Where a component keeps tasks between calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Storage {
    /// It keeps none: each task is passed on or refused during the call.
    None,
    /// A queue that never refuses.
    Unbounded,
    /// A queue that refuses when full, if one of these parameters is other than 0; with all of them 0 it never refuses.
    BoundedBy(&'static [&'static str]),
}

/// A named place for a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The name a policy writes.
    pub name: &'static str,
    /// Which tasks go there.
    pub doc: &'static str,
}

/// What a component is: the constant [`Build::INFO`](crate::Build::INFO).
///
/// ```
/// use sched_core::{Arity, Family, Info, Param, Storage};
/// const INFO: Info = Info::new("fifo", Family::FlowControl, "Holds tasks in the order of their arrival.")
///     .arity(Arity::One)
///     .storage(Storage::BoundedBy(&["ntasks-threshold"]))
///     .params(const { &[Param::int("ntasks-threshold", 0, "tasks held at most; 0 means no limit").at_least(0)] });
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
}

impl Info {
    /// A component of this name (lower case, words joined by `-`), family and one-line description. It takes one child,
    /// or many in the resource-mapping family, or none in the worker family; it keeps no tasks and has no parameters,
    /// until the other methods say otherwise.
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
        }
    }

    /// The package whose source defines the component: `env!("CARGO_PKG_NAME")`, never a literal, so that a copy of the
    /// source belongs to the package that it was copied to.
    ///
    /// Components of one name and one package are one component, wherever they come from: the file of a plugin takes the
    /// place of the component that is compiled into the host. A component that states no package, or another one, has to
    /// be chosen by the user (`override`). (Since 1.1: an older host does not ask.)
    #[must_use]
    pub const fn package(mut self, package: &'static str) -> Info {
        self.package = package;
        self
    }

    /// How many children it takes.
    #[must_use]
    pub const fn arity(mut self, arity: Arity) -> Info {
        self.arity = arity;
        self
    }

    /// Where it keeps tasks between calls.
    #[must_use]
    pub const fn storage(mut self, storage: Storage) -> Info {
        self.storage = storage;
        self
    }

    /// Named children; sets the arity to [`Arity::Slots`].
    #[must_use]
    pub const fn slots(mut self, slots: &'static [Slot]) -> Info {
        self.slots = slots;
        self.arity = Arity::Slots;
        self
    }

    /// Parameters that a policy may set.
    #[must_use]
    pub const fn params(mut self, params: &'static [Param]) -> Info {
        self.params = params;
        self
    }

    /// How many tasks a queue below should hold for this component to decide well: 2 by default, more for a component
    /// that plans ahead (StarPU gives 30 to mct and heft).
    #[must_use]
    pub const fn lookahead(mut self, tasks: u32) -> Info {
        self.lookahead = tasks;
        self
    }

    /// Whether it may refuse a task, or pass on a child's refusal. Queues that [`Storage`] describes need not say so.
    #[must_use]
    pub const fn may_refuse(mut self, may_refuse: bool) -> Info {
        self.may_refuse = may_refuse;
        self
    }

    /// It decides by performance models, and belongs below a component that sorts out tasks without one.
    #[must_use]
    pub const fn needs_models(mut self) -> Info {
        self.needs_models = true;
        self
    }

    /// Its [`pull_task`](crate::Component::pull_task) is the default one. The host then asks the parents itself, and saves
    /// the call. (Since 1.1: an older host calls.)
    #[must_use]
    pub const fn forwards_pull(mut self) -> Info {
        self.forwards_pull = true;
        self
    }

    /// It keeps no tasks, and refuses one only when the children that it could give it to refuse it. A policy may then do
    /// without a queue above it, where the children never refuse. (Since 1.1: an older host does not ask.)
    #[must_use]
    pub const fn forwards_push(mut self) -> Info {
        self.forwards_push = true;
        self
    }

    /// It does not push to a child that is a worker, but wakes it to pull, and refuses the task: above it there must be a
    /// queue that keeps it. (Since 1.1: an older host does not ask.)
    #[must_use]
    pub const fn wakes_workers(mut self) -> Info {
        self.wakes_workers = true;
        self
    }

    /// It gives its tasks to those who pull, and nothing else makes them move: it neither sends them down when a child has
    /// room ([`Node::pump`](crate::Node::pump)), nor asks its parents for more
    /// ([`Node::parents_can_push`](crate::Node::parents_can_push)). No other queue can work right above it or right below
    /// it. A component that stores and does not say so is taken to do both. (Since 1.1: an older host does not ask.)
    #[must_use]
    pub const fn pulled_only(mut self) -> Info {
        self.pulled_only = true;
        self
    }

    /// As long as no task was pushed to it, its [`pull_task`](crate::Component::pull_task) does nothing but ask the parents,
    /// at least where the host says when workers are free
    /// ([`Node::worker_busy_until`](crate::Node::worker_busy_until)). Such a host then asks them itself, and saves the call.
    /// (Since 1.1: an older host calls.)
    #[must_use]
    pub const fn empty_until_pushed(mut self) -> Info {
        self.empty_until_pushed = true;
        self
    }

    /// A leaf that hands tasks to a combined worker, which executes them together: it stands in an
    /// `each "combined-worker"`. (Since 1.1: an older host has no combined workers.)
    #[must_use]
    pub const fn combined(mut self) -> Info {
        self.combined = true;
        self
    }

    /// It answers a pull by asking its parents to push, and gives what comes to the child that it is for; it never hands a
    /// task of its parents to who pulls. Below it, tasks have to be pushed all the way to a queue or a worker: nothing that
    /// [wakes workers](Self::wakes_workers) to pull may stand right above them. (Since 1.1: an older host does not ask.)
    #[must_use]
    pub const fn pushes_on_pull(mut self) -> Info {
        self.pushes_on_pull = true;
        self
    }

    /// Its [`estimated_end`](crate::Component::estimated_end) is what
    /// [`Node::end_below_with_queued`](crate::Node::end_below_with_queued) says of the length that it last
    /// [noted](crate::Node::note_queued), of none if it never did; at a leaf, what
    /// [`Node::worker_free_at`](crate::Node::worker_free_at) says. So the default method is, where nothing is noted. A host
    /// that knows when workers are free then finds the end itself, and saves the call. (Since 1.1: an older host calls.)
    #[must_use]
    pub const fn end_is_noted(mut self) -> Info {
        self.end_is_noted = true;
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

    /// The same, owned: what the host keeps of a plugin's manifest.
    #[must_use]
    pub fn describe(&self) -> ComponentInfo {
        let bounds = match self.storage {
            Storage::BoundedBy(names) => names.iter().map(ToString::to_string).collect(),
            Storage::None | Storage::Unbounded => Vec::new(),
        };
        ComponentInfo {
            name: self.name.to_owned(),
            family: self.family,
            doc: self.doc.to_owned(),
            package: self.package.to_owned(),
            arity: self.arity,
            stores: !matches!(self.storage, Storage::None),
            bounds,
            slots: self
                .slots
                .iter()
                .map(|slot| SlotInfo { name: slot.name.to_owned(), doc: slot.doc.to_owned() })
                .collect(),
            params: self.params.iter().map(Param::describe).collect(),
            lookahead: self.lookahead,
            may_refuse: self.may_refuse,
            needs_models: self.needs_models,
            forwards_pull: self.forwards_pull,
            forwards_push: self.forwards_push,
            wakes_workers: self.wakes_workers,
            pulled_only: self.pulled_only,
            empty_until_pushed: self.empty_until_pushed,
            combined: self.combined,
            pushes_on_pull: self.pushes_on_pull,
            end_is_noted: self.end_is_noted,
        }
    }
}

/// A named place for a child, as found in a plugin's manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotInfo {
    /// The name a policy writes.
    pub name: String,
    /// Which tasks go there.
    pub doc: String,
}

/// What a component is, as found in a plugin's manifest; see [`Info`] for the meaning of each part.
#[derive(Clone, PartialEq, Debug)]
pub struct ComponentInfo {
    /// Its name in a policy.
    pub name: String,
    /// Its family.
    pub family: Family,
    /// What it does, in a line.
    pub doc: String,
    /// The package whose source defines it; empty where it does not say.
    pub package: String,
    /// How many children it takes.
    pub arity: Arity,
    /// Whether it keeps tasks between calls.
    pub stores: bool,
    /// The parameters that bound its storage when other than 0.
    pub bounds: Vec<String>,
    /// Named places for children.
    pub slots: Vec<SlotInfo>,
    /// What a policy may set.
    pub params: Vec<ParamInfo>,
    /// How many tasks a queue below should hold for it to decide well.
    pub lookahead: u32,
    /// Whether it may refuse a task for another reason than a full queue of its own.
    pub may_refuse: bool,
    /// Whether it decides by performance models.
    pub needs_models: bool,
    /// Whether its way to pull is to ask its parents, so that it need not be called for that.
    pub forwards_pull: bool,
    /// Whether it refuses a task only when its children do.
    pub forwards_push: bool,
    /// Whether it leaves tasks to be pulled where its child is a worker.
    pub wakes_workers: bool,
    /// Whether its tasks move only when somebody pulls, so that it is no pump.
    pub pulled_only: bool,
    /// Whether it need not be called for a pull before a task was pushed to it.
    pub empty_until_pushed: bool,
    /// Whether it is a leaf for combined workers.
    pub combined: bool,
    /// Whether it answers a pull by having tasks pushed.
    pub pushes_on_pull: bool,
    /// Whether its estimated end follows from what it notes, so that it need not be called for that.
    pub end_is_noted: bool,
}

impl ComponentInfo {
    /// The parameter of this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&ParamInfo> {
        self.params.iter().find(|param| param.name == name)
    }
}
