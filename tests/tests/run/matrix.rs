//! Matrices from files, and what is wrong with them.

use super::{GENERAL, cholesky, file};
use sched_tests::program::{Ran, sched};

/// What a run on the matrix of this text does, with the folder left out of what it says.
fn on_matrix(text: &str, options: &[&str]) -> Ran {
    workload_on_matrix("cholesky", text, options)
}

fn workload_on_matrix(workload: &str, text: &str, options: &[&str]) -> Ran {
    let (folder, path) = file("a.mtx", text);
    let ran = sched(&[&["run", workload, "--matrix", path.to_str().unwrap()], options].concat());
    let without = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
    Ran { out: without(ran.out), err: without(ran.err), ..ran }
}

const DENSE: &str = "%%MatrixMarket matrix array real general\n3 3\n4\n1\n0\n1\n3\n1\n0\n1\n2\n";
const SPARSE: &str = "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 4\n2 1 1\n2 2 3\n3 2 1\n3 3 2\n";

#[test]
fn a_matrix_is_read_dense_or_sparse_and_cut_as_asked() {
    for text in [DENSE, SPARSE] {
        let seen = on_matrix(text, &["--tile-size", "2", "--json"]).json();
        assert_eq!((&seen["order"], &seen["tiles"], &seen["tasks"]), (&3.into(), &2.into(), &4.into()));
        assert_eq!(seen["matrix"], "a.mtx");
    }
    let ran = on_matrix(SPARSE, &[]);
    assert!(ran.out.starts_with("cholesky  order 3, 1 × 1 tiles of 256, from a.mtx\n"), "{ran:?}");
}

#[test]
fn every_workload_takes_a_matrix_that_is_not_symmetric() {
    let text = "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4\n2 1 1\n2 2 3\n2 3 1\n3 3 2\n";
    for (workload, _) in GENERAL {
        let seen = workload_on_matrix(workload, text, &["--tile-size", "2", "--json"]).json();
        assert_eq!((&seen["order"], &seen["tiles"], &seen["tasks"]), (&3.into(), &2.into(), &5.into()));
        let ran = workload_on_matrix(workload, &text.replace("3 3 5", "3 4 5"), &[]);
        assert!(ran.code == 1 && ran.says("a.mtx:2:1") && ran.says("use a square matrix"), "{ran:?}");
        let ran = workload_on_matrix(workload, &text.replace("2 3 1", "2 3 x"), &[]);
        assert!(ran.code == 1 && ran.says("a.mtx:6:5"), "{ran:?}");
    }
}

#[test]
fn a_matrix_without_a_factor_is_reported_with_its_row() {
    let ran = on_matrix(&SPARSE.replace("3 3 2", "3 3 -2"), &["--tile-size", "1"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    insta::assert_snapshot!(ran.err, @r"
    sched::workload::not_positive_definite

      × the matrix of `a.mtx` was not factorised
      ╰─▶ the matrix is not positive definite: its leading block of 3 rows and columns is not (the pivot in row
          3 is not positive)
      help: only symmetric positive definite matrices have a Cholesky factor
    ");
}

#[test]
fn a_matrix_that_would_need_pivoting_is_reported_with_its_row() {
    let matrix = |pivot: &str| format!("%%MatrixMarket matrix array real general\n2 2\n{pivot}\n1\n1\n1\n");
    let ran = workload_on_matrix("lu", &matrix("0"), &["--tile-size", "1"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    insta::assert_snapshot!(ran.err, @r"
    sched::workload::zero_pivot

      × the matrix of `a.mtx` was not factorised
      ╰─▶ the matrix has no LU factorisation without pivoting: the pivot in row 1 is zero, or not finite, once
          the rows above are eliminated
      help: nothing is pivoted here: use a matrix that is dominated by its diagonal, or order its rows so that
            it is
    ");
    let ran = workload_on_matrix("lu", &matrix("1e-20"), &[]);
    assert!(ran.code == 1 && ran.out.contains("TOO LARGE"), "{ran:?}");
    assert!(ran.says("the diagonal does") && ran.says("in row 1 it is 1.000e-20"), "{ran:?}");
    assert_eq!(workload_on_matrix("lu", &matrix("2"), &[]).code, 0);
}

#[test]
fn entries_whose_squares_are_out_of_range_are_the_reason_of_a_wrong_result() {
    let matrix =
        |entry: &str| format!("%%MatrixMarket matrix array real general\n2 2\n{entry}\n-{entry}\n{entry}\n{entry}\n");
    for entry in ["1e308", "1e-320"] {
        let ran = workload_on_matrix("qr", &matrix(entry), &[]);
        let said = "the largest entry of the matrix is 1.0e";
        assert!(ran.code == 1 && ran.says(said) && ran.says("scale the matrix"), "{ran:?}");
    }
    assert_eq!(workload_on_matrix("qr", &matrix("1e100"), &[]).code, 0);
    let ran = workload_on_matrix("qr", &matrix("1e39"), &["--precision", "single"]);
    assert!(ran.code == 1 && ran.says("in the range of single"), "{ran:?}");
}

#[test]
fn a_file_that_holds_no_symmetric_matrix_is_reported_with_the_place() {
    let shown = |text: &str| {
        let ran = on_matrix(text, &[]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        ran.err
    };
    let not_symmetric = shown(&DENSE.replacen("\n1\n", "\n1.5\n", 1));
    assert!(not_symmetric.contains("not symmetric") && not_symmetric.contains("a.mtx:"), "{not_symmetric}");
    let not_square = shown("%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n");
    assert!(not_square.contains("a.mtx:2:1") && not_square.contains("2 rows and 3 columns"), "{not_square}");
    let malformed = shown(&SPARSE.replace("2 1 1", "2 1 one").replace("3 3 2", "3 3"));
    assert!(malformed.contains("2 problems") && malformed.contains("a.mtx:4:5"), "{malformed}");
    assert!(malformed.contains("a.mtx:7:4"), "{malformed}");
    let empty = shown("");
    assert!(empty.contains("a.mtx"), "{empty}");
}

#[test]
fn a_file_that_is_not_there_is_reported() {
    let ran = cholesky(&["--matrix", "no/such.mtx"]);
    assert!(ran.code == 1 && ran.says("no/such.mtx") && ran.says("check the path"), "{ran:?}");
}
