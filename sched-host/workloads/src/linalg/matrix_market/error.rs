//! Errors in Matrix Market files, with their positions.

use std::fmt;
use std::io;
use std::string::FromUtf8Error;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use sched_text::amount::decimal_bytes;
use sched_text::count;
use sched_text::excerpt::{Excerpts, Position};

use super::Wanted;
use super::problems::{MAX_LINE, Place, Problems};

/// Why a file is not a matrix of the required kind in Matrix Market format: every problem found, up to the limit, with
/// its position.
pub struct MatrixMarketError {
    source: Excerpts<NamedSource<String>>,
    problems: Vec<Problem>,
    gave_up: bool,
    wanted: Wanted,
}

impl MatrixMarketError {
    pub(super) fn new(source: NamedSource<String>, problems: Vec<Problem>, gave_up: bool, wanted: Wanted) -> Self {
        Self { source: Excerpts(source), problems, gave_up, wanted }
    }

    pub(super) fn unreadable(name: &str, error: &io::Error, wanted: Wanted) -> Self {
        let reason = error.to_string();
        Problems::only(ProblemKind::Unreadable { reason }, None, wanted).into_error(name, String::new())
    }

    pub(super) fn not_text(name: &str, error: &FromUtf8Error, wanted: Wanted) -> Self {
        let bytes = error.as_bytes();
        let offset = error.utf8_error().valid_up_to();
        let length = bytes[offset..].iter().position(|&byte| byte == b'\n');
        let line_end = length.map_or(bytes.len(), |length| offset + length);
        let text = String::from_utf8_lossy(&bytes[..line_end]).into_owned();
        let byte = bytes.get(offset).copied().unwrap_or_default();
        let place = Place::new(offset, 1);
        Problems::only(ProblemKind::NotText { byte }, Some(place), wanted).into_error(name, text)
    }

    /// Name of the file.
    pub fn file(&self) -> &str {
        self.source.0.name()
    }

    /// The problems; at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether the reader stopped at its limit of problems, so that there may be more.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }
}

impl fmt::Display for MatrixMarketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file();
        let wanted = match self.wanted {
            Wanted::Symmetric => "symmetric",
            Wanted::General => "square",
        };
        write!(f, "cannot read a {wanted} matrix from `{file}`: ")?;
        match (self.problems.len(), self.gave_up) {
            (1, false) => write!(f, "one problem"),
            (n, false) => write!(f, "{n} problems"),
            (n, true) => write!(f, "gave up after {}", count(n, "problem")),
        }
    }
}

impl std::error::Error for MatrixMarketError {}

impl Diagnostic for MatrixMarketError {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let problems = self.problems.iter();
        Some(Box::new(problems.map(|problem| problem as &dyn Diagnostic)))
    }
}

/// A problem of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    kind: ProblemKind,
    position: Option<Position>,
}

impl Problem {
    pub(super) fn new(kind: ProblemKind, position: Option<Position>) -> Self {
        Self { kind, position }
    }

    /// What is wrong.
    pub fn kind(&self) -> &ProblemKind {
        &self.kind
    }

    /// Line and column, from 1 (columns count characters); `None` if the file could not be read at all.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.position.map(|position| (position.line, position.column))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column, .. }) => write!(f, "line {line}, column {column}: {}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.kind.fix()))
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(None, self.position?.shown?);
        Some(Box::new(std::iter::once(label)))
    }
}

