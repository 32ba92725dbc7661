//! The libraries of CUDA without a device, built with the compiler of the system: see `tests/fixtures/c/cuda.c`.

use crate::in_c::folder_of;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// File name of the driver library.
pub const DRIVER: &str = "libcuda.so";
/// File name of the compiler of CUDA C.
pub const COMPILER: &str = "libnvrtc.so";
/// File name of cuBLAS.
pub const CUBLAS: &str = "libcublas.so.12";
/// File name of cuSOLVER.
pub const CUSOLVER: &str = "libcusolver.so.11";

/// A folder in which the stand-in is there under these names.
///
/// # Panics
/// If it does not compile.
#[must_use]
pub fn libraries(names: &[&str]) -> TempDir {
    let folder = folder_of(&[("stand-in", "tests/fixtures/c/cuda.c", &["-ldl"])]);
    for name in names {
        symlink("stand-in.so", folder.path().join(name)).expect("the folder is new");
    }
    folder
}
