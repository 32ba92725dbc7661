//! What the reader accepts, and its messages about the rest.

use miette::{GraphicalReportHandler, GraphicalTheme};
use proptest::prelude::*;

use super::*;
use crate::linalg::Entries;

fn read(text: &str) -> Result<SymmetricMatrix, MatrixMarketError> {
    parse_symmetric("a.mtx", text.into(), ReadLimits::default())
}

/// All entries of a matrix, row by row.
fn rows(matrix: &SymmetricMatrix) -> Vec<Vec<f64>> {
    let n = matrix.order();
    (0..n).map(|r| (0..n).map(|c| matrix.get(r, c)).collect()).collect()
}

/// The message and the problems, one per line.
fn complaint(text: &str) -> String {
    let error = read(text).expect_err("the file is bad");
    let problems = error.problems().iter().map(ToString::to_string);
    let lines: Vec<String> = std::iter::once(error.to_string()).chain(problems).collect();
    lines.join("\n")
}

/// The report as a terminal would show it, without colours.
fn rendered(error: &MatrixMarketError) -> String {
    let mut out = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(120)
        .render_report(&mut out, error)
        .expect("a string takes everything");
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[test]
fn a_sparse_symmetric_file_is_read() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n\n  3  3  4 \n1 1 2.5\n% another\n2 1 -1e-1\r\n3 3 4\n\n 2\t2 +3. \n";
    let a = read(text).unwrap();
    assert_eq!(rows(&a), [[2.5, -0.1, 0.0], [-0.1, 3.0, 0.0], [0.0, 0.0, 4.0]]);
}

#[test]
fn a_sparse_general_file_with_symmetric_entries_is_read() {
    let a = read("%%MatrixMarket MATRIX Coordinate Integer GENERAL\n2 2 4\n1 1 2\n1 2 -1\n2 1 -1\n2 2 5");
    assert_eq!(rows(&a.unwrap()), [[2.0, -1.0], [-1.0, 5.0]]);
    let a = read("%%MatrixMarket matrix coordinate real general\n2 2 2\n2 2 3\n1 2 0\n").unwrap();
    assert_eq!(rows(&a), [[0.0, 0.0], [0.0, 3.0]]);
}

#[test]
fn a_dense_symmetric_file_is_read_column_by_column() {
    let a = read("%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n").unwrap();
    assert_eq!(rows(&a), [[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]]);
}

#[test]
fn a_dense_general_file_with_symmetric_entries_is_read() {
    let a = read("%%MatrixMarket matrix array integer general\n2 2\n1\n2\n2\n3\n").unwrap();
    assert_eq!(rows(&a), [[1.0, 2.0], [2.0, 3.0]]);
}

#[test]
fn a_report_shows_every_problem_in_its_line() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 2.5\n2 1 one\n4 1 1.0\n3 3 4\n";
    insta::assert_snapshot!(rendered(&read(text).unwrap_err()), @"
      × cannot read a symmetric matrix from `a.mtx`: 2 problems

    Error:
      × line 4, column 5: found `one`, expected a number
       ╭─[a.mtx:4:5]
     3 │ 1 1 2.5
     4 │ 2 1 one
       ·     ───
     5 │ 4 1 1.0
       ╰────
      help: write it like `-1.5e3`

    Error:
      × line 5, column 1: found the row `4`, expected 1 to 3
       ╭─[a.mtx:5:1]
     4 │ 2 1 one
     5 │ 4 1 1.0
       · ─
     6 │ 3 3 4
       ╰────
      help: rows and columns count from 1; check the size too
    ");
}

