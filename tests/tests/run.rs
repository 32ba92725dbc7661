//! `sched run`, as a user runs it: the program, with the plugins beside it.

use sched_host::topology::{BindingPlan, Topology};
use sched_tests::fixtures;
use sched_tests::program::{Ran, sched};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

const SMALL: [&str; 4] = ["--tiles", "4", "--tile-size", "24"];

fn cholesky(options: &[&str]) -> Ran {
    sched(&[&["run", "cholesky"], options].concat())
}

fn json(options: &[&str]) -> Value {
    json_of("cholesky", options)
}

fn json_of(workload: &str, options: &[&str]) -> Value {
    let ran = sched(&[&["run", workload], options, &["--json"]].concat());
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
    workload_on_matrix("cholesky", text, options)
}

fn workload_on_matrix(workload: &str, text: &str, options: &[&str]) -> Ran {
    let (folder, path) = file("a.mtx", text);
    let ran = sched(&[&["run", workload, "--matrix", path.to_str().unwrap()], options].concat());
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
                assert!(worker["wakes_in_vain"].as_u64().unwrap() <= worker["wakes"].as_u64().unwrap(), "{seen}");
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
    // How often the worker slept while tasks were submitted depends on the machine.
    let (block, wakes) = ran.out.trim_end().rsplit_once("\n").expect("there is a table");
    let columns: Vec<&str> = wakes.split_whitespace().collect();
    assert!(columns.len() == 6 && columns[4..].iter().all(|count| count.parse::<u64>().is_ok()), "{ran:?}");
    insta::assert_snapshot!(masked(&format!("{block}\n{}", columns[..4].join(" "))), @r"
    cholesky order 96, 4 × 4 tiles of 24, seed 42
    policy tree-eager
    workers 1, bound to a hardware thread
    tasks 20
    time # s
    speed # GFlop/s
    residual # (ok, at most #)

    WORKER TASKS BUSY (S) BUSY (%) WAKES IN VAIN
    0 20 # #
    ");
}

/// The workloads that factorise any matrix of a file, and how many tasks they are of `SMALL` size.
const GENERAL: [(&str, u64); 2] = [("lu", 30), ("qr", 30)];

#[test]
fn every_workload_is_right_with_any_number_of_workers() {
    for (workload, tasks) in GENERAL {
        for (policy, workers) in [("tree-eager", "1"), ("tree-prio", "2"), ("tree-ws", "4")] {
            let seen = json_of(workload, &[&SMALL[..], &["--policy", policy, "--workers", workers]].concat());
            assert!(seen["residual"].as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
            assert_eq!((&seen["workload"], &seen["policy"]), (&workload.into(), &policy.into()));
            assert_eq!((&seen["tasks"], &seen["order"]), (&tasks.into(), &96.into()));
            let per_worker = seen["per_worker"].as_array().unwrap();
            assert_eq!(per_worker.iter().map(|worker| worker["tasks"].as_u64().unwrap()).sum::<u64>(), tasks);
        }
    }
}

#[test]
fn every_workload_takes_a_matrix_that_is_not_symmetric() {
    let text = "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4\n2 1 1\n2 2 3\n2 3 1\n3 3 2\n";
    for (workload, _) in GENERAL {
        let ran = workload_on_matrix(workload, text, &["--tile-size", "2", "--json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let seen: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&seen["order"], &seen["tiles"], &seen["tasks"]), (&3.into(), &2.into(), &5.into()));
        let ran = workload_on_matrix(workload, &text.replace("3 3 5", "3 4 5"), &[]);
        assert!(ran.code == 1 && ran.err.contains("a.mtx:2:1") && ran.err.contains("use a square matrix"), "{ran:?}");
        let ran = workload_on_matrix(workload, &text.replace("2 3 1", "2 3 x"), &[]);
        assert!(ran.code == 1 && ran.err.contains("a.mtx:6:5"), "{ran:?}");
    }
}

#[test]
fn a_matrix_that_would_need_pivoting_is_told_with_its_row() {
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
    assert!(ran.err.contains("the diagonal does") && ran.err.contains("in row 1 it is 1.000e-20"), "{ran:?}");
    assert_eq!(workload_on_matrix("lu", &matrix("2"), &[]).code, 0);
}

#[test]
fn policies_are_compared_on_the_same_matrix_in_one_table() {
    let policies = ["--policy", "tree-eager", "--policy", "tree-prio", "--workers", "1", "--repeat", "2"];
    let ran = sched(&[&["run", "lu"], &SMALL[..], &policies].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    insta::assert_snapshot!(masked(&ran.out), @r"
    lu order 96, 4 × 4 tiles of 24, seed 42
    workers 1, bound to a hardware thread
    tasks 30
    runs 2 with each policy, in turn
    residual # (ok, at most #)

    POLICY BEST (S) MEDIAN (S) WORST (S) GFLOP/S RATIO RESIDUAL BUSY (%)
    tree-eager # # # # # # #
    tree-prio # # # # # # #
    ");
}

#[test]
fn programs_find_every_run_of_a_comparison() {
    let with = |more: &[&'static str]| json(&[&SMALL[..], more].concat());
    let seen = with(&["--policy", "tree-eager", "--policy", "tree-ws", "--policy", "tree-eager"]);
    let keys = |value: &Value| value.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ");
    insta::assert_snapshot!(keys(&seen), @"matrix order policies repeat residual_tolerance seed tasks tile_size tiles workers workers_bound workload");
    let policies = seen["policies"].as_array().unwrap();
    insta::assert_snapshot!(keys(&policies[0]), @"best_s busy_share gflops given median_s policy ratio residual runs worst_s");
    insta::assert_snapshot!(keys(&policies[0]["runs"][0]), @"faults gflops makespan_s per_worker residual tasks");
    let names: Vec<&str> = policies.iter().map(|policy| policy["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["tree-eager", "tree-ws", "tree-eager"]);
    assert_eq!((&seen["tasks"], &seen["repeat"]), (&20.into(), &5.into()));
    for policy in policies {
        let runs = policy["runs"].as_array().unwrap();
        let mut times: Vec<f64> = runs.iter().map(|run| run["makespan_s"].as_f64().unwrap()).collect();
        times.sort_by(f64::total_cmp);
        assert_eq!(times.len(), 5);
        let summary = ["best_s", "median_s", "worst_s"].map(|key| policy[key].as_f64().unwrap());
        assert_eq!(summary, [times[0], times[2], times[4]]);
        let ratio = summary[1] / policies[0]["median_s"].as_f64().unwrap();
        assert!((policy["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9, "{policy}");
        assert!(runs.iter().all(|run| run["tasks"] == 20 && run["residual"] == runs[0]["residual"]), "{policy}");
        assert!((0.0..1.000_001).contains(&policy["busy_share"].as_f64().unwrap()), "{policy}");
    }
    let seen = with(&["--repeat", "3"]);
    assert_eq!(seen["policies"][0]["runs"].as_array().unwrap().len(), 3);
}

#[test]
fn all_policies_that_do_not_start_are_told_before_anything_runs() {
    let (_folder, mine) = file("mine.kdl", "policy \"mine\" { fifi { eager { each \"worker\" { worker } } } }\n");
    let policies = ["tree-eager", "tree-prioo", path(&mine)].map(|policy| ["--policy", policy]).concat();
    let ran = cholesky(&[&SMALL[..], &policies].concat());
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    for told in ["2 of 3 policies cannot be used; nothing was run", "`tree-prioo`", "`tree-prio`?", "`fifi`", "`fifo`?"]
    {
        assert!(ran.err.contains(told), "`{told}` is not in {}", ran.err);
    }
}

#[test]
fn a_run_of_a_comparison_that_stalls_is_named() {
    let ran = with_bad("hoarder", &["--quiet-period", "0.2", "--policy", "tree-eager"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    assert!(ran.err.contains("bad.kdl, round 1 of 5") && ran.err.contains("the run has stalled"), "{ran:?}");
}

#[test]
fn a_run_on_the_hardware_threads_of_another_is_warned_before_it_starts() {
    let machine = Topology::this_machine().unwrap();
    let plan = BindingPlan::new(&machine, BindingPlan::default_workers(&machine)).unwrap();
    let Some(claim) = plan.claim() else {
        let _ = writeln!(std::io::stderr(), "skipped: this process cannot tell others what it uses");
        return;
    };
    let shown = |words: &[&str]| {
        let mut command = sched_tests::program::command(words);
        match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(folder) => command.env("XDG_RUNTIME_DIR", folder),
            None => command.env_remove("XDG_RUNTIME_DIR"),
        };
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out + &ran.err
    };
    let warning = format!("warning: shared: workers of another runtime, of process {},", std::process::id());
    let (topology, run) = (["topology"], [&["run", "cholesky", "--workers", "1"], &SMALL[..]].concat());
    assert!(shown(&topology).contains(&warning) && shown(&run).contains(&warning));
    assert!(!shown(&[&run[..], &["--no-bind"]].concat()).contains(&warning), "it gets out of the way");
    drop(claim);
    assert!(!shown(&topology).contains(&warning));
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
        (&["--repeat", "0"], "must be at least 1"),
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

#[test]
fn the_overhead_of_every_shipped_policy_is_measured() {
    let shipped: Value = serde_json::from_str(&sched(&["policies", "--json"]).out).unwrap();
    let names = |rows: &Value| -> Vec<String> {
        let name = |row: &Value| row.get("policy").or(row.get("name")).unwrap().as_str().unwrap().to_owned();
        rows.as_array().unwrap().iter().map(name).collect()
    };
    let few = ["--shape", "chain", "--workers", "2", "--tasks", "20", "--rounds", "1"];
    let ran = sched(&[&["bench", "overhead", "--all-policies", "--json"], &few[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let seen: Value = serde_json::from_str(&ran.out).unwrap();
    for rows in ["results", "push_pull"] {
        assert_eq!(names(&seen[rows]), names(&shipped));
    }
    assert!(seen["results"].as_array().unwrap().iter().all(|row| row["ns_per_task"].as_f64().unwrap() > 0.0));
    let ran = sched(&[&["bench", "overhead", "--policy", "tree-eagr", "--policy", "tree-wss"], &few[..]].concat());
    assert!(ran.code == 1 && ran.err.contains("`tree-eagr`") && ran.err.contains("`tree-wss`"), "{ran:?}");
}

#[test]
fn what_one_run_learns_the_next_one_goes_by() {
    let folder = tempfile::tempdir().unwrap();
    let models = ["--models", folder.path().to_str().unwrap()];
    let listed = || {
        let ran = sched(&[&["model", "list", "--json"], &models[..]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        serde_json::from_str::<Value>(&ran.out).unwrap()["models"].clone()
    };
    let heft = [&SMALL[..], &["--policy", "tree-heft", "--workers", "2"], &models].concat();
    assert_eq!(json(&heft)["tasks"], 20);
    assert_eq!(listed(), Value::Array(Vec::new()), "nothing is stored unless that is asked for");
    for run in 1..=4 {
        let seen = json(&[&heft[..], &["--calibrate"]].concat());
        assert!(seen["residual"].as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
        let models = listed();
        let told = |of: &str| models.as_array().unwrap().iter().map(|model| model[of].clone()).collect::<Vec<_>>();
        assert_eq!(told("name"), ["cholesky_gemm", "cholesky_potrf", "cholesky_syrk", "cholesky_trsm"]);
        assert_eq!(told("samples"), [4, 4, 6, 6].map(|count| Value::from(count * run)));
        assert_eq!(told("calibrated").iter().all(|sizes| *sizes == 1), run >= 3, "run {run}");
    }
    let error = cholesky(&[&SMALL[..], &["--calibrate", "--models", "/dev/null/models"]].concat());
    assert_eq!(error.code, 1, "{error:?}");
    assert!(error.err.contains("what was measured is not stored: "), "{error:?}");
}

#[test]
fn contexts_run_the_workload_beside_each_other() {
    let contexts =
        ["--context", "a:policy=tree-prio,workers=0", "--context", "b:policy=tree-ws,workers=1,priorities=0..99"];
    for workload in ["cholesky", "lu"] {
        let seen = json_of(workload, &[&SMALL[..], &["--workers", "2"], &contexts].concat());
        let tasks = if workload == "cholesky" { 20 } else { 30 };
        let told =
            |of: &str| seen["contexts"].as_array().unwrap().iter().map(|ran| ran[of].clone()).collect::<Vec<_>>();
        assert_eq!(told("context"), ["a", "b"]);
        assert_eq!(told("policy"), ["tree-prio", "tree-ws"]);
        assert_eq!(told("workers"), [Value::from(vec![0]), Value::from(vec![1])]);
        assert_eq!(told("tasks"), [tasks, tasks]);
        assert_eq!(told("swap"), [Value::Null, Value::Null]);
        for residual in told("residual") {
            assert!(residual.as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
        }
        assert_eq!(seen["faults"], Value::Array(Vec::new()));
    }
}

#[test]
fn policies_are_swapped_while_the_workload_runs() {
    let large = ["--tiles", "12", "--tile-size", "48", "--workers", "2", "--swap-to", "tree-prio"];
    let contexts = ["--context", "a:policy=tree-eager", "--context", "b:policy=tree-ws,workers=1"];
    let both = json(&[&large[..], &contexts].concat());
    for (seen, policies) in [(both, &["tree-eager", "tree-ws"][..]), (json(&large), &["tree-eager"])] {
        let ran = seen["contexts"].as_array().unwrap();
        assert_eq!(ran.iter().map(|ran| &ran["policy"]).collect::<Vec<_>>(), policies);
        for ran in ran {
            assert_eq!((&ran["tasks"], &ran["swap"]["policy"]), (&364.into(), &"tree-prio".into()), "{seen}");
            assert!((182..=364).contains(&ran["swap"]["after_tasks"].as_u64().unwrap()), "{seen}");
            assert!(ran["residual"].as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
        }
        assert_eq!(seen["faults"], Value::Array(Vec::new()));
    }
}

#[test]
fn people_read_a_table_of_contexts() {
    let ran = cholesky(
        &[&SMALL[..], &["--workers", "2", "-c", "a:policy=tree-prio,workers=0-1", "-c", "b:workers=1"]].concat(),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let table: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let at = table.iter().position(|row| row.first() == Some(&"CONTEXT")).expect("there is a table");
    assert_eq!(table[at], ["CONTEXT", "POLICY", "WORKERS", "TASKS", "TIME", "(S)", "GFLOP/S", "RESIDUAL"]);
    assert_eq!(
        (&table[at + 1][..5], &table[at + 2][..4]),
        (&["a", "tree-prio", "0", "1", "20"][..], &["b", "tree-eager", "1", "20"][..])
    );
}

#[test]
fn wrong_contexts_are_told() {
    let error = |code: i32, options: &[&str], told: &[&str]| {
        let ran = cholesky(&[&SMALL[..], &["--workers", "2"], options].concat());
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{ran:?}");
        for told in told {
            assert!(ran.err.contains(told), "`{told}` is not in {}", ran.err);
        }
    };
    error(1, &["--context", "a:workers=0-5"], &["context `a` cannot be made", "there is no worker"]);
    error(1, &["--context", "a:policy=tree-eagr"], &["context `a` cannot be made", "`tree-eagr`", "did you mean"]);
    error(1, &["--context", "a", "--context", "a"], &["context `a` cannot be made"]);
    error(1, &["--context", "a:priorities=9..0"], &["context `a` cannot be made", "priorit"]);
    error(1, &["--swap-to", "tree-eagr"], &["`tree-eagr`", "did you mean"]);
    error(
        1,
        &["--context", "a", "--policy", "tree-ws", "--policy", "tree-prio"],
        &["several --policy", "--context a:policy="],
    );
    error(2, &["--context", "a:polcy=tree-ws"], &["a context has no `polcy`", "did you mean `policy`?"]);
    error(2, &["--context", "a:workers=x"], &["`x` are no workers"]);
    error(2, &["--context", ":workers=0"], &["a context has a name"]);
    error(2, &["--context", "a", "--repeat", "3"], &["--repeat", "cannot be used with"]);
}

#[test]
fn decisions_are_measured_by_the_number_of_children() {
    let ran =
        sched(&["bench", "decision", "--component", "mct,eager", "--children", "2,70", "--rounds", "1", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let seen: Value = serde_json::from_str(&ran.out).unwrap();
    let rows: Vec<_> = seen.as_array().unwrap().iter().map(|row| (&row["component"], &row["children"])).collect();
    let row = |component: &'static str, children: i32| (Value::from(component), Value::from(children));
    let wanted = [row("mct", 2), row("mct", 70), row("eager", 2), row("eager", 70)];
    assert_eq!(rows, wanted.iter().map(|(component, children)| (component, children)).collect::<Vec<_>>());
    for row in seen.as_array().unwrap() {
        let (all, each) = (row["ns_per_decision"].as_f64().unwrap(), row["ns_per_child"].as_f64().unwrap());
        assert!(each > 0.0 && (all / row["children"].as_f64().unwrap() - each).abs() < 1e-9, "{row}");
    }
    let ran = sched(&["bench", "decision", "--component", "mtc", "--rounds", "1"]);
    assert!(ran.code == 1 && ran.err.contains("did you mean `mct`?"), "{ran:?}");
}

#[test]
fn simulated_tasks_are_measured_by_the_number_of_workers() {
    let few = ["independent", "--tasks", "300", "--workers", "70,2", "--rounds", "1"];
    let ran = sched(&[&["bench", "simulation", "--policies", "tree-ws,tree-heft", "--json"], &few[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let seen: Value = serde_json::from_str(&ran.out).unwrap();
    let rows: Vec<_> = seen.as_array().unwrap().iter().map(|row| (&row["policy"], &row["more_workers"])).collect();
    let row = |policy: &'static str, more: f64| (Value::from(policy), Value::from(more));
    let wanted = [row("tree-ws", 35.0), row("tree-ws", 1.0), row("tree-heft", 35.0), row("tree-heft", 1.0)];
    assert_eq!(rows, wanted.iter().map(|(policy, more)| (policy, more)).collect::<Vec<_>>());
    for rows in seen.as_array().unwrap().chunks(2) {
        let of = |row: usize, name: &str| rows[row][name].as_f64().unwrap();
        assert!((of(0, "ns_per_task") / of(1, "ns_per_task") - of(0, "growth")).abs() < 1e-9, "{rows:?}");
        assert!((of(0, "tasks_per_second") * of(0, "ns_per_task") - 1e9).abs() < 1.0, "{rows:?}");
        assert_eq!((of(0, "tasks"), of(1, "growth")), (300.0, 1.0));
    }
    let ran = sched(&[&["bench", "simulation", "--policies", "tree-wss"], &few[..]].concat());
    assert!(ran.code == 1 && ran.err.contains("did you mean"), "{ran:?}");
    let ran = sched(&["bench", "simulation", "independant"]);
    assert!(ran.code == 1 && ran.err.contains("did you mean `independent`?"), "{ran:?}");
}

/// A folder with the counters of two packages, which stand still.
fn powercap() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, package) in ["package-0", "package-1"].into_iter().enumerate() {
        let zone = folder.path().join(format!("intel-rapl:{number}"));
        fs::create_dir(&zone).unwrap();
        for (file, text) in [("name", package), ("max_energy_range_uj", "262143328850"), ("energy_uj", "123456")] {
            fs::write(zone.join(file), format!("{text}\n")).unwrap();
        }
    }
    folder
}

#[test]
fn energy_is_told_where_there_are_counters() {
    let folder = powercap();
    let options = [&SMALL[..], &["--energy", "--powercap", folder.path().to_str().unwrap()]].concat();
    let seen = json(&options);
    assert_eq!((&seen["energy_j"], &seen["gflop_per_j"]), (&0.0.into(), &Value::Null));
    let ran = cholesky(&options);
    assert!(ran.out.contains("\nenergy    0.0 J (all that the packages took)\n"), "{ran:?}");
    let compared =
        cholesky(&[&options[..], &["--policy", "tree-eager", "--policy", "tree-ws", "--repeat", "2"]].concat());
    let table: Vec<&str> =
        compared.out.lines().filter(|line| line.starts_with("POLICY") || line.starts_with("tree")).collect();
    assert!(
        table[0].ends_with("  ENERGY (J)") && table[1].ends_with("  0.0") && table[2].ends_with("  0.0"),
        "{compared:?}"
    );
    assert!(json(&SMALL).get("energy_j").is_none());
}

#[test]
fn energy_without_counters_is_an_error_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("powercap");
    let ran = cholesky(&["--energy", "--tiles", "100000", "--powercap", there.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    for told in ["there is no such folder", "expected the kernel's energy counters", "modprobe intel_rapl_msr"] {
        assert!(ran.err.contains(told), "{ran:?}");
    }
    let ran = cholesky(&["--energy", "--context", "a:policy=tree-ws"]);
    assert_eq!(ran.code, 2, "energy is not told by context: {ran:?}");
}
