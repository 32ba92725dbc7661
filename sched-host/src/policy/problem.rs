//! What is wrong with a policy, and where.

use super::part::{SourceText, Span};
use miette::{Diagnostic, LabeledSpan, Severity, SourceCode, SourceSpan};
use std::fmt;

/// One thing that is wrong with a policy, with its place in the text and the mend.
#[derive(Clone, Debug)]
pub struct Problem {
    severity: Severity,
    id: &'static str,
    code: String,
    message: String,
    labels: Vec<(Span, String)>,
    help: Option<String>,
    source: Option<SourceText>,
}

impl Problem {
    /// A problem with which the policy cannot be used.
    pub fn error(message: impl Into<String>) -> Problem {
        Problem {
            severity: Severity::Error,
            id: "",
            code: String::new(),
            message: message.into(),
            labels: Vec::new(),
            help: None,
            source: None,
        }
    }

    /// A problem with which the policy works, and probably does not do what was meant.
    pub fn warning(message: impl Into<String>) -> Problem {
        Problem { severity: Severity::Warning, ..Problem::error(message) }
    }

    /// The same, pointing at `span`. The first place is the main one.
    #[must_use]
    pub fn at(mut self, span: Span, label: impl Into<String>) -> Problem {
        self.labels.push((span, label.into()));
        self
    }

    /// The same, with what to do about it; added to what was said before.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        let help = help.into();
        self.help = Some(match self.help {
            Some(before) => format!("{before}\n{help}"),
            None => help,
        });
        self
    }

    /// The same, as a case of this rule: `arity` becomes the code `policy::arity`.
    #[must_use]
    pub fn code(mut self, code: impl fmt::Display) -> Problem {
        self.code = format!("policy::{code}");
        self
    }

    /// The same, as a break of this rule of [`check`](super::check()): `V2`. It is shown before the code.
    #[must_use]
    pub fn breaks(mut self, id: &'static str) -> Problem {
        self.id = id;
        self
    }

    /// The same, in this text, which its places point into: [`Policy::source`](super::Policy::source) or
    /// [`Plan::source`](super::Plan::source).
    #[must_use]
    pub fn in_source(mut self, source: Option<&SourceText>) -> Problem {
        self.source = source.cloned();
        self
    }

    /// Whether the policy cannot be used because of it.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The rule of [`check`](super::check()) that it breaks, from `V1` to `V7`; empty for what is not about a policy's
    /// text, such as a file that is not there.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// Which case of its rule it is, such as `policy::arity`.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.code
    }

    /// What is wrong, in a line.
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
        let source = self.source.as_ref()?;
        let offset = self.place()?.offset();
        let before = source.inner().get(..offset)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Some((source.name(), before.matches('\n').count() + 1, before[line_start..].chars().count() + 1))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
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
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
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
        (!labels.is_empty()).then(|| Box::new(labels.into_iter()) as Box<dyn Iterator<Item = LabeledSpan>>)
    }
}

/// Everything that is wrong with a policy or a policy file: at least one error, and all warnings.
///
/// `miette` shows each with its place in the text; [`problems`](Self::problems) has them as data.
#[derive(Clone, Debug)]
pub struct PolicyErrors {
    what: String,
    problems: Vec<Problem>,
}

impl PolicyErrors {
    /// `problems` of `what`, a file or a policy.
    pub fn new(what: impl Into<String>, problems: Vec<Problem>) -> PolicyErrors {
        PolicyErrors { what: what.into(), problems }
    }

    /// Adds what to do about it, to the first problem.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> PolicyErrors {
        if let Some(first) = self.problems.first_mut() {
            *first = first.clone().help(help);
        }
        self
    }

    /// Every problem, in the order of the rules that found them.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        let errors = self.problems.iter().filter(|problem| problem.is_error()).count();
        write!(f, "{}: {}", self.what, count(errors, "error"))?;
        match self.problems.len() - errors {
            0 => Ok(()),
            warnings => write!(f, " and {}", count(warnings, "warning")),
        }
    }
}

impl std::error::Error for PolicyErrors {}

impl Diagnostic for PolicyErrors {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}
