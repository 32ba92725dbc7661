//! Findings: problems of a text with their places.

use super::excerpt::{self, Excerpts};
use super::span::{SourceText, Span, line_and_column};
use super::terminal::escaped;
use super::{Earliest, count};
use miette::{Diagnostic, LabeledSpan, Severity, SourceCode, SourceSpan};
use std::borrow::Cow;
use std::fmt;

/// Number of places that a finding shows.
const MOST_PLACES: usize = 20;

/// One problem of a text or of what it describes: message, places, and fix.
#[derive(Clone, Debug)]
pub struct Finding {
    severity: Severity,
    id: &'static str,
    code: String,
    message: String,
    labels: Vec<(Span, String)>,
    /// Number of places that are not shown.
    further_places: usize,
    help: Option<String>,
    source: Option<Excerpts<SourceText>>,
    /// Number of problems that it stands for.
    number: usize,
}

impl Finding {
    /// A finding that makes the text unusable.
    pub fn error(message: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Error,
            id: "",
            code: String::new(),
            message: plain(message),
            labels: Vec::new(),
            further_places: 0,
            help: None,
            source: None,
            number: 1,
        }
    }

    /// The last finding of a list that leaves out `number` others.
    #[must_use]
    pub fn further(number: usize) -> Finding {
        let further = Finding::error(format!("{} not shown", count(number, "further problem")));
        Finding { number, ..further.help("correct those above first: they may be the cause of others") }
    }

    /// A finding that leaves the text usable, although it probably does not mean what was intended.
    pub fn warning(message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(message) }
    }

    /// Points at `span`. The first place is the main one. Beyond the first 20, places are counted.
    #[must_use]
    pub fn at(mut self, span: Span, label: impl Into<String>) -> Finding {
        match self.labels.len() < MOST_PLACES {
            true => self.labels.push((span, plain(label))),
            false => self.further_places += 1,
        }
        self
    }

    /// Adds help: the fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Finding {
        let help = plain(help);
        self.help = Some(match self.help {
            Some(before) => format!("{before}\n{help}"),
            None => help,
        });
        self
    }

    /// Sets the code, such as `policy::arity`.
    #[must_use]
    pub fn code(mut self, code: impl fmt::Display) -> Finding {
        self.code = code.to_string();
        self
    }

    /// Sets the rule that is broken, such as `V2` of a policy. It is shown before the code.
    #[must_use]
    pub fn breaks(mut self, id: &'static str) -> Finding {
        self.id = id;
        self
    }

    /// Sets the text that its places point into.
    #[must_use]
    pub fn in_source(mut self, source: Option<&SourceText>) -> Finding {
        self.source = source.cloned().map(Excerpts);
        self
    }

    /// Whether it makes the text unusable.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The broken rule of a policy, from `V1` to `V7`; empty where no rule is broken, as for a missing file.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// Its code, such as `policy::arity`.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.code
    }

    /// The message, one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Its main place in the text.
    #[must_use]
    pub fn place(&self) -> Option<SourceSpan> {
        self.labels.first()?.0.get()
    }

    /// Name of the file, line and column of its main place, both from 1; `None` when it has no place.
    #[must_use]
    pub fn position(&self) -> Option<(&str, usize, usize)> {
        let Excerpts(source) = self.source.as_ref()?;
        let (line, column) = line_and_column(source.inner(), self.place()?.offset());
        Some((source.name(), line, column))
    }
}

/// The text with control characters escaped, which are those of names in the file: in a report that is drawn in
/// colours, a terminal would obey them.
fn plain(text: impl Into<String>) -> String {
    let text = text.into();
    match escaped(&text, false) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Finding {}

impl Diagnostic for Finding {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match (self.id, self.code.as_str()) {
            (_, "") => None,
            ("", code) => Some(Box::new(code)),
            (id, code) => Some(Box::new(format!("{id} {code}"))),
        }
    }

    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let places =
            (self.further_places > 0).then(|| format!("{} not shown", count(self.further_places, "further place")));
        let help = self.help.iter().cloned().chain(places).collect::<Vec<_>>().join("\n");
        (!help.is_empty()).then(|| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let located = self.labels.iter().filter_map(|(span, label)| Some((span.get()?, label)));
        let labels: Vec<LabeledSpan> = located
            .enumerate()
            .map(|(index, (span, label))| match index {
                0 => LabeledSpan::new_primary_with_span(Some(label.clone()), span),
                _ => LabeledSpan::new_with_span(Some(label.clone()), span),
            })
            .collect();
        let labels = match &self.source {
            Some(Excerpts(source)) => excerpt::labels(source, labels),
            None => labels,
        };
        (!labels.is_empty()).then(|| Box::new(labels.into_iter()) as Box<dyn Iterator<Item = LabeledSpan>>)
    }
}

/// All findings about a file, a policy or a platform: at least one error, and all warnings. Of more than a hundred, the
/// first are kept and the others counted.
///
/// `miette` shows each with its place in the text; [`findings`](Self::findings) returns them as data.
#[derive(Clone)]
pub struct Findings {
    what: String,
    findings: Vec<Finding>,
}

impl Findings {
    /// `findings` about `what`, a file or a policy.
    pub fn new(what: impl Into<String>, findings: Vec<Finding>) -> Findings {
        Findings { what: what.into(), findings: kept(findings) }
    }

    /// Adds help to the first finding.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Findings {
        if let Some(first) = self.findings.first_mut() {
            *first = first.clone().help(help);
        }
        self
    }

    /// The findings, in the order of the rules that made them.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// At most a hundred findings, and one that counts the rest. An error among the last says more than a warning among
/// the first.
fn kept(mut findings: Vec<Finding>) -> Vec<Finding> {
    const MOST: usize = Earliest::<Finding>::MOST;
    // One more may count those that a reader left out.
    if findings.len() > MOST + 1 {
        if !findings[..MOST].iter().any(Finding::is_error) {
            findings.sort_by_key(|finding| !finding.is_error());
        }
        let further = findings.drain(MOST..).map(|finding| finding.number).sum();
        findings.push(Finding::further(further));
    }
    findings
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |errors: bool| -> usize {
            self.findings.iter().filter(|finding| finding.is_error() == errors).map(|finding| finding.number).sum()
        };
        write!(f, "{}: {}", self.what, count(number(true), "error"))?;
        match number(false) {
            0 => Ok(()),
            warnings => write!(f, " and {}", count(warnings, "warning")),
        }
    }
}

impl std::error::Error for Findings {}

impl Diagnostic for Findings {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.findings.iter().map(|finding| finding as &dyn Diagnostic)))
    }
}

crate::debug_as_text!(Findings);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_findings_the_first_are_kept_and_all_counted() {
        let warnings = (0..300).map(|n| Finding::warning(format!("warning {n}")));
        let findings = Findings::new("mine.kdl", warnings.chain([Finding::error("the error")]).collect());
        assert_eq!(findings.findings().len(), 101);
        assert_eq!(findings.findings()[0].message(), "the error");
        assert_eq!(findings.findings()[100].message(), "201 further problems not shown");
        assert_eq!(findings.to_string(), "mine.kdl: 202 errors and 99 warnings");
    }
}
