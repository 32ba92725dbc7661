//! Where the elements of a matrix are in memory.

use sched_graph::Region;
use std::fmt;

/// Numbers of rows and columns of a matrix, and its strides: the distances in memory, in elements, from one row to the
/// next and from one column to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatrixLayout {
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

/// Why values are no matrix of this layout.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum LayoutError {
    /// There are fewer values than the layout reaches.
    #[error("{found} values were given, and {layout} needs {expected}")]
    #[diagnostic(help("pass as many values as the matrix has elements, or correct its numbers of rows and columns"))]
    TooShort {
        /// The layout.
        layout: MatrixLayout,
        /// Number of values that it reaches.
        expected: usize,
        /// Number of values.
        found: usize,
    },
    /// Two elements of the matrix are at one place, or the matrix does not fit into memory.
    #[error("{layout} has several elements at one place, or reaches beyond what memory can hold")]
    #[diagnostic(help("one stride is at least 1, and the other at least that times the number of elements it passes"))]
    Folded {
        /// The layout.
        layout: MatrixLayout,
    },
}

sched_text::debug_as_text!(LayoutError);

impl fmt::Display for MatrixLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MatrixLayout { rows, columns, row_stride, column_stride } = self;
        write!(f, "a matrix of {rows} × {columns} elements with strides {row_stride} and {column_stride}")
    }
}

impl MatrixLayout {
    /// Row after row.
    #[must_use]
    pub fn row_major(rows: usize, columns: usize) -> MatrixLayout {
        MatrixLayout { rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// Column after column, as in BLAS and faer.
    #[must_use]
    pub fn column_major(rows: usize, columns: usize) -> MatrixLayout {
        MatrixLayout { rows, columns, row_stride: 1, column_stride: rows }
    }

    /// Sets the strides.
    #[must_use]
    pub fn strides(self, row_stride: usize, column_stride: usize) -> MatrixLayout {
        MatrixLayout { row_stride, column_stride, ..self }
    }

    /// An array, as a matrix of one column.
    pub(crate) fn array(length: usize) -> MatrixLayout {
        MatrixLayout { rows: length, columns: 1, row_stride: 1, column_stride: length }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(self) -> usize {
        self.columns
    }

    /// Distance from one row to the next.
    #[must_use]
    pub fn row_stride(self) -> usize {
        self.row_stride
    }

    /// Distance from one column to the next.
    #[must_use]
    pub fn column_stride(self) -> usize {
        self.column_stride
    }

    /// All elements.
    pub(crate) fn region(self) -> Region {
        Region { rows: 0..self.rows, columns: 0..self.columns }
    }

    /// Place of an element, or of one behind the last.
    pub(crate) fn offset(self, row: usize, column: usize) -> usize {
        // Wrapping: a single row or column has a stride of any size, and what is behind it no place.
        row.wrapping_mul(self.row_stride).wrapping_add(column.wrapping_mul(self.column_stride))
    }

    /// Layout of a part, from its first element.
    pub(crate) fn of_part(self, region: &Region) -> MatrixLayout {
        MatrixLayout { rows: region.rows.len(), columns: region.columns.len(), ..self }
    }

    /// Whether the elements are at consecutive places, in either order.
    pub(crate) fn is_contiguous(self) -> bool {
        let by_rows = self.column_stride == 1 && (self.row_stride == self.columns || self.rows <= 1);
        let by_columns = self.row_stride == 1 && (self.column_stride == self.rows || self.columns <= 1);
        by_rows || by_columns || self.rows * self.columns <= 1
    }

    /// Number of places from the first element to the last, if each element has its own and `found` values are enough.
    pub(crate) fn check(self, found: usize) -> Result<usize, LayoutError> {
        let MatrixLayout { rows, columns, row_stride, column_stride } = self;
        if rows == 0 || columns == 0 {
            return Ok(0);
        }
        let folded = LayoutError::Folded { layout: self };
        let reach = |count: usize, stride: usize| (count - 1).checked_mul(stride);
        let (down, right) = (reach(rows, row_stride).ok_or(folded)?, reach(columns, column_stride).ok_or(folded)?);
        let span = down.checked_add(right).and_then(|last| last.checked_add(1)).ok_or(folded)?;
        let steps = (rows == 1 || row_stride > 0) && (columns == 1 || column_stride > 0);
        let apart = rows == 1 || columns == 1 || row_stride > right || column_stride > down;
        match steps && apart {
            false => Err(folded),
            true if span > found => Err(LayoutError::TooShort { layout: self, expected: span, found }),
            true => Ok(span),
        }
    }
}
