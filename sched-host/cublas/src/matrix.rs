//! Matrices on a device.

use crate::CudaMathError;
use std::ffi::c_int;
use std::marker::PhantomData;

/// A column-major matrix in the memory of a device, all of whose elements are inside one array. Made by
/// [`CudaQueue::matrix`](crate::CudaQueue::matrix).
#[derive(Debug)]
pub struct DeviceTile<T> {
    /// Address of the first element on the device.
    pub(crate) first: u64,
    pub(crate) rows: c_int,
    pub(crate) columns: c_int,
    /// Elements from one column to the next, at least 1.
    pub(crate) ld: c_int,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for DeviceTile<T> {
    fn clone(&self) -> DeviceTile<T> {
        *self
    }
}

impl<T> Copy for DeviceTile<T> {}

impl<T> DeviceTile<T> {
    /// A matrix of this many rows and columns whose columns follow one another, in an array of `len` elements at
    /// `first`.
    pub(crate) fn new(first: u64, len: usize, rows: usize, columns: usize) -> Result<DeviceTile<T>, CudaMathError> {
        let shape = |message: String| CudaMathError::Shape { message };
        let fits = rows.checked_mul(columns).is_some_and(|needed| needed <= len);
        if !fits {
            return Err(shape(format!("found an array of {len} elements, expected one of {rows} × {columns}")));
        }
        let number = |size: usize| {
            c_int::try_from(size).map_err(|_| shape(format!("found {size} rows or columns, expected fewer than 2^31")))
        };
        Ok(DeviceTile {
            first,
            rows: number(rows)?,
            columns: number(columns)?,
            ld: number(rows.max(1))?,
            of: PhantomData,
        })
    }

    /// The address, as the libraries take it.
    pub(crate) fn pointer(&self) -> *mut T {
        self.first as usize as *mut T
    }

    /// Rows and columns, after an operation.
    pub(crate) fn shape(&self, op: crate::Op) -> (c_int, c_int) {
        match op {
            crate::Op::None => (self.rows, self.columns),
            crate::Op::Transposed => (self.columns, self.rows),
        }
    }
}
