//! What kernels see of a matrix: a pointer, numbers of rows and columns, and strides.
//!
//! # Safety
//!
//! A view is made of a pointer and a layout that reaches valid elements only, with a place of its own for each element
//! ([`MatrixLayout::check`]). Nobody else writes these elements while a [`MatrixRef`] lives, nor uses them while a
//! [`MatrixMut`] does; the places *between* its rows may belong to others, so no reference to them is ever made.

use super::layout::MatrixLayout;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A matrix, or a part of one, that a kernel reads.
///
/// Libraries for linear algebra take its pointer and its strides; rows or columns that are contiguous are slices.
pub struct MatrixRef<'a, T> {
    first: *const T,
    layout: MatrixLayout,
    of: PhantomData<&'a T>,
}

/// A matrix, or a part of one, that a kernel writes.
pub struct MatrixMut<'a, T> {
    first: *mut T,
    layout: MatrixLayout,
    of: PhantomData<&'a mut T>,
}

// SAFETY: a view is used as the reference to elements that it stands for.
unsafe impl<T: Sync> Send for MatrixRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for MatrixRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for MatrixMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for MatrixMut<'_, T> {}

impl<T> Clone for MatrixRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MatrixRef<'_, T> {}

impl<T: fmt::Debug> fmt::Debug for MatrixRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows =
            (0..self.rows()).map(|row| (0..self.columns()).map(|column| &self[(row, column)]).collect::<Vec<_>>());
        f.debug_list().entries(rows).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for MatrixMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

const NOT_BY_ROWS: &str = "the rows of this matrix are not contiguous: take its columns, or its elements";
const NOT_BY_COLUMNS: &str = "the columns of this matrix are not contiguous: take its rows, or its elements";

/// Panics if there is no such row, or if its elements do not follow one another.
fn check_row(layout: MatrixLayout, row: usize) {
    assert!(row < layout.rows(), "row {row} of a matrix of {} rows", layout.rows());
    assert!(layout.column_stride() == 1 || layout.columns() <= 1, "{NOT_BY_ROWS}");
}

/// Panics if there is no such column, or if its elements do not follow one another.
fn check_column(layout: MatrixLayout, column: usize) {
    assert!(column < layout.columns(), "column {column} of a matrix of {} columns", layout.columns());
    assert!(layout.row_stride() == 1 || layout.rows() <= 1, "{NOT_BY_COLUMNS}");
}

impl<'a, T> MatrixRef<'a, T> {
    /// # Safety
    /// As in the description of the [module](self), for the lifetime of the view.
    pub(crate) unsafe fn new(first: *const T, layout: MatrixLayout) -> MatrixRef<'a, T> {
        MatrixRef { first, layout, of: PhantomData }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.layout.rows()
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.layout.columns()
    }

    /// Numbers of rows and columns, and strides.
    #[must_use]
    pub fn layout(&self) -> MatrixLayout {
        self.layout
    }

    /// Pointer to the first element.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.first
    }

    /// All elements, if they are contiguous: row after row, or column after column.
    #[must_use]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        let length = self.rows() * self.columns();
        // SAFETY: the elements of this view are all there is between the first and the last.
        self.layout.is_contiguous().then(|| unsafe { std::slice::from_raw_parts(self.first, length) })
    }

    /// A row as a slice.
    ///
    /// # Panics
    /// If there is no such row, or if rows are not contiguous, as in a matrix that is stored by columns.
    #[must_use]
    pub fn row(&self, row: usize) -> &'a [T] {
        check_row(self.layout, row);
        // SAFETY: the elements of a row are contiguous, and belong to this view.
        unsafe { std::slice::from_raw_parts(self.place(row, 0), self.columns()) }
    }

    /// A column as a slice.
    ///
    /// # Panics
    /// If there is no such column, or if columns are not contiguous, as in a matrix that is stored by rows.
    #[must_use]
    pub fn column(&self, column: usize) -> &'a [T] {
        check_column(self.layout, column);
        // SAFETY: the elements of a column are contiguous, and belong to this view.
        unsafe { std::slice::from_raw_parts(self.place(0, column), self.rows()) }
    }

    /// An element, if there is one at this place.
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> Option<&'a T> {
        // SAFETY: it is an element of this view.
        (row < self.rows() && column < self.columns()).then(|| unsafe { &*self.place(row, column) })
    }

    fn place(&self, row: usize, column: usize) -> *const T {
        // No `add`: a matrix without elements may have no place at all.
        self.first.wrapping_add(self.layout.offset(row, column))
    }
}

