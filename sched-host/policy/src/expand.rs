//! Expansion of a policy on a machine to a plan.

mod groups;
mod order;

use super::catalogue::{Catalogue, Entry};
use super::check;
use super::check::stands_for_slot;
use super::element::{Component, Each, Element, Policy, Shared, Use};
use super::leaves::check_leaves;
use super::level::Level;
use super::machine::{Group, Machine};
use super::paths::check_paths;
use super::plan::TreePlan;
use groups::LevelGroups;
use sched_core::{Arch, ArchSet, Arity, Family, Params, WorkerId, WorkerSet};
use sched_text as text;
use sched_text::Span;
use sched_text::{Finding, Findings};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Lays `policy` over `machine`: one node for each component that will exist there.
///
/// An `each` without a matching group disappears, and so does a component that loses all its children that way. Every
/// worker of the machine has exactly one leaf.
///
/// # Errors
/// All findings of [`check`](super::check()), and those that depend on the machine: a leaf for several workers, a
/// component that takes one child and would have several, workers without a leaf or with several.
pub fn expand(policy: &Policy, catalogue: &Catalogue, machine: &dyn Machine) -> Result<TreePlan, Findings> {
    lay(policy, catalogue, machine, check::check)
}

/// Lays `policy` over `machine` without checking the rules on progress (V1, V3 and V5), so that tests can run policies
/// that stall.
///
/// # Errors
/// As for [`expand`].
pub fn expand_unchecked(policy: &Policy, catalogue: &Catalogue, machine: &dyn Machine) -> Result<TreePlan, Findings> {
    lay(policy, catalogue, machine, check::check_structure)
}

fn lay(
    policy: &Policy,
    catalogue: &Catalogue,
    machine: &dyn Machine,
    check: fn(&Policy, &Catalogue) -> Vec<Finding>,
) -> Result<TreePlan, Findings> {
    let policy = &policy.located();
    let fail = |findings: Vec<Finding>| {
        let findings = findings.into_iter().map(|finding| finding.in_source(policy.source.as_ref())).collect();
        Findings::new(format!("policy `{}`", policy.name), findings)
    };
    let findings = check(policy, catalogue);
    if findings.iter().any(Finding::is_error) {
        return Err(fail(findings));
    }
    let catalogue = &catalogue.overridden(&policy.overrides);
    let count = u32::try_from(machine.workers()).unwrap_or(u32::MAX);
    let mut expansion = Expansion {
        policy,
        catalogue,
        machine,
        archs: (0..count).map(|worker| machine.arch(WorkerId(worker))).collect(),
        combined: OnceCell::new(),
        present: machine.present(),
        groups: HashMap::new(),
        drafts: Vec::new(),
        instances: HashMap::new(),
        // The check guarantees that each name is given once.
        shared: policy.shared.iter().map(|shared| (shared.name.as_str(), shared)).collect(),
        unfilled: None,
        findings: Vec::new(),
        reported: HashSet::new(),
    };
    let everything = Scope {
        workers: machine.present(),
        place: "machine".to_owned(),
        path: String::new(),
        depth: 0,
        reach: Reach::Present,
    };
    let root = expansion.elements(&policy.root, &everything).first().copied();
    let Some(root) = root.filter(|_| expansion.findings.is_empty()) else {
        if expansion.findings.is_empty() {
            expansion.findings.push(expansion.nothing_left());
        }
        return Err(fail(expansion.findings));
    };
    let plan = expansion.plan(root);
    let mut findings = check_leaves(&plan, policy, &everything.workers, count);
    findings.extend(check_paths(&plan));
    if findings.is_empty() { Ok(plan) } else { Err(fail(findings)) }
}

/// The part of the machine that elements are expanded for.
struct Scope {
    workers: WorkerSet,
    place: String,
    path: String,
    /// Number of components above.
    depth: usize,
    reach: Reach,
}

/// The workers that an element is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Reach {
    /// Those that the policy is laid over.
    Present,
    /// All of the machine: the element is shared between contexts, so that it is the same in all of them.
    Machine,
}

/// Maximum number of components on a path from the root to a leaf: tasks pass them in nested calls.
const DEEPEST: usize = 128;

