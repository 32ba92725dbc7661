//! The entries of a Matrix Market file.

use super::header::{Field, Format, Header, Symmetry};
use super::problems::{Halt, Place, Problems, quote};
use super::{Line, ProblemKind, content_lines};

/// One listed entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Column times order plus row, both from 0: the position in column-major order.
    key: u64,
    pub(super) value: f64,
    /// Byte offset of its line.
    line: usize,
}

impl Entry {
    /// Row and column, from 0.
    pub(super) fn place(&self, order: usize) -> (usize, usize) {
        let order = order as u64;
        ((self.key % order) as usize, (self.key / order) as usize)
    }
}

/// Reads the entries from byte `from` on and sorts them by column, row and line. Malformed ones are reported and
/// skipped.
pub(super) fn parse(text: &str, from: usize, header: &Header, problems: &mut Problems) -> Result<Vec<Entry>, Halt> {
    // The announced number of entries is trusted only as far as the file can contain it, with at least two bytes per
    // entry.
    let room = (text.len() - from) as u64 / 2 + 1;
    let mut entries = Vec::with_capacity(header.n_entries.min(room) as usize);
    let mut array = ArrayPlaces::new(header);
    let mut listed = 0;
    let mut lines = content_lines(text, from);
    while let Some(line) = lines.next() {
        listed += 1;
        if listed > header.n_entries {
            let kind =
                ProblemKind::TooManyEntries { n_expected: header.n_entries, n_found: listed + lines.count() as u64 };
            problems.report(kind, Some(line.place()))?;
            break;
        }
        problems.line_length(line)?;
        let entry = match header.format {
            Format::Array => {
                let (r, c) = array.next();
                array_entry(line, header, problems)?.map(|value| (r, c, value))
            }
            Format::Coordinate => coordinate_entry(line, header, problems)?,
        };
        if let Some((r, c, value)) = entry {
            entries.push(Entry { key: c * header.order as u64 + r, value, line: line.start });
        }
    }
    if listed < header.n_entries {
        let kind = ProblemKind::TooFewEntries { n_expected: header.n_entries, n_found: listed };
        problems.report(kind, Some(Place::new(text.trim_end().len(), 0)))?;
    }
    if header.format == Format::Coordinate {
        entries.sort_unstable_by_key(|entry| (entry.key, entry.line));
    }
    Ok(entries)
}

/// Rows and columns of the entries of an array, from 0, in the order of the file.
struct ArrayPlaces {
    row: u64,
    col: u64,
    order: u64,
    symmetric: bool,
}

impl ArrayPlaces {
    fn new(header: &Header) -> Self {
        Self { row: 0, col: 0, order: header.order as u64, symmetric: header.symmetry == Symmetry::Symmetric }
    }

    fn next(&mut self) -> (u64, u64) {
        let place = (self.row, self.col);
        self.row += 1;
        if self.row == self.order {
            self.col += 1;
            self.row = if self.symmetric { self.col } else { 0 };
        }
        place
    }
}

/// The value on a line of an array; reports a line without one.
fn array_entry(line: Line<'_>, header: &Header, problems: &mut Problems) -> Result<Option<f64>, Halt> {
    let mut words = line.words();
    let value = match words.next() {
        Some((word, place)) => value(word, place, header.field, problems)?,
        None => None,
    };
    nothing_more(words, problems)?;
    Ok(value)
}

/// The row and column, from 0, and the value on a line of a coordinate file; reports a malformed line.
fn coordinate_entry(line: Line<'_>, header: &Header, problems: &mut Problems) -> Result<Option<(u64, u64, f64)>, Halt> {
    let mut words = line.words();
    let mut indices = [None; 2];
    for (what, place) in ["row", "column"].into_iter().zip(&mut indices) {
        *place = match words.next() {
            Some((word, at)) => index(what, word, at, header.order, problems)?,
            None => return missing(format!("the {what} of an entry"), line, problems),
        };
    }
    let Some((word, place)) = words.next() else {
        return missing("the value of an entry".into(), line, problems);
    };
    let value = value(word, place, header.field, problems)?;
    nothing_more(words, problems)?;
    let ([Some(r), Some(c)], Some(value)) = (indices, value) else {
        return Ok(None);
    };
    if header.symmetry == Symmetry::Symmetric && r < c {
        let (row, col) = (r + 1, c + 1);
        problems.report(ProblemKind::AboveDiagonal { row, col }, Some(line.place()))?;
        return Ok(None);
    }
    Ok(Some((r, c, value)))
}

