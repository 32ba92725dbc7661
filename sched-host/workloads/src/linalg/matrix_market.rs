//! Reads matrices from Matrix Market files.
//!
//! The format is that of Boisvert, Pozo and Remington, *The Matrix Market Exchange Formats: Initial Design* (NISTIR
//! 5935, 1996). The reader supports what a dense factorisation can use: square `matrix` objects in `array` (dense) or
//! `coordinate` (sparse) format, with `real` or `integer` values, `symmetric` or `general`. A symmetric matrix may also
//! come from a general file whose entries are symmetric. Comments and blank lines are allowed anywhere after the
//! header.

mod entries;
mod error;
mod header;
mod problems;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::{Matrix, OrderTooLarge, SymmetricMatrix};
use entries::Entry;
pub use error::{MatrixMarketError, Problem, ProblemKind};
use header::{Format, Header, Symmetry};
use problems::{Halt, Place, Problems};
use sched_text as text;

/// Limits of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Maximum number of rows. A symmetric matrix of order n takes 4·n·(n + 1) bytes, any other 8·n², sparse or not. By
    /// default 32 768 rows, which take 4.3 GB or 8.6 GB; never more than 2³¹ − 1.
    pub max_order: usize,
    /// Number of problems after which the reader gives up. By default 20; at least 1.
    pub max_problems: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { max_order: 32_768, max_problems: 20 }
    }
}

/// The purpose of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Symmetric,
    General,
}

/// Reads the symmetric matrix in the Matrix Market file `path`.
///
/// # Errors
///
/// [`MatrixMarketError`] with all problems found, up to the limit: the file cannot be read or is not text; its header
/// is not that of a supported matrix; the matrix is not square, not symmetric or too large; entries are malformed, not
/// finite, out of range, repeated, missing or too many.
pub fn read_symmetric(path: &Path, limits: ReadLimits) -> Result<SymmetricMatrix, MatrixMarketError> {
    parse_symmetric(&text::file_name(path), read(path, Wanted::Symmetric)?, limits)
}

/// Reads the square matrix in the Matrix Market file `path` (`-` is the standard input), symmetric or not.
///
/// # Errors
///
/// As for [`read_symmetric`], except for symmetry.
pub fn read_general(path: &Path, limits: ReadLimits) -> Result<Matrix, MatrixMarketError> {
    parse_general(&text::file_name(path), read(path, Wanted::General)?, limits)
}

fn read(path: &Path, wanted: Wanted) -> Result<String, MatrixMarketError> {
    let name = text::file_name(path);
    match text::read_bytes(path) {
        Ok(bytes) => {
            String::from_utf8(unmarked(bytes)).map_err(|error| MatrixMarketError::not_text(&name, &error, wanted))
        }
        Err(error) => Err(MatrixMarketError::unreadable(&name, &error.into(), wanted)),
    }
}

/// The bytes without the byte-order mark that some editors begin a text with.
fn unmarked(mut bytes: Vec<u8>) -> Vec<u8> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    bytes
}

/// Reads a symmetric matrix from `text`, the content of a Matrix Market file; messages call the file `name`.
///
/// ```
/// use sched_workloads::linalg::{Entries, ReadLimits, parse_symmetric};
/// let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 2.5\n2 1 -1\n2 2 4\n";
/// let a = parse_symmetric("a.mtx", text.into(), ReadLimits::default())?;
/// assert_eq!(a.get(0, 1), -1.0);
/// # Ok::<(), sched_workloads::linalg::MatrixMarketError>(())
/// ```
///
/// # Errors
///
/// As for [`read_symmetric`].
pub fn parse_symmetric(name: &str, text: String, limits: ReadLimits) -> Result<SymmetricMatrix, MatrixMarketError> {
    parse(name, text, limits, Wanted::Symmetric, SymmetricMatrix::zeros, |matrix, header, entry| {
        let (r, c) = entry.place(header.order);
        if r >= c {
            matrix.set(r, c, entry.value);
        }
    })
}