impl Scope {
    /// The scope of a child: same workers, path extended by `step`.
    fn below(&self, step: &str) -> Scope {
        let (workers, place) = (self.workers.clone(), self.place.clone());
        Scope { workers, place, path: join(&self.path, step), depth: self.depth + 1, reach: self.reach }
    }

    fn inside(&self, group: Group) -> Scope {
        Scope {
            path: join(&self.path, &group.label),
            workers: group.workers,
            place: group.label,
            depth: self.depth,
            reach: self.reach,
        }
    }
}

fn join(path: &str, step: &str) -> String {
    if path.is_empty() { step.to_owned() } else { format!("{path}/{step}") }
}

/// A node before nodes are ordered; children are indices of drafts.
struct Draft {
    entry: Entry,
    params: Params,
    children: Vec<(usize, Option<String>)>,
    leaf_worker: Option<WorkerId>,
    place: String,
    path: String,
    reach: Reach,
    span: Span,
}

struct Expansion<'a> {
    policy: &'a Policy,
    catalogue: &'a Catalogue,
    machine: &'a dyn Machine,
    /// The architecture of each simple worker.
    archs: Vec<Arch>,
    /// Members of each combined worker, computed on demand: most policies use none, and a large machine has many.
    combined: OnceCell<Vec<WorkerSet>>,
    /// The workers that the policy is laid over.
    present: WorkerSet,
    groups: HashMap<(Level, Option<Arch>, Reach), Rc<LevelGroups>>,
    drafts: Vec<Draft>,
    /// Drafts of a shared definition for a group, by name and number of the group.
    instances: HashMap<(&'a str, usize), Vec<usize>>,
    /// What the policy shares, by name.
    shared: HashMap<&'a str, &'a Shared>,
    /// A component that no machine has: all its slots may be left out, and the policy fills none.
    unfilled: Option<&'a Component>,
    findings: Vec<Finding>,
    /// Rules and places of the findings.
    reported: HashSet<(String, usize)>,
}

impl<'a> Expansion<'a> {
    /// The drafts of these elements; none for what this machine lacks.
    fn elements(&mut self, elements: impl IntoIterator<Item = &'a Element>, scope: &Scope) -> Vec<usize> {
        let mut drafts = Vec::new();
        let mut linked = HashSet::new();
        for element in elements {
            let found = match element {
                Element::Component(component) => self.component(component, scope).into_iter().collect(),
                Element::Each(each) => self.each(each, scope),
                Element::Use(link) => self.link(link, scope),
            };
            for draft in found {
                // Two paths to one shared component are one link.
                if linked.insert(draft) {
                    drafts.push(draft);
                }
            }
        }
        drafts
    }

    fn each(&mut self, each: &'a Each, scope: &Scope) -> Vec<usize> {
        let mut drafts = Vec::new();
        let groups = self.groups(each.level, each.arch, scope.reach);
        for number in self.near(&groups, &scope.workers) {
            let mut group = groups.all[number].clone();
            match each.level {
                Level::CombinedWorker if self.encloses(&scope.workers, &group.workers) => {}
                _ => group.workers.intersect_with(&scope.workers),
            }
            if let Some(only) = &each.only {
                match each.level {
                    Level::CombinedWorker if self.encloses(only, &group.workers) => {}
                    _ => group.workers.intersect_with(only),
                }
            }
            if let Some(except) = &each.except {
                let mut without = self.with_members(&group.workers);
                without.intersect_with(except);
                match each.level {
                    // A team without a member is another team.
                    Level::CombinedWorker if !without.is_empty() => group.workers = WorkerSet::new(),
                    _ => without.iter().for_each(|worker| _ = group.workers.remove(worker)),
                }
            }
            if !group.workers.is_empty() {
                drafts.extend(self.elements(&each.children, &scope.inside(group)));
            }
        }
        drafts
    }

