//! The description of a component as the host keeps it: owned, read from a plugin's manifest.

use super::{Arity, Family, Info, Storage};
use crate::params::{Param, ParamInfo};

/// A named position for a child, as read from a plugin's manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotInfo {
    /// The name, as a policy writes it.
    pub name: String,
    /// Which tasks the child receives.
    pub doc: String,
    /// Whether policies may leave it out.
    pub optional: bool,
}

/// The description of a component, as read from a plugin's manifest; [`Info`] explains each field.
#[derive(Clone, PartialEq, Debug)]
pub struct ComponentInfo {
    /// Its name in a policy.
    pub name: String,
    /// Its family.
    pub family: Family,
    /// One-line description.
    pub doc: String,
    /// The package whose source defines it; empty where it does not say.
    pub package: String,
    /// Number of children that it takes.
    pub arity: Arity,
    /// Whether it stores tasks between calls.
    pub stores: bool,
    /// The parameters that bound its storage when nonzero.
    pub bounds: Vec<String>,
    /// Named positions for children.
    pub slots: Vec<SlotInfo>,
    /// Parameters that a policy may set.
    pub params: Vec<ParamInfo>,
    /// Number of tasks that a queue below should hold for it to decide well.
    pub lookahead: u32,
    /// Whether it may refuse a task for a reason other than a full queue of its own.
    pub may_refuse: bool,
    /// Whether it decides by performance models.
    pub needs_models: bool,
    /// Whether it only pulls from its parents when pulled from, so that the host can skip the call.
    pub forwards_pull: bool,
    /// Whether it refuses a task only when a child does.
    pub forwards_push: bool,
    /// Whether it wakes a child that is a worker instead of pushing to it.
    pub wakes_workers: bool,
    /// Whether its tasks move only when pulled, so that it never pumps.
    pub pulled_only: bool,
    /// Whether a pull need not call it before a first task was pushed to it.
    pub empty_until_pushed: bool,
    /// Whether it is a leaf for combined workers.
    pub combined: bool,
    /// Whether it answers a pull by having its parents push.
    pub pushes_on_pull: bool,
    /// Whether its estimated end follows from the length that it reports, so that the host can skip the call.
    pub end_is_noted: bool,
    /// Whether it lives on when workers join its context or leave it.
    pub keeps_state: bool,
    /// Whether it hears of tasks that workers below execute.
    pub hears_tasks: bool,
    /// Whether a worker gets back what it pushes, so that the host can skip both calls.
    pub newest_comes_back: bool,
    /// Whether a task waits where it is at home, so that the host can keep it there and skip both calls.
    pub waits_at_home: bool,
}

impl ComponentInfo {
    /// The parameter of this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&ParamInfo> {
        self.params.iter().find(|param| param.name == name)
    }
}

impl Info {
    /// An owned copy of this description, as the host keeps it from a plugin's manifest.
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
                .map(|slot| SlotInfo {
                    name: slot.name.to_owned(),
                    doc: slot.doc.to_owned(),
                    optional: self.optional_slots.contains(&slot.name),
                })
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
            keeps_state: self.keeps_state,
            hears_tasks: self.hears_tasks,
            newest_comes_back: self.newest_comes_back,
            waits_at_home: self.waits_at_home,
        }
    }
}
