//! The first line of a Matrix Market file, and the line with its size.

use super::problems::{Halt, Place, Problems, quote};
use super::{Line, ProblemKind, ReadLimits, content_lines};

/// The format of the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Every entry, column by column.
    Array,
    /// Row, column and value of the nonzero entries.
    Coordinate,
}

/// The type of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Real,
    Integer,
}

/// Which entries are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symmetry {
    /// All of them.
    General,
    /// Those on and below the diagonal.
    Symmetric,
}

/// What a file declares before the entries begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) format: Format,
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
    /// Number of rows and columns; at least 1, at most 2³¹ − 1.
    pub(super) order: usize,
    /// Number of entries that must follow.
    pub(super) n_entries: u64,
    /// Position of the size.
    pub(super) size_line: Place,
}

/// A word of the first line: its role, its supported values, and those of the format that are not supported.
struct Word<T: 'static> {
    what: &'static str,
    supported: &'static [(&'static str, T)],
    unsupported: &'static [&'static str],
}

const OBJECT: Word<()> = Word { what: "object", supported: &[("matrix", ())], unsupported: &["vector"] };
const FORMAT: Word<Format> = Word {
    what: "format",
    supported: &[("array", Format::Array), ("coordinate", Format::Coordinate)],
    unsupported: &[],
};
const FIELD: Word<Field> = Word {
    what: "field",
    supported: &[("real", Field::Real), ("integer", Field::Integer)],
    unsupported: &["complex", "pattern"],
};
const SYMMETRY: Word<Symmetry> = Word {
    what: "symmetry",
    supported: &[("symmetric", Symmetry::Symmetric), ("general", Symmetry::General)],
    unsupported: &["hermitian", "skew-symmetric"],
};

impl<T: Copy> Word<T> {
    /// The meaning of the next word of the first line; reports a word without one.
    fn read<'t>(
        &self,
        line: Line<'t>,
        words: &mut impl Iterator<Item = (&'t str, Place)>,
        problems: &mut Problems,
    ) -> Result<Option<T>, Halt> {
        let what = self.what;
        let names = || self.supported.iter().map(|(name, _)| *name);
        let expected = || names().map(quote).collect::<Vec<_>>().join(" or ");
        let Some((word, place)) = words.next() else {
            let expected = format!("the {what} ({})", expected());
            problems.report(ProblemKind::Missing { expected }, Some(line.end()))?;
            return Ok(None);
        };
        let is = |name: &str| name.eq_ignore_ascii_case(word);
        if let Some((_, value)) = self.supported.iter().find(|(name, _)| is(name)) {
            return Ok(Some(*value));
        }
        let kind = if self.unsupported.iter().any(|name| is(name)) {
            ProblemKind::Unsupported { what, found: quote(word), supported: expected() }
        } else {
            let word = word.to_ascii_lowercase();
            ProblemKind::UnknownWord {
                what,
                found: quote(&word),
                expected: expected(),
                suggestion: names()
                    .chain(self.unsupported.iter().copied())
                    .min_by_key(|name| sched_text::distance(name, &word))
                    .filter(|name| sched_text::distance(name, &word) <= 2),
            }
        };
        problems.report(kind, Some(place))?;
        Ok(None)
    }
}

