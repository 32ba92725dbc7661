//! Children and parents that are added to a policy, or removed from it.

use super::adjustment::nowhere;
use super::element::{Component, Element, Policy};
use sched_text::{Finding, Findings};
use std::collections::BTreeSet;

/// Changes of the shape of a policy, made together: on a running context, `SchedContext::edit` makes them as one
/// transaction.
///
/// A path names a component as in an [`Adjustment`](super::Adjustment): `eager` is each component of that name,
/// `prio/eager` each one right below a `prio`; paths pass over `each`.
///
/// ```
/// use sched_policy::{Component, PolicyEdit, Source};
///
/// let edit = PolicyEdit::new().add_parent("worker", "best-implementation").remove_parent("fifo").add_parent("eager",
/// "prio"); let edited = edit.apply(Source::find("tree-eager")?.policy()?)?;
/// assert!(edited.to_kdl().contains("prio {\n        eager"));
/// # Ok::<(), sched_text::Findings>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
#[must_use = "an edit does nothing before it is applied"]
pub struct PolicyEdit {
    steps: Vec<Step>,
}

#[derive(Clone, PartialEq, Debug)]
struct Step {
    path: Vec<String>,
    change: Change,
}

#[derive(Clone, PartialEq, Debug)]
enum Change {
    AddChild(Element),
    RemoveChild,
    AddParent(Component),
    RemoveParent,
}

impl PolicyEdit {
    /// No changes.
    pub fn new() -> PolicyEdit {
        PolicyEdit::default()
    }

    /// Adds a last child to the component at `path`.
    pub fn add_child(self, path: &str, child: impl Into<Element>) -> PolicyEdit {
        self.step(path, Change::AddChild(child.into()))
    }

    /// Removes the component at `path`, with everything below.
    pub fn remove_child(self, path: &str) -> PolicyEdit {
        self.step(path, Change::RemoveChild)
    }

    /// Puts a component right above the one at `path`, which becomes its last child.
    pub fn add_parent(self, path: &str, parent: impl Into<Component>) -> PolicyEdit {
        self.step(path, Change::AddParent(parent.into()))
    }

    /// Removes the component at `path`; its children take its place.
    pub fn remove_parent(self, path: &str) -> PolicyEdit {
        self.step(path, Change::RemoveParent)
    }

    fn step(mut self, path: &str, change: Change) -> PolicyEdit {
        self.steps.push(Step { path: path.split('/').map(str::to_owned).collect(), change });
        self
    }

    /// The policy with these changes, made in order. Whether the result is valid is [checked](super::check()) when it
    /// is laid over a machine.
    ///
    /// # Errors
    /// If a path names no component; or if a component of one name is added and removed: what is there to keep the
    /// state of a running one is not known then.
    pub fn apply(&self, mut policy: Policy) -> Result<Policy, Findings> {
        let mut findings = Vec::new();
        let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
        for step in &self.steps {
            step.note_added(&mut added);
            let mut found = step.apply(&mut policy.root, &mut Vec::new(), &mut removed);
            for shared in &mut policy.shared {
                found |= step.apply(&mut shared.children, &mut vec![shared.name.clone()], &mut removed);
            }
            if !found {
                findings.push(nowhere(&policy, &step.path).code("policy::edit"));
            }
        }
        findings.extend(added.intersection(&removed).map(|name| {
            let finding = Finding::error(format!("a component `{name}` is removed, and one is added"));
            finding.help("make two edits, or swap the policy").code("policy::edit")
        }));
        // Places in its text mean nothing any more.
        policy.source = None;
        if findings.is_empty() { Ok(policy) } else { Err(Findings::new("the edit of the policy", findings)) }
    }
}

impl Step {
    /// Changes each of `elements` that is meant, and what is below; `above` are the names above. Returns whether there
    /// was one.
    fn apply(&self, elements: &mut Vec<Element>, above: &mut Vec<String>, removed: &mut BTreeSet<String>) -> bool {
        let (mut found, mut at) = (false, 0);
        while at < elements.len() {
            let component = match &mut elements[at] {
                Element::Component(component) => component,
                Element::Each(each) => {
                    found |= self.apply(&mut each.children, above, removed);
                    at += 1;
                    continue;
                }
                Element::Use(_) => {
                    at += 1;
                    continue;
                }
            };
            above.push(component.name.clone());
            let is_meant = above.ends_with(&self.path);
            found |= is_meant;
            if !(is_meant && matches!(self.change, Change::RemoveChild)) {
                found |= self.apply(&mut component.children, above, removed);
            }
            above.pop();
            at += if is_meant { self.change_at(elements, at, removed) } else { 1 };
        }
        found
    }

    /// Changes the component at this place. Returns the number of elements that stand there now.
    fn change_at(&self, elements: &mut Vec<Element>, at: usize, removed: &mut BTreeSet<String>) -> usize {
        match (&self.change, &mut elements[at]) {
            (Change::AddChild(child), Element::Component(component)) => {
                component.children.push(child.clone());
                1
            }
            (Change::AddParent(parent), _) => {
                let child = elements.remove(at);
                elements.insert(at, parent.clone().child(child).into());
                1
            }
            (Change::RemoveParent, Element::Component(component)) => {
                let children = std::mem::take(&mut component.children);
                let count = children.len();
                removed.insert(component.name.clone());
                elements.splice(at..=at, children);
                count
            }
            (Change::RemoveChild, _) => {
                note_names(&elements.remove(at), removed);
                0
            }
            (Change::AddChild(_) | Change::RemoveParent, Element::Each(_) | Element::Use(_)) => 1,
        }
    }

    fn note_added(&self, added: &mut BTreeSet<String>) {
        match &self.change {
            Change::AddChild(child) => note_names(child, added),
            Change::AddParent(parent) => note_names(&parent.clone().into(), added),
            Change::RemoveChild | Change::RemoveParent => {}
        }
    }
}

fn note_names(element: &Element, names: &mut BTreeSet<String>) {
    if let Element::Component(component) = element {
        names.insert(component.name.clone());
    }
    element.children().iter().for_each(|child| note_names(child, names));
}
