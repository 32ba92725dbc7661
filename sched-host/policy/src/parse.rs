//! Policy text to policies.

use super::check;
use super::level::Level;
use super::part::{Component, Each, Part, Policy, Setting, Shared, Use};
use super::share_out::share_out;
use kdl::{KdlDocument, KdlEntry, KdlNode, KdlValue};
use miette::{NamedSource, SourceSpan};
use sched_core::{Arch, Value};
use sched_text::did_you_mean;
use sched_text::kdl::{comment_above, document, trimmed};
use sched_text::{Finding, Findings};
use sched_text::{SourceText, Span};
use std::sync::Arc;

/// Names that `arch=` takes, for suggestions.
pub const ARCH_NAMES: [&str; 7] = ["cpu", "cuda", "opencl", "hip", "sycl", "mpi", "fpga"];

/// A policy file as far as it could be understood.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// Its policies. Where there are errors, parts may be missing.
    pub policies: Vec<Policy>,
    /// What is wrong with the text: its syntax, the words of the language, names given twice.
    pub findings: Vec<Finding>,
}

/// Reads a policy file: one `policy "name" { … }` or several, and `shared` definitions for all of them.
///
/// Checks what the text alone can tell, including that each `use` has its `shared`; see [`check`](super::check()) for
/// what needs the components. `source_name` is what errors call the text, usually its path.
///
/// # Errors
/// Everything that is wrong with the text.
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

/// Reads as much of a policy file as can be understood, for those who want the findings of the text together with
/// those that [`check`](super::check()) finds in its policies.
#[must_use]
pub fn read(source_name: &str, text: &str) -> Parsed {
    let source = Arc::new(NamedSource::new(source_name, text.to_owned()).with_language("kdl"));
    let mut reader = Reader { source, findings: Vec::new() };
    let policies = match document(text) {
        Ok(document) => reader.document(&document),
        Err(findings) => {
            findings.into_iter().for_each(|finding| reader.report(finding));
            Vec::new()
        }
    };
    Parsed { policies, findings: reader.findings }
}

/// Reads parts of a text, and collects what is wrong with it.
pub(super) struct Reader {
    pub(super) source: SourceText,
    pub(super) findings: Vec<Finding>,
}

impl Reader {
    pub(super) fn report(&mut self, finding: Finding) {
        self.findings.push(finding.breaks("V7").in_source(Some(&self.source)));
    }

    pub(super) fn span(&self, span: SourceSpan) -> Span {
        trimmed(self.source.inner(), span)
    }

    pub(super) fn name_span(&self, node: &KdlNode) -> Span {
        self.span(node.name().span())
    }

    /// From the node's name to its last argument or property.
    fn head_span(&self, node: &KdlNode) -> Span {
        let start = node.name().span();
        let last = node.entries().iter().map(|entry| entry.span().offset() + entry.span().len()).max();
        let end = last.unwrap_or(start.offset() + start.len());
        self.span(SourceSpan::new(start.offset().into(), end - start.offset()))
    }

    fn document(&mut self, document: &KdlDocument) -> Vec<Policy> {
        let mut policies: Vec<Policy> = Vec::new();
        let mut shared: Vec<Shared> = Vec::new();
        for node in document.nodes() {
            match node.name().value() {
                "policy" => {
                    let policy = self.policy(node);
                    if let Some(first) = policies.iter().find(|first| first.name == policy.name) {
                        let finding = Finding::error(format!("two policies are called `{}`", policy.name))
                            .at(policy.span, "again here")
                            .at(first.span, "first here")
                            .help("give one of them another name")
                            .code("policy::duplicate-policy");
                        self.report(finding);
                    }
                    policies.push(policy);
                }
                "shared" => shared.extend(self.shared(node)),
                other => {
                    let finding = Finding::error(format!("`{other}` cannot stand at the top of a policy file"))
                        .at(self.name_span(node), "expected `policy` or `shared`")
                        .help(did_you_mean(other, ["policy", "shared"], "what a file holds"))
                        .help("a component stands inside `policy \"name\" { … }`")
                        .code("policy::unknown-node");
                    self.report(finding);
                }
            }
        }
        if policies.is_empty() && self.findings.is_empty() {
            let finding = Finding::error(format!("`{}` holds no policy", self.source.name()))
                .help("write `policy \"name\" { … }`")
                .code("policy::no-policy");
            self.report(finding);
        }
        share_out(&mut policies, &shared);
        policies
    }

