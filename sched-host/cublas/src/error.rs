//! What goes wrong with the libraries.

use sched_core::driver::DriverError;
use std::fmt;

/// Why a library cannot be used, or refused a call.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CudaMathError {
    /// The library is not there, or lacks a function.
    Unavailable {
        /// What was looked for, and what the loader said.
        message: String,
    },
    /// The environment says that the libraries are not to be used.
    TurnedOff,
    /// The shapes of the matrices do not fit together, or to their data.
    Shape {
        /// What was found, and what was expected.
        message: String,
    },
    /// A function returned an error.
    Status {
        /// The function.
        function: &'static str,
        /// Its status.
        status: i32,
        /// Name of the status.
        name: &'static str,
    },
    /// The driver of the device has no handle of CUDA's, or no memory left.
    Driver(DriverError),
}

impl fmt::Display for CudaMathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CudaMathError::Unavailable { message } | CudaMathError::Shape { message } => f.write_str(message),
            CudaMathError::TurnedOff => write!(f, "{}=none turns cuBLAS off", crate::LIBRARIES_VARIABLE),
            CudaMathError::Status { function, status, name } => write!(f, "{function}: {name} ({status})"),
            CudaMathError::Driver(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CudaMathError {}

impl From<DriverError> for CudaMathError {
    fn from(error: DriverError) -> CudaMathError {
        CudaMathError::Driver(error)
    }
}

/// The status of a function of cuBLAS as a result.
pub(crate) fn blas(function: &'static str, status: i32) -> Result<(), CudaMathError> {
    let name = match status {
        0 => return Ok(()),
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        16 => "CUBLAS_STATUS_LICENSE_ERROR",
        _ => "an unknown status",
    };
    Err(CudaMathError::Status { function, status, name })
}

/// The status of a function of cuSOLVER as a result.
pub(crate) fn solver(function: &'static str, status: i32) -> Result<(), CudaMathError> {
    let name = match status {
        0 => return Ok(()),
        1 => "CUSOLVER_STATUS_NOT_INITIALIZED",
        2 => "CUSOLVER_STATUS_ALLOC_FAILED",
        3 => "CUSOLVER_STATUS_INVALID_VALUE",
        4 => "CUSOLVER_STATUS_ARCH_MISMATCH",
        5 => "CUSOLVER_STATUS_MAPPING_ERROR",
        6 => "CUSOLVER_STATUS_EXECUTION_FAILED",
        7 => "CUSOLVER_STATUS_INTERNAL_ERROR",
        8 => "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
        9 => "CUSOLVER_STATUS_NOT_SUPPORTED",
        10 => "CUSOLVER_STATUS_ZERO_PIVOT",
        11 => "CUSOLVER_STATUS_INVALID_LICENSE",
        _ => "an unknown status",
    };
    Err(CudaMathError::Status { function, status, name })
}
