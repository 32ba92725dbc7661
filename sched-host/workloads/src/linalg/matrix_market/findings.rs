//! Collecting problems while a Matrix Market file is read.

use miette::{NamedSource, SourceSpan};

use super::error::{MatrixMarketError, Problem, ProblemKind};
use super::{Line, Wanted};

/// Longest line with content, in bytes. The format allows 1024 characters; a longer line is most likely not what it should be.
pub(super) const MAX_LINE: usize = 1024;

/// `word` between backticks, shortened, with control characters escaped.
pub(super) fn quote(word: &str) -> String {
    const LONGEST: usize = 40;
    let shown: String = word.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    let more = if word.chars().nth(LONGEST).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}

/// A piece of the text, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    offset: usize,
    len: usize,
}

impl Place {
    pub(super) fn new(offset: usize, len: usize) -> Self {
        Self { offset, len }
    }

    /// Line and column of its beginning, from 1. It reads the text from the start: for the few places that are reported.
    pub(super) fn line_and_column(self, text: &str) -> (usize, usize) {
        let before = &text[..self.offset];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let lines = before.bytes().filter(|&byte| byte == b'\n').count();
        (lines + 1, before[line_start..].chars().count() + 1)
    }

    /// The piece to show with its line, unless that line is too long to be shown.
    fn shown(self, text: &str) -> Option<SourceSpan> {
        let before = text[..self.offset].rfind('\n').map_or(0, |end| end + 1);
        let after = text[self.offset..].find('\n').unwrap_or(text.len() - self.offset);
        (self.offset + after - before <= MAX_LINE).then(|| (self.offset, self.len).into())
    }
}

/// The reader need not go on: what has been found makes the rest meaningless, or the limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halt;

/// The problems found so far.
#[derive(Debug)]
pub(super) struct Findings {
    limit: usize,
    wanted: Wanted,
    found: Vec<(ProblemKind, Option<Place>)>,
}

impl Findings {
    pub(super) fn new(limit: usize, wanted: Wanted) -> Self {
        Self { limit: limit.max(1), wanted, found: Vec::new() }
    }

    /// The one problem that keeps anything else from being looked at.
    pub(super) fn only(kind: ProblemKind, place: Option<Place>, wanted: Wanted) -> Self {
        Self { limit: 1, wanted, found: vec![(kind, place)] }
    }

    /// Notes a problem; `Halt` when the next one would be too many.
    pub(super) fn report(&mut self, kind: ProblemKind, place: Option<Place>) -> Result<(), Halt> {
        self.found.push((kind, place));
        if self.found.len() > self.limit { Err(Halt) } else { Ok(()) }
    }

    /// Notes a line that is longer than the format allows.
    pub(super) fn line_length(&mut self, line: Line<'_>) -> Result<(), Halt> {
        let length = line.content.len();
        if length <= MAX_LINE {
            return Ok(());
        }
        let place = Place::new(line.start, 0);
        self.report(ProblemKind::LineTooLong { length }, Some(place))
    }

    /// `Halt` if anything was found.
    pub(super) fn none_so_far(&self) -> Result<(), Halt> {
        if self.found.is_empty() { Ok(()) } else { Err(Halt) }
    }

    /// The error that reports the problems; `text` is the content of the file called `name`.
    pub(super) fn into_error(mut self, name: &str, text: String) -> MatrixMarketError {
        // One more than the limit was let in, to know whether there are more.
        let gave_up = self.found.len() > self.limit;
        self.found.truncate(self.limit);
        // Some checks go through the matrix by column; people read by line.
        self.found.sort_by_key(|(_, place)| place.map_or(0, |place| place.offset));
        let problem = |(kind, place): (ProblemKind, Option<Place>)| {
            let position = place.map(|place| place.line_and_column(&text));
            let span = place.and_then(|place| place.shown(&text));
            Problem::new(kind, position, span)
        };
        let problems = self.found.into_iter().map(problem).collect();
        MatrixMarketError::new(NamedSource::new(name, printable(text)), problems, gave_up, self.wanted)
    }
}

/// The text without control characters that could disturb a terminal, each byte in its place.
fn printable(text: String) -> String {
    let disturbs = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(disturbs) {
        return text;
    }
    let shown = |c: char| {
        if disturbs(c) { "?".repeat(c.len_utf8()) } else { c.to_string() }
    };
    text.chars().map(shown).collect()
}