    fn policy(&mut self, node: &KdlNode) -> Policy {
        let (name, span) = self.name_argument(node, "policy \"my-policy\" { … }").unwrap_or_else(|| {
            // Distinct names, so that two nameless policies are not reported as duplicates too.
            (format!("unnamed at byte {}", node.span().offset()), self.name_span(node))
        });
        self.properties(node, &[]);
        let mut policy = Policy {
            name,
            doc: comment_above(node),
            root: Vec::new(),
            shared: Vec::new(),
            span,
            source: Some(Arc::clone(&self.source)),
        };
        for child in node.iter_children() {
            if child.name().value() == "shared" {
                policy.shared.extend(self.shared(child));
            } else {
                policy.root.extend(self.part(child));
            }
        }
        policy
    }

    fn shared(&mut self, node: &KdlNode) -> Option<Shared> {
        let (name, span) = self.name_argument(node, "shared \"leaf\" each=\"worker\" { … }")?;
        self.properties(node, &["each", "arch"]);
        let each = self.property(node, "each").and_then(|(level, span)| self.level(&level, span));
        let arch = self.arch(node);
        let children = node.iter_children().filter_map(|child| self.part(child)).collect();
        Some(Shared { name, each, arch, children, span })
    }

    fn part(&mut self, node: &KdlNode) -> Option<Part> {
        self.refuse_annotation(node.ty().map(|ty| ty.value()), self.name_span(node));
        match node.name().value() {
            "each" => {
                let level = self.name_argument(node, "each \"worker\" { … }");
                // A level that is not known is reported; any will do to look at the rest.
                let level = level.and_then(|(level, span)| self.level(&level, span)).unwrap_or(Level::Worker);
                self.properties(node, &["arch"]);
                let arch = self.arch(node);
                let children = node.iter_children().filter_map(|child| self.part(child)).collect();
                Some(Part::Each(Each { level, arch, children, span: self.head_span(node) }))
            }
            "use" => {
                let (name, _) = self.name_argument(node, "use \"leaf\"")?;
                self.properties(node, &[]);
                if let Some(child) = node.iter_children().next() {
                    let finding = Finding::error(format!("`use {name:?}` cannot have children"))
                        .at(self.name_span(child), "this is below a `use`")
                        .help(format!("what is below stands in `shared {name:?} {{ … }}`"))
                        .code("policy::use");
                    self.report(finding);
                }
                Some(Part::Use(Use { name, span: self.head_span(node) }))
            }
            word @ ("policy" | "shared") => {
                let place = if word == "shared" { "a policy or a policy file" } else { "a policy file" };
                let finding = Finding::error(format!("`{word}` cannot stand inside a tree"))
                    .at(self.name_span(node), "not here")
                    .help(format!("move it up: it stands directly in {place}"))
                    .code("policy::misplaced");
                self.report(finding);
                None
            }
            name => {
                let params = node.entries().iter().filter_map(|entry| self.setting(name, entry)).collect();
                let children = node.iter_children().filter_map(|child| self.part(child)).collect();
                Some(Part::Component(Component { name: name.to_owned(), params, children, span: self.name_span(node) }))
            }
        }
    }

    pub(super) fn setting(&mut self, component: &str, entry: &KdlEntry) -> Option<Setting> {
        let span = self.span(entry.span());
        self.refuse_annotation(entry.ty().map(|ty| ty.value()), span);
        let Some(name) = entry.name() else {
            let finding = Finding::error(format!("`{component}` is given {} without a name", entry.value()))
                .at(span, "expected a parameter, `name=value`")
                .help(format!("write `{component} name={}`, or `{{ … }}` if it is a child", entry.value()))
                .code("policy::parameter");
            self.report(finding);
            return None;
        };
        let value_span = self.value_span(entry);
        let value = match entry.value() {
            KdlValue::Bool(flag) => Value::Bool(*flag),
            KdlValue::Float(number) => Value::Float(*number),
            KdlValue::String(text) => Value::Text(text.clone()),
            KdlValue::Integer(number) => match i64::try_from(*number) {
                Ok(number) => Value::Int(number),
                Err(_) => {
                    let finding = Finding::error(format!("`{}` is a number that is too large", name.value()))
                        .at(value_span, format!("expected a number from {} to {}", i64::MIN, i64::MAX))
                        .code("policy::parameter");
                    self.report(finding);
                    return None;
                }
            },
            KdlValue::Null => {
                let finding = Finding::error(format!("`{}` is `#null`", name.value()))
                    .at(value_span, "expected a number, a text, `#true` or `#false`")
                    .help("leave the parameter out to have its default")
                    .code("policy::parameter");
                self.report(finding);
                return None;
            }
        };
        Some(Setting { name: name.value().to_owned(), value, span, value_span })
    }

