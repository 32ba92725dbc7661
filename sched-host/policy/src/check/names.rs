//! Rules about names: components, parameters and slots exist, have the right type, and are given once.

use super::site::{Owner, Role, Subject, stands_for_slot};
use crate::catalogue::Catalogue;
use crate::element::{Component, Element, Setting};
use crate::print;
use sched_core::{Arity, ParamInfo, ParamKind, SlotInfo, Value};
use sched_text::Finding;
use sched_text::did_you_mean;
use std::collections::HashMap;

/// Words of the language, which no component can have as its name.
pub const WORDS: [&str; 5] = sched_core::POLICY_WORDS;

pub(super) fn component(subject: &Subject<'_>) -> Vec<Finding> {
    // One finding for each name, however often the policy uses it.
    let mut unknown: Vec<Vec<&Component>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut findings = Vec::new();
    for (component, entry) in subject.components() {
        let name = &component.name;
        if WORDS.contains(&name.as_str()) {
            findings.push(
                Finding::error(format!("a component is called `{name}`, a word of the language"))
                    .at(component.span, "not a component")
                    .help("a component of this name cannot be used in a policy: rename it in its plugin"),
            );
        } else if entry.is_none() {
            let place = *places.entry(name).or_insert(unknown.len());
            match unknown.get_mut(place) {
                Some(places) => places.push(component),
                None => unknown.push(vec![component]),
            }
        }
    }
    if subject.catalogue.is_empty() && !unknown.is_empty() {
        findings.push(no_component_at_all(subject.catalogue));
    } else {
        // An override that matches nothing is reported by its own rule.
        let overridden = |name: &str| subject.policy.overrides.iter().any(|chosen| chosen.component == *name);
        unknown.retain(|places| subject.catalogue.contest(&places[0].name).is_none() || !overridden(&places[0].name));
        findings.extend(unknown.iter().map(|places| unknown_component(subject.catalogue, places)));
    }
    findings
}

fn no_component_at_all(catalogue: &Catalogue) -> Finding {
    let finding = Finding::error(format!("no component plugins were found{}", catalogue.places()));
    catalogue.how_to_find().into_iter().fold(finding, Finding::help)
}

/// The error about a name that these places use and no component has.
fn unknown_component(catalogue: &Catalogue, places: &[&Component]) -> Finding {
    let name = &places[0].name;
    let point = |finding: Finding, label: &str| {
        let finding = finding.at(places[0].span, label);
        places[1..].iter().fold(finding, |finding, place| finding.at(place.span, "and here"))
    };
    let Some((entries, owner)) = catalogue.contest(name) else {
        let names = catalogue.iter().map(|entry| entry.info.name.as_str());
        let finding = point(Finding::error(format!("there is no component `{name}`")), "unknown component");
        return finding.help(did_you_mean(name, names, "components")).help(catalogue.origin());
    };
    let mut offers: Vec<String> = entries.iter().map(ToString::to_string).collect();
    if entries.iter().all(|entry| entry.info.package != owner) {
        offers.push(format!("{owner} (compiled in, and refused)"));
    }
    let stranger = entries.iter().find(|entry| entry.info.package != owner).map_or("", |entry| entry.short_name());
    let finding = Finding::error(format!("component `{name}` is offered by {}", offers.join(" and by ")));
    point(finding, "which one is meant?")
        .help(catalogue.how_to_choose(name, stranger))
        .help(format!("or take {stranger} out of the search path; from={owner:?} means the stock component"))
}

pub(super) fn parameter(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (component, entry) in subject.components() {
        let mut set: HashMap<&str, &Setting> = HashMap::new();
        for setting in &component.params {
            let name = &setting.name;
            if let Some(first) = set.get(&**name) {
                findings.push(
                    Finding::error(format!("`{name}` of `{}` is set twice", component.name))
                        .at(setting.span, "again here")
                        .at(first.span, "first here")
                        .help("leave one of them out"),
                );
            } else {
                set.insert(name, setting);
            }
            let Some(info) = entry.map(|entry| &entry.info) else { continue };
            let Some(param) = info.param(name) else {
                let names = info.params.iter().map(|param| param.name.as_str());
                findings.push(
                    Finding::error(format!("`{}` has no parameter `{name}`", component.name))
                        .at(setting.span, "unknown parameter")
                        .help(did_you_mean(name, names, &format!("parameters of `{}`", component.name))),
                );
                continue;
            };
            if setting.value.clone().coerce(&param.kind).is_none() {
                let found = print::value(&setting.value);
                let expected = match (&param.kind, &setting.value) {
                    (ParamKind::Int { min, max: i64::MAX }, Value::Float(number)) if *number >= i64::MAX as f64 => {
                        format!("a whole number from {min} to {}", i64::MAX)
                    }
                    (ParamKind::Float { .. }, Value::Float(number)) if !number.is_finite() => {
                        format!("{} that is finite", param.kind)
                    }
                    (kind, _) => kind.to_string(),
                };
                findings.push(
                    Finding::error(format!("`{name}` of `{}` cannot be {found}", component.name))
                        .at(setting.value_span, format!("found {found}, expected {expected}"))
                        .help(explain(param)),
                );
            }
        }
    }
    findings
}

