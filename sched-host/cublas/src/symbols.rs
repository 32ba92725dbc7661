//! The functions of the libraries, with their types in C.

use std::ffi::{c_int, c_void};

/// Whether a matrix is transposed (`cublasOperation_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum Op {
    /// As it is.
    None = 0,
    /// Transposed.
    Transposed = 1,
}

/// The part of a matrix that is used (`cublasFillMode_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum Triangle {
    /// On the diagonal and below.
    Lower = 0,
    /// On the diagonal and above.
    Upper = 1,
}

/// The side of the unknown on which the triangle stands (`cublasSideMode_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum Side {
    /// op(A)·X = B.
    Left = 0,
    /// X·op(A) = B.
    Right = 1,
}

/// The diagonal of a triangle (`cublasDiagType_t`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum Diagonal {
    /// As it is.
    NonUnit = 0,
    /// Ones, which are not read.
    Unit = 1,
}

/// `cublasHandle_t`, `cusolverDnHandle_t`.
pub(crate) type Handle = *mut c_void;
/// `cudaStream_t`, which is `CUstream`.
pub(crate) type Stream = *mut c_void;
/// `cublasStatus_t`, `cusolverStatus_t`.
pub(crate) type Status = c_int;

/// Functions of a library without matrices: `cublasCreate_v2`, `cublasSetStream_v2`, or those of cuSOLVER.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    pub(crate) create: unsafe extern "C" fn(*mut Handle) -> Status,
    pub(crate) set_stream: unsafe extern "C" fn(Handle, Stream) -> Status,
}

/// `cublas?gemm_v2`: handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc.
pub(crate) type Gemm<T> = unsafe extern "C" fn(
    Handle,
    Op,
    Op,
    c_int,
    c_int,
    c_int,
    *const T,
    *const T,
    c_int,
    *const T,
    c_int,
    *const T,
    *mut T,
    c_int,
) -> Status;

/// `cublas?syrk_v2`: handle, uplo, trans, n, k, alpha, A, lda, beta, C, ldc.
pub(crate) type Syrk<T> = unsafe extern "C" fn(
    Handle,
    Triangle,
    Op,
    c_int,
    c_int,
    *const T,
    *const T,
    c_int,
    *const T,
    *mut T,
    c_int,
) -> Status;

/// `cublas?trsm_v2`: handle, side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb.
pub(crate) type Trsm<T> = unsafe extern "C" fn(
    Handle,
    Side,
    Triangle,
    Op,
    Diagonal,
    c_int,
    c_int,
    *const T,
    *const T,
    c_int,
    *mut T,
    c_int,
) -> Status;

/// Functions of cuBLAS for one type of elements.
#[derive(Clone, Copy, Debug)]
pub struct Blas<T> {
    pub(crate) gemm: Gemm<T>,
    pub(crate) syrk: Syrk<T>,
    pub(crate) trsm: Trsm<T>,
}

/// `cusolverDn?potrf_bufferSize`: handle, uplo, n, A, lda, Lwork.
pub(crate) type PotrfSize<T> = unsafe extern "C" fn(Handle, Triangle, c_int, *mut T, c_int, *mut c_int) -> Status;

/// `cusolverDn?potrf`: handle, uplo, n, A, lda, Workspace, Lwork, devInfo.
pub(crate) type Potrf<T> =
    unsafe extern "C" fn(Handle, Triangle, c_int, *mut T, c_int, *mut T, c_int, *mut c_int) -> Status;

/// `cusolverDn?getrf_bufferSize`: handle, m, n, A, lda, Lwork.
pub(crate) type GetrfSize<T> = unsafe extern "C" fn(Handle, c_int, c_int, *mut T, c_int, *mut c_int) -> Status;

/// `cusolverDn?getrf`: handle, m, n, A, lda, Workspace, devIpiv, devInfo.
pub(crate) type Getrf<T> =
    unsafe extern "C" fn(Handle, c_int, c_int, *mut T, c_int, *mut T, *mut c_int, *mut c_int) -> Status;

/// Functions of cuSOLVER for one type of elements.
#[derive(Clone, Copy, Debug)]
pub struct Solver<T> {
    pub(crate) potrf_size: PotrfSize<T>,
    pub(crate) potrf: Potrf<T>,
    pub(crate) getrf_size: GetrfSize<T>,
    pub(crate) getrf: Getrf<T>,
}

/// The functions of a library.
#[derive(Clone, Copy, Debug)]
pub struct Functions<S, D> {
    pub(crate) common: Common,
    pub(crate) single: S,
    pub(crate) double: D,
}

/// The functions of cuBLAS.
pub(crate) type BlasFunctions = Functions<Blas<f32>, Blas<f64>>;

/// The functions of cuSOLVER.
pub(crate) type SolverFunctions = Functions<Solver<f32>, Solver<f64>>;
