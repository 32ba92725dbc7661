//! `sched run cholesky`, as a user runs it: the program, with the plugins beside it.

use sched_tests::fixtures;
use sched_tests::program::{Ran, sched};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

const SMALL: [&str; 4] = ["--tiles", "4", "--tile-size", "24"];

fn cholesky(options: &[&str]) -> Ran {
    sched(&[&["run", "cholesky"], options].concat())
}

fn json(options: &[&str]) -> Value {
    let ran = cholesky(&[options, &["--json"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// A folder with one file in it.
fn file(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, path)
}

/// What a run on the matrix of this text does, with the folder left out of what it says.
fn on_matrix(text: &str, options: &[&str]) -> Ran {
    let (folder, path) = file("a.mtx", text);
    let ran = cholesky(&[&["--matrix", path.to_str().unwrap()], options].concat());
    let without = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
    Ran { out: without(ran.out), err: without(ran.err), ..ran }
}

/// Numbers that differ from run to run, as `#`: all with a decimal point or an exponent.
fn masked(text: &str) -> String {
    let mask = |line: &str| {
        let words = line.split(' ').map(|word| {
            let number = word.trim_matches(['(', ')']);
            match number.parse::<f64>() {
                Ok(_) if number.contains(['.', 'e']) => word.replace(number, "#"),
                _ => word.to_owned(),
            }
        });
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(mask).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_shipped_policy_is_right_with_any_number_of_workers() {
    for policy in ["tree-eager", "tree-eager-prefetching", "modular-eager"] {
        for workers in [1, 2, 4] {
            let seen = json(&[&SMALL[..], &["--policy", policy, "--workers", &workers.to_string()]].concat());
            assert!(seen["residual"].as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
            assert_eq!((&seen["tasks"], &seen["workers"]), (&20.into(), &workers.into()));
            let per_worker = seen["per_worker"].as_array().unwrap();
            assert_eq!(per_worker.len(), workers);
            assert_eq!(per_worker.iter().map(|worker| worker["tasks"].as_u64().unwrap()).sum::<u64>(), 20);
            for (id, worker) in per_worker.iter().enumerate() {
                let busy = worker["busy_s"].as_f64().unwrap();
                assert_eq!(worker["id"], id);
                assert!((0.0..=seen["makespan_s"].as_f64().unwrap()).contains(&busy), "{seen}");
            }
        }
    }
}

#[test]
fn programs_find_everything_under_its_key() {
    let seen = json(&[&SMALL[..], &["--seed", "7"]].concat());
    let keys: Vec<&str> = seen.as_object().unwrap().keys().map(String::as_str).collect();
    insta::assert_snapshot!(keys.join(" "), @"faults gflops makespan_s matrix order per_worker policy residual residual_tolerance seed tasks tile_size tiles workers workers_bound workload");
    assert_eq!(seen["workload"], "cholesky");
    assert_eq!(seen["policy"], "tree-eager");
    assert_eq!((&seen["seed"], &seen["order"]), (&7.into(), &96.into()));
    assert_eq!((&seen["tiles"], &seen["tile_size"]), (&4.into(), &24.into()));
    assert!(seen["makespan_s"].as_f64().unwrap() > 0.0 && seen["gflops"].as_f64().unwrap() > 0.0);
    assert_eq!(seen["faults"], Value::Array(Vec::new()));
}

#[test]
fn people_read_a_block_and_a_table() {
    let ran = cholesky(&[&SMALL[..], &["--workers", "1"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    insta::assert_snapshot!(masked(&ran.out), @r"
    cholesky order 96, 4 × 4 tiles of 24, seed 42
    policy tree-eager
    workers 1, bound to a hardware thread
    tasks 20
    time # s
    speed # GFlop/s
    residual # (ok, at most #)

    WORKER TASKS BUSY (S) BUSY (%)
    0 20 # #
    ");
}

#[test]
fn a_seed_makes_the_same_matrix_again_and_another_seed_another() {
    let residual = |seed| json(&[&SMALL[..], &["--seed", seed]].concat())["residual"].clone();
    assert_eq!(residual("1"), residual("1"));
    assert_ne!(residual("1"), residual("2"));
}

#[test]
fn workers_are_bound_unless_told_otherwise() {
    assert_eq!(json(&[&SMALL[..], &["--workers", "1"]].concat())["workers_bound"], 1);
    let ran = cholesky(&[&SMALL[..], &["--workers", "1", "--no-bind"]].concat());
    assert!(ran.out.contains("1, not bound"), "{ran:?}");
}

#[test]
fn more_workers_than_hardware_threads_is_a_warning() {
    let ran = cholesky(&[&SMALL[..], &["--workers", "300"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.starts_with("warning: oversubscribed: workers "), "{ran:?}");
}

#[test]
fn the_policy_may_come_from_a_file_or_the_environment() {
    let (_folder, path) = file("mine.kdl", "policy \"mine\" { fifo { eager { each \"worker\" { worker } } } }\n");
    assert_eq!(json(&[&SMALL[..], &["--policy", path.to_str().unwrap()]].concat())["policy"], "mine");
    let ran =
        Ran::of(sched_tests::program::command(&["run", "cholesky", "--json"]).args(SMALL).env("SCHED_POLICY", &path));
    assert!(ran.code == 0 && ran.out.contains(r#""policy": "mine""#), "{ran:?}");
}

#[test]
fn a_policy_that_is_not_there_is_told_with_the_nearest_one() {
    let ran = cholesky(&["--policy", "tree-eagre"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("there is no policy `tree-eagre`") && ran.err.contains("did you mean `tree-eager`?"));
}

const DENSE: &str = "%%MatrixMarket matrix array real general\n3 3\n4\n1\n0\n1\n3\n1\n0\n1\n2\n";
const SPARSE: &str = "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 4\n2 1 1\n2 2 3\n3 2 1\n3 3 2\n";

#[test]
fn a_matrix_is_read_dense_or_sparse_and_cut_as_asked() {
    for text in [DENSE, SPARSE] {
        let ran = on_matrix(text, &["--tile-size", "2", "--json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let seen: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&seen["order"], &seen["tiles"], &seen["tasks"]), (&3.into(), &2.into(), &4.into()));
        assert_eq!(seen["matrix"], "a.mtx");
    }
    let ran = on_matrix(SPARSE, &[]);
    assert!(ran.out.starts_with("cholesky  order 3, 1 × 1 tiles of 256, from a.mtx\n"), "{ran:?}");
}

#[test]
fn a_matrix_without_a_factor_is_told_with_its_row() {
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
fn a_file_that_holds_no_symmetric_matrix_is_told_with_the_place() {
    let told = |text: &str| {
        let ran = on_matrix(text, &[]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        ran.err
    };
    let not_symmetric = told(&DENSE.replacen("\n1\n", "\n1.5\n", 1));
    assert!(not_symmetric.contains("not symmetric") && not_symmetric.contains("a.mtx:"), "{not_symmetric}");
    let not_square = told("%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n");
    assert!(not_square.contains("a.mtx:2:1") && not_square.contains("2 rows and 3 columns"), "{not_square}");
    let malformed = told(&SPARSE.replace("2 1 1", "2 1 one").replace("3 3 2", "3 3"));
    assert!(malformed.contains("2 problems") && malformed.contains("a.mtx:4:5"), "{malformed}");
    assert!(malformed.contains("a.mtx:7:4"), "{malformed}");
    let empty = told("");
    assert!(empty.contains("a.mtx"), "{empty}");
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let ran = cholesky(&["--matrix", "no/such.mtx"]);
    assert!(ran.code == 1 && ran.err.contains("no/such.mtx") && ran.err.contains("check the path"), "{ran:?}");
}

#[test]
fn options_that_make_no_sense_are_refused_before_anything_runs() {
    for (options, told) in [
        (&["--tiles", "0"][..], "must be at least 1"),
        (&["--tile-size", "x"], "must be a whole number"),
        (&["--workers", "0"], "must be at least 1"),
        (&["--quiet-period", "0"], "must be more than 0 seconds"),
        (&["--matrix", "a.mtx", "--tiles", "3"], "cannot be used with"),
        (&["--tile", "3"], "--tiles"),
    ] {
        let ran = cholesky(options);
        assert!(ran.code == 2 && ran.err.contains(told), "{ran:?}");
    }
    for (options, told) in [
        (&["--tiles", "100000", "--tile-size", "1000"][..], "GiB"),
        (&["--tiles", "9999999999999", "--tile-size", "9999999999999"], "more rows than can be counted"),
    ] {
        let ran = cholesky(options);
        assert!(ran.code == 1 && ran.err.contains(told) && ran.out.is_empty(), "{ran:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for options in [&["run", "cholesky", "--tiles", "2", "--tile-size", "8"][..], &["policies"]] {
        let mut running =
            sched_tests::program::command(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(running.stdout.take());
        let ended = running.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
    }
}

/// Runs with the misbehaving component as the root.
fn with_bad(component: &str, options: &[&str]) -> Ran {
    let plugin = fixtures::plugin("misbehaving");
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&plugin, folder.path().join("misbehaving.so")).unwrap();
    let policy = folder.path().join("bad.kdl");
    fs::write(&policy, format!("policy \"bad\" {{ {component} {{ eager {{ each \"worker\" {{ worker }} }} }} }}\n"))
        .unwrap();
    let paths = ["--plugin-dir", path(folder.path()), "--policy", path(&policy)];
    cholesky(&[&SMALL[..], &["--workers", "2"], &paths, options].concat())
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_component_that_panics_is_named_and_the_result_is_right() {
    for component in ["panics-in-push", "panics-in-pull"] {
        let ran = with_bad(&format!("{component} after=3"), &["--json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let seen: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(seen["tasks"], 20, "{seen}");
        let faults = seen["faults"].as_array().unwrap();
        assert_eq!(faults.len(), 1, "{seen}");
        assert_eq!((&faults[0]["fault"], &faults[0]["component"]), (&"panicked".into(), &component.into()));
        assert!(faults[0]["plugin"].as_str().unwrap().contains("misbehaving"), "{seen}");
        assert!(faults[0]["message"].as_str().unwrap().contains("as asked for, after 3 calls"), "{seen}");
    }
    let ran = with_bad("panics-in-push after=3", &[]);
    let told = "component `panics-in-push` of ";
    assert!(ran.code == 0 && ran.out.contains("(ok, ") && ran.err.contains(told), "{ran:?}");
}

#[test]
fn tasks_that_a_component_drops_run_all_the_same() {
    let ran = with_bad("drops-tasks every=3", &[]);
    assert!(ran.code == 0 && ran.out.contains("tasks     20\n") && ran.out.contains("(ok, "), "{ran:?}");
    assert!(ran.err.contains("component `drops-tasks` of ") && ran.err.contains("dropped 6 tasks"), "{ran:?}");
}

#[test]
fn a_run_that_cannot_go_on_says_where_every_task_sits() {
    let ran = with_bad("hoarder", &["--quiet-period", "0.2"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    for told in ["the run has stalled", "hoarder", "20 tasks are left", "1 are in the tree, 19 wait for others"] {
        assert!(ran.err.contains(told), "`{told}` is not in {}", ran.err);
    }
}

#[test]
fn the_bench_compares_with_the_bare_kernels() {
    let ran = sched(&["bench", "cholesky", "-n", "3", "-b", "16", "--workers", "2", "--repeat", "2", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let seen: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&seen["tasks"], &seen["workers"]), (&10.into(), &2.into()));
    assert_eq!(seen["rounds"].as_array().unwrap().len(), 2);
    assert!(seen["ratio"].as_f64().unwrap() > 0.0 && seen["median"]["floor_gflops"].as_f64().unwrap() > 0.0);
}
