//! Rules about `shared` and `use`.

use super::site::{Role, Subject};
use crate::element::{Element, Shared, Use};
use crate::level::Level;
use sched_text::did_you_mean;
use sched_text::{Finding, Span};
use std::collections::{HashMap, HashSet};

pub(super) fn defined(subject: &Subject<'_>) -> Vec<Finding> {
    let policy = subject.policy;
    let mut findings = Vec::new();
    for shared in &policy.shared {
        if let Some(first) = subject.shared(&shared.name).filter(|first| !std::ptr::eq(*first, shared)) {
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
            && subject.shared(&link.name).is_none()
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
        let Some(shared) = subject.shared(&link.name) else { continue };
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

/// A part that contexts share is the same in all of them, so everything below it is, and no team.
pub(super) fn between(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for shared in subject.policy.shared.iter().filter(|shared| shared.between_contexts) {
        if shared.each == Some(Level::CombinedWorker) {
            findings.push(no_teams(shared, shared.span));
        }
        walk(&shared.children, &mut |element| match element {
            Element::Each(each) if each.level == Level::CombinedWorker => findings.push(no_teams(shared, each.span)),
            Element::Use(link) => {
                if let Some(below) = subject.shared(&link.name).filter(|below| !below.between_contexts) {
                    findings.push(
                        Finding::error(format!("`{}` stands below what contexts share, and is not shared", below.name))
                            .at(link.span, format!("below `shared \"{}\" between-contexts=#true`", shared.name))
                            .at(below.span, "defined here")
                            .help(format!("write `shared \"{}\" between-contexts=#true`", below.name)),
                    );
                }
            }
            Element::Each(_) | Element::Component(_) => {}
        });
    }
    findings
}

fn no_teams(shared: &Shared, span: Span) -> Finding {
    Finding::error(format!("combined workers cannot be in `{}`, which contexts share", shared.name))
        .at(span, "combined workers")
        .help("a team belongs to one context: define its leaves without `between-contexts`")
}

fn walk<'a>(elements: &'a [Element], visit: &mut impl FnMut(&'a Element)) {
    for element in elements {
        visit(element);
        walk(element.children(), visit);
    }
}

pub(super) fn unused(subject: &Subject<'_>) -> Vec<Finding> {
    let policy = subject.policy;
    let mut used = HashSet::new();
    follow(subject, &policy.root, &mut used);
    // A misspelt `use` makes what it means look unused.
    if used.iter().any(|name| subject.shared(name).is_none()) {
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
fn follow<'a>(subject: &Subject<'a>, elements: &'a [Element], used: &mut HashSet<&'a str>) {
    let mut next = links(elements);
    while let Some(link) = next.pop() {
        if used.insert(&link.name)
            && let Some(shared) = subject.shared(&link.name)
        {
            next.extend(links(&shared.children));
        }
    }
}

pub(super) fn cycle(subject: &Subject<'_>) -> Vec<Finding> {
    let mut search = Search { subject, above: HashMap::new(), done: HashSet::new(), findings: Vec::new() };
    for shared in &subject.policy.shared {
        search.below(shared);
    }
    search.findings
}

/// Depth-first search for definitions that lead back to themselves.
struct Search<'a> {
    subject: &'a Subject<'a>,
    /// The definitions that lead to the current one, with their depths.
    above: HashMap<&'a str, usize>,
    done: HashSet<&'a str>,
    findings: Vec<Finding>,
}

impl<'a> Search<'a> {
    /// Searches below one definition, without recursion: a chain of definitions may be long.
    fn below(&mut self, top: &'a Shared) {
        let mut path: Vec<(&'a Shared, std::vec::IntoIter<&'a Use>)> = Vec::new();
        let mut next = Some(top);
        loop {
            if let Some(shared) = next.take().filter(|shared| !self.done.contains(shared.name.as_str())) {
                self.above.insert(&shared.name, path.len());
                path.push((shared, links(&shared.children).into_iter()));
            }
            let Some((shared, links)) = path.last_mut() else { return };
            let Some(link) = links.next() else {
                self.above.remove(shared.name.as_str());
                self.done.insert(&shared.name);
                path.pop();
                continue;
            };
            match self.above.get(link.name.as_str()) {
                Some(start) => {
                    let round = path[*start..].iter().map(|(shared, _)| shared.name.as_str());
                    let round: Vec<&str> = round.chain([link.name.as_str()]).collect();
                    self.findings.push(leads_back(link, &round));
                }
                None => next = self.subject.shared(&link.name),
            }
        }
    }
}

fn leads_back(link: &Use, round: &[&str]) -> Finding {
    Finding::error(format!("`shared \"{}\"` is below itself", link.name))
        .at(link.span, format!("leads back: {}", round.join(" → ")))
        .help("leave out one `use` of the round")
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
