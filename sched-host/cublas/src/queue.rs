//! The queue of a device, for the calls of one raw closure.

use crate::CudaMathError;
use crate::element::Element;
use crate::error::{blas, solver};
use crate::library::{CudaMath, Handles};
use crate::matrix::DeviceTile;
use crate::symbols::{Diagonal, Handle, Op, Side, SolverFunctions, Stream, Triangle};
use sched_runtime::{DeviceSlice, RawDevice};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::MutexGuard;

/// cuBLAS and cuSOLVER in the queue of a device for kernels. Made by [`CudaMath::on`].
#[derive(Debug)]
pub struct CudaQueue<'a> {
    math: &'a CudaMath,
    device: &'a RawDevice<'a>,
    handles: MutexGuard<'a, Handles>,
}

fn mismatch(what: &str, found: (c_int, c_int), expected: (c_int, c_int)) -> CudaMathError {
    let message = format!("{what}: found {} × {}, expected {} × {}", found.0, found.1, expected.0, expected.1);
    CudaMathError::Shape { message }
}

/// Compares the shape of a matrix with what it has to be.
fn expect(what: &str, found: (c_int, c_int), expected: (c_int, c_int)) -> Result<(), CudaMathError> {
    if found == expected { Ok(()) } else { Err(mismatch(what, found, expected)) }
}

