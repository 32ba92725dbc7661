//! What the program says of a makespan and its lower bounds, and when it says nothing.

use sched_tests::program::{Ran, sched, sched_reading};
use std::fs;

fn good(words: &[&str]) -> Ran {
    let ran = sched(words);
    assert!(ran.code == 0, "{words:?}: {ran:?}");
    ran
}

#[test]
fn with_noise_schedules_may_be_shorter_than_the_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (page, drawing) = (file("page.html"), file("drawing.svg"));
    let noise = ["cholesky", "-n", "3", "-p", "tree-plan", "--noise", "bias=gpu:0.5,bias=cpu:0.3"];
    let noisy = |command: &str, words: &[&str]| good(&[&[command], &noise[..], words].concat());
    let simulated = noisy("simulate", &["--gantt", &drawing]).out;
    let compared = noisy("compare", &["--html", &page]).out;
    let read = |path: &str| fs::read_to_string(path).expect("it is written");
    for shown in [simulated, compared.clone(), read(&drawing), read(&page)] {
        assert!(shown.contains("without noise"), "{shown}");
        assert!(!shown.contains("no schedule is shorter") && !shown.contains("lower bound"), "{shown}");
        assert!(!shown.contains("no run can be expected"), "{shown}");
    }
    let row = compared.lines().find(|line| line.starts_with("tree-plan")).expect("its row");
    assert_eq!(row.split_whitespace().nth(2), Some("-"), "{compared}");
    let json = noisy("compare", &["--json"]).json();
    assert_eq!(json["bounds_hold"], false);
    for run in json["runs"].as_array().expect("a list") {
        assert_eq!(run["ratio_to_bound"].is_null(), run["planned"] == false, "plans are without noise: {run}");
    }
    let certain = good(&["simulate", "cholesky", "-n", "3", "--noise", "spread=0,bias=gpu:1", "--json"]).json();
    assert!(certain["bounds_hold"] == true && certain["runs"][0]["ratio_to_bound"].is_f64(), "{certain}");
}

#[test]
fn no_makespan_is_compared_with_a_bound_of_nothing() {
    let platform = r#"platform "fast" { memory "ram"; workers "cpu" count=2 arch="cpu" memory="ram"; kernel "*" { on "cpu" gflops=1e15; } }"#;
    let words = ["cholesky", "-n", "2", "-b", "2", "-p", "tree-eager", "--platform", "-"];
    let run = |command: &str, more: &[&str]| {
        let ran = sched_reading(platform, &[&[command], &words[..], more].concat());
        assert!(ran.code == 0, "{ran:?}");
        ran
    };
    let compared = run("compare", &[]).out;
    for row in compared.lines().filter(|line| line.starts_with("tree-eager") || line.contains(" (static) ")) {
        let columns = row.replace(" (", "(");
        assert_eq!(columns.split_whitespace().nth(2), Some("-"), "{compared}");
    }
    let simulated = run("simulate", &[]).out;
    assert!(simulated.contains("bound     0.000000 s") && !simulated.contains("ratio"), "{simulated}");
    assert!(run("simulate", &["--json"]).json()["runs"][0]["ratio_to_bound"].is_null());
}