/// Reads the first line and the size; also returns the byte offset of the line after the size.
pub(super) fn parse(text: &str, limits: ReadLimits, problems: &mut Problems) -> Result<(Header, usize), Halt> {
    let first_end = text.find('\n').map_or(text.len(), |end| end + 1);
    let first = Line { start: 0, content: text[..first_end].trim_end_matches(['\n', '\r']) };
    problems.line_length(first)?;
    let mut words = first.words();
    match words.next() {
        Some((word, _)) if word.eq_ignore_ascii_case("%%MatrixMarket") => {}
        found => {
            let (found, place) = match found {
                Some((word, place)) => (quote(word), place),
                None if text.is_empty() => ("an empty file".into(), first.place()),
                None => ("a blank line".into(), first.place()),
            };
            problems.report(ProblemKind::NotMatrixMarket { found }, Some(place))?;
            return Err(Halt);
        }
    }
    // Each word is checked even if an earlier one is wrong; without all of them, nothing that follows can be
    // interpreted.
    let object = OBJECT.read(first, &mut words, problems)?;
    let format = FORMAT.read(first, &mut words, problems)?;
    let field = FIELD.read(first, &mut words, problems)?;
    let symmetry = SYMMETRY.read(first, &mut words, problems)?;
    if let Some((word, place)) = words.next() {
        let found = quote(word);
        problems.report(ProblemKind::Surplus { found, after: "the symmetry" }, Some(place))?;
    }
    let (Some(()), Some(format), Some(field), Some(symmetry)) = (object, format, field, symmetry) else {
        return Err(Halt);
    };

    let Some(line) = content_lines(text, first_end).next() else {
        let expected = "a line with the size of the matrix".to_owned();
        problems.report(ProblemKind::Missing { expected }, Some(Place::new(text.len(), 0)))?;
        return Err(Halt);
    };
    problems.line_length(line)?;
    let (order, listed) = size(line, format, limits, problems)?;
    let n = order as u64;
    let n_entries = match (format, symmetry) {
        (Format::Coordinate, _) => listed,
        (Format::Array, Symmetry::General) => n * n,
        (Format::Array, Symmetry::Symmetric) => n * (n + 1) / 2,
    };
    let header = Header { format, field, symmetry, order, n_entries, size_line: line.place() };
    let after = line.start + line.content.len();
    let rest = text[after..].find('\n').map_or(text.len(), |end| after + end + 1);
    Ok((header, rest))
}

/// The order and, in coordinate format, the number of entries on the size line.
fn size(line: Line<'_>, format: Format, limits: ReadLimits, problems: &mut Problems) -> Result<(usize, u64), Halt> {
    const NUMBERS: [&str; 3] = ["the number of rows", "the number of columns", "the number of entries"];
    let wanted = match format {
        Format::Array => &NUMBERS[..2],
        Format::Coordinate => &NUMBERS[..],
    };
    let mut words = line.words();
    let mut numbers = [None; 3];
    for (&what, number) in wanted.iter().zip(&mut numbers) {
        match words.next() {
            None => {
                let expected = what.to_owned();
                problems.report(ProblemKind::Missing { expected }, Some(line.end()))?;
            }
            Some((word, place)) => match word.parse::<u64>() {
                Ok(value) => *number = Some(value),
                Err(_) => {
                    let found = quote(word);
                    problems.report(ProblemKind::NotACount { what, found }, Some(place))?;
                }
            },
        }
    }
    if let Some((word, place)) = words.next() {
        let found = quote(word);
        let after = "the size of the matrix";
        problems.report(ProblemKind::Surplus { found, after }, Some(place))?;
    }
    let (Some(rows), Some(cols)) = (numbers[0], numbers[1]) else {
        return Err(Halt);
    };
    if rows != cols {
        problems.report(ProblemKind::NotSquare { rows, cols }, Some(line.place()))?;
        return Err(Halt);
    }
    if rows == 0 {
        problems.report(ProblemKind::NoRows, Some(line.place()))?;
        return Err(Halt);
    }
    let limit = limits.max_order.min(i32::MAX as usize);
    if rows > limit as u64 {
        let kind = ProblemKind::TooLarge { order: rows, limit: Some(limit) };
        problems.report(kind, Some(line.place()))?;
        return Err(Halt);
    }
    match (format, numbers[2]) {
        (Format::Array, _) => Ok((rows as usize, 0)),
        (Format::Coordinate, Some(listed)) => Ok((rows as usize, listed)),
        (Format::Coordinate, None) => Err(Halt),
    }
}
