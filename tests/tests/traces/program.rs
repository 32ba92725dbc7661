//! Traces and drawings, as a user makes them: the program, with the plugins beside it.

use sched_tests::program::{Ran, sched};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder, and the path of a file in it.
fn file(name: &str) -> (TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let word = path.display().to_string();
    (folder, path, word)
}

fn good(words: &[&str]) -> Ran {
    let ran = sched(words);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// Tasks of a trace for Perfetto.
fn tasks(json: &str) -> usize {
    let trace: Value = serde_json::from_str(json).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    events.iter().filter(|event| event["cat"] == "task").count()
}

#[test]
fn a_real_run_and_a_simulation_write_the_same_kinds_of_files() {
    let (folder, json, trace) = file("trace.json");
    let svg = folder.path().join("gantt.svg");
    let small = ["cholesky", "--tiles", "6", "--tile-size", "16", "--gantt", svg.to_str().unwrap(), "--trace", &trace];
    for command in ["run", "simulate"] {
        let ran = good(&[&[command], &small[..]].concat());
        assert!(ran.out.contains("tasks     56"), "{ran:?}");
        assert_eq!(tasks(&fs::read_to_string(&json).unwrap()), 56, "{command}");
        let drawing = fs::read_to_string(&svg).unwrap();
        assert!(drawing.contains("potrf (6)") && drawing.contains("lower bound "), "{command}: {drawing}");
        for made in [&json, &svg] {
            fs::remove_file(made).unwrap();
        }
    }
}

#[test]
fn the_extension_says_that_it_is_paje_and_others_get_the_known_ones() {
    let (_folder, path, word) = file("a.paje");
    good(&["simulate", "lu", "--tiles", "4", "--trace", &word]);
    assert!(fs::read_to_string(path).unwrap().starts_with("%EventDef PajeDefineContainerType 0\n"));
    let ran = sched(&["simulate", "lu", "--trace", "a.csv"]);
    assert!(ran.code == 2 && ran.says(".json is Chrome's") && ran.says(".paje"), "{ran:?}");
    let ran = sched(&["run", "lu", "--gantt", "a.png"]);
    assert!(ran.code == 2 && ran.says("must end in .svg"), "{ran:?}");
}

#[test]
fn a_file_that_cannot_be_made_is_reported_before_the_run_and_a_full_disk_does_not_lose_the_report() {
    let ran = sched(&["run", "qr", "--tiles", "2", "--tile-size", "8", "--trace", "/nonexistent/a.json"]);
    assert!(ran.code == 1 && ran.out.is_empty() && ran.says("`/nonexistent/a.json` cannot be written"), "{ran:?}");
    let (_folder, path, word) = file("full.json");
    std::os::unix::fs::symlink("/dev/full", path).unwrap();
    for command in ["run", "simulate"] {
        let ran = sched(&[command, "qr", "--tiles", "2", "--tile-size", "8", "--trace", &word]);
        assert!(ran.code == 1 && ran.out.contains("tasks     5") && ran.says("No space left"), "{ran:?}");
    }
}

#[test]
fn pictures_are_of_one_run() {
    let ran = sched(&["run", "qr", "--repeat", "3", "--gantt", "a.svg"]);
    assert!(ran.code == 1 && ran.says("show one run, and there would be 3"), "{ran:?}");
}

#[test]
fn policies_side_by_side_on_one_page_that_needs_nothing_else() {
    let (_folder, path, word) = file("page.html");
    let policies = "tree-eager,tree-heft";
    let ran = good(&[
        "compare",
        "cholesky",
        "--tiles",
        "5",
        "--platform",
        "cpu9-gpu3",
        "--policies",
        policies,
        "--html",
        &word,
    ]);
    for wanted in ["tree-eager ", "tree-heft ", "HEFT (static) ", "MAKESPAN (S)", "bound  "] {
        assert!(ran.out.contains(wanted), "{wanted}: {ran:?}");
    }
    let page = fs::read_to_string(path).unwrap();
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(page.contains("lower bound ") && page.contains("<table>"));
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["://", "<script", "src=", "url("] {
        assert!(!elsewhere.contains(outside), "{outside}");
    }
}

#[test]
fn static_schedules_are_replayed_with_what_they_leave_out() {
    let args = ["compare", "cholesky", "--tiles", "6", "--platform", "cpu9-gpu3", "--policies", "tree-heft", "--json"];
    let ran = good(&[&args[..], &["--replay"]].concat());
    let shown = ran.json();
    let find = |name: &str| {
        let runs = shown["runs"].as_array().unwrap();
        runs.iter().find(|run| run["policy"] == name).unwrap_or_else(|| panic!("{name}: {shown}")).clone()
    };
    for name in ["HEFT", "CPOP", "PEFT"] {
        let (planned, replayed) = (find(&format!("{name} (static)")), find(&format!("{name} (replayed)")));
        assert!(replayed["planned"] == false && replayed["transfers"].as_u64().unwrap() > 0, "{replayed}");
        let tasks = |run: &serde_json::Value| -> Vec<u64> {
            run["per_worker"].as_array().unwrap().iter().map(|worker| worker["tasks"].as_u64().unwrap()).collect()
        };
        assert_eq!(tasks(&planned), tasks(&replayed), "each task is on its planned worker");
        assert!(replayed["makespan_s"].as_f64() > planned["makespan_s"].as_f64(), "{name}");
    }
}

#[test]
fn every_shipped_policy_for_programs() {
    let ran = good(&["compare", "lu", "--tiles", "4", "--platform", "numa-2x12", "--policies", "all", "--json"]);
    let shown = ran.json();
    let contenders = shown["runs"].as_array().unwrap();
    let shipped = sched_host::policy::library().len();
    assert_eq!(contenders.iter().filter(|contender| contender["planned"] == false).count(), shipped, "{shown}");
    for contender in contenders {
        assert!(contender["ratio_to_bound"].as_f64().unwrap() >= 1.0 - 1e-9, "{contender}");
    }
}

#[test]
fn policies_that_are_not_there_are_all_reported_before_anything_is_simulated() {
    let ran = sched(&["compare", "lu", "--policies", "tree-egaer,tree-heft,nothing.kdl", "--json"]);
    assert!(ran.code == 1 && ran.out.is_empty(), "{ran:?}");
    for wanted in ["2 of 3 policies cannot be used", "did you mean `tree-eager`?", "nothing.kdl"] {
        assert!(ran.says(wanted), "{wanted}: {ran:?}");
    }
    // One that could stall is as wrong as one that is not there.
    let (_folder, path, word) = file("bounded.kdl");
    let bounded = r#"policy "bounded" { fifo ntasks-threshold=4 { eager { each "worker" { worker } } } }"#;
    fs::write(path, bounded).unwrap();
    let ran = sched(&["compare", "lu", "--policies", &format!("tree-heft, {word}"), "--json"]);
    assert!(ran.code == 1 && ran.out.is_empty(), "{ran:?}");
    assert!(ran.says("1 of 2 policies cannot be used") && ran.says("may refuse tasks"), "{ran:?}");
}

#[test]
fn why_no_policy_comes_to_an_end_is_reported_once() {
    let words = ["compare", "independent", "--length", "1e9", "--policies", "tree-eager,tree-heft", "--json"];
    let ran = sched(&words);
    assert!(ran.code == 1 && ran.out.is_empty(), "{ran:?}");
    assert_eq!(ran.err.matches("the range of the clock").count(), 1, "{ran:?}");
}