    /// The value of `name=value`; of an argument, all of it.
    fn value_span(&self, entry: &KdlEntry) -> Span {
        let Some(span) = self.span(entry.span()).get() else { return Span::NONE };
        let length = entry.format().map_or(span.len(), |format| format.value_repr.len()).min(span.len());
        Span::new(span.offset() + span.len() - length, length)
    }

    /// The one argument of `policy`, `shared`, `each` and `use`, a text.
    fn name_argument(&mut self, node: &KdlNode, example: &str) -> Option<(String, Span)> {
        let word = node.name().value();
        let arguments: Vec<&KdlEntry> = node.entries().iter().filter(|entry| entry.name().is_none()).collect();
        for extra in arguments.iter().skip(1) {
            let finding = Finding::error(format!("`{word}` takes one name"))
                .at(self.span(extra.span()), "this is one too many")
                .help(format!("write `{example}`"))
                .code(format_args!("policy::{word}"));
            self.report(finding);
        }
        let finding = match arguments.first().map(|first| (first.value(), self.span(first.span()))) {
            Some((KdlValue::String(name), span)) if !name.is_empty() => return Some((name.clone(), span)),
            Some((value, span)) => {
                Finding::error(format!("{value} is not a name")).at(span, "expected a text in quotes")
            }
            None => {
                Finding::error(format!("`{word}` has no name")).at(self.name_span(node), "expected a name after this")
            }
        };
        self.report(finding.help(format!("write `{example}`")).code(format_args!("policy::{word}")));
        None
    }

    /// Reports the properties of `policy`, `shared`, `each` and `use` that are unknown or given twice.
    fn properties(&mut self, node: &KdlNode, known: &'static [&'static str]) {
        let word = node.name().value();
        let mut seen: Vec<&str> = Vec::new();
        for entry in node.entries() {
            let Some(name) = entry.name() else { continue };
            let name = name.value();
            let span = self.span(entry.span());
            if !known.contains(&name) {
                let finding = Finding::error(format!("`{word}` has no property `{name}`"))
                    .at(span, "unknown property")
                    .help(did_you_mean(name, known.iter().copied(), &format!("properties of `{word}`")))
                    .code(format_args!("policy::{word}"));
                self.report(finding);
            } else if seen.contains(&name) {
                let finding = Finding::error(format!("`{name}` is given twice"))
                    .at(span, "again here")
                    .code(format_args!("policy::{word}"));
                self.report(finding);
            }
            seen.push(name);
        }
    }

    /// A property whose value is a text.
    fn property(&mut self, node: &KdlNode, name: &str) -> Option<(String, Span)> {
        let entry = node.entries().iter().find(|entry| entry.name().is_some_and(|found| found.value() == name))?;
        let span = self.value_span(entry);
        match entry.value() {
            KdlValue::String(text) => Some((text.clone(), span)),
            other => {
                let finding = Finding::error(format!("`{name}` is {other}"))
                    .at(span, "expected a text in quotes")
                    .help(format!("write `{name}=\"{other}\"`, if that is its name"))
                    .code(format_args!("policy::{}", node.name().value()));
                self.report(finding);
                None
            }
        }
    }

    fn level(&mut self, name: &str, span: Span) -> Option<Level> {
        let level = Level::from_name(name);
        if level.is_none() {
            let finding = Finding::error(format!("there is no level `{name}` of the machine"))
                .at(span, "unknown level")
                .help(did_you_mean(name, Level::ALL.map(Level::name), "levels"))
                .code("policy::level");
            self.report(finding);
        }
        level
    }

    fn arch(&mut self, node: &KdlNode) -> Option<Arch> {
        let (name, span) = self.property(node, "arch")?;
        let arch = Arch::from_name(&name);
        if arch.is_none() {
            let finding = Finding::error(format!("there is no architecture `{name}`"))
                .at(span, "unknown architecture")
                // All of them: names this short are close to others that are not meant.
                .help(format!("architectures: {}", ARCH_NAMES.map(|known| format!("`{known}`")).join(", ")))
                .code("policy::arch");
            self.report(finding);
        }
        arch
    }

    fn refuse_annotation(&mut self, annotation: Option<&str>, span: Span) {
        if let Some(annotation) = annotation {
            let finding = Finding::error(format!("the type annotation `({annotation})` means nothing in a policy"))
                .at(span, "annotated here")
                .help("leave it out")
                .code("policy::annotation");
            self.report(finding);
        }
    }
}
