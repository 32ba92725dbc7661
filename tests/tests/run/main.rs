//! `sched run`, as a user runs it: the program, with the plugins beside it.

mod bench;
mod comparison;
mod contexts;
mod energy;
mod log;
mod matrix;
mod misbehaving;
mod record;

use sched_host::topology::{BindingPlan, Topology};
use sched_tests::program::{Ran, sched};
use serde_json::{Value, json as json_value};
use std::fs;
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
    sched(&[&["run", workload], options, &["--json"]].concat()).json()
}

/// The keys of an object.
fn keys(value: &Value) -> String {
    value.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// A folder with one file in it.
fn file(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, path)
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
fn several_memory_nodes_give_the_same_result_and_say_what_was_copied() {
    let alone = json(&[&SMALL[..], &["--workers", "2"]].concat());
    assert_eq!(
        (&alone["runs"][0]["transfers"], &alone["runs"][0]["memory_nodes"]),
        (&json_value!([]), &1.into()),
        "{alone}"
    );
    for workload in ["cholesky", "lu", "qr"] {
        let options = ["--workers", "2", "--memory-nodes", "2", "--policy", "tree-ws"];
        let seen = json_of(workload, &[&SMALL[..], &options].concat());
        assert!(seen["residual"].as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
        assert_eq!(seen["runs"][0]["memory_nodes"], 2);
        for moved in seen["runs"][0]["transfers"].as_array().unwrap() {
            assert!(moved["from"] != moved["to"] && moved["count"].as_u64() > Some(0), "{moved}");
            let tile = 24 * 24 * 8;
            assert_eq!(moved["bytes"].as_u64().unwrap() % tile, 0, "{moved}");
        }
    }
    let ran = cholesky(&[&SMALL[..], &["--workers", "2", "--memory-nodes", "3"]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.says("3 memory nodes were asked for, expected 1 to 2 for 2 workers"), "{}", ran.err);
}

#[test]
fn single_precision_is_less_exact_and_checked_accordingly() {
    for workload in ["cholesky", "lu", "qr"] {
        let [double, single] = ["double", "single"]
            .map(|precision| json_of(workload, &[&SMALL[..], &["--workers", "2", "--precision", precision]].concat()));
        let of = |seen: &Value, key: &str| seen[key].as_f64().unwrap_or_else(|| panic!("{seen}"));
        assert_eq!((&double["precision"], &single["precision"]), (&"double".into(), &"single".into()));
        assert!(of(&single, "residual") < of(&single, "residual_tolerance"), "{single}");
        assert!(of(&single, "residual") > of(&double, "residual_tolerance"), "{single}");
        let tolerances = of(&single, "residual_tolerance") / of(&double, "residual_tolerance");
        assert!((tolerances * f64::EPSILON / f64::from(f32::EPSILON) - 1.0).abs() < 1e-9, "{tolerances}");
        assert_eq!(single["tasks"], double["tasks"]);
    }
    let text = cholesky(&[&SMALL[..], &["--precision", "single"]].concat());
    assert!(text.out.contains("seed 42, single precision"), "{}", text.out);
}

#[test]
fn every_shipped_policy_is_right_with_any_number_of_workers() {
    for policy in ["tree-eager", "tree-eager-prefetching", "modular-eager"] {
        for workers in [1, 2, 4] {
            let seen = json(&[&SMALL[..], &["--policy", policy, "--workers", &workers.to_string()]].concat());
            assert!(seen["residual"].as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
            assert_eq!((&seen["tasks"], &seen["workers"]), (&20.into(), &workers.into()));
            let per_worker = seen["runs"][0]["per_worker"].as_array().unwrap();
            assert_eq!(per_worker.len(), workers);
            assert_eq!(per_worker.iter().map(|worker| worker["tasks"].as_u64().unwrap()).sum::<u64>(), 20);
            for (id, worker) in per_worker.iter().enumerate() {
                let busy = worker["busy_s"].as_f64().unwrap();
                assert_eq!(worker["id"], id);
                assert!(worker["wakes_in_vain"].as_u64().unwrap() <= worker["wakes"].as_u64().unwrap(), "{seen}");
                assert!((0.0..=seen["runs"][0]["makespan_s"].as_f64().unwrap()).contains(&busy), "{seen}");
            }
        }
    }
}

#[test]
fn programs_find_everything_under_its_key() {
    let seen = json(&[&SMALL[..], &["--seed", "7"]].concat());
    insta::assert_snapshot!(keys(&seen), @r#"matrix order policies precision repeat residual residual_tolerance runs seed tasks tile_size tiles workers workers_bound workload"#);
    insta::assert_snapshot!(keys(&seen["policies"][0]), @r#"best_s busy_share energy_j gflops given median_s policy ratio residual worst_s"#);
    insta::assert_snapshot!(keys(&seen["runs"][0]), @r#"busy_share contexts devices energy_j faults gflop_per_j gflops given hypervisor log makespan_explained makespan_s memory_nodes per_worker place policy residual round tasks transfers"#);
    assert_eq!(seen["workload"], "cholesky");
    let run = &seen["runs"][0];
    assert_eq!((&run["policy"], &run["place"], &run["round"]), (&"tree-ws".into(), &0.into(), &1.into()));
    assert_eq!((&seen["seed"], &seen["order"]), (&7.into(), &96.into()));
    assert_eq!((&seen["tiles"], &seen["tile_size"]), (&4.into(), &24.into()));
    assert!(run["makespan_s"].as_f64().unwrap() > 0.0 && run["gflops"].as_f64().unwrap() > 0.0);
    assert_eq!(run["faults"], Value::Array(Vec::new()));
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
    policy tree-ws
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
            assert_eq!((&seen["workload"], &seen["policies"][0]["policy"]), (&workload.into(), &policy.into()));
            assert_eq!((&seen["tasks"], &seen["order"]), (&tasks.into(), &96.into()));
            let per_worker = seen["runs"][0]["per_worker"].as_array().unwrap();
            assert_eq!(per_worker.iter().map(|worker| worker["tasks"].as_u64().unwrap()).sum::<u64>(), tasks);
        }
    }
}

#[test]
fn a_run_on_the_hardware_threads_of_another_is_warned_before_it_starts() {
    let machine = Topology::this_machine().unwrap();
    let plan = BindingPlan::new(&machine, BindingPlan::default_workers(&machine)).unwrap();
    let Some(claim) = plan.claim() else {
        sched_test_support::skipped("this process cannot tell others what it uses");
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
    assert!(ran.of_machine.contains("warning: oversubscribed: workers "), "{ran:?}");
}

#[test]
fn the_policy_may_come_from_a_file_or_the_environment() {
    let (_folder, path) = file("mine.kdl", "policy \"mine\" { fifo { eager { each \"worker\" { worker } } } }\n");
    assert_eq!(json(&[&SMALL[..], &["--policy", path.to_str().unwrap()]].concat())["runs"][0]["policy"], "mine");
    let ran =
        Ran::of(sched_tests::program::command(&["run", "cholesky", "--json"]).args(SMALL).env("SCHED_POLICY", &path));
    assert!(ran.code == 0 && ran.out.contains(r#""policy": "mine""#), "{ran:?}");
}

#[test]
fn tasks_of_a_kind_are_restricted_and_numbered_on_the_command_line() {
    let choice = r#"policy "choice" { user-choice { each "worker" { fifo { worker } } } }"#;
    let (_folder, path) = file("choice.kdl", choice);
    let ran =
        |workload: &str, options: &[&str]| json_of(workload, &[&SMALL[..], &["--workers", "2"], options].concat());
    let tasks = |seen: &Value, worker: usize| seen["runs"][0]["per_worker"][worker]["tasks"].as_u64().unwrap();
    let seen = ran("cholesky", &["--where", "*=1"]);
    assert_eq!((tasks(&seen, 0), tasks(&seen, 1)), (0, 20));
    let seen = ran("cholesky", &["--where", "potrf=1", "--where", "*=0"]);
    assert_eq!((tasks(&seen, 0), tasks(&seen, 1)), (20, 0), "the last one that fits counts");
    let seen = ran("cholesky", &["--policy", path.to_str().unwrap(), "--sched-data", "potrf=1"]);
    assert_eq!((tasks(&seen, 0), tasks(&seen, 1)), (16, 4));

    for (options, message) in [
        (["--where", "*=5"], "is restricted to 5: no worker there can execute it"),
        (["--where", "potfr=0"], "did you mean `potrf`?"),
        (["--sched-data", "x=1"], "the tasks of `cholesky` have no kind `x`"),
    ] {
        let ran = cholesky(&[&SMALL[..], &["--workers", "2"], &options].concat());
        assert!(ran.code == 1 && ran.says(message), "{ran:?}");
    }
    let ran = cholesky(&["--where", "potrf=elsewhere"]);
    assert!(ran.code == 2 && ran.says("`elsewhere` is neither an architecture nor a worker"), "{ran:?}");

    let sized = ["cholesky", "--tiles", "4", "--where", "gemm=cuda", "--sched-data", "gemm=3"];
    let graph = sched(&[&["graph"], &sized[..], &["--json"]].concat());
    assert!(graph.code == 0 && graph.out.contains(r#""where":"cuda","sched_data":3"#), "{graph:?}");
    let nowhere = sched(&[&["simulate"], &sized[..], &["--platform", "numa-2x12"]].concat());
    assert!(nowhere.code == 1 && nowhere.says("may execute 4 tasks of kind `gemm`"), "{nowhere:?}");
}

#[test]
fn a_policy_that_is_not_there_is_reported_with_the_nearest_one() {
    let ran = cholesky(&["--policy", "tree-eagre"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.says("there is no policy `tree-eagre`") && ran.says("did you mean `tree-eager`?"));
}

#[test]
fn options_that_make_no_sense_are_refused_before_anything_runs() {
    for (options, display_text) in [
        (&["--tiles", "0"][..], "must be at least 1"),
        (&["--tile-size", "x"], "must be a whole number"),
        (&["--workers", "0"], "must be at least 1"),
        (&["--quiet-period", "0"], "must be from 1e-9 to 1e9 seconds"),
        (&["--matrix", "a.mtx", "--tiles", "3"], "cannot be used with"),
        (&["--tile", "3"], "--tiles"),
        (&["--repeat", "0"], "must be at least 1"),
    ] {
        let ran = cholesky(options);
        assert!(ran.code == 2 && ran.says(display_text), "{ran:?}");
    }
    for (options, display_text) in [
        (&["--tiles", "100000", "--tile-size", "1000"][..], "GiB"),
        (&["--tiles", "9999999999999", "--tile-size", "9999999999999"], "more rows than can be counted"),
    ] {
        let ran = cholesky(options);
        assert!(ran.code == 1 && ran.says(display_text) && ran.out.is_empty(), "{ran:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for options in [&["run", "cholesky", "--tiles", "2", "--tile-size", "8"][..], &["policies"]] {
        let mut running =
            sched_tests::program::command(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(running.stdout.take());
        let ran = Ran::ended(&running.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn what_one_run_learns_the_next_one_goes_by() {
    let folder = tempfile::tempdir().unwrap();
    let models = ["--models", folder.path().to_str().unwrap()];
    let listed = || sched(&[&["model", "list", "--json"], &models[..]].concat()).json()["models"].clone();
    let heft = [&SMALL[..], &["--policy", "tree-heft", "--workers", "2"], &models].concat();
    assert_eq!(json(&heft)["tasks"], 20);
    assert_eq!(listed(), Value::Array(Vec::new()), "nothing is stored unless that is asked for");
    for run in 1..=4 {
        let seen = json(&[&heft[..], &["--calibrate"]].concat());
        assert!(seen["residual"].as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
        let models = listed();
        let display_text =
            |of: &str| models.as_array().unwrap().iter().map(|model| model[of].clone()).collect::<Vec<_>>();
        assert_eq!(display_text("name"), ["cholesky_gemm", "cholesky_potrf", "cholesky_syrk", "cholesky_trsm"]);
        assert_eq!(display_text("samples"), [4, 4, 6, 6].map(|count| Value::from(count * run)));
        assert_eq!(display_text("calibrated").iter().all(|sizes| *sizes == 1), run >= 3, "run {run}");
    }
    let error = cholesky(&[&SMALL[..], &["--calibrate", "--models", "/dev/null/models"]].concat());
    assert_eq!(error.code, 1, "{error:?}");
    assert!(error.says("/dev/null/models") && error.says("it cannot be made"), "{error:?}");
    assert_eq!(error.out, "", "it is noticed before the run");
    let error = cholesky(&[&SMALL[..], &["--calibrate", "--models", "/dev/null/models", "--json"]].concat());
    assert!(error.err.starts_with("{\"error\":") && error.err.lines().count() == 1, "{error:?}");
}
