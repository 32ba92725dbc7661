//! Parents and children of components, through `each`, `use` and slots.

use super::site::{Subject, stands_for_slot};
use crate::areas::bounds;
use crate::catalogue::Entry;
use crate::element::{Component, Element, Setting};
use sched_core::{Arity, ComponentInfo, Family};
use sched_text::Span;
use std::collections::HashSet;

/// A component of a policy that the catalogue knows.
#[derive(Clone, Copy)]
pub(super) struct KnownComponent<'a> {
    pub component: &'a Component,
    pub info: &'a ComponentInfo,
}

/// Storage of a component, with the parameters that the policy sets.
pub(super) enum Keeps<'a> {
    /// It stores nothing.
    Nothing,
    /// Unbounded storage.
    Everything,
    /// Bounded storage: the bounding parameters, with their place in the policy.
    Some(Vec<(&'a str, Option<&'a Setting>)>),
}

impl<'a> KnownComponent<'a> {
    pub(super) fn new(component: &'a Component, entry: &'a Entry) -> KnownComponent<'a> {
        KnownComponent { component, info: &entry.info }
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

    /// Whether it delimits a scheduling area: it stores tasks and is not a leaf.
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
    /// The components directly below `elements`, without those that the catalogue lacks.
    pub(super) fn components_of(&self, elements: &'a [Element]) -> Vec<KnownComponent<'a>> {
        let mut found = Vec::new();
        self.collect(elements, &mut HashSet::new(), &mut found);
        found
    }

    fn collect(&self, elements: &'a [Element], names: &mut HashSet<&'a str>, found: &mut Vec<KnownComponent<'a>>) {
        for element in elements {
            match element {
                Element::Component(component) => {
                    found
                        .extend(self.catalogue.get(&component.name).map(|entry| KnownComponent::new(component, entry)));
                }
                Element::Each(each) => self.collect(&each.children, names, found),
                // Shared definitions may form a cycle, which another rule reports.
                Element::Use(link) => {
                    if names.insert(&link.name)
                        && let Some(shared) = self.shared(&link.name)
                    {
                        self.collect(&shared.children, names, found);
                    }
                }
            }
        }
    }

    /// The roots; exactly one in a valid policy.
    pub(super) fn roots(&self) -> Vec<KnownComponent<'a>> {
        self.components_of(&self.policy.root)
    }

    /// The children of a component, in all slots.
    pub(super) fn children_of(&self, above: KnownComponent<'a>) -> Vec<KnownComponent<'a>> {
        let slots = self.slots_of(above);
        if slots.is_empty() {
            return self.components_of(&above.component.children);
        }
        let mut children = Vec::new();
        for element in &above.component.children {
            match element {
                Element::Component(node) if stands_for_slot(above.info, node) => {}
                // Of a component with slots only, nothing else is right.
                _ if above.info.arity == Arity::Slots => {}
                other => children.extend(self.components_of(std::slice::from_ref(other))),
            }
        }
        children.extend(slots.into_iter().flat_map(|slot| self.components_of(&slot.children)));
        children
    }

    /// The slots that a policy fills below a component.
    pub(super) fn slots_of(&self, above: KnownComponent<'a>) -> Vec<&'a Component> {
        let elements = above.component.children.iter();
        elements
            .filter_map(|element| match element {
                Element::Component(slot) if stands_for_slot(above.info, slot) => Some(slot),
                _ => None,
            })
            .collect()
    }

    /// Visits every component in `from` and those that `step` returns, each once, parents first.
    pub(super) fn descend(
        &self,
        from: Vec<KnownComponent<'a>>,
        mut step: impl FnMut(KnownComponent<'a>) -> Vec<KnownComponent<'a>>,
    ) {
        let mut seen: HashSet<*const Component> = HashSet::new();
        let mut next: Vec<KnownComponent<'a>> = from.into_iter().rev().collect();
        while let Some(known) = next.pop() {
            if seen.insert(std::ptr::from_ref(known.component)) {
                next.extend(step(known).into_iter().rev());
            }
        }
    }
}