fn missing<T>(expected: String, line: Line<'_>, problems: &mut Problems) -> Result<Option<T>, Halt> {
    problems.report(ProblemKind::Missing { expected }, Some(line.end()))?;
    Ok(None)
}

fn nothing_more<'t>(mut words: impl Iterator<Item = (&'t str, Place)>, problems: &mut Problems) -> Result<(), Halt> {
    let Some((word, place)) = words.next() else {
        return Ok(());
    };
    let kind = ProblemKind::Surplus { found: quote(word), after: "the value of an entry" };
    problems.report(kind, Some(place))
}

/// Reads a row or column, from 0.
fn index(
    what: &'static str,
    word: &str,
    place: Place,
    order: usize,
    problems: &mut Problems,
) -> Result<Option<u64>, Halt> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let kind = match word.parse::<u64>() {
        Ok(index) if index >= 1 && index <= order as u64 => return Ok(Some(index - 1)),
        // Includes numbers beyond 64 bits.
        _ if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            ProblemKind::OutOfRange { what, found: quote(word), order }
        }
        _ => ProblemKind::NotACount {
            what: if what == "row" { "the row of an entry" } else { "the column of an entry" },
            found: quote(word),
        },
    };
    problems.report(kind, Some(place))?;
    Ok(None)
}

/// Reads a value.
fn value(word: &str, place: Place, field: Field, problems: &mut Problems) -> Result<Option<f64>, Halt> {
    let found = || quote(word);
    let kind = match (word.parse::<f64>(), field) {
        (Err(_), Field::Real) => ProblemKind::NotANumber { found: found() },
        (Ok(value), _) if !value.is_finite() => ProblemKind::NotFinite { found: found() },
        (Ok(value), Field::Real) => return Ok(Some(value)),
        (_, Field::Integer) => match word.parse::<i64>() {
            Ok(value) => return Ok(Some(value as f64)),
            Err(_) => ProblemKind::NotAnInteger { found: found() },
        },
    };
    problems.report(kind, Some(place))?;
    Ok(None)
}

/// The line that starts at byte `start`.
fn line_at(text: &str, start: usize) -> Place {
    let content = text[start..].lines().next().unwrap_or_default();
    Line { start, content }.place()
}

/// Reports entries of a coordinate file that are listed more than once.
pub(super) fn check_repeated(
    text: &str,
    header: &Header,
    entries: &[Entry],
    problems: &mut Problems,
) -> Result<(), Halt> {
    for same in entries.chunk_by(|a, b| a.key == b.key) {
        for again in &same[1..] {
            let (r, c) = again.place(header.order);
            let kind =
                ProblemKind::Repeated { row: r + 1, col: c + 1, first_line: line_at(text, same[0].line).line(text) };
            problems.report(kind, Some(line_at(text, again.line)))?;
        }
    }
    Ok(())
}

/// Reports entries, listed once each and sorted, that differ from their mirror image.
pub(super) fn check_symmetric(
    text: &str,
    header: &Header,
    entries: &[Entry],
    problems: &mut Problems,
) -> Result<(), Halt> {
    let n = header.order as u64;
    let all_listed = entries.len() as u64 == n * n;
    let find = |key: u64| {
        if all_listed {
            entries.get(key as usize)
        } else {
            let found = entries.binary_search_by_key(&key, |entry| entry.key);
            found.ok().map(|place| &entries[place])
        }
    };
    for entry in entries {
        let (r, c) = entry.place(header.order);
        let mirror = find(r as u64 * n + c as u64);
        // If both entries of a pair are listed, it is checked once, from below the diagonal.
        if r == c || (r < c && mirror.is_some()) {
            continue;
        }
        let mirrored = mirror.map_or(0.0, |entry| entry.value);
        if entry.value != mirrored {
            let kind = ProblemKind::NotSymmetric { row: r + 1, col: c + 1, value: entry.value, mirrored };
            problems.report(kind, Some(line_at(text, entry.line)))?;
        }
    }
    Ok(())
}
