//! Reading symmetric matrices from Matrix Market files.
//!
//! The format is that of Boisvert, Pozo and Remington, *The Matrix Market Exchange Formats: Initial Design* (NISTIR 5935, 1996). What
//! a Cholesky factorisation can use is read: `matrix` objects in `array` (dense) or `coordinate` (sparse) format, with `real` or
//! `integer` values, `symmetric`, or `general` if the entries turn out to be symmetric. Comments and blank lines may stand anywhere
//! after the header.

mod entries;
mod error;
mod findings;
mod header;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::SymmetricMatrix;
pub use error::{MatrixMarketError, Problem, ProblemKind};
use findings::{Findings, Halt, Place};
use header::{Format, Symmetry};

/// Bounds of what a reader takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Rows of the largest matrix that is read. A matrix of order n takes 4·n·(n + 1) bytes, sparse or not. By default 32 768 rows,
    /// 4.3 GB; never more than 2³¹ − 1.
    pub max_order: usize,
    /// How many problems are reported before the reader gives up. By default 20; at least 1.
    pub max_problems: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { max_order: 32_768, max_problems: 20 }
    }
}

/// Reads the symmetric matrix in the Matrix Market file `path`.
///
/// # Errors
///
/// [`MatrixMarketError`] with all problems found, up to the limit: the file cannot be read or is no text, its header is not that of a
/// supported matrix, the matrix is not square, not symmetric or too large, entries are malformed, not finite, out of range, repeated,
/// missing or too many.
pub fn read_matrix_market(path: &Path, limits: ReadLimits) -> Result<SymmetricMatrix, MatrixMarketError> {
    let name = path.display().to_string();
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return Err(MatrixMarketError::unreadable(&name, &error)),
    };
    match String::from_utf8(bytes) {
        Ok(text) => parse_matrix_market(&name, text, limits),
        Err(error) => Err(MatrixMarketError::not_text(&name, &error)),
    }
}

/// Reads a symmetric matrix from `text`, the content of a Matrix Market file that messages call `name`.
///
/// ```
/// use sched_host::linalg::{ReadLimits, SymmetricEntries, parse_matrix_market};
/// let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 2.5\n2 1 -1\n2 2 4\n";
/// let a = parse_matrix_market("a.mtx", text.into(), ReadLimits::default())?;
/// assert_eq!(a.get(0, 1), -1.0);
/// # Ok::<(), sched_host::linalg::MatrixMarketError>(())
/// ```
///
/// # Errors
///
/// As [`read_matrix_market`].
pub fn parse_matrix_market(name: &str, text: String, limits: ReadLimits) -> Result<SymmetricMatrix, MatrixMarketError> {
    let mut findings = Findings::new(limits.max_problems);
    match parse(&text, limits, &mut findings) {
        Ok(matrix) => Ok(matrix),
        Err(Halt) => Err(findings.into_error(name, text)),
    }
}

fn parse(text: &str, limits: ReadLimits, findings: &mut Findings) -> Result<SymmetricMatrix, Halt> {
    let (header, rest) = header::parse(text, limits, findings)?;
    let entries = entries::parse(text, rest, &header, findings)?;
    if header.format == Format::Coordinate {
        entries::check_repeated(text, &header, &entries, findings)?;
    }
    if header.symmetry == Symmetry::General {
        findings.none_so_far()?;
        entries::check_symmetric(text, &header, &entries, findings)?;
    }
    findings.none_so_far()?;
    let Ok(mut matrix) = SymmetricMatrix::zeros(header.order) else {
        let kind = ProblemKind::TooLarge { order: header.order as u64, limit: None };
        findings.report(kind, Some(header.size_line))?;
        return Err(Halt);
    };
    for entry in &entries {
        let (r, c) = entry.place(header.order);
        if r >= c {
            matrix.set(r, c, entry.value);
        }
    }
    Ok(matrix)
}

/// One line that is neither blank nor a comment.
#[derive(Debug, Clone, Copy)]
struct Line<'t> {
    /// Byte offset of the line in the whole text.
    start: usize,
    /// The line without its end.
    content: &'t str,
}

impl<'t> Line<'t> {
    /// The words of the line, each with its place in the whole text.
    fn words(self) -> impl Iterator<Item = (&'t str, Place)> + Clone {
        let base = self.content.as_ptr().addr();
        self.content.split_whitespace().map(move |word| {
            let offset = self.start + (word.as_ptr().addr() - base);
            (word, Place::new(offset, word.len()))
        })
    }

    /// The line without white space around it.
    fn place(self) -> Place {
        let indent = self.content.len() - self.content.trim_start().len();
        Place::new(self.start + indent, self.content.trim().len())
    }

    /// The place just after the last word.
    fn end(self) -> Place {
        Place::new(self.start + self.content.trim_end().len(), 0)
    }
}

/// The lines of `text` from byte `from` on (the beginning of a line) that are neither blank nor comments.
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
