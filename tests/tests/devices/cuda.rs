//! The driver of NVIDIA's devices with libraries that stand in for CUDA's: the whole way of a factorisation, from the
//! program to the calls of the vendor's functions, without a device.

use sched_test_support::{has_compiler, skipped};
use sched_tests::cuda::{COMPILER, CUBLAS, CUSOLVER, DRIVER, libraries};
use sched_tests::fixtures::{Profile, stock_plugin};
use sched_tests::program::{Ran, command};
use std::path::Path;

/// Runs the program with these libraries of CUDA, and further settings of the environment.
pub(super) fn run(folder: &Path, settings: &[(&str, &str)], words: &[&str]) -> Ran {
    let plugins = stock_plugin("sched-plugin-driver-cuda", Profile::Debug);
    let mut command = command(words);
    command.arg("--plugin-dir").arg(plugins.parent().expect("it is in a folder"));
    command.env("LD_LIBRARY_PATH", folder).env("NO_COLOR", "1").env_remove("SCHED_CUDA_LIBRARIES");
    Ran::of(command.envs(settings.iter().copied()))
}

/// The calls that put work on the device of a factorisation with all tasks there, as far as it has kernels, by name.
fn calls(folder: &Path, what: &[&str]) -> Vec<String> {
    let log = folder.join("log");
    let _ = std::fs::remove_file(&log);
    let ran = run(folder, &[("CUDA_STUB_LOG", log.to_str().expect("text"))], what);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("residual"), "{ran:?}");
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with("pin")).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

pub(super) fn options<'a>(workload: &'a str, precision: &'a str, places: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", workload, "-n", "4", "-b", "20", "-w", "1", "--policy", "tree-eager", "--devices", "cuda"];
    let mut words = run.to_vec();
    words.extend(["--precision", precision]);
    places.iter().for_each(|place| words.extend(["--where", place]));
    words
}

#[test]
fn cholesky_and_lu_are_computed_by_the_libraries_where_they_are() {
    if !has_compiler() {
        return;
    }
    let folder = libraries(&[DRIVER, CUBLAS, CUSOLVER]);
    for (precision, letter) in [("double", 'D'), ("single", 'S')] {
        let places = ["potrf=cuda", "trsm=cuda", "syrk=cuda", "gemm=cuda"];
        let expected: Vec<String> =
            ["gemm", "potrf", "syrk", "trsm"].iter().map(|name| format!("{letter}{name}")).collect();
        assert_eq!(calls(folder.path(), &options("cholesky", precision, &places)), expected);
        let places = ["getrf=cuda", "trsm_row=cuda", "trsm_column=cuda", "gemm=cuda"];
        let expected: Vec<String> = ["gemm", "getrf", "trsm"].iter().map(|name| format!("{letter}{name}")).collect();
        assert_eq!(calls(folder.path(), &options("lu", precision, &places)), expected);
    }
}

#[test]
fn without_cusolver_cores_compute_the_pivots() {
    if !has_compiler() {
        return;
    }
    let folder = libraries(&[DRIVER, CUBLAS]);
    let words = options("cholesky", "double", &["trsm=cuda", "syrk=cuda", "gemm=cuda"]);
    assert_eq!(calls(folder.path(), &words), ["Dgemm", "Dsyrk", "Dtrsm"]);
}

/// The kernels of this project as CUDA C, compiled for the host and run thread by thread.
#[test]
fn without_the_libraries_the_kernels_of_this_project_take_their_place() {
    if !has_compiler() || std::process::Command::new("c++").arg("--version").output().is_err() {
        return skipped("there is no C++ compiler (`c++`) to compile CUDA C with");
    }
    let folder = libraries(&[DRIVER, COMPILER]);
    let kernels = [
        ("cholesky", &["trsm=cuda", "syrk=cuda", "gemm=cuda"][..]),
        ("lu", &["trsm_row=cuda", "trsm_column=cuda", "gemm=cuda"][..]),
        ("qr", &["unmqr=cuda", "tsmqr=cuda"][..]),
    ];
    for (workload, places) in kernels {
        for precision in ["double", "single"] {
            assert_eq!(calls(folder.path(), &options(workload, precision, places)), ["launch"], "{workload}");
        }
    }
    // Where both are, the libraries can be turned off.
    let both = libraries(&[DRIVER, COMPILER, CUBLAS]);
    let log = both.path().join("log");
    let settings = [("CUDA_STUB_LOG", log.to_str().expect("text")), ("SCHED_CUDA_LIBRARIES", "none")];
    let ran = run(both.path(), &settings, &options("cholesky", "double", &["gemm=cuda"]));
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    assert!(ran.code == 0 && text.contains("launch") && !text.contains("Dgemm"), "{ran:?} {text}");
}