/// One line that describes a parameter.
fn explain(param: &ParamInfo) -> String {
    let unit = if param.unit.is_empty() { String::new() } else { format!(", in {}", param.unit) };
    format!("`{}`: {}{unit} (default {})", param.name, param.doc, print::value(&param.default))
}

pub(super) fn slots(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (component, entry) in subject.known().filter(|(_, entry)| !entry.info.slots.is_empty()) {
        let slots = &entry.info.slots;
        let only_slots = entry.info.arity == Arity::Slots;
        let mut seen: Vec<&Component> = Vec::new();
        for child in &component.children {
            let node = match child {
                Element::Component(node) if stands_for_slot(&entry.info, node) => node,
                _ if only_slots => {
                    findings.push(
                        Finding::error(format!("below `{}` stand its slots", component.name))
                            .at(child.span(), "expected a slot")
                            .help(slot_names(component, slots.iter().map(|slot| slot.name.as_str())))
                            .help("`each` and `use` stand inside a slot"),
                    );
                    continue;
                }
                _ => continue,
            };
            findings.extend(wrong_slot(component, slots, node, &seen));
            seen.push(node);
        }
        let missing: Vec<&SlotInfo> =
            slots.iter().filter(|slot| !slot.optional && seen.iter().all(|node| node.name != slot.name)).collect();
        findings.extend(missing_slots(component, &missing));
        if only_slots && component.children.is_empty() && missing.is_empty() {
            findings.push(
                Finding::warning(format!("`{}` is left out, as it has no child", component.name))
                    .at(component.span, "none of its slots is filled")
                    .help(format!("fill one of the {}", slot_names(component, slots.iter().map(|slot| &*slot.name)))),
            );
        }
    }
    for site in &subject.sites {
        if let (Role::Slot(slot), Owner::Component(component, _)) = (site.role, site.owner)
            && let Some(setting) = slot.params.first()
        {
            findings.push(
                Finding::error(format!("`{}` is a slot of `{}` and has no parameters", slot.name, component.name))
                    .at(setting.span, "not here")
                    .help("parameters are set at a component: at the slot's child, or at the one that has the slot"),
            );
        }
    }
    findings
}

/// What is wrong with a slot, given those before it.
fn wrong_slot(component: &Component, slots: &[SlotInfo], node: &Component, before: &[&Component]) -> Option<Finding> {
    if let Some(first) = before.iter().find(|first| first.name == node.name) {
        return Some(
            Finding::error(format!("slot `{}` of `{}` is given twice", node.name, component.name))
                .at(node.span, "again here")
                .at(first.span, "first here")
                .help("leave one of them out"),
        );
    }
    if slots.iter().any(|slot| slot.name == node.name) {
        return None;
    }
    let names = slots.iter().map(|slot| slot.name.as_str());
    Some(
        Finding::error(format!("`{}` has no slot `{}`", component.name, node.name))
            .at(node.span, "unknown slot")
            .help(did_you_mean(&node.name, names, &format!("slots of `{}`", component.name))),
    )
}

fn missing_slots(component: &Component, missing: &[&SlotInfo]) -> Option<Finding> {
    if missing.is_empty() {
        return None;
    }
    let names: Vec<String> = missing.iter().map(|slot| format!("`{}`", slot.name)).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    let finding = Finding::error(format!("`{}` lacks its slot{plural} {}", component.name, names.join(" and ")))
        .at(component.span, format!("expected {} below", names.join(" and ")));
    let help = |finding: Finding, slot: &&SlotInfo| finding.help(format!("add `{} {{ … }}`: {}", slot.name, slot.doc));
    Some(missing.iter().fold(finding, help))
}

fn slot_names<'a>(component: &Component, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    format!("slots of `{}`: {}", component.name, names.join(", "))
}
