//! What does not need a device; the calls are tested with fake devices, in the workspace's integration tests.

use crate::error::{blas, solver};
use crate::matrix::DeviceTile;
use crate::{CudaMath, CudaMathError, Op};

#[test]
fn a_matrix_fits_into_its_array() {
    let tile = DeviceTile::<f64>::new(64, 6, 3, 2).expect("it fits");
    assert_eq!((tile.pointer().addr(), tile.ld), (64, 3));
    assert_eq!((tile.shape(Op::None), tile.shape(Op::Transposed)), ((3, 2), (2, 3)));
    assert_eq!(DeviceTile::<f64>::new(0, 0, 0, 7).expect("it has no elements").ld, 1);
    for (rows, columns) in [(3, 3), (usize::MAX, 2)] {
        let error = DeviceTile::<f64>::new(64, 6, rows, columns).expect_err("it does not fit").to_string();
        assert_eq!(error, format!("found an array of 6 elements, expected one of {rows} × {columns}"));
    }
    let error = DeviceTile::<f64>::new(0, usize::MAX, 1 << 40, 1).expect_err("libraries count in 32 bits").to_string();
    assert_eq!(error, "found 1099511627776 rows or columns, expected fewer than 2^31");
}

#[test]
fn a_library_that_is_there_and_cannot_be_loaded_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("libcublas.so.12");
    std::fs::write(&file, "no library").expect("written");
    // A system that has another one uses that.
    let Err(error) = CudaMath::load(&[folder.path().to_owned()]) else { return };
    let (said, file) = (error.to_string(), file.display());
    assert!(said.starts_with(&format!("{file} cannot be loaded ({file}: ")), "{said}");
}

#[test]
fn a_status_has_the_name_that_the_library_gives_it() {
    assert_eq!((blas("f", 0), solver("f", 0)), (Ok(()), Ok(())));
    let said = |result: Result<(), CudaMathError>| result.expect_err("it is no success").to_string();
    assert_eq!(said(blas("cublasGemm", 3)), "cublasGemm: CUBLAS_STATUS_ALLOC_FAILED (3)");
    assert_eq!(said(solver("cusolverDnPotrf", 3)), "cusolverDnPotrf: CUSOLVER_STATUS_INVALID_VALUE (3)");
    assert_eq!(said(blas("cublasGemm", 99)), "cublasGemm: an unknown status (99)");
}