/// Reads a square matrix, symmetric or not, from `text`, the content of a Matrix Market file; messages call the file
/// `name`.
///
/// ```
/// use sched_workloads::linalg::{Entries, ReadLimits, parse_general};
/// let text = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 2.5\n2 1 -1\n2 2 4\n";
/// let a = parse_general("a.mtx", text.into(), ReadLimits::default())?;
/// assert_eq!((a.get(1, 0), a.get(0, 1)), (-1.0, 0.0));
/// # Ok::<(), sched_workloads::linalg::MatrixMarketError>(())
/// ```
///
/// # Errors
///
/// As for [`read_general`].
pub fn parse_general(name: &str, text: String, limits: ReadLimits) -> Result<Matrix, MatrixMarketError> {
    parse(name, text, limits, Wanted::General, Matrix::zeros, |matrix, header, entry| {
        let (r, c) = entry.place(header.order);
        matrix.set(r, c, entry.value);
        if header.symmetry == Symmetry::Symmetric {
            matrix.set(c, r, entry.value);
        }
    })
}

fn parse<M>(
    name: &str,
    text: String,
    limits: ReadLimits,
    wanted: Wanted,
    zeros: impl FnOnce(usize) -> Result<M, OrderTooLarge>,
    set: impl Fn(&mut M, &Header, &Entry),
) -> Result<M, MatrixMarketError> {
    let mut problems = Problems::new(limits.max_problems, wanted);
    let read = listed(&text, limits, wanted, &mut problems).and_then(|(header, entries)| {
        let Ok(mut matrix) = zeros(header.order) else {
            let kind = ProblemKind::TooLarge { order: header.order as u64, limit: None };
            problems.report(kind, Some(header.size_line))?;
            return Err(Halt);
        };
        entries.iter().for_each(|entry| set(&mut matrix, &header, entry));
        Ok(matrix)
    });
    read.map_err(|Halt| problems.into_error(name, text))
}

/// The header and the entries of a flawless file.
fn listed(
    text: &str,
    limits: ReadLimits,
    wanted: Wanted,
    problems: &mut Problems,
) -> Result<(Header, Vec<Entry>), Halt> {
    let (header, rest) = header::parse(text, limits, problems)?;
    let entries = entries::parse(text, rest, &header, problems)?;
    if header.format == Format::Coordinate {
        entries::check_repeated(text, &header, &entries, problems)?;
    }
    if header.symmetry == Symmetry::General && wanted == Wanted::Symmetric {
        problems.none_so_far()?;
        entries::check_symmetric(text, &header, &entries, problems)?;
    }
    problems.none_so_far()?;
    Ok((header, entries))
}

/// A line that is neither blank nor a comment.
#[derive(Debug, Clone, Copy)]
struct Line<'t> {
    /// Byte offset of the line in the whole text.
    start: usize,
    /// The line without its end.
    content: &'t str,
}

impl<'t> Line<'t> {
    /// The words of the line, each with its position in the whole text.
    fn words(self) -> impl Iterator<Item = (&'t str, Place)> + Clone {
        let base = self.content.as_ptr().addr();
        self.content.split_whitespace().map(move |word| {
            let offset = self.start + (word.as_ptr().addr() - base);
            (word, Place::new(offset, word.len()))
        })
    }

    /// The line without surrounding white space.
    fn place(self) -> Place {
        let indent = self.content.len() - self.content.trim_start().len();
        Place::new(self.start + indent, self.content.trim().len())
    }

    /// The position just after the last word.
    fn end(self) -> Place {
        Place::new(self.start + self.content.trim_end().len(), 0)
    }
}

/// The lines of `text` from byte `from` (the start of a line) that are neither blank nor comments.
fn content_lines(text: &str, from: usize) -> impl Iterator<Item = Line<'_>> {
    let mut next = from;
    text[from..].split_inclusive('\n').filter_map(move |content| {
        let start = next;
        next += content.len();
        let content = content.trim_end_matches(['\n', '\r']);
        let skipped = content.trim_start();
        (!skipped.is_empty() && !skipped.starts_with('%')).then_some(Line { start, content })
    })
}
