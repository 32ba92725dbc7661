//! Policy text to policies.

use super::check;
use super::distribute_shared::distribute_shared;
use super::element::{Component, Each, Element, Policy, Setting, Shared, Use};
use super::level::Level;
use super::overrides::{self, Override};
use kdl::{KdlDocument, KdlEntry, KdlNode, KdlValue};
use sched_core::{Value, WorkerId, WorkerSet};
use sched_text::kdl::{Language, Reader, Signature};
use sched_text::{Finding, Findings, Span, did_you_mean};
use std::collections::HashMap;
use std::sync::Arc;

/// A policy file as far as it could be understood.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// Its policies. Where there are errors, parts may be missing.
    pub policies: Vec<Policy>,
    /// Problems of the text: syntax, unknown words, duplicate names.
    pub findings: Vec<Finding>,
}

/// Reads a policy file: one `policy "name" { … }` or several, and `shared` definitions for all of them.
///
/// Checks everything that does not depend on components, including that each `use` has its `shared`; see
/// [`check`](super::check()) for the rest. `source_name` is the name of the text in errors, usually its path.
///
/// # Errors
/// All problems of the text.
///
/// ```
/// let policies = sched_policy::parse("mine.kdl", r#"policy "mine" { fifo ntasks-threshold=2 { worker } }"#)?;
/// assert_eq!(policies[0].name, "mine");
/// let errors = sched_policy::parse("mine.kdl", "polcy \"mine\" {\n fifo\n}").unwrap_err();
/// assert_eq!(errors.findings()[0].position(), Some(("mine.kdl", 1, 1)));
/// # Ok::<(), sched_text::Findings>(())
/// ```
pub fn parse(source_name: &str, text: &str) -> Result<Vec<Policy>, Findings> {
    let Parsed { policies, mut findings } = read(source_name, text);
    for policy in &policies {
        findings.extend(check::check_text(policy));
    }
    match findings.iter().any(Finding::is_error) {
        true => Err(Findings::new(source_name, findings)),
        false => Ok(policies),
    }
}

/// Reads as much of a policy file as can be understood, for callers that report findings of the text together with
/// those of [`check`](super::check()).
#[must_use]
pub fn read(source_name: &str, text: &str) -> Parsed {
    let mut reader = Reader::new(LANGUAGE, source_name, text);
    let policies = reader.document().map_or_else(Vec::new, |document| read_document(&mut reader, &document));
    Parsed { policies, findings: reader.into_findings() }
}

/// Name of the language in findings.
pub(super) const LANGUAGE: Language = Language { name: "policy", node: "component", rule: "V7" };

const POLICY: Signature = Signature { arguments: 1, properties: &[], example: "policy \"my-policy\" { … }" };
const SHARED: Signature = Signature {
    arguments: 1,
    properties: &["each", "arch", "between-contexts"],
    example: "shared \"leaf\" each=\"worker\" { … }",
};
const EACH: Signature =
    Signature { arguments: 1, properties: &["arch", "only", "except"], example: "each \"worker\" { … }" };
const OVERRIDE: Signature =
    Signature { arguments: 1, properties: &["from"], example: "override \"fifo\" from=\"libmine.so\"" };
const USE: Signature = Signature { arguments: 1, properties: &[], example: "use \"leaf\"" };

fn read_document(reader: &mut Reader, document: &KdlDocument) -> Vec<Policy> {
    let mut policies: Vec<Policy> = Vec::new();
    let mut shared: Vec<Shared> = Vec::new();
    let mut overrides: Vec<Override> = Vec::new();
    let mut names: HashMap<String, usize> = HashMap::new();
    for node in document.nodes() {
        match node.name().value() {
            "policy" => {
                let policy = read_policy(reader, node);
                let first = *names.entry(policy.name.clone()).or_insert(policies.len());
                if let Some(first) = policies.get(first) {
                    let finding = Finding::error(format!("two policies are called `{}`", policy.name))
                        .at(policy.span, "again here")
                        .at(first.span, "first here")
                        .help("give one of them another name")
                        .code("policy::duplicate-policy");
                    reader.report(finding);
                }
                policies.push(policy);
            }
            "shared" => shared.extend(read_shared(reader, node)),
            "override" => overrides.extend(read_override(reader, node)),
            _ => {
                let finding =
                    reader.misplaced(node, "at the top of a policy file", "a file", &["policy", "shared", "override"]);
                reader.report(finding.help("a component stands inside `policy \"name\" { … }`"));
            }
        }
    }
    if policies.is_empty() && reader.reported() == 0 {
        let finding = Finding::error(format!("`{}` holds no policy", reader.source().name()))
            .help("write `policy \"name\" { … }`")
            .code("policy::no-policy");
        reader.report(finding);
    }
    distribute_shared(&mut policies, &shared);
    overrides::distribute(&mut policies, overrides);
    policies
}

fn read_policy(reader: &mut Reader, node: &KdlNode) -> Policy {
    let (name, span) = reader.open(node, &POLICY).argument(0, "a name").unwrap_or_else(|| {
        // Distinct names, so that two unnamed policies are not reported as duplicates too.
        (format!("unnamed at byte {}", node.span().offset()), reader.name_span(node))
    });
    let (doc, source) = (reader.comment_above(node), Some(Arc::clone(reader.source())));
    let mut policy = Policy { name, doc, root: Vec::new(), shared: Vec::new(), overrides: Vec::new(), span, source };
    for child in node.iter_children() {
        match child.name().value() {
            "shared" => policy.shared.extend(read_shared(reader, child)),
            "override" => policy.overrides.extend(read_override(reader, child)),
            _ => policy.root.extend(read_element(reader, child)),
        }
    }
    policy
}