    fn link(&mut self, link: &Use, scope: &Scope) -> Vec<usize> {
        let Some(shared) = self.shared.get(link.name.as_str()).copied() else { return Vec::new() };
        let reach = if shared.between_contexts { Reach::Machine } else { scope.reach };
        let groups = self.groups(shared.each.unwrap_or(Level::Machine), shared.arch, reach);
        let near = self.near(&groups, &scope.workers);
        // Of an instance that reaches further, the workers that this policy is laid over count.
        let here = |number: usize| {
            let mut workers = groups.all[number].workers.clone();
            if reach != scope.reach {
                workers.intersect_with(&self.present);
            }
            workers
        };
        let numbers = |linked: &dyn Fn(&WorkerSet) -> bool| -> Vec<usize> {
            near.iter().copied().filter(|number| linked(&here(*number))).collect()
        };
        let mut linked = numbers(&|workers| self.encloses(&scope.workers, workers));
        if linked.is_empty() {
            linked = numbers(&|workers| self.encloses(workers, &scope.workers));
        }
        let mut drafts = Vec::new();
        for number in linked {
            drafts.extend(self.instance(shared, number, groups.all[number].clone(), (scope.depth, reach)));
        }
        drafts
    }

    fn instance(&mut self, shared: &'a Shared, number: usize, group: Group, at: (usize, Reach)) -> Vec<usize> {
        let (depth, reach) = at;
        let key = (shared.name.as_str(), number);
        if let Some(drafts) = self.instances.get(&key) {
            return drafts.clone();
        }
        let top = Scope { workers: WorkerSet::new(), place: String::new(), path: shared.name.clone(), depth, reach };
        let scope = match shared.each {
            Some(_) => top.inside(group),
            None => Scope { workers: group.workers, place: "machine".to_owned(), ..top },
        };
        let drafts = self.elements(&shared.children, &scope);
        self.instances.insert(key, drafts.clone());
        drafts
    }

    fn component(&mut self, component: &'a Component, scope: &Scope) -> Option<usize> {
        // The check guarantees that the catalogue has every component.
        let entry = self.catalogue.get(&component.name)?.clone();
        if scope.depth >= DEEPEST {
            self.report_once(too_deep(component));
            return None;
        }
        let scope = scope.below(&component.name);
        let mut leaf_worker = None;
        let children = if entry.info.family == Family::Worker {
            leaf_worker = Some(self.the_worker(component, entry.info.combined, &scope)?);
            Vec::new()
        } else {
            self.children(component, &entry, &scope)?
        };
        let params = Params::from_values(entry.info.params.iter().map(|param| {
            let set = component.params.iter().find(|setting| setting.name == param.name);
            let set = set.and_then(|setting| setting.value.clone().coerce(&param.kind));
            (param.name.clone(), set.unwrap_or_else(|| param.default.clone()))
        }));
        let Scope { place, path, reach, .. } = scope;
        self.drafts.push(Draft { entry, params, children, leaf_worker, place, path, reach, span: component.span });
        Some(self.drafts.len() - 1)
    }

    /// The one worker of a leaf, simple or combined as the leaf requires.
    fn the_worker(&mut self, leaf: &Component, combined: bool, scope: &Scope) -> Option<WorkerId> {
        let level = if combined { Level::CombinedWorker } else { Level::Worker };
        let mut workers = scope.workers.iter();
        let here = match (workers.next(), workers.next()) {
            (Some(worker), None) => match (combined, self.combined_number(worker)) {
                (true, Some(_)) | (false, None) => return Some(worker),
                (true, None) => format!("`{}` is for combined workers, and stands for one that is simple", leaf.name),
                (false, Some(_)) => format!("`{}` is for simple workers, and stands for a combined one", leaf.name),
            },
            _ => format!("`{}` stands for {} workers", leaf.name, scope.workers.len()),
        };
        let finding = Finding::error(here)
            .at(leaf.span, format!("{} here: {}", scope.place, text::workers(&scope.workers)))
            .help(format!("write `each \"{level}\" {{ {} }}` for one leaf for each {}", leaf.name, words(level)))
            .help("why: a leaf hands tasks to exactly one worker")
            .breaks("V4")
            .code("policy::leaf");
        self.report_once(finding);
        None
    }