#[test]
fn several_devices_copy_to_one_another_and_make_room() {
    if !has_compiler() {
        return;
    }
    let folder = libraries(&[DRIVER, CUBLAS, CUSOLVER]);
    let settings = [("CUDA_STUB_DEVICES", "2"), ("CUDA_STUB_MEMORY", "40000")];
    let mut words = options("cholesky", "double", &["trsm=cuda", "syrk=cuda", "gemm=cuda"]);
    words[3] = "6";
    let ran = run(folder.path(), &settings, &words);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// Tiles of more than a mebibyte, and what measures the links.
#[test]
fn what_is_pinned_is_unpinned() {
    if !has_compiler() {
        return;
    }
    let folder = libraries(&[DRIVER, CUBLAS, CUSOLVER]);
    let log = folder.path().join("log");
    let mut words = options("cholesky", "double", &["gemm=cuda"]);
    (words[3], words[5]) = ("3", "370");
    let ran = run(folder.path(), &[("CUDA_STUB_LOG", log.to_str().expect("text"))], &words);
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let count = |what: &str| text.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!((count("pin 1095200"), count("pin"), count("unpin")), (6, 7, 7), "{text}");
}

#[test]
fn what_goes_wrong_names_the_function_and_its_status() {
    if !has_compiler() {
        return;
    }
    let folder = libraries(&[DRIVER, CUBLAS, CUSOLVER]);
    let words = options("cholesky", "double", &["gemm=cuda"]);
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("CUDA_STUB_FAIL", "cuInit"), ("CUDA_STUB_STATUS", "999")], "what the stand-in says of it"),
        (&[("CUDA_STUB_VERSION", "11040")], "found an NVIDIA driver for CUDA 11.4, expected one for 12.0 or later"),
        (&[("CUDA_STUB_DEVICES", "0")], "the driver `cuda` finds no device"),
        (
            &[("CUDA_STUB_FAIL", "cublasDgemm_v2"), ("CUDA_STUB_STATUS", "13")],
            "cublasGemm: CUBLAS_STATUS_EXECUTION_FAILED (13)",
        ),
        (
            &[("CUDA_STUB_FAIL", "cublasCreate_v2"), ("CUDA_STUB_STATUS", "3")],
            "cublasCreate: CUBLAS_STATUS_ALLOC_FAILED (3)",
        ),
    ];
    for (settings, expected) in cases {
        let ran = run(folder.path(), settings, &words);
        assert!(ran.code != 0 && ran.said().contains(expected), "{expected}: {ran:?}");
    }
    let bare = libraries(&[DRIVER]);
    let ran = run(bare.path(), &[], &words);
    let expected = "libnvrtc.so cannot be loaded: install NVRTC";
    assert!(ran.code != 0 && ran.said().contains(expected), "{expected}: {ran:?}");
}

#[test]
fn a_bad_pivot_that_the_device_finds_is_named() {
    if !has_compiler() {
        return;
    }
    let folder = libraries(&[DRIVER, CUBLAS, CUSOLVER]);
    let matrix = folder.path().join("bad.mtx");
    let mut text = String::from("%%MatrixMarket matrix coordinate real symmetric\n30 30 30\n");
    (1..=30).for_each(|row| text += &format!("{row} {row} {}\n", if row == 14 { -1.0 } else { 2.0 }));
    std::fs::write(&matrix, text).expect("the folder is there");
    let path = matrix.to_str().expect("text");
    let words =
        ["run", "cholesky", "--matrix", path, "-b", "10", "-w", "1", "--devices", "cuda", "--where", "potrf=cuda"];
    let ran = run(folder.path(), &[], &words);
    assert!(ran.code != 0 && ran.said().contains("row 14"), "{ran:?}");
}