#[test]
fn what_is_no_matrix_market_file_is_refused_by_its_first_word() {
    insta::assert_snapshot!(complaint(""), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 1, column 1: not a Matrix Market file: found an empty file, expected `%%MatrixMarket`
    ");
    insta::assert_snapshot!(complaint("\n\n1 2 3"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 1, column 1: not a Matrix Market file: found a blank line, expected `%%MatrixMarket`
    ");
    insta::assert_snapshot!(complaint("rows,cols\n1,2"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 1, column 1: not a Matrix Market file: found `rows,cols`, expected `%%MatrixMarket`
    ");
    insta::assert_snapshot!(complaint("\u{7f}ELF\u{1}\0\0 x"), @r"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 1, column 1: not a Matrix Market file: found `\u{7f}ELF\u{1}\0\0`, expected `%%MatrixMarket`
    ");
}

#[test]
fn every_wrong_word_of_the_header_is_named() {
    insta::assert_snapshot!(complaint("%%MatrixMarket matrices coordinates complex hermitian\n"), @"
    cannot read a symmetric matrix from `a.mtx`: 4 problems
    line 1, column 16: found `matrices`, expected the object: `matrix`
    line 1, column 25: found `coordinates`, expected the format: `array` or `coordinate`
    line 1, column 37: found the field `complex`, which is not supported; expected `real` or `integer`
    line 1, column 45: found the symmetry `hermitian`, which is not supported; expected `symmetric` or `general`
    ");
    insta::assert_snapshot!(complaint("%%MatrixMarket vector sparse pattern skew-symmetric x\n"), @"
    cannot read a symmetric matrix from `a.mtx`: 5 problems
    line 1, column 16: found the object `vector`, which is not supported; expected `matrix`
    line 1, column 23: found `sparse`, expected the format: `array` or `coordinate`
    line 1, column 30: found the field `pattern`, which is not supported; expected `real` or `integer`
    line 1, column 38: found the symmetry `skew-symmetric`, which is not supported; expected `symmetric` or `general`
    line 1, column 53: found `x`, expected nothing more after the symmetry
    ");
    insta::assert_snapshot!(complaint("%%MatrixMarket matrix array\n"), @"
    cannot read a symmetric matrix from `a.mtx`: 2 problems
    line 1, column 28: found nothing more, expected the field (`real` or `integer`)
    line 1, column 28: found nothing more, expected the symmetry (`symmetric` or `general`)
    ");
    let error = read("%%MatrixMarket matrix coordinat real symetric\n").unwrap_err();
    let fixes: Vec<String> = error.problems().iter().map(|p| p.kind().fix()).collect();
    assert_eq!(fixes, ["did you mean `coordinate`?", "did you mean `symmetric`?"]);
}

#[test]
fn the_size_must_be_that_of_a_square_matrix_that_fits() {
    const SPARSE: &str = "%%MatrixMarket matrix coordinate real symmetric\n% c\n";
    let complaint = |size: &str| complaint(&format!("{SPARSE}{size}"));
    insta::assert_snapshot!(complaint(""), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 3, column 1: found nothing more, expected a line with the size of the matrix
    ");
    insta::assert_snapshot!(complaint("3 3"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 3, column 4: found nothing more, expected the number of entries
    ");
    insta::assert_snapshot!(complaint("three -3 1e3 4\n"), @"
    cannot read a symmetric matrix from `a.mtx`: 4 problems
    line 3, column 1: found `three`, expected the number of rows, a whole number
    line 3, column 7: found `-3`, expected the number of columns, a whole number
    line 3, column 10: found `1e3`, expected the number of entries, a whole number
    line 3, column 14: found `4`, expected nothing more after the size of the matrix
    ");
    insta::assert_snapshot!(complaint("3 4 5\n"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 3, column 1: found 3 rows and 4 columns, expected as many rows as columns
    ");
    insta::assert_snapshot!(complaint("0 0 0\n"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 3, column 1: found a matrix without rows, expected at least one
    ");
    insta::assert_snapshot!(complaint("1000000000 1000000000 1\n1 1 1"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 3, column 1: found a matrix of order 1000000000, which takes at least 4.00 EB as a dense matrix; expected at most order 32768
    ");
    insta::assert_snapshot!(complaint("18446744073709551615 18446744073709551615 18446744073709551615\n1 1 1"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 3, column 1: found a matrix of order 18446744073709551615, which takes at least over 1000 EB as a dense matrix; expected at most order 32768
    ");
    insta::assert_snapshot!(complaint("2 2 18446744073709551615\n1 1 1"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 4, column 6: found the end of the file after 1 of 18446744073709551615 entries
    ");
}

#[test]
fn every_malformed_entry_is_named() {
    insta::assert_snapshot!(complaint(
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 12\n1 1\n2\n1 1 1 1\n0 1 1\n1 -1 1\n1.5 x 1\n99999999999999999999 1 1\n1 1 nan\n1 1 -inf\n1 1 1e999\n1 1 1,5\n1 2 1\n"
    ), @"
    cannot read a symmetric matrix from `a.mtx`: 13 problems
    line 3, column 4: found nothing more, expected the value of an entry
    line 4, column 2: found nothing more, expected the column of an entry
    line 5, column 7: found `1`, expected nothing more after the value of an entry
    line 6, column 1: found the row `0`, expected 1 to 3
    line 7, column 3: found the column `-1`, expected 1 to 3
    line 8, column 1: found `1.5`, expected the row of an entry, a whole number
    line 8, column 5: found `x`, expected the column of an entry, a whole number
    line 9, column 1: found the row `99999999999999999999`, expected 1 to 3
    line 10, column 5: found `nan`, expected a finite number
    line 11, column 5: found `-inf`, expected a finite number
    line 12, column 5: found `1e999`, expected a finite number
    line 13, column 5: found `1,5`, expected a number
    line 14, column 1: found entry (1, 2) above the diagonal, expected a row not less than the column
    ");
    insta::assert_snapshot!(complaint("%%MatrixMarket matrix array integer symmetric\n2 2\n1 2\n1.5\nx\n"), @"
    cannot read a symmetric matrix from `a.mtx`: 3 problems
    line 3, column 3: found `2`, expected nothing more after the value of an entry
    line 4, column 1: found `1.5`, expected an integer, as the header says
    line 5, column 1: found `x`, expected an integer, as the header says
    ");
}

#[test]
fn entries_are_counted() {
    insta::assert_snapshot!(complaint("%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 1\n2 2 1\n\n"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 4, column 6: found the end of the file after 2 of 3 entries
    ");
    insta::assert_snapshot!(complaint("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 1 1\n2 2 1\n2 1 x\n"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 4, column 1: found 3 entries, expected 1; here is the first too many
    ");
    insta::assert_snapshot!(complaint("%%MatrixMarket matrix array real general\n2 2\n1\n2\n2\n"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 5, column 2: found the end of the file after 3 of 4 entries
    ");
    insta::assert_snapshot!(complaint("%%MatrixMarket matrix array real symmetric\n30000 30000\n1\n"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 3, column 2: found the end of the file after 1 of 450015000 entries
    ");
}

#[test]
fn a_repeated_entry_is_named_with_its_first_line() {
    insta::assert_snapshot!(complaint("%%MatrixMarket matrix coordinate real symmetric\n2 2 4\n2 1 1\n1 1 1\n% c\n2 1 1\n2 1 3\n"), @"
    cannot read a symmetric matrix from `a.mtx`: 2 problems
    line 6, column 1: found entry (2, 1) again, expected it once (it is first in line 3)
    line 7, column 1: found entry (2, 1) again, expected it once (it is first in line 3)
    ");
}

#[test]
fn entries_that_differ_from_their_mirror_image_are_named() {
    insta::assert_snapshot!(complaint("%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 1\n2 1 5\n1 2 5.5\n1 3 0.25\n3 2 -1\n"), @"
    cannot read a symmetric matrix from `a.mtx`: 3 problems
    line 4, column 1: not symmetric: found 5 in (2, 1) and 5.5 in (1, 2), expected the same
    line 6, column 1: not symmetric: found 0.25 in (1, 3) and 0 in (3, 1), expected the same
    line 7, column 1: not symmetric: found -1 in (3, 2) and 0 in (2, 3), expected the same
    ");
    insta::assert_snapshot!(complaint("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n"), @"
    cannot read a symmetric matrix from `a.mtx`: one problem
    line 4, column 1: not symmetric: found 2 in (2, 1) and 3 in (1, 2), expected the same
    ");
}

#[test]
fn the_number_of_problems_is_limited() {
    let mut text = "%%MatrixMarket matrix coordinate real symmetric\n100 100 100\n".to_owned();
    for _ in 0..100 {
        text.push_str("1 1 x\n");
    }
    let error = read(&text).unwrap_err();
    assert!(error.gave_up());
    assert_eq!(error.problems().len(), 20);
    assert_eq!(error.to_string(), "cannot read a symmetric matrix from `a.mtx`: gave up after 20 problems");
    let limits = ReadLimits { max_problems: 100, ..ReadLimits::default() };
    let error = parse_symmetric("a.mtx", text, limits).unwrap_err();
    assert!(!error.gave_up());
    assert_eq!(error.problems().len(), 100);
}

#[test]
fn the_largest_order_is_the_caller_s_to_choose() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n2 2 1\n";
    let limits = |max_order| ReadLimits { max_order, ..ReadLimits::default() };
    assert!(parse_symmetric("a.mtx", text.into(), limits(3)).is_ok());
    let error = parse_symmetric("a.mtx", text.into(), limits(2)).unwrap_err();
    insta::assert_snapshot!(error.problems()[0], @"line 2, column 1: found a matrix of order 3, which takes at least 48 B as a dense matrix; expected at most order 2");
}

#[test]
fn files_that_are_missing_or_no_text_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("missing.mtx");
    let report = |path: &Path| {
        let error = read_symmetric(path, ReadLimits::default()).unwrap_err();
        rendered(&error).replace(&dir.path().display().to_string(), "DIR")
    };
    insta::assert_snapshot!(report(&path), @"
      × cannot read a symmetric matrix from `DIR/missing.mtx`: one problem

    Error:
      × the file cannot be read: No such file or directory (os error 2)
      help: check the path and the permissions
    ");
    let path = dir.path().join("binary.mtx");
    std::fs::write(&path, b"%%MatrixMarket matrix\n\x1f\x8b\x08 x\nmore").unwrap();
    insta::assert_snapshot!(report(&path), @"
      × cannot read a symmetric matrix from `DIR/binary.mtx`: one problem

    Error:
      × line 2, column 2: found the byte 0x8b, expected UTF-8 text
       ╭─[DIR/binary.mtx:2:2]
     1 │ %%MatrixMarket matrix
     2 │ ?�? x
       ·  ─
       ╰────
      help: compressed files (.gz, .tar.gz) must be unpacked first
    ");
    std::fs::write(&path, "%%MatrixMarket matrix array real general\n1 1\n7\n").unwrap();
    let a = read_symmetric(&path, ReadLimits::default()).unwrap();
    assert_eq!(a.get(0, 0), 7.0);
    std::fs::write(&path, "\u{feff}%%MatrixMarket matrix array real general\r\n1 1\r\n7\r\n").unwrap();
    let marked = read_symmetric(&path, ReadLimits::default()).unwrap();
    assert_eq!(marked.get(0, 0), 7.0, "the mark of an editor is no part of the text");
}

#[test]
fn a_very_long_line_is_reported_and_not_shown() {
    let text = format!("%%MatrixMarket matrix array real general\n1 1\n{}\n", "9".repeat(5000));
    let report = rendered(&read(&text).unwrap_err());
    assert!(report.contains("line of 5000 bytes"), "{report}");
    assert!(report.len() < 1500, "{report}");
}

/// Lines that are almost valid, so that random files pass the first checks.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("%%MatrixMarket matrix coordinate real symmetric".to_owned()),
        Just("%%MatrixMarket matrix array integer general".to_owned()),
        "[0-4] [0-4] [0-9]",
        "[0-4] [0-4]",
        "-?[0-9]{1,3}(\\.[0-9])?",
        "[ %\\-0-9einfa\u{e9}\u{2003}]{0,12}",
    ]
}

fn never_panics(text: String) {
    if let Err(error) = parse_symmetric("a.mtx", text, ReadLimits::default()) {
        assert!(!error.problems().is_empty());
        assert!(!rendered(&error).is_empty());
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text: String) {
        never_panics(text);
    }

    #[test]
    fn nearly_right_text_is_read_or_refused(array: bool, lines in prop::collection::vec(line(), 0..12), ending in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")]) {
        let header = if array { "%%MatrixMarket matrix array real symmetric" } else { "%%MatrixMarket matrix coordinate integer general" };
        never_panics(lines.join(ending));
        never_panics(format!("{header}{ending}{}", lines.join(ending)));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = String::from_utf8(bytes) {
            let error = MatrixMarketError::not_text("a.mtx", &error, Wanted::Symmetric);
            prop_assert!(!rendered(&error).is_empty());
        }
    }

    #[test]
    fn what_is_written_is_read_back(n in 1usize..6, values in prop::collection::vec(-1e300..1e300, 15), dense: bool, general: bool) {
        let value = |r: usize, c: usize| values[r.max(c) * (r.max(c) + 1) / 2 + r.min(c)];
        let format = if dense { "array" } else { "coordinate" };
        let symmetry = if general { "general" } else { "symmetric" };
        let places: Vec<(usize, usize)> = (0..n)
            .flat_map(|c| (if general { 0 } else { c }..n).map(move |r| (r, c)))
            .collect();
        let mut text = format!("%%MatrixMarket matrix {format} real {symmetry}\n{n} {n}");
        if dense {
            places.iter().for_each(|&(r, c)| text += &format!("\n{}", value(r, c)));
        } else {
            text += &format!(" {}", places.len());
            // Sparse entries may be in any order.
            places.iter().rev().for_each(|&(r, c)| text += &format!("\n{} {} {}", r + 1, c + 1, value(r, c)));
        }
        let matrix = read(&text).unwrap();
        for r in 0..n {
            for c in 0..n {
                prop_assert_eq!(matrix.get(r, c), value(r, c));
            }
        }
    }
}

#[test]
fn a_matrix_that_need_not_be_symmetric_is_read_from_any_file() {
    let rows = |text: &str| {
        let a = parse_general("a.mtx", text.into(), ReadLimits::default()).unwrap();
        (0..2).map(|r| (0..2).map(|c| a.get(r, c)).collect()).collect::<Vec<Vec<f64>>>()
    };
    assert_eq!(rows("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n"), [[1.0, 3.0], [2.0, 4.0]]);
    assert_eq!(rows("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 5\n2 2 1\n"), [[0.0, 5.0], [0.0, 1.0]]);
    assert_eq!(rows("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n"), [[1.0, 2.0], [2.0, 3.0]]);
    let text = "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n";
    let error = parse_general("a.mtx", text.into(), ReadLimits::default()).expect_err("it is not square");
    insta::assert_snapshot!(error, @"cannot read a square matrix from `a.mtx`: one problem");
}