impl<T> Index<(usize, usize)> for MatrixRef<'_, T> {
    type Output = T;

    fn index(&self, (row, column): (usize, usize)) -> &T {
        self.get(row, column).unwrap_or_else(|| outside(self.layout, row, column))
    }
}

#[cold]
fn outside(layout: MatrixLayout, row: usize, column: usize) -> ! {
    panic!("element ({row}, {column}) of {layout}")
}

impl<'a, T> MatrixMut<'a, T> {
    /// # Safety
    /// As in the description of the [module](self), for the lifetime of the view.
    pub(crate) unsafe fn new(first: *mut T, layout: MatrixLayout) -> MatrixMut<'a, T> {
        MatrixMut { first, layout, of: PhantomData }
    }

    /// A view to read, while this one is not used.
    #[must_use]
    pub fn as_ref(&self) -> MatrixRef<'_, T> {
        MatrixRef { first: self.first, layout: self.layout, of: PhantomData }
    }

    /// Another view to write, while this one is not used.
    pub fn as_mut(&mut self) -> MatrixMut<'_, T> {
        MatrixMut { first: self.first, layout: self.layout, of: PhantomData }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.layout.rows()
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.layout.columns()
    }

    /// Numbers of rows and columns, and strides.
    #[must_use]
    pub fn layout(&self) -> MatrixLayout {
        self.layout
    }

    /// Pointer to the first element.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.first
    }

    /// All elements, if they are contiguous: row after row, or column after column.
    #[must_use]
    pub fn as_slice_mut(&mut self) -> Option<&mut [T]> {
        let length = self.rows() * self.columns();
        // SAFETY: the elements of this view are all there is between the first and the last.
        self.layout.is_contiguous().then(|| unsafe { std::slice::from_raw_parts_mut(self.first, length) })
    }

    /// A row as a slice.
    ///
    /// # Panics
    /// If there is no such row, or if rows are not contiguous, as in a matrix that is stored by columns.
    #[must_use]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        check_row(self.layout, row);
        // SAFETY: the elements of a row are contiguous, and belong to this view, which is for writing.
        unsafe { std::slice::from_raw_parts_mut(self.place(row, 0), self.columns()) }
    }

    /// A column as a slice.
    ///
    /// # Panics
    /// If there is no such column, or if columns are not contiguous, as in a matrix that is stored by rows.
    #[must_use]
    pub fn column_mut(&mut self, column: usize) -> &mut [T] {
        check_column(self.layout, column);
        // SAFETY: the elements of a column are contiguous, and belong to this view, which is for writing.
        unsafe { std::slice::from_raw_parts_mut(self.place(0, column), self.rows()) }
    }

    /// Not by way of a shared reference: what is written through must come from the pointer itself.
    fn place(&mut self, row: usize, column: usize) -> *mut T {
        self.first.wrapping_add(self.layout.offset(row, column))
    }

    /// Sets all elements.
    pub fn fill(&mut self, value: T)
    where
        T: Copy,
    {
        for row in 0..self.rows() {
            for column in 0..self.columns() {
                self[(row, column)] = value;
            }
        }
    }

    /// The rows before `row`, and those from it.
    ///
    /// # Panics
    /// If there are fewer rows.
    #[must_use]
    pub fn split_at_row(self, row: usize) -> (MatrixMut<'a, T>, MatrixMut<'a, T>) {
        assert!(row <= self.rows(), "row {row} of a matrix of {} rows", self.rows());
        let columns = 0..self.columns();
        let part = |rows| self.layout.of_part(&sched_graph::Region { rows, columns: columns.clone() });
        let second = self.first.wrapping_add(self.layout.offset(row, 0));
        // SAFETY: the elements of this view, which is given up, are divided among the two.
        unsafe { (MatrixMut::new(self.first, part(0..row)), MatrixMut::new(second, part(row..self.rows()))) }
    }
}

impl<T> Index<(usize, usize)> for MatrixMut<'_, T> {
    type Output = T;

    fn index(&self, (row, column): (usize, usize)) -> &T {
        self.as_ref().get(row, column).unwrap_or_else(|| outside(self.layout, row, column))
    }
}

impl<T> IndexMut<(usize, usize)> for MatrixMut<'_, T> {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut T {
        if row >= self.rows() || column >= self.columns() {
            outside(self.layout, row, column);
        }
        // SAFETY: it is an element of this view.
        unsafe { &mut *self.place(row, column) }
    }
}
