//! Rules about `shared` and `use`.

use super::site::{Role, Subject};
use crate::element::{Element, Policy, Shared, Use};
use crate::level::Level;
use sched_text::Finding;
use sched_text::did_you_mean;

pub(super) fn defined(subject: &Subject<'_>) -> Vec<Finding> {
    let policy = subject.policy;
    let mut findings = Vec::new();
    for (index, shared) in policy.shared.iter().enumerate() {
        if let Some(first) = policy.shared[..index].iter().find(|first| first.name == shared.name) {
            findings.push(
                Finding::error(format!("`shared \"{}\"` is given twice", shared.name))
                    .at(shared.span, "again here")
                    .at(first.span, "first here")
                    .help("give one of them another name"),
            );
        }
        findings.extend(body(shared));
    }
    for site in &subject.sites {
        if let Role::Use(link) = site.role
            && policy.find_shared(&link.name).is_none()
        {
            let names = policy.shared.iter().map(|shared| shared.name.as_str());
            findings.push(
                Finding::error(format!("nothing shared is called `{}`", link.name))
                    .at(link.span, "undefined")
                    .help(did_you_mean(&link.name, names, "shared definitions in this policy"))
                    .help(format!(
                        "add `shared \"{}\" each=\"worker\" {{ … }}` to the policy or to its file",
                        link.name
                    )),
            );
        }
    }
    findings
}

fn body(shared: &Shared) -> Option<Finding> {
    let name = &shared.name;
    match shared.children.as_slice() {
        [Element::Component(_)] => None,
        [] => Some(
            Finding::error(format!("`shared \"{name}\"` is empty"))
                .at(shared.span, "expected a component in its braces")
                .help(format!("write `shared \"{name}\" each=\"worker\" {{ worker }}`")),
        ),
        [Element::Each(each)] => Some(
            Finding::error(format!("`shared \"{name}\"` is a repetition and not a component"))
                .at(each.span, "expected a component")
                .help(format!("say it in the head: `shared \"{name}\" each=\"{}\" {{ … }}`", each.level)),
        ),
        [other] => Some(
            Finding::error(format!("`shared \"{name}\"` is not a component"))
                .at(other.span(), "expected a component")
                .help("a second name for what is shared already is not needed: use the first"),
        ),
        [_, second, ..] => Some(
            Finding::error(format!("`shared \"{name}\"` is {} components", shared.children.len()))
                .at(second.span(), "one too many")
                .at(shared.span, "one component")
                .help("share each under a name of its own"),
        ),
    }
}

pub(super) fn single(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in &subject.sites {
        let Role::Use(link) = site.role else { continue };
        let Some(shared) = subject.policy.find_shared(&link.name) else { continue };
        let Some(level) = shared.each.filter(|level| *level != Level::Machine) else { continue };
        if site.once && site.owner.takes_one() {
            let (owner, owner_span) = site.owner.name();
            findings.push(
                Finding::error(format!("`use \"{}\"` gives {owner} several children, and it takes one", link.name))
                    .at(link.span, format!("one child for each {level}"))
                    .at(owner_span, "takes one child")
                    .help(format!("put a component between that takes several: `eager {{ use \"{}\" }}`", link.name)),
            );
        }
    }
    findings
}

pub(super) fn unused(subject: &Subject<'_>) -> Vec<Finding> {
    let policy = subject.policy;
    let mut used = Vec::new();
    follow(policy, &policy.root, &mut used);
    // A misspelt `use` makes what it means look unused.
    if used.iter().any(|name| policy.find_shared(name).is_none()) {
        return Vec::new();
    }
    let unused = policy.shared.iter().filter(|shared| !used.contains(&shared.name.as_str()));
    unused
        .map(|shared| {
            Finding::warning(format!("nothing uses `shared \"{}\"`", shared.name))
                .at(shared.span, "unused")
                .help(format!("link to it with `use \"{}\"`, or leave it out", shared.name))
        })
        .collect()
}

/// Adds the names that `elements` use, directly or through others.
fn follow<'a>(policy: &'a Policy, elements: &'a [Element], used: &mut Vec<&'a str>) {
    for link in links(elements) {
        if !used.contains(&link.name.as_str()) {
            used.push(&link.name);
            if let Some(shared) = policy.find_shared(&link.name) {
                follow(policy, &shared.children, used);
            }
        }
    }
}

pub(super) fn cycle(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut done = Vec::new();
    for shared in &subject.policy.shared {
        search(subject.policy, shared, &mut Vec::new(), &mut done, &mut findings);
    }
    findings
}

/// Depth-first search of the definitions below `shared`; `above` are those that lead to it.
fn search<'a>(
    policy: &'a Policy,
    shared: &'a Shared,
    above: &mut Vec<&'a str>,
    done: &mut Vec<&'a str>,
    findings: &mut Vec<Finding>,
) {
    if done.contains(&shared.name.as_str()) {
        return;
    }
    above.push(&shared.name);
    for link in links(&shared.children) {
        if let Some(start) = above.iter().position(|name| *name == link.name) {
            let round: Vec<&str> = above[start..].iter().copied().chain([link.name.as_str()]).collect();
            findings.push(
                Finding::error(format!("`shared \"{}\"` is below itself", link.name))
                    .at(link.span, format!("leads back: {}", round.join(" → ")))
                    .help("leave out one `use` of the round"),
            );
        } else if let Some(next) = policy.find_shared(&link.name) {
            search(policy, next, above, done, findings);
        }
    }
    above.pop();
    done.push(&shared.name);
}

fn links(elements: &[Element]) -> Vec<&Use> {
    elements
        .iter()
        .flat_map(|element| match element {
            Element::Use(link) => vec![link],
            other => links(other.children()),
        })
        .collect()
}
