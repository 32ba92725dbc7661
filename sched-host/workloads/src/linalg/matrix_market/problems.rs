//! Collects problems while a Matrix Market file is read.

use miette::NamedSource;
use sched_text::excerpt::{Position, printable, quoted_word};
use sched_text::line_and_column;

use super::error::{MatrixMarketError, Problem, ProblemKind};
use super::{Line, Wanted};

/// Maximum length of a line with content, in bytes. The format allows 1024 characters; a longer line is probably an
/// error.
pub(super) const MAX_LINE: usize = 1024;

/// `word` between backticks, shortened, with control characters escaped.
pub(super) fn quote(word: &str) -> String {
    quoted_word(word, 40)
}

/// A range of the text, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    offset: usize,
    len: usize,
}

impl Place {
    pub(super) fn new(offset: usize, len: usize) -> Self {
        Self { offset, len }
    }

    /// The line of its start, from 1.
    pub(super) fn line(self, text: &str) -> usize {
        line_and_column(text, self.offset).0
    }

    fn position(self, text: &str) -> Position {
        Position::of(text, self.offset..self.offset + self.len, MAX_LINE)
    }
}

/// The reader should stop: the problems found make the rest meaningless, or the limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halt;

/// The problems found so far.
#[derive(Debug)]
pub(super) struct Problems {
    limit: usize,
    wanted: Wanted,
    found: Vec<(ProblemKind, Option<Place>)>,
}

impl Problems {
    pub(super) fn new(limit: usize, wanted: Wanted) -> Self {
        Self { limit: limit.max(1), wanted, found: Vec::new() }
    }

    /// A single problem that prevents any further check.
    pub(super) fn only(kind: ProblemKind, place: Option<Place>, wanted: Wanted) -> Self {
        Self { limit: 1, wanted, found: vec![(kind, place)] }
    }

    /// Records a problem; `Halt` if the next one would exceed the limit.
    pub(super) fn report(&mut self, kind: ProblemKind, place: Option<Place>) -> Result<(), Halt> {
        self.found.push((kind, place));
        if self.found.len() > self.limit { Err(Halt) } else { Ok(()) }
    }

    /// Reports a line that is longer than the format allows.
    pub(super) fn line_length(&mut self, line: Line<'_>) -> Result<(), Halt> {
        let length = line.content.len();
        if length <= MAX_LINE {
            return Ok(());
        }
        let place = Place::new(line.start, 0);
        self.report(ProblemKind::LineTooLong { length }, Some(place))
    }

    /// `Halt` if any problem was found.
    pub(super) fn none_so_far(&self) -> Result<(), Halt> {
        if self.found.is_empty() { Ok(()) } else { Err(Halt) }
    }

    /// The error that reports the problems; `text` is the content of the file called `name`.
    pub(super) fn into_error(mut self, name: &str, text: String) -> MatrixMarketError {
        // One problem beyond the limit was recorded, to know whether there are more.
        let gave_up = self.found.len() > self.limit;
        self.found.truncate(self.limit);
        // Some checks visit the matrix by column; people read by line.
        self.found.sort_by_key(|(_, place)| place.map_or(0, |place| place.offset));
        let problem =
            |(kind, place): (ProblemKind, Option<Place>)| Problem::new(kind, place.map(|place| place.position(&text)));
        let problems = self.found.into_iter().map(problem).collect();
        MatrixMarketError::new(NamedSource::new(name, printable(text)), problems, gave_up, self.wanted)
    }
}
