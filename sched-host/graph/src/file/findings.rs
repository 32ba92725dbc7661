//! Collecting what is wrong with a file while it is read.

use super::error::{GraphFileError, GraphFileProblem};
use miette::NamedSource;
use std::ops::Range;

/// The longest line that is shown with a problem in it, in bytes: JSON often has no line breaks.
const LONGEST_SHOWN: usize = 500;

/// `word` between backticks, shortened, with control characters escaped.
pub(super) fn quote(word: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = word.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    let more = if word.chars().nth(LONGEST).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}

struct Finding {
    message: String,
    help: Option<String>,
    place: Option<Range<usize>>,
}

/// The problems found so far in a text.
pub(super) struct Findings<'t> {
    text: &'t str,
    found: Vec<Finding>,
}

impl<'t> Findings<'t> {
    pub(super) fn new(text: &'t str) -> Findings<'t> {
        Findings { text, found: Vec::new() }
    }

    /// Where `part` of the text is in it.
    pub(super) fn place(&self, part: &'t str) -> Range<usize> {
        let start = (part.as_ptr().addr() - self.text.as_ptr().addr()).min(self.text.len());
        start..start + part.len()
    }

    /// Line and column of `part` of the text, from 1.
    pub(super) fn line_and_column(&self, part: &'t str) -> (usize, usize) {
        line_and_column(self.text, self.place(part).start)
    }

    /// Notes a problem with `part` of the text.
    pub(super) fn report(&mut self, part: &'t str, message: impl Into<String>) {
        let place = self.place(part);
        self.report_at(place, message, None);
    }

    /// Notes a problem with `part` of the text and its mend.
    pub(super) fn report_with(&mut self, part: &'t str, message: impl Into<String>, help: impl Into<String>) {
        let place = self.place(part);
        self.report_at(place, message, Some(help.into()));
    }

    /// Notes a problem at these bytes of the text.
    pub(super) fn report_at(&mut self, place: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.found.push(Finding { message: message.into(), help, place: Some(place) });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    pub(super) fn done(mut self) -> Found {
        self.found.sort_by_key(|finding| finding.place.as_ref().map_or(0, |place| place.start));
        let more = self.found.len().saturating_sub(GraphFileError::MOST);
        self.found.truncate(GraphFileError::MOST);
        let text = self.text;
        let problem = |finding: Finding| GraphFileProblem {
            message: finding.message,
            help: finding.help,
            position: finding.place.as_ref().map(|place| line_and_column(text, place.start)),
            span: finding.place.filter(|place| can_be_shown(text, place)).map(Into::into),
        };
        Found { problems: self.found.into_iter().map(problem).collect(), more }
    }
}

/// What was found, without the text.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) problems: Vec<GraphFileProblem>,
    more: usize,
}

impl Found {
    /// The one problem that keeps anything else from being looked at.
    pub(super) fn only(message: impl Into<String>, help: Option<&str>) -> Found {
        let help = help.map(str::to_owned);
        let problem = GraphFileProblem { message: message.into(), help, position: None, span: None };
        Found { problems: vec![problem], more: 0 }
    }

    pub(super) fn into_error(self, name: &str, format: &'static str, text: String) -> GraphFileError {
        GraphFileError::new(NamedSource::new(name, printable(text)), format, self.problems, self.more)
    }
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Whether the lines around `place` are short enough.
fn can_be_shown(text: &str, place: &Range<usize>) -> bool {
    let before = text.get(..place.start).map_or(0, |before| before.rfind('\n').map_or(0, |end| end + 1));
    let after = text.get(place.start..).map_or(0, |after| after.find('\n').unwrap_or(after.len()));
    place.start + after - before <= LONGEST_SHOWN && place.len() <= LONGEST_SHOWN
}

/// The text without control characters that could disturb a terminal, each byte in its place.
fn printable(text: String) -> String {
    let disturbs = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(disturbs) {
        return text;
    }
    let shown = |c: char| if disturbs(c) { "?".repeat(c.len_utf8()) } else { c.to_string() };
    text.chars().map(shown).collect()
}