/// The kind of a problem. Texts called `found` are quoted, shortened and free of control characters; rows and columns
/// count from 1.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The file does not exist or cannot be read.
    #[error("the file cannot be read: {reason}")]
    Unreadable {
        /// The operating system's message.
        reason: String,
    },
    /// The file is not UTF-8 text.
    #[error("found the byte {byte:#04x}, expected UTF-8 text")]
    NotText {
        /// The first invalid byte.
        byte: u8,
    },
    /// A line is longer than the format allows.
    #[error("found a line of {length} bytes, expected at most {MAX_LINE}")]
    LineTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The first line does not start correctly.
    #[error("not a Matrix Market file: found {found}, expected `%%MatrixMarket`")]
    NotMatrixMarket {
        /// Its start.
        found: String,
    },
    /// A word of the first line is not part of the format.
    #[error("found {found}, expected the {what}: {expected}")]
    UnknownWord {
        /// The word's role: object, format, field or symmetry.
        what: &'static str,
        /// The word.
        found: String,
        /// The supported words.
        expected: String,
        /// A similar word of the format.
        suggestion: Option<&'static str>,
    },
    /// A word of the first line means something that this reader does not support.
    #[error("found the {what} {found}, which is not supported; expected {supported}")]
    Unsupported {
        /// The word's role: object, format, field or symmetry.
        what: &'static str,
        /// The word.
        found: String,
        /// The supported words.
        supported: String,
    },
    /// A line or the file ends too early.
    #[error("found nothing more, expected {expected}")]
    Missing {
        /// What should have followed.
        expected: String,
    },
    /// A line continues after its end.
    #[error("found {found}, expected nothing more after {after}")]
    Surplus {
        /// The first surplus word.
        found: String,
        /// What should come last.
        after: &'static str,
    },
    /// A size or an index is not written as a whole number.
    #[error("found {found}, expected {what}, a whole number")]
    NotACount {
        /// The meaning of the number.
        what: &'static str,
        /// The text found.
        found: String,
    },
    /// The matrix is not square.
    #[error("found {rows} rows and {cols} columns, expected as many rows as columns")]
    NotSquare {
        /// Number of rows.
        rows: u64,
        /// Number of columns.
        cols: u64,
    },
    /// The matrix has order 0.
    #[error("found a matrix without rows, expected at least one")]
    NoRows,
    /// The matrix exceeds the limit or the memory.
    #[error("found a matrix of order {order}, which takes at least {} as a dense matrix; {}", dense_size(*.order), allowance(*.limit))]
    TooLarge {
        /// Its order.
        order: u64,
        /// The largest order allowed; `None` if memory ran out below it.
        limit: Option<usize>,
    },
    /// An index lies outside the matrix.
    #[error("found the {what} {found}, expected 1 to {order}")]
    OutOfRange {
        /// Row or column.
        what: &'static str,
        /// The index.
        found: String,
        /// Order of the matrix.
        order: usize,
    },
    /// A value is not a number.
    #[error("found {found}, expected a number")]
    NotANumber {
        /// The text found.
        found: String,
    },
    /// A value of an integer matrix is not an integer of 64 bits.
    #[error("found {found}, expected an integer, as the header says")]
    NotAnInteger {
        /// The text found.
        found: String,
    },
    /// A value is infinite, not a number or too large.
    #[error("found {found}, expected a finite number")]
    NotFinite {
        /// The text found.
        found: String,
    },
    /// A file of a symmetric matrix lists an entry above the diagonal.
    #[error("found entry ({row}, {col}) above the diagonal, expected a row not less than the column")]
    AboveDiagonal {
        /// Its row.
        row: u64,
        /// Its column.
        col: u64,
    },
    /// An entry is listed more than once.
    #[error("found entry ({row}, {col}) again, expected it once (it is first in line {first_line})")]
    Repeated {
        /// Its row.
        row: usize,
        /// Its column.
        col: usize,
        /// Line of the file, from 1, that first lists it.
        first_line: usize,
    },
    /// There are more entries than announced.
    #[error("found {n_found} entries, expected {n_expected}; here is the first too many")]
    TooManyEntries {
        /// Number of entries announced.
        n_expected: u64,
        /// Number of entries found.
        n_found: u64,
    },
    /// There are fewer entries than announced.
    #[error("found the end of the file after {n_found} of {n_expected} entries")]
    TooFewEntries {
        /// Number of entries announced.
        n_expected: u64,
        /// Number of entries found.
        n_found: u64,
    },
    /// An entry of a general matrix differs from its mirror image.
    #[error("not symmetric: found {value} in ({row}, {col}) and {mirrored} in ({col}, {row}), expected the same")]
    NotSymmetric {
        /// Row of the entry.
        row: usize,
        /// Column of the entry.
        col: usize,
        /// The entry.
        value: f64,
        /// The entry in row `col` and column `row`; zero if the file does not list it.
        mirrored: f64,
    },
}

impl ProblemKind {
    /// The fix.
    pub fn fix(&self) -> String {
        match self {
            Self::Unreadable { .. } => "check the path and the permissions",
            Self::NotText { .. } => "compressed files (.gz, .tar.gz) must be unpacked first",
            Self::LineTooLong { .. } => "write each entry on a line of its own",
            Self::NotMatrixMarket { .. } => {
                "the first line reads, for example, `%%MatrixMarket matrix coordinate real symmetric`"
            }
            Self::UnknownWord { suggestion, .. } => match suggestion {
                Some(name) => return format!("did you mean `{name}`?"),
                None => "the first line reads `%%MatrixMarket matrix FORMAT FIELD SYMMETRY`",
            },
            Self::Unsupported { .. } => "use a real matrix, symmetric or general",
            Self::Missing { .. } => "complete the line; the file may be cut off",
            Self::Surplus { .. } => "start a new line or remove it; a comment is a line that begins with `%`",
            Self::NotACount { .. } => "write it with digits only",
            Self::NotSquare { .. } => {
                "use a square matrix: only a square matrix can be symmetric, or have these factors"
            }
            Self::NoRows => "use a matrix with rows",
            Self::TooLarge { .. } => "use a smaller matrix, or a machine with more memory and a larger limit",
            Self::OutOfRange { .. } => "rows and columns count from 1; check the size too",
            Self::NotANumber { .. } => "write it like `-1.5e3`",
            Self::NotAnInteger { .. } => "round the value, or say `real` in the header",
            Self::NotFinite { .. } => "the number is infinite, undefined or beyond 1.8e308",
            Self::AboveDiagonal { .. } => {
                "list entries on and below the diagonal only, or say `general` in the header and list both"
            }
            Self::Repeated { .. } => "keep one of them, or their sum if the file was assembled from parts",
            Self::TooManyEntries { .. } => "correct the number of entries in the size, or remove the rest",
            Self::TooFewEntries { .. } => "the file may be cut off; otherwise correct the size",
            Self::NotSymmetric { .. } => {
                "a Cholesky factor needs a symmetric matrix; both entries must be equal to the last bit"
            }
        }
        .to_owned()
    }
}

/// Memory of a dense symmetric matrix, for people.
fn dense_size(order: u64) -> String {
    let bytes = 4.0 * order as f64 * (order as f64 + 1.0);
    if bytes >= 1e21 { "over 1000 EB".to_owned() } else { decimal_bytes(bytes) }
}

fn allowance(limit: Option<usize>) -> String {
    match limit {
        Some(limit) => format!("expected at most order {limit}"),
        None => "there is not enough memory".into(),
    }
}

sched_text::debug_as_text!(MatrixMarketError);
