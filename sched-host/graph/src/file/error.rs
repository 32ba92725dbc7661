//! Problems of the file of a task graph, with their places.

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use sched_text::Earliest;
use sched_text::excerpt::{Excerpts, Position};
use std::fmt;

/// All problems of a file that is no valid task graph, each with its place.
pub struct GraphFileError {
    source: Excerpts<NamedSource<String>>,
    /// Format that the file was read in.
    format: &'static str,
    problems: Vec<GraphFileProblem>,
    more: usize,
}

impl GraphFileError {
    pub(super) fn new(
        source: NamedSource<String>,
        format: &'static str,
        problems: Vec<GraphFileProblem>,
        more: usize,
    ) -> GraphFileError {
        GraphFileError { source: Excerpts(source), format, problems, more }
    }

    /// Name of the file.
    #[must_use]
    pub fn file(&self) -> &str {
        self.source.0.name()
    }

    /// The problems in the order of their places: at least one, and at most [`MOST`](Self::MOST).
    #[must_use]
    pub fn problems(&self) -> &[GraphFileProblem] {
        &self.problems
    }

    /// Number of further problems.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }

    /// Maximum number of problems that are reported in full.
    pub const MOST: usize = Earliest::<GraphFileProblem>::MOST;
}

impl fmt::Display for GraphFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, format) = (self.file(), self.format);
        match self.problems.len() + self.more {
            1 => write!(f, "cannot read {format} from `{file}`: one problem"),
            n if self.more == 0 => write!(f, "cannot read {format} from `{file}`: {n} problems"),
            n => write!(
                f,
                "cannot read {format} from `{file}`: {n} problems, of which the first {}",
                self.problems.len()
            ),
        }
    }
}

impl std::error::Error for GraphFileError {}

impl Diagnostic for GraphFileError {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

/// A problem of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphFileProblem {
    pub(super) message: String,
    pub(super) help: Option<String>,
    pub(super) position: Option<Position>,
}

impl GraphFileProblem {
    /// What was found and what was expected, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The fix, if there is an obvious one.
    #[must_use]
    pub fn fix(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Line and column, from 1 (columns count characters); nothing if the file could not be read at all.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        self.position.map(|position| (position.line, position.column))
    }
}

impl fmt::Display for GraphFileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column, .. }) => write!(f, "line {line}, column {column}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for GraphFileProblem {}

impl Diagnostic for GraphFileProblem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_primary_with_span(Some("here".to_owned()), self.position?.shown?);
        Some(Box::new(std::iter::once(label)))
    }
}

sched_text::debug_as_text!(GraphFileError);
