//! Which components stand below which, through `each`, `use` and slots.

use super::site::Subject;
use crate::areas::bounds;
use crate::catalogue::Entry;
use crate::part::{Component, Part, Setting};
use sched_core::{Arity, ComponentInfo, Family};
use sched_text::Span;

/// A component of a policy that the catalogue knows.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub component: &'a Component,
    pub info: &'a ComponentInfo,
}

/// What a component's storage does, with the values that the policy sets.
pub(super) enum Keeps<'a> {
    /// It stores nothing.
    Nothing,
    /// It stores, and never refuses.
    Everything,
    /// It stores, and is full some time: the parameters that say so, with where the policy sets them.
    Some(Vec<(&'a str, Option<&'a Setting>)>),
}

impl<'a> Known<'a> {
    pub(super) fn new(component: &'a Component, entry: &'a Entry) -> Known<'a> {
        Known { component, info: &entry.info }
    }

    pub(super) fn name(self) -> &'a str {
        &self.component.name
    }

    pub(super) fn span(self) -> Span {
        self.component.span
    }

    pub(super) fn is_worker(self) -> bool {
        self.info.family == Family::Worker
    }

    /// Whether it delimits a scheduling area: it stores, and is no leaf.
    pub(super) fn is_reservoir(self) -> bool {
        self.info.stores && !self.is_worker()
    }

    pub(super) fn keeps(self) -> Keeps<'a> {
        if !self.info.stores {
            return Keeps::Nothing;
        }
        let set = |name: &str| self.component.params.iter().find(|setting| setting.name == name);
        let names = self.info.bounds.iter().map(|name| (name.as_str(), set(name)));
        let found: Vec<_> = names
            .filter(|(name, set)| {
                let default = || self.info.param(name).map(|param| &param.default);
                set.map(|setting| &setting.value).or_else(default).is_some_and(bounds)
            })
            .collect();
        if found.is_empty() { Keeps::Everything } else { Keeps::Some(found) }
    }
}

impl<'a> Subject<'a> {
    /// The components right below `parts`; those that the catalogue lacks are left out.
    pub(super) fn components_of(&self, parts: &'a [Part]) -> Vec<Known<'a>> {
        let mut found = Vec::new();
        self.collect(parts, &mut Vec::new(), &mut found);
        found
    }

    fn collect(&self, parts: &'a [Part], names: &mut Vec<&'a str>, found: &mut Vec<Known<'a>>) {
        for part in parts {
            match part {
                Part::Component(component) => {
                    found.extend(self.catalogue.get(&component.name).map(|entry| Known::new(component, entry)));
                }
                Part::Each(each) => self.collect(&each.children, names, found),
                // What is shared may lead back to itself, which is another rule's business.
                Part::Use(link) if !names.contains(&link.name.as_str()) => {
                    names.push(&link.name);
                    if let Some(shared) = self.policy.find_shared(&link.name) {
                        self.collect(&shared.children, names, found);
                    }
                }
                Part::Use(_) => {}
            }
        }
    }

    /// The components where tasks enter: one, in a valid policy.
    pub(super) fn roots(&self) -> Vec<Known<'a>> {
        self.components_of(&self.policy.root)
    }

    /// The children of a component, whatever slot they fill.
    pub(super) fn children_of(&self, above: Known<'a>) -> Vec<Known<'a>> {
        let slots = self.slots_of(above);
        if slots.is_empty() {
            return self.components_of(&above.component.children);
        }
        slots.into_iter().flat_map(|slot| self.components_of(&slot.children)).collect()
    }

    /// The slots that a policy fills below a component.
    pub(super) fn slots_of(&self, above: Known<'a>) -> Vec<&'a Component> {
        if above.info.arity != Arity::Slots {
            return Vec::new();
        }
        let parts = above.component.children.iter();
        parts
            .filter_map(|part| match part {
                Part::Component(slot) => Some(slot),
                _ => None,
            })
            .collect()
    }

    /// Visits every component that is in `from` or that `step` gives, each once, parents first.
    pub(super) fn descend(&self, from: Vec<Known<'a>>, mut step: impl FnMut(Known<'a>) -> Vec<Known<'a>>) {
        let mut seen: Vec<*const Component> = Vec::new();
        let mut next: Vec<Known<'a>> = from.into_iter().rev().collect();
        while let Some(known) = next.pop() {
            if !seen.contains(&std::ptr::from_ref(known.component)) {
                seen.push(known.component);
                next.extend(step(known).into_iter().rev());
            }
        }
    }
}