impl<'a> CudaQueue<'a> {
    /// Has the libraries use the queue of the device.
    pub(crate) fn new(
        math: &'a CudaMath,
        device: &'a RawDevice<'a>,
        handles: MutexGuard<'a, Handles>,
    ) -> Result<CudaQueue<'a>, CudaMathError> {
        let stream = device.queue()? as usize as Stream;
        // SAFETY: the handle was made for the context of this stream.
        blas("cublasSetStream", unsafe { (math.blas.common.set_stream)(handles.blas as Handle, stream) })?;
        if let (Ok(functions), Some(handle)) = (&math.solver, handles.solver) {
            // SAFETY: as above.
            solver("cusolverDnSetStream", unsafe { (functions.common.set_stream)(handle as Handle, stream) })?;
        }
        Ok(CudaQueue { math, device, handles })
    }

    fn blas(&self) -> Handle {
        self.handles.blas as Handle
    }

    fn solver(&self) -> Result<(&SolverFunctions, Handle), CudaMathError> {
        let functions = self.math.solver.as_ref().map_err(Clone::clone)?;
        Ok((functions, self.handles.solver.unwrap_or_default() as Handle))
    }

    /// A matrix of this many rows and columns at the begin of an array, whose columns follow one another.
    ///
    /// # Errors
    /// If the array is smaller.
    pub fn matrix<T: Element>(
        &self,
        array: &DeviceSlice<T>,
        rows: usize,
        columns: usize,
    ) -> Result<DeviceTile<T>, CudaMathError> {
        let first = match array.is_empty() {
            true => 0,
            false => self.device.buffer(array.buffer())? + u64::from(array.offset()) * size_of::<T>() as u64,
        };
        DeviceTile::new(first, array.len() as usize, rows, columns)
    }

    /// C := alpha·op(A)·op(B) + beta·C.
    ///
    /// # Errors
    /// If the shapes do not fit, or cuBLAS refuses.
    pub fn gemm<T: Element>(
        &self,
        alpha: T,
        a: (DeviceTile<T>, Op),
        b: (DeviceTile<T>, Op),
        beta: T,
        c: DeviceTile<T>,
    ) -> Result<(), CudaMathError> {
        let ((m, k), (_, n)) = (a.0.shape(a.1), b.0.shape(b.1));
        expect("the second factor of gemm", b.0.shape(b.1), (k, n))?;
        expect("the result of gemm", c.shape(Op::None), (m, n))?;
        if m == 0 || n == 0 {
            return Ok(());
        }
        // SAFETY: all elements are inside arrays of the device, which are there until the queue has come to its end;
        // the scalars are read during the call.
        let status = unsafe {
            (T::blas(&self.math.blas).gemm)(
                self.blas(),
                a.1,
                b.1,
                m,
                n,
                k,
                &raw const alpha,
                a.0.pointer(),
                a.0.ld,
                b.0.pointer(),
                b.0.ld,
                &raw const beta,
                c.pointer(),
                c.ld,
            )
        };
        blas("cublasGemm", status)
    }

    /// C := alpha·op(A)·op(A)ᵀ + beta·C, in one triangle of C.
    ///
    /// # Errors
    /// If the shapes do not fit, or cuBLAS refuses.
    pub fn syrk<T: Element>(
        &self,
        triangle: Triangle,
        alpha: T,
        a: (DeviceTile<T>, Op),
        beta: T,
        c: DeviceTile<T>,
    ) -> Result<(), CudaMathError> {
        let (n, k) = a.0.shape(a.1);
        expect("the result of syrk", c.shape(Op::None), (n, n))?;
        if n == 0 {
            return Ok(());
        }
        // SAFETY: as in `gemm`.
        let status = unsafe {
            (T::blas(&self.math.blas).syrk)(
                self.blas(),
                triangle,
                a.1,
                n,
                k,
                &raw const alpha,
                a.0.pointer(),
                a.0.ld,
                &raw const beta,
                c.pointer(),
                c.ld,
            )
        };
        blas("cublasSyrk", status)
    }

    /// B := X with op(A)·X = B, or X·op(A) = B, where A is a triangle with this diagonal.
    ///
    /// # Errors
    /// If the shapes do not fit, or cuBLAS refuses.
    pub fn trsm<T: Element>(
        &self,
        side: Side,
        (a, triangle, op, diagonal): (DeviceTile<T>, Triangle, Op, Diagonal),
        b: DeviceTile<T>,
    ) -> Result<(), CudaMathError> {
        let (m, n) = b.shape(Op::None);
        let order = if side == Side::Left { m } else { n };
        expect("the triangle of trsm", a.shape(Op::None), (order, order))?;
        if m == 0 || n == 0 {
            return Ok(());
        }
        let alpha = T::ONE;
        // SAFETY: as in `gemm`.
        let status = unsafe {
            (T::blas(&self.math.blas).trsm)(
                self.blas(),
                side,
                triangle,
                op,
                diagonal,
                m,
                n,
                &raw const alpha,
                a.pointer(),
                a.ld,
                b.pointer(),
                b.ld,
            )
        };
        blas("cublasTrsm", status)
    }

    /// A := L with A = L·Lᵀ in the lower triangle of A, or U with A = Uᵀ·U in the upper one. `check` gets cuSOLVER's
    /// `devInfo`: 0, or the order of the first leading minor that is not positive definite; its error makes the task
    /// fail.
    ///
    /// # Errors
    /// If A is not square, cuSOLVER is not there or refuses, or there is no room for it to work in.
    pub fn potrf<T: Element>(
        &self,
        triangle: Triangle,
        a: DeviceTile<T>,
        check: impl FnOnce(i32) -> Result<(), String> + Send + 'static,
    ) -> Result<(), CudaMathError> {
        let n = a.rows;
        expect("the matrix of potrf", a.shape(Op::None), (n, n))?;
        if n == 0 {
            return Ok(());
        }
        let ((functions, handle), mut needed) = (self.solver()?, 0);
        let functions = T::solver(functions);
        // SAFETY: as in `gemm`; the size is written during the call.
        let status = unsafe { (functions.potrf_size)(handle, triangle, n, a.pointer(), a.ld, &raw mut needed) };
        solver("cusolverDnPotrf_bufferSize", status)?;
        let (room, info) = (self.room::<T>(needed)?, self.info(check)?);
        // SAFETY: as in `gemm`; the room has the size that was asked for, and is used by one task at a time.
        let status = unsafe { (functions.potrf)(handle, triangle, n, a.pointer(), a.ld, room, needed, info) };
        solver("cusolverDnPotrf", status)
    }

    /// A := L and U with A = L·U, without pivoting: the diagonal of L is 1 and not stored. `check` gets cuSOLVER's
    /// `devInfo`: 0, or the number of the first column, from 1, whose pivot is zero; its error makes the task fail.
    ///
    /// # Errors
    /// If cuSOLVER is not there or refuses, or there is no room for it to work in.
    pub fn getrf<T: Element>(
        &self,
        a: DeviceTile<T>,
        check: impl FnOnce(i32) -> Result<(), String> + Send + 'static,
    ) -> Result<(), CudaMathError> {
        let (m, n) = a.shape(Op::None);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let ((functions, handle), mut needed) = (self.solver()?, 0);
        let functions = T::solver(functions);
        // SAFETY: as in `potrf`.
        let status = unsafe { (functions.getrf_size)(handle, m, n, a.pointer(), a.ld, &raw mut needed) };
        solver("cusolverDnGetrf_bufferSize", status)?;
        let (room, info) = (self.room::<T>(needed)?, self.info(check)?);
        // SAFETY: as in `potrf`; without a place for pivots there is no pivoting.
        let status = unsafe { (functions.getrf)(handle, m, n, a.pointer(), a.ld, room, null_mut(), info) };
        solver("cusolverDnGetrf", status)
    }

    /// Room for this many elements.
    fn room<T>(&self, elements: c_int) -> Result<*mut T, CudaMathError> {
        let buffer = self.device.scratch(elements.max(1) as usize * size_of::<T>())?;
        Ok(self.device.buffer(buffer)? as usize as *mut T)
    }

    /// The place of a status.
    fn info(
        &self,
        check: impl FnOnce(i32) -> Result<(), String> + Send + 'static,
    ) -> Result<*mut c_int, CudaMathError> {
        let (buffer, offset) = self.device.status(check)?;
        Ok((buffer + offset) as usize as *mut c_int)
    }
}