fn read_override(reader: &mut Reader, node: &KdlNode) -> Option<Override> {
    let mut open = reader.open(node, &OVERRIDE);
    let (component, span) = open.argument(0, "a name")?;
    let (from, from_span) = open.text("from").unzip();
    refuse_children(reader, node, &component, "an override chooses a component for the whole policy");
    Some(Override { component, from, span, from_span: from_span.unwrap_or(Span::NONE) })
}

fn refuse_children(reader: &mut Reader, node: &KdlNode, name: &str, help: impl Into<String>) {
    if let Some(child) = node.iter_children().next() {
        let word = node.name().value();
        let finding = Finding::error(format!("`{word} {name:?}` cannot have children"))
            .at(reader.name_span(child), format!("this is below `{word}`"))
            .help(help)
            .code(format!("policy::{word}"));
        reader.report(finding);
    }
}

fn read_shared(reader: &mut Reader, node: &KdlNode) -> Option<Shared> {
    let mut open = reader.open(node, &SHARED);
    let (name, span) = open.argument(0, "a name")?;
    let each = open.text("each").and_then(|(name, span)| level(open.reader(), &name, span));
    let arch = open.arch("arch");
    let between_contexts = open.flag("between-contexts");
    Some(Shared { name, each, arch, between_contexts, children: read_children(reader, node), span })
}

fn read_children(reader: &mut Reader, node: &KdlNode) -> Vec<Element> {
    node.iter_children().filter_map(|child| read_element(reader, child)).collect()
}

/// What `only` and `except` of an `each` expect.
const NUMBERS: &str = "numbers of workers in quotes, such as \"0-3, 7\"";

/// The numbers of workers in `0-3, 7`.
fn worker_numbers(text: &str) -> Option<WorkerSet> {
    let numbers = sched_text::parse_ranges(text).filter(|numbers| !numbers.is_empty())?;
    Some(numbers.into_iter().map(WorkerId).collect())
}

fn read_element(reader: &mut Reader, node: &KdlNode) -> Option<Element> {
    match node.name().value() {
        "each" => {
            let mut open = reader.open(node, &EACH);
            let name = open.argument(0, "a name");
            // An unknown level is reported; any level serves to read the rest.
            let level = name.and_then(|(name, span)| level(open.reader(), &name, span)).unwrap_or(Level::Worker);
            let arch = open.arch("arch");
            let only = open.quantity("only", worker_numbers, NUMBERS);
            let except = open.quantity("except", worker_numbers, NUMBERS);
            Some(Element::Each(Each {
                level,
                arch,
                only,
                except,
                children: read_children(reader, node),
                span: reader.head_span(node),
            }))
        }
        "use" => {
            let (name, _) = reader.open(node, &USE).argument(0, "a name")?;
            refuse_children(reader, node, &name, format!("what is below stands in `shared {name:?} {{ … }}`"));
            Some(Element::Use(Use { name, span: reader.head_span(node) }))
        }
        word @ ("policy" | "shared" | "override") => {
            let place = if word == "policy" { "a policy file" } else { "a policy or a policy file" };
            let finding = Finding::error(format!("`{word}` cannot stand inside a tree"))
                .at(reader.name_span(node), "not here")
                .help(format!("move it up: it stands directly in {place}"))
                .code("policy::misplaced");
            reader.report(finding);
            None
        }
        name => {
            let span = reader.name_span(node);
            reader.refuse_annotation(node.ty().map(|ty| ty.value()), span);
            let params = node.entries().iter().filter_map(|entry| setting(reader, name, entry)).collect();
            Some(Element::Component(Component {
                name: name.to_owned(),
                params,
                children: read_children(reader, node),
                span,
            }))
        }
    }
}

/// A parameter of a component.
pub(super) fn setting(reader: &mut Reader, component: &str, entry: &KdlEntry) -> Option<Setting> {
    let span = reader.span(entry.span());
    reader.refuse_annotation(entry.ty().map(|ty| ty.value()), span);
    let Some(name) = entry.name() else {
        let finding = Finding::error(format!("`{component}` is given {} without a name", entry.value()))
            .at(span, "expected a parameter, `name=value`")
            .help(format!("write `{component} name={}`, or `{{ … }}` if it is a child", entry.value()))
            .code("policy::parameter");
        reader.report(finding);
        return None;
    };
    let value_span = reader.value_span(entry);
    let value = match entry.value() {
        KdlValue::Bool(flag) => Value::Bool(*flag),
        KdlValue::Float(number) => Value::Float(*number),
        KdlValue::String(text) => Value::Text(text.clone()),
        KdlValue::Integer(number) => match i64::try_from(*number) {
            Ok(number) => Value::Int(number),
            // The check knows what the parameter takes; no integer of this size.
            Err(_) => Value::Float(*number as f64),
        },
        KdlValue::Null => {
            let finding = Finding::error(format!("`{}` is `#null`", name.value()))
                .at(value_span, "expected a number, a text, `#true` or `#false`")
                .help("leave the parameter out to have its default")
                .code("policy::parameter");
            reader.report(finding);
            return None;
        }
    };
    Some(Setting { name: name.value().to_owned(), value, span, value_span })
}

fn level(reader: &mut Reader, name: &str, span: Span) -> Option<Level> {
    let level = Level::from_name(name);
    if level.is_none() {
        let finding = Finding::error(format!("there is no level `{name}` of the machine"))
            .at(span, "unknown level")
            .help(did_you_mean(name, Level::ALL.map(Level::name), "levels"))
            .code("policy::level");
        reader.report(finding);
    }
    level
}
