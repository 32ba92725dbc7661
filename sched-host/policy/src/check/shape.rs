//! Rules about the shape of the tree: numbers of children.

use super::site::{Role, Subject, stands_for_slot};
use crate::element::{Component, Element};
use crate::level::Level;
use sched_core::{Arity, ComponentInfo, Family};
use sched_text::Finding;
use sched_text::Span;

pub(super) fn root(subject: &Subject<'_>) -> Vec<Finding> {
    let policy = subject.policy;
    let mut findings = Vec::new();
    match policy.root.as_slice() {
        [Element::Component(_)] => {}
        [] => findings.push(
            Finding::error(format!("policy `{}` is empty", policy.name))
                .at(policy.span, "expected a component in its braces")
                .help("the smallest policy that works is `fifo { eager { each \"worker\" { worker } } }`"),
        ),
        [other] => findings.push(
            Finding::error(format!("the root of policy `{}` is not a component", policy.name))
                .at(other.span(), "expected a component")
                .help("put a component above it that takes several children, such as `eager { … }`"),
        ),
        [first, second, ..] => findings.push(
            Finding::error(format!("policy `{}` has {} roots", policy.name, policy.root.len()))
                .at(second.span(), "expected the end of the policy")
                .at(first.span(), "this is the root")
                .help("put one of them below the other, or all below one that takes several children"),
        ),
    }
    findings
}

/// The children of a component; `each "machine"` is replaced by its children.
fn children(elements: &[Element]) -> Vec<&Element> {
    elements
        .iter()
        .flat_map(|element| match element {
            Element::Each(each) if each.level == Level::Machine => children(&each.children),
            other => vec![other],
        })
        .collect()
}

pub(super) fn arity(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in &subject.sites {
        match site.role {
            Role::Component(component, Some(entry)) => {
                findings.extend(arity_of_component(component, &entry.info));
            }
            Role::Slot(slot) => {
                findings.extend(exactly_one(&format!("slot `{}`", slot.name), slot.span, &slot.children))
            }
            Role::Each(each) if each.children.is_empty() => findings.push(
                Finding::error(format!("`each \"{}\"` repeats nothing", each.level))
                    .at(each.span, "expected a component in its braces")
                    .help(format!("write `each \"{}\" {{ worker }}`", each.level)),
            ),
            Role::Component(..) | Role::Each(_) | Role::Use(_) => {}
        }
    }
    findings
}

fn arity_of_component(component: &Component, info: &ComponentInfo) -> Option<Finding> {
    let name = format!("`{}`", component.name);
    let is_slot = |child: &Element| matches!(child, Element::Component(node) if stands_for_slot(info, node));
    match info.arity {
        Arity::Leaf => component.children.first().map(|child| {
            Finding::error(format!("{name} takes no child"))
                .at(child.span(), "this is below a leaf")
                .at(component.span, "the leaf")
                .help("close its braces before this, or move the child above the leaf")
        }),
        Arity::One => exactly_one(&name, component.span, &component.children),
        Arity::Many | Arity::ManyAndSlots if component.children.iter().all(is_slot) => Some(
            Finding::error(format!("{name} has no child"))
                .at(component.span, "expected one or more children below")
                .help(format!("write `{} {{ each \"worker\" {{ worker }} }}`", component.name)),
        ),
        // Slots have a rule of their own; kinds of arity newer than this host are left to the component.
        _ => None,
    }
}

fn exactly_one(name: &str, span: Span, elements: &[Element]) -> Option<Finding> {
    match children(elements).as_slice() {
        [] => Some(
            Finding::error(format!("{name} has no child"))
                .at(span, "expected exactly one child below")
                .help("a tree ends in workers: give it a child that leads to one"),
        ),
        [_] => None,
        [_, second, ..] => Some(
            Finding::error(format!("{name} takes one child, and {} are given", children(elements).len()))
                .at(second.span(), "one too many")
                .at(span, "takes one child")
                .help("put a component between that takes several, such as `eager { … }`"),
        ),
    }
}

pub(super) fn each(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in &subject.sites {
        let Role::Each(each) = site.role else { continue };
        // The outermost that repeats is the one to fix.
        let inner = site.repeats.iter().any(|outer| outer.level != Level::Machine);
        if each.level == Level::Machine || inner || !site.owner.takes_one() {
            continue;
        }
        let (owner, owner_span) = site.owner.name();
        findings.push(
            Finding::error(format!("`each \"{}\"` gives {owner} several children, and it takes one", each.level))
                .at(each.span, format!("one child for each {}", each.level))
                .at(owner_span, "takes one child")
                .help(format!(
                    "put a component between that takes several: `eager {{ each \"{}\" {{ … }} }}`",
                    each.level
                )),
        );
    }
    findings
}

/// V2: a component with several children chooses among them, or has slots.
pub(super) fn family(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (component, entry) in subject.known() {
        let chooses = entry.info.family == Family::ResourceMapping;
        if chooses || entry.info.arity != Arity::Many || !several(subject, &component.children) {
            continue;
        }
        let name = &component.name;
        findings.push(
            Finding::error(format!("`{name}` has several children, and is of the {} family", entry.info.family))
                .at(component.span, "does not choose among children")
                .help(format!("give it one child, such as `{name} {{ eager {{ … }} }}`"))
                .help(
                    "or its plugin is wrong: a component that chooses is of the resource-mapping family, or has slots",
                ),
        );
    }
    findings
}

/// Whether these elements may become several components.
fn several(subject: &Subject<'_>, elements: &[Element]) -> bool {
    match children(elements).as_slice() {
        [] | [Element::Component(_)] => false,
        [Element::Use(link)] => {
            let shared = subject.shared(&link.name);
            shared.and_then(|shared| shared.each).is_some_and(|level| level != Level::Machine)
        }
        _ => true,
    }
}

pub(super) fn leaf(subject: &Subject<'_>) -> Vec<Finding> {
    let leaves = subject.known().filter(|(_, entry)| entry.info.arity == Arity::Leaf);
    leaves
        .filter(|(_, entry)| entry.info.family != Family::Worker)
        .map(|(component, entry)| {
            Finding::error(format!("`{}` is a leaf and not a worker", component.name))
                .at(component.span, format!("of the {} family", entry.info.family))
                .help("its plugin is wrong: a component that is not a worker declares children")
        })
        .collect()
}
