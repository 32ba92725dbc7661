//! A policy prepared for the rules: each element with its owner and the `each` around it.

use crate::catalogue::{Catalogue, Entry};
use crate::element::{Component, Each, Element, Policy, Shared, Use};
use crate::level::Level;
use sched_core::{Arity, ComponentInfo};
use sched_text::Span;
use std::collections::HashMap;

/// The policy that the rules examine.
pub(crate) struct Subject<'a> {
    pub policy: &'a Policy,
    pub catalogue: &'a Catalogue,
    /// Every element, parents before children.
    pub sites: Vec<Site<'a>>,
    /// What the policy shares, by name; of two definitions of one name, the first.
    by_name: HashMap<&'a str, &'a Shared>,
}

/// One element at its place.
pub(crate) struct Site<'a> {
    pub role: Role<'a>,
    /// Nearest element above that is not an `each`.
    pub owner: Owner<'a>,
    /// The `each` elements between the owner and this, outermost first.
    pub repeats: Vec<&'a Each>,
    /// Whether it has exactly one instance, because nothing above it repeats.
    pub once: bool,
}

/// Kind of an element, resolved by the catalogue.
#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    /// A component and its catalogue entry.
    Component(&'a Component, Option<&'a Entry>),
    /// A node directly below a component with slots: one of them, if the name is right.
    Slot(&'a Component),
    Each(&'a Each),
    Use(&'a Use),
}

/// The parent of an element.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    Policy,
    Shared(&'a Shared),
    Component(&'a Component, Option<&'a Entry>),
    Slot(&'a Component),
}

impl Owner<'_> {
    /// Whether exactly one child is expected here.
    pub(super) fn takes_one(self) -> bool {
        match self {
            Owner::Slot(_) => true,
            Owner::Component(_, entry) => entry.is_some_and(|entry| entry.info.arity == Arity::One),
            Owner::Policy | Owner::Shared(_) => false,
        }
    }

    /// Its name in messages, and its place.
    pub(super) fn name(self) -> (String, Span) {
        match self {
            Owner::Policy => ("the policy".to_owned(), Span::NONE),
            Owner::Shared(shared) => (format!("shared `{}`", shared.name), shared.span),
            Owner::Component(component, _) => (format!("`{}`", component.name), component.span),
            Owner::Slot(slot) => (format!("slot `{}`", slot.name), slot.span),
        }
    }
}

impl<'a> Subject<'a> {
    pub(super) fn new(policy: &'a Policy, catalogue: &'a Catalogue) -> Subject<'a> {
        let mut by_name = HashMap::new();
        policy.shared.iter().for_each(|shared| _ = by_name.entry(shared.name.as_str()).or_insert(shared));
        let mut subject = Subject { policy, catalogue, sites: Vec::new(), by_name };
        subject.place(&policy.root, Owner::Policy, &[], true);
        for shared in &policy.shared {
            let once = shared.each.is_none_or(|level| level == Level::Machine);
            subject.place(&shared.children, Owner::Shared(shared), &[], once);
        }
        subject
    }

    fn place(&mut self, elements: &'a [Element], owner: Owner<'a>, repeats: &[&'a Each], once: bool) {
        for element in elements {
            let role = match element {
                Element::Component(node) if repeats.is_empty() && is_slot(owner, node) => Role::Slot(node),
                Element::Component(node) => Role::Component(node, self.catalogue.get(&node.name)),
                Element::Each(each) => Role::Each(each),
                Element::Use(link) => Role::Use(link),
            };
            self.sites.push(Site { role, owner, repeats: repeats.to_vec(), once });
            match role {
                Role::Component(node, entry) => self.place(&node.children, Owner::Component(node, entry), &[], once),
                Role::Slot(node) => self.place(&node.children, Owner::Slot(node), &[], once),
                Role::Each(each) => {
                    let inner: Vec<&Each> = repeats.iter().copied().chain([each]).collect();
                    self.place(&each.children, owner, &inner, once && each.level == Level::Machine);
                }
                Role::Use(_) => {}
            }
        }
    }

    /// What is shared under this name.
    pub(crate) fn shared(&self, name: &str) -> Option<&'a Shared> {
        self.by_name.get(name).copied()
    }

    /// Every component that is not a slot.
    pub(super) fn components(&self) -> impl Iterator<Item = (&'a Component, Option<&'a Entry>)> {
        self.sites.iter().filter_map(|site| match site.role {
            Role::Component(component, entry) => Some((component, entry)),
            _ => None,
        })
    }

    /// Every component that the catalogue has.
    pub(super) fn known(&self) -> impl Iterator<Item = (&'a Component, &'a Entry)> {
        self.components().filter_map(|(component, entry)| Some((component, entry?)))
    }
}

/// Whether a node right below `owner` stands for one of its slots.
fn is_slot(owner: Owner<'_>, node: &Component) -> bool {
    match owner {
        Owner::Component(_, Some(entry)) => stands_for_slot(&entry.info, node),
        _ => false,
    }
}

/// Whether a node right below a component stands for one of its slots: all do where it has nothing else.
pub(crate) fn stands_for_slot(info: &ComponentInfo, node: &Component) -> bool {
    match info.arity {
        Arity::Slots => true,
        Arity::ManyAndSlots => info.slots.iter().any(|slot| slot.name == node.name),
        _ => false,
    }
}
