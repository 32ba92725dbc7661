//! What the command line refuses before anything runs or is written, and what it warns of.

use sched_tests::program::{Ran, command, sched};
use std::fs;
use std::path::{Path, PathBuf};

/// A file in a folder.
fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("it can be written");
    path
}

/// Checks that it failed with nothing on the standard output, and what it says.
fn refused(ran: &Ran, says: &[&str]) {
    assert!(ran.code != 0 && ran.out.is_empty(), "{ran:?}");
    says.iter().for_each(|words| assert!(ran.says(words), "{words}: {ran:?}"));
}

const TYPO: &str = "policy \"typo\" {\n    fifi { eager { each \"worker\" { worker } } }\n}\n";

#[test]
fn a_policy_to_swap_to_is_checked_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let typo = written(folder.path(), "typo.kdl", TYPO).display().to_string();
    let late = format!("{typo}@1000s");
    for words in [
        &["simulate", "cholesky", "-n", "3", "--swap-to", &typo][..],
        &["simulate", "cholesky", "-n", "3", "--swap-to", &late],
        &["run", "cholesky", "-n", "3", "-b", "16", "-w", "1", "--swap-to", &typo],
        &["run", "cholesky", "-n", "3", "-b", "16", "-w", "1", "--ranks", "2", "--swap-to", &typo],
    ] {
        refused(&sched(words), &["there is no component `fifi`", "typo.kdl:2:5"]);
    }
    let ran = sched(&["simulate", "cholesky", "-n", "3", "--swap-to", "tree-prio@1000s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.says("stayed with tree-ws") && ran.says("would be at 1000s"), "{ran:?}");
}

#[test]
fn models_are_exported_for_a_number_of_devices_that_a_machine_may_have() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().to_str().expect("text");
    for (devices, says) in [("4294967295", "must be 4096 at most"), ("0", "must be at least 1")] {
        refused(&sched(&["model", "export", directory, "--devices", devices]), &[says]);
    }
}

#[test]
fn options_for_devices_do_not_contradict_each_other() {
    let run = ["run", "cholesky", "-n", "3", "-b", "16"];
    refused(&sched(&[&run[..], &["--devices", "none,fake"]].concat()), &["found `none,fake`, expected `none` alone"]);
    for devices in [&[][..], &["--devices", "none"]] {
        let ran = sched(&[&run[..], &["--device-memory", "1000000"], devices].concat());
        refused(&ran, &["no device is chosen", "choose devices with --devices"]);
    }
}

#[test]
fn empty_variables_are_unset_and_errors_name_the_others() {
    let with = |variable: &str, value: &str, words: &[&str]| Ran::of(command(words).env(variable, value));
    let simulate = ["simulate", "cholesky", "-n", "3"];
    let devices = ["run", "cholesky", "-n", "3", "-b", "16", "-w", "1"];
    for (variable, words) in [
        ("SCHED_POLICY", &simulate[..]),
        ("SCHED_LOG", &simulate),
        ("SCHED_PATIENCE", &simulate),
        ("SCHED_PLUGIN_PATH", &simulate),
        ("SCHED_POWERCAP", &devices),
        ("SCHED_DEVICES", &devices),
        ("SCHED_MODEL_DIR", &devices),
    ] {
        let ran = with(variable, "", words);
        assert_eq!(ran.code, 0, "{variable}: {ran:?}");
    }
    for (variable, value) in [("SCHED_POLICY", "tree-eagr"), ("SCHED_LOG", "loud"), ("SCHED_PATIENCE", "long")] {
        refused(&with(variable, value, &simulate), &[value, &format!("environment variable {variable}")]);
    }
    let given = with("SCHED_LOG", "loud", &[&simulate[..], &["--log", "loud"]].concat());
    assert!(given.code == 2 && !given.says("environment variable"), "{given:?}");
}

#[test]
fn policies_that_cannot_be_named_are_warned_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = |name: &str| format!("policy {name:?} {{ fifo {{ eager {{ each \"worker\" {{ worker }} }} }} }}\n");
    let check = |names: &[&str]| {
        let text: String = names.iter().map(|name| policy(name)).collect();
        let file = written(folder.path(), "odd.kdl", &text).display().to_string();
        let ran = sched(&["check", &file, "--json"]);
        let problems = ran.json()["files"][0]["problems"].as_array().expect("a list").clone();
        problems.iter().map(|problem| problem["line"].as_u64().expect("a place")).collect::<Vec<_>>()
    };
    assert_eq!(check(&["a", "b,c", "d#e", "f+g.h=1", " i", "j+k"]), [2, 3, 4, 5]);
    assert_eq!(check(&["b,c"]), [0; 0], "it needs no name");
}

#[test]
fn values_and_kernels_that_do_not_fit_are_explained() {
    for value in ["nan", "", "2,3"] {
        let ran = sched(&["tree", "tree-heft", "--set", &format!("mct.beta={value}")]);
        refused(&ran, &[&format!("`{value}` is no value of a parameter"), "write a number"]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let speed = r#"platform "p" { memory "ram"; workers "cpu" count=2 arch="cpu" memory="ram"; kernel "*" { on "cpu" gflops=10.0; } }"#;
    let graph = r#"{"format": "sched-task-graph", "version": 1, "name": "g", "kinds": [{"name": "task"}], "data": [], "tasks": [{"id": 0, "kind": "task"}]}"#;
    let platform = written(folder.path(), "speed.kdl", speed).display().to_string();
    let graph = written(folder.path(), "graph.json", graph).display().to_string();
    let ran = sched(&["simulate", &graph, "--platform", &platform]);
    refused(&ran, &["cannot run `task`", "which has no operations", "a speed (`gflops`) is for tasks with operations"]);
    assert!(!ran.says("add `kernel"), "it has one: {}", ran.err);
}
