//! The problems of a file, collected while it is read.

use super::error::{GraphFileError, GraphFileProblem};
use miette::NamedSource;
use sched_text::excerpt::{Position, printable, quoted_word};
use sched_text::{Earliest, line_and_column};
use std::ops::Range;

/// Length in bytes of the longest line that is shown with a problem: JSON often has no line breaks.
const LONGEST_SHOWN: usize = 500;

/// `word` between backticks, shortened, with control characters escaped.
pub(super) fn quote(word: &str) -> String {
    quoted_word(word, 60)
}

struct Noted {
    message: String,
    help: Option<String>,
    place: Range<usize>,
}

/// The problems found so far in a text.
pub(super) struct Problems<'t> {
    text: &'t str,
    found: Earliest<Noted>,
}

impl<'t> Problems<'t> {
    pub(super) fn new(text: &'t str) -> Problems<'t> {
        Problems { text, found: Earliest::new() }
    }

    /// Range of `part` in the text.
    pub(super) fn place(&self, part: &'t str) -> Range<usize> {
        let start = (part.as_ptr().addr() - self.text.as_ptr().addr()).min(self.text.len());
        start..start + part.len()
    }

    /// Line and column of `part` of the text, from 1.
    pub(super) fn line_and_column(&self, part: &'t str) -> (usize, usize) {
        line_and_column(self.text, self.place(part).start)
    }

    /// Reports a problem with `part` of the text.
    pub(super) fn report(&mut self, part: &'t str, message: impl Into<String>) {
        let place = self.place(part);
        self.report_at(place, message, None);
    }

    /// Reports a problem with `part` of the text, and its fix.
    pub(super) fn report_with(&mut self, part: &'t str, message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(part);
        self.report_at(place, message, Some(help.into()));
    }

    /// Reports a problem at these bytes of the text.
    pub(super) fn report_at(&mut self, place: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.found.report(place.start, Noted { message: message.into(), help, place });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.found.reported()
    }

    pub(super) fn done(self) -> Found {
        let (found, more) = self.found.take();
        let text = self.text;
        let problem = |noted: Noted| {
            let position = Some(Position::of(text, noted.place, LONGEST_SHOWN));
            GraphFileProblem { message: noted.message, help: noted.help, position }
        };
        Found { problems: found.into_iter().map(problem).collect(), more }
    }
}

/// The problems without the text.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) problems: Vec<GraphFileProblem>,
    more: usize,
}

impl Found {
    /// A single problem that prevents all further checks.
    pub(super) fn only(message: impl Into<String>, help: Option<&str>) -> Found {
        let help = help.map(str::to_owned);
        let problem = GraphFileProblem { message: message.into(), help, position: None };
        Found { problems: vec![problem], more: 0 }
    }

    pub(super) fn into_error(self, name: &str, format: &'static str, text: String) -> GraphFileError {
        GraphFileError::new(NamedSource::new(name, printable(text)), format, self.problems, self.more)
    }
}
