//! `mct.beta=2.0`: a parameter that is set from outside the text of a policy.

use super::element::{Component, Element, Policy, Setting};
use super::parse;
use sched_text::kdl::{Language, Reader};
use sched_text::{Finding, Findings, Span, did_you_mean};
use std::collections::BTreeSet;
use std::fmt;

const LANGUAGE: Language = Language { name: "policy", node: "component", rule: "V7" };

/// A parameter that is set from outside the text of a policy: `mct.beta=2.0`, on the command line `--set mct.beta=2.0`.
///
/// Before the point stands a component; where the policy has several of that name, all are meant. A path says which:
/// `mct/prio` is each `prio` right below an `mct`, `leaf/worker` the `worker` at the top of the shared definition
/// `leaf`. Paths name components and slots, and pass over `each`. After the sign stands a value as in a policy.
///
/// ```
/// use sched_policy::{Adjustment, Source};
///
/// let policy = Source::find("tree-heft")?.policy()?;
/// let adjusted = policy.adjusted(&[Adjustment::parse("mct.beta=2.0")?])?;
/// assert_eq!(adjusted.name, "tree-heft+mct.beta=2.0");
/// # Ok::<(), sched_text::Findings>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Adjustment {
    /// Names from the first to the component itself.
    path: Vec<String>,
    setting: Setting,
}

impl Adjustment {
    /// Reads `NODE.PARAMETER=VALUE`.
    ///
    /// # Errors
    /// If the text has another form, or the value is not one of a policy.
    pub fn parse(text: &str) -> Result<Adjustment, Findings> {
        let fail = |findings: Vec<Finding>| Findings::new(format!("setting `{text}`"), findings);
        let shape = || {
            let finding = Finding::error(format!("`{text}` sets no parameter of a component"));
            let finding = finding.help("write `component.parameter=value`, such as `mct.beta=2.0`");
            fail(vec![finding.code("policy::setting")])
        };
        let (left, value) = text.split_once('=').ok_or_else(shape)?;
        let (node, name) = left.rsplit_once('.').ok_or_else(shape)?;
        let path: Vec<String> = node.split('/').map(str::to_owned).collect();
        if name.is_empty() || path.iter().any(String::is_empty) {
            return Err(shape());
        }
        let mut reader = Reader::new(LANGUAGE, &format!("--set {node}.…"), &format!("it {name}={value}"));
        let document = reader.document();
        let setting = match document.as_ref().map(|document| document.nodes()) {
            Some([only]) if only.children().is_none() => match only.entries() {
                [entry] => parse::setting(&mut reader, node, entry),
                _ => return Err(shape()),
            },
            Some(_) => return Err(shape()),
            None => None,
        };
        if document.is_none() {
            let finding = Finding::error(format!("`{value}` is no value of a parameter"))
                .help("write a number, `#true`, `#false`, or a word in quotes, such as `mct.beta=2.0`");
            return Err(fail(vec![finding.code("policy::setting")]));
        }
        match setting.filter(|_| reader.reported() == 0) {
            Some(setting) => {
                let setting = Setting { span: Span::NONE, value_span: Span::NONE, ..setting };
                Ok(Adjustment { path, setting })
            }
            None => Err(fail(reader.into_findings())),
        }
    }

    /// Checks that a text sets each parameter once.
    ///
    /// # Errors
    /// All that it sets again.
    pub(super) fn check_repetition(adjustments: &[Adjustment]) -> Result<(), Findings> {
        let names =
            |one: &Adjustment, other: &Adjustment| (&one.path, &one.setting.name) == (&other.path, &other.setting.name);
        let again = |(place, adjustment): (usize, &Adjustment)| {
            let first = adjustments[..place].iter().find(|first| names(first, adjustment))?;
            let Adjustment { path, setting } = adjustment;
            let (values, name) = ([&first.setting.value, &setting.value], &setting.name);
            let parameter =
                format!("`{}.{name}` is given twice, as {} and as {}", path.join("/"), values[0], values[1]);
            Some(Finding::error(parameter).help("leave one of them out").code("policy::setting"))
        };
        let findings: Vec<Finding> = adjustments.iter().enumerate().filter_map(again).collect();
        if findings.is_empty() { Ok(()) } else { Err(Findings::new("the parameters that are set", findings)) }
    }

