//! One text with the findings so far.

use super::node::{NodeReader, Signature};
use super::syntax::{document, last_comment, trimmed};
use crate::excerpt::printable;
use crate::{Earliest, Finding, SourceText, Span, did_you_mean};
use kdl::{KdlDocument, KdlEntry, KdlNode};
use miette::{NamedSource, SourceSpan};
use std::sync::Arc;

/// The name of a language in findings.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// What the text describes: `policy`. Also the prefix of finding codes.
    pub name: &'static str,
    /// Name of its nodes: `component`.
    pub node: &'static str,
    /// The rule that findings break, such as `V7`; empty for none.
    pub rule: &'static str,
}

/// Reads one text and collects findings.
#[derive(Debug)]
pub struct Reader {
    language: Language,
    text: SourceText,
    /// The text as findings show it, without control characters.
    source: SourceText,
    /// The first; all others are counted.
    findings: Vec<Finding>,
    further: usize,
}

impl Reader {
    /// A reader of `text`, named `source_name` in findings.
    #[must_use]
    pub fn new(language: Language, source_name: &str, text: &str) -> Reader {
        let named = |text: String| Arc::new(NamedSource::new(source_name, text).with_language("kdl"));
        let shown = printable(text.to_owned());
        let plain = shown == text;
        let text = named(text.to_owned());
        let source = if plain { Arc::clone(&text) } else { named(shown) };
        Reader { language, text, source, findings: Vec::new(), further: 0 }
    }

    /// The document of the text; `None` if its syntax is wrong, which is reported.
    pub fn document(&mut self) -> Option<KdlDocument> {
        match document(self.text.inner(), self.language) {
            Ok(document) => Some(document),
            Err((findings, more)) => {
                findings.into_iter().for_each(|finding| self.report(finding.code(self.code("syntax"))));
                self.further += more;
                None
            }
        }
    }

    /// The text with its name, as findings show it.
    #[must_use]
    pub fn source(&self) -> &SourceText {
        &self.source
    }

    /// Number of findings so far.
    #[must_use]
    pub fn reported(&self) -> usize {
        self.findings.len() + self.further
    }

    /// The findings: the first hundred, and one that counts the others.
    #[must_use]
    pub fn into_findings(mut self) -> Vec<Finding> {
        self.findings.extend((self.further > 0).then(|| Finding::further(self.further)));
        self.findings
    }

    /// Adds a finding unless it equals the previous one: a node that is read several times yields the same finding each
    /// time.
    pub fn report(&mut self, finding: Finding) {
        let finding = finding.breaks(self.language.rule).in_source(Some(&self.source));
        let repeats = |last: &Finding| last.place() == finding.place() && last.message() == finding.message();
        if self.findings.last().is_some_and(repeats) {
            return;
        }
        match self.findings.len() < Earliest::<Finding>::MOST {
            true => self.findings.push(finding),
            false => self.further += 1,
        }
    }

    /// A code of the language: `policy::arity` for `arity`.
    #[must_use]
    pub fn code(&self, case: &str) -> String {
        format!("{}::{case}", self.language.name)
    }

    /// Place of this part of the document.
    #[must_use]
    pub fn span(&self, span: SourceSpan) -> Span {
        trimmed(self.text.inner(), span)
    }

    /// The comment lines directly above a node, without slashes.
    #[must_use]
    pub fn comment_above(&self, node: &KdlNode) -> String {
        self.text.inner().get(..node.name().span().offset()).map_or(String::new(), last_comment)
    }

    /// Place of the node's name.
    #[must_use]
    pub fn name_span(&self, node: &KdlNode) -> Span {
        self.span(node.name().span())
    }

    /// Place from the node's name to its last argument or property.
    #[must_use]
    pub fn head_span(&self, node: &KdlNode) -> Span {
        let start = node.name().span();
        let last = node.entries().iter().map(|entry| entry.span().offset() + entry.span().len()).max();
        let end = last.unwrap_or(start.offset() + start.len());
        self.span(SourceSpan::new(start.offset().into(), end - start.offset()))
    }

    /// Place of the value in `name=value`; of an argument, all of it.
    #[must_use]
    pub fn value_span(&self, entry: &KdlEntry) -> Span {
        let Some(span) = self.span(entry.span()).get() else { return Span::NONE };
        let length = entry.format().map_or(span.len(), |format| format.value_repr.len()).min(span.len());
        Span::new(span.offset() + span.len() - length, length)
    }

    /// Opens a node: reports violations of its signature, and gives typed access to the rest.
    pub fn open<'a>(&'a mut self, node: &'a KdlNode, signature: &'static Signature) -> NodeReader<'a> {
        NodeReader::open(self, node, signature)
    }

    /// Reports a type annotation: no language has any.
    pub fn refuse_annotation(&mut self, annotation: Option<&str>, span: Span) {
        if let Some(annotation) = annotation {
            let language = self.language.name;
            let finding = Finding::error(format!("the type annotation `({annotation})` means nothing in a {language}"));
            self.report(finding.at(span, "annotated here").help("leave it out").code(self.code("annotation")));
        }
    }

    /// The finding that a node cannot stand where it does: `place` is `in a kernel`, say, and `known` is what can.
    #[must_use]
    pub fn misplaced(&self, node: &KdlNode, place: &str, holder: &str, known: &[&str]) -> Finding {
        let name = node.name().value();
        let label = match known {
            [] => "unknown".to_owned(),
            [only] => format!("expected `{only}`"),
            [one, other] => format!("expected `{one}` or `{other}`"),
            _ => "unknown".to_owned(),
        };
        Finding::error(format!("`{name}` cannot stand {place}"))
            .at(self.name_span(node), label)
            .help(did_you_mean(name, known.iter().copied(), &format!("what {holder} holds")))
            .code(self.code("unknown-node"))
    }

    /// Reports a name that is not among the `known` ones of its kind: `what` is `memory`, say.
    pub fn unknown_name<'a>(
        &mut self,
        what: &str,
        name: &str,
        span: Span,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) {
        let finding = Finding::error(format!("there is no {what} `{name}`"))
            .at(span, format!("unknown {what}"))
            .help(did_you_mean(name, known, what))
            .code(self.code("unknown-name"));
        self.report(finding);
    }
}