    /// The children of a component with their slots; `None` if all disappear, and the component with them.
    fn children(
        &mut self,
        component: &'a Component,
        entry: &Entry,
        scope: &Scope,
    ) -> Option<Vec<(usize, Option<String>)>> {
        let mut children: Vec<(usize, Option<String>)> = Vec::new();
        if entry.info.arity != Arity::Slots {
            let is_slot =
                |child: &Element| matches!(child, Element::Component(node) if stands_for_slot(&entry.info, node));
            let drafts = self.elements(component.children.iter().filter(|child| !is_slot(child)), scope);
            if drafts.is_empty() {
                return None;
            }
            if entry.info.arity == Arity::One {
                self.at_most_one(&format!("`{}`", component.name), component.span, &drafts, scope);
            }
            children.extend(drafts.into_iter().map(|draft| (draft, None)));
        }
        self.fill_slots(component, entry, scope, &mut children);
        if component.children.is_empty() {
            self.unfilled = self.unfilled.or(Some(component));
        }
        (!children.is_empty()).then_some(children)
    }

    /// Adds the children in slots.
    fn fill_slots(
        &mut self,
        component: &'a Component,
        entry: &Entry,
        scope: &Scope,
        children: &mut Vec<(usize, Option<String>)>,
    ) {
        let errors = self.findings.len();
        let mut vanished = Vec::new();
        for slot in &entry.info.slots {
            let nodes = component.children.iter().filter_map(|child| match child {
                Element::Component(node) if node.name == slot.name => Some(node),
                _ => None,
            });
            for node in nodes {
                let drafts = self.elements(&node.children, &scope.below(&slot.name));
                self.at_most_one(&format!("slot `{}`", slot.name), node.span, &drafts, scope);
                if drafts.is_empty() && !slot.optional {
                    vanished.push(node);
                }
                children.extend(drafts.first().map(|draft| (*draft, Some(slot.name.clone()))));
            }
        }
        if let (false, Some(node), true) = (children.is_empty(), vanished.first(), self.findings.len() == errors) {
            let finding = Finding::error(format!("slot `{}` is empty on this machine", node.name))
                .at(node.span, format!("no worker below, for {}: {}", scope.place, text::workers(&scope.workers)))
                .help(self.inventory())
                .help("why: a component with slots needs a child in each; give this one workers that the machine has")
                .breaks("V7")
                .code("policy::slots");
            self.report_once(finding);
        }
    }

    /// The policy has no components on this machine.
    fn nothing_left(&self) -> Finding {
        let finding = match self.unfilled {
            Some(component) => {
                let none = Finding::error(format!("nothing is left of policy `{}`", self.policy.name));
                none.at(component.span, "left out, as none of its slots is filled").help("fill one, with workers in it")
            }
            None => Finding::error(format!("nothing is left of policy `{}` on this machine", self.policy.name))
                .at(self.policy.span, "every `each` in it is empty")
                .help(self.inventory()),
        };
        finding.breaks("V4").code("policy::empty")
    }

    fn at_most_one(&mut self, name: &str, span: Span, drafts: &[usize], scope: &Scope) {
        if drafts.len() > 1 {
            let finding = Finding::error(format!("{name} takes one child, and gets {} on this machine", drafts.len()))
                .at(span, format!("for {}: {}", scope.place, text::workers(&scope.workers)))
                .help("put a component between that takes several, such as `eager { … }`")
                .breaks("V2")
                .code("policy::arity");
            self.report_once(finding);
        }
    }

    /// Reports a finding once, not for each worker or group.
    fn report_once(&mut self, finding: Finding) {
        let place = finding.place().map(|place| (finding.rule().to_owned(), place.offset()));
        if place.is_none_or(|place| self.reported.insert(place)) {
            self.findings.push(finding);
        }
    }

    /// The workers of the machine, by architecture.
    fn inventory(&self) -> String {
        let archs: ArchSet = self.archs.iter().copied().collect();
        let counts: Vec<String> =
            archs.iter().map(|arch| format!("{} × {arch}", self.workers_of(arch).count())).collect();
        format!("workers of this machine: {}", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") })
    }
}

fn too_deep(component: &Component) -> Finding {
    Finding::error(format!("`{}` has {DEEPEST} components above it, the maximum", component.name))
        .at(component.span, "too deep")
        .help("leave out components above it, or shared definitions that lead to it")
        .help("why: a task passes the components from the root to a leaf in nested calls")
        .breaks("V6")
        .code("policy::depth")
}

/// Name of one group of a level of leaves.
fn words(level: Level) -> &'static str {
    if level == Level::CombinedWorker { "combined worker" } else { "worker" }
}
