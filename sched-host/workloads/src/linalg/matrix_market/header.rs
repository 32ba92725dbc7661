//! The first line of a Matrix Market file, and the line with its size.

use super::findings::{Findings, Halt, Place, quote};
use super::{Line, ProblemKind, ReadLimits, content_lines};

/// How the entries are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Every entry, column by column.
    Array,
    /// Row, column and value of the entries that are not zero.
    Coordinate,
}

/// What a value may be.
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

/// What a file says about its matrix before the entries begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) format: Format,
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
    /// Rows and columns; at least 1, at most 2³¹ − 1.
    pub(super) order: usize,
    /// How many entries must follow.
    pub(super) n_entries: u64,
    /// Where the size stands.
    pub(super) size_line: Place,
}

/// One of the words of the first line: what it says, the values that can be read, and those of the format that cannot.
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
    /// The meaning of the next word of the first line, or a report that it has none.
    fn read<'t>(
        &self,
        line: Line<'t>,
        words: &mut impl Iterator<Item = (&'t str, Place)>,
        findings: &mut Findings,
    ) -> Result<Option<T>, Halt> {
        let what = self.what;
        let names = || self.supported.iter().map(|(name, _)| *name);
        let expected = || names().map(quote).collect::<Vec<_>>().join(" or ");
        let Some((word, place)) = words.next() else {
            let expected = format!("the {what} ({})", expected());
            findings.report(ProblemKind::Missing { expected }, Some(line.end()))?;
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
                    .min_by_key(|name| strsim::damerau_levenshtein(name, &word))
                    .filter(|name| strsim::damerau_levenshtein(name, &word) <= 2),
            }
        };
        findings.report(kind, Some(place))?;
        Ok(None)
    }
}

/// Reads the first line and the size; also returns the byte offset of the line after the size.
pub(super) fn parse(text: &str, limits: ReadLimits, findings: &mut Findings) -> Result<(Header, usize), Halt> {
    let first_end = text.find('\n').map_or(text.len(), |end| end + 1);
    let first = Line { start: 0, content: text[..first_end].trim_end_matches(['\n', '\r']) };
    findings.line_length(first)?;
    let mut words = first.words();
    match words.next() {
        Some((word, _)) if word.eq_ignore_ascii_case("%%MatrixMarket") => {}
        found => {
            let (found, place) = match found {
                Some((word, place)) => (quote(word), place),
                None if text.is_empty() => ("an empty file".into(), first.place()),
                None => ("a blank line".into(), first.place()),
            };
            findings.report(ProblemKind::NotMatrixMarket { found }, Some(place))?;
            return Err(Halt);
        }
    }
    // Each word is looked at even if an earlier one is wrong; without all of them nothing that follows can be understood.
    let object = OBJECT.read(first, &mut words, findings)?;
    let format = FORMAT.read(first, &mut words, findings)?;
    let field = FIELD.read(first, &mut words, findings)?;
    let symmetry = SYMMETRY.read(first, &mut words, findings)?;
    if let Some((word, place)) = words.next() {
        let found = quote(word);
        findings.report(ProblemKind::Surplus { found, after: "the symmetry" }, Some(place))?;
    }
    let (Some(()), Some(format), Some(field), Some(symmetry)) = (object, format, field, symmetry) else {
        return Err(Halt);
    };

    let Some(line) = content_lines(text, first_end).next() else {
        let expected = "a line with the size of the matrix".to_owned();
        findings.report(ProblemKind::Missing { expected }, Some(Place::new(text.len(), 0)))?;
        return Err(Halt);
    };
    findings.line_length(line)?;
    let (order, listed) = size(line, format, limits, findings)?;
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

/// The order and, in coordinate format, the number of entries that the size line announces.
fn size(line: Line<'_>, format: Format, limits: ReadLimits, findings: &mut Findings) -> Result<(usize, u64), Halt> {
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
                findings.report(ProblemKind::Missing { expected }, Some(line.end()))?;
            }
            Some((word, place)) => match word.parse::<u64>() {
                Ok(value) => *number = Some(value),
                Err(_) => {
                    let found = quote(word);
                    findings.report(ProblemKind::NotACount { what, found }, Some(place))?;
                }
            },
        }
    }
    if let Some((word, place)) = words.next() {
        let found = quote(word);
        let after = "the size of the matrix";
        findings.report(ProblemKind::Surplus { found, after }, Some(place))?;
    }
    let (Some(rows), Some(cols)) = (numbers[0], numbers[1]) else {
        return Err(Halt);
    };
    if rows != cols {
        findings.report(ProblemKind::NotSquare { rows, cols }, Some(line.place()))?;
        return Err(Halt);
    }
    if rows == 0 {
        findings.report(ProblemKind::NoRows, Some(line.place()))?;
        return Err(Halt);
    }
    let limit = limits.max_order.min(i32::MAX as usize);
    if rows > limit as u64 {
        let kind = ProblemKind::TooLarge { order: rows, limit: Some(limit) };
        findings.report(kind, Some(line.place()))?;
        return Err(Halt);
    }
    match (format, numbers[2]) {
        (Format::Array, _) => Ok((rows as usize, 0)),
        (Format::Coordinate, Some(listed)) => Ok((rows as usize, listed)),
        (Format::Coordinate, None) => Err(Halt),
    }
}
