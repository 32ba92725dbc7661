//! Components that do not do what they should.

use super::{SMALL, cholesky, path};
use sched_tests::fixtures;
use sched_tests::program::{self, Ran};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder with the plugin that misbehaves, and a policy with this component of it as the root.
fn bad_policy(component: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(fixtures::plugin("misbehaving"), folder.path().join("misbehaving.so")).unwrap();
    let policy = folder.path().join("bad.kdl");
    fs::write(&policy, format!("policy \"bad\" {{ {component} {{ eager {{ each \"worker\" {{ worker }} }} }} }}\n"))
        .unwrap();
    (folder, policy)
}

/// Runs with the misbehaving component as the root.
fn with_bad(component: &str, options: &[&str]) -> Ran {
    let (folder, policy) = bad_policy(component);
    let paths = ["--plugin-dir", path(folder.path()), "--policy", path(&policy)];
    cholesky(&[&SMALL[..], &["--workers", "2"], &paths, options].concat())
}

#[test]
fn simulations_and_comparisons_tell_what_components_did_wrong() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(fixtures::plugin("misbehaving"), folder.path().join("misbehaving.so")).unwrap();
    let (policy, page) = (folder.path().join("bad.kdl"), folder.path().join("page.html"));
    let text = r#"policy "bad" { panics-in-push after=3 { eager { each "worker" { worker } } } }"#;
    fs::write(&policy, text).unwrap();
    let common = ["cholesky", "--tiles", "4", "--plugin-dir", path(folder.path())];
    let shown = "component `panics-in-push` of misbehaving, node `panics-in-push`: panicked: as asked for";
    let simulated = program::sched(&[&["simulate"][..], &common, &["--policy", path(&policy)]].concat());
    assert!(simulated.code == 0 && simulated.out.contains(shown), "{simulated:?}");
    let options = ["--policies", path(&policy), "--html", path(&page)];
    let compared = program::sched(&[&["compare"][..], &common, &options].concat());
    assert!(compared.code == 0 && compared.out.contains(shown), "{compared:?}");
    assert!(fs::read_to_string(&page).unwrap().contains(shown), "the page tells it too");
    let json = program::sched(&[&["compare"][..], &common, &options[..2], &["--json"]].concat()).json();
    let contenders = json["runs"].as_array().unwrap();
    let bad = contenders.iter().find(|contender| contender["planned"] == false).unwrap();
    assert_eq!(bad["faults"][0]["fault"], "panicked", "{bad}");
}

#[test]
fn a_component_that_panics_is_named_and_the_result_is_right() {
    for component in ["panics-in-push", "panics-in-pull"] {
        let mut seen = with_bad(&format!("{component} after=3"), &["--json"]).json();
        assert_eq!(seen["tasks"], 20, "{seen}");
        let seen = seen["runs"][0].take();
        let faults = seen["faults"].as_array().unwrap();
        assert_eq!(faults.len(), 1, "{seen}");
        assert_eq!((&faults[0]["fault"], &faults[0]["component"]), (&"panicked".into(), &component.into()));
        assert!(faults[0]["plugin"].as_str().unwrap().contains("misbehaving"), "{seen}");
        assert!(faults[0]["message"].as_str().unwrap().contains("as asked for, after 3 calls"), "{seen}");
    }
    let ran = with_bad("panics-in-push after=3", &[]);
    let shown = "component `panics-in-push` of ";
    assert!(ran.code == 0 && ran.out.contains("(ok, ") && ran.says(shown), "{ran:?}");
}

#[test]
fn tasks_that_a_component_drops_run_all_the_same() {
    let ran = with_bad("drops-tasks every=3", &[]);
    assert!(ran.code == 0 && ran.out.contains("tasks     20\n") && ran.out.contains("(ok, "), "{ran:?}");
    assert!(ran.says("component `drops-tasks` of ") && ran.says("dropped 6 tasks"), "{ran:?}");
}

#[test]
fn a_run_that_cannot_go_on_says_where_every_task_sits() {
    let ran = with_bad("hoarder", &["--quiet-period", "0.2"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    for shown in ["the run has stalled", "hoarder", "20 tasks are left", "1 are in the tree, 19 wait for others"] {
        assert!(ran.says(shown), "`{shown}` is not in {}", ran.err);
    }
    assert_eq!(ran.err.matches("the run has stalled").count(), 1, "one stall is one error: {}", ran.err);
}

#[test]
fn a_run_of_a_comparison_that_stalls_is_named() {
    let ran = with_bad("hoarder", &["--quiet-period", "0.2", "--policy", "tree-eager"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    assert!(ran.says("bad.kdl, round 1 of 5") && ran.says("the run has stalled"), "{ran:?}");
}

#[test]
fn a_measurement_that_cannot_go_on_is_an_error_as_a_run_is() {
    let (folder, policy) = bad_policy("hoarder");
    let paths = ["--plugin-dir", path(folder.path()), "--policy", path(&policy), "--workers", "1"];
    let bench = |words: &[&str]| program::sched(&[&["bench"], words, &paths[..]].concat());
    for words in [
        &["overhead", "--shape", "chain", "--tasks", "20"][..],
        &["granularity", "--pattern", "stencil", "--steps", "4"],
        &["cholesky", "--tiles", "3", "--tile-size", "16"],
    ] {
        let ran = bench(words);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.says("the run has stalled") && !ran.says("panicked"), "{ran:?}");
    }
}

#[test]
fn components_that_misbehave_on_ranks_are_named_with_their_rank() {
    let mut seen = with_bad("panics-in-push after=3", &["--ranks", "2", "--json"]).json();
    assert_eq!(seen["tasks"], 20, "{seen}");
    for (number, rank) in seen["per_rank"].take().as_array().unwrap().iter().enumerate() {
        let fault = &rank["faults"][0];
        assert_eq!((&rank["rank"], &fault["component"]), (&number.into(), &"panics-in-push".into()), "{rank}");
    }
    let ran = with_bad("panics-in-push after=3", &["--ranks", "2"]);
    assert!(ran.code == 0 && ran.out.contains("(ok, "), "{ran:?}");
    for rank in ["fault on rank 0: ", "fault on rank 1: "] {
        assert!(ran.says(&format!("{rank}component `panics-in-push` of ")), "{ran:?}");
    }
    // Each rank waits for what the other keeps.
    let ran = with_bad("hoarder", &["--ranks", "2", "--quiet-period", "0.1"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    for shown in ["rank 0: the run has stalled", "hoarder", "1 are in the tree"] {
        assert!(ran.says(shown), "`{shown}` is not in {}", ran.err);
    }
}