    /// Separates the name of a policy from what follows it: `tree-heft+mct.beta=2.0`. A sign within a value, as in
    /// `1e+3`, separates nothing.
    pub(super) fn split(name: &str) -> (&str, Vec<String>) {
        let (policy, rest) = match name.split_once('+') {
            Some((policy, rest)) if rest.contains('=') => (policy, rest),
            _ => return (name, Vec::new()),
        };
        let mut found: Vec<String> = Vec::new();
        for piece in rest.split('+') {
            match found.last_mut().filter(|_| !piece.contains('=')) {
                Some(last) => *last = format!("{last}+{piece}"),
                None => found.push(piece.to_owned()),
            }
        }
        (policy, found)
    }

    /// Sets the parameter of each component in `elements` that is meant; `above` are the names above. Returns whether
    /// there was one.
    fn apply(&self, elements: &mut [Element], above: &mut Vec<String>) -> bool {
        let mut found = false;
        for element in elements {
            match element {
                Element::Component(component) => {
                    above.push(component.name.clone());
                    if above.ends_with(&self.path) {
                        found = true;
                        self.set(component);
                    }
                    found |= self.apply(&mut component.children, above);
                    above.pop();
                }
                Element::Each(each) => found |= self.apply(&mut each.children, above),
                Element::Use(_) => {}
            }
        }
        found
    }

    fn set(&self, component: &mut Component) {
        // Findings about it point to the component, since it stands nowhere in the text.
        let setting = Setting { span: component.span, value_span: component.span, ..self.setting.clone() };
        match component.params.iter_mut().find(|known| known.name == setting.name) {
            Some(known) => *known = setting,
            None => component.params.push(setting),
        }
    }
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}={}", self.path.join("/"), self.setting.name, self.setting.value)
    }
}

impl Policy {
    /// The policy with these parameters set, under a name that says so. Later ones win.
    ///
    /// # Errors
    /// If no component of the policy is meant. Whether the parameters exist is [checked](super::check()) with all
    /// others.
    pub fn adjusted(mut self, adjustments: &[Adjustment]) -> Result<Policy, Findings> {
        let mut findings = Vec::new();
        for adjustment in adjustments {
            let mut found = adjustment.apply(&mut self.root, &mut Vec::new());
            for shared in &mut self.shared {
                found |= adjustment.apply(&mut shared.children, &mut vec![shared.name.clone()]);
            }
            if !found {
                findings.push(nowhere(&self, &adjustment.path).code("policy::setting"));
            }
            self.name = format!("{}+{adjustment}", self.name);
        }
        if findings.is_empty() { Ok(self) } else { Err(Findings::new("the parameters that are set", findings)) }
    }
}

/// The finding that no component of `policy` is meant by a path.
pub(super) fn nowhere(policy: &Policy, path: &[String]) -> Finding {
    let mut names = BTreeSet::new();
    let shared = policy.shared.iter().flat_map(|shared| &shared.children);
    policy.root.iter().chain(shared).for_each(|part| note(part, &mut names));
    let finding = Finding::error(format!("policy `{}` has no component `{}`", policy.name, path.join("/")));
    let last = path.last().map_or("", String::as_str);
    let finding = match names.contains(last) {
        true => finding.help("a path names components and slots from above, without what `each` adds: `mct/prio`"),
        false => finding.help(did_you_mean(last, names.iter().copied(), "its components")),
    };
    finding.breaks("V7")
}

/// Notes the names of the components in `element`.
fn note<'a>(element: &'a Element, names: &mut BTreeSet<&'a str>) {
    if let Element::Component(component) = element {
        names.insert(&component.name);
    }
    element.children().iter().for_each(|child| note(child, names));
}
