//! What components write to the log: on the standard error, once, and in the report of each run.

use super::{SMALL, path};
use sched_tests::fixtures;
use sched_tests::program::{self, Ran};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// A folder with the plugin, and with a policy of each of these components.
fn policies(components: &[&str]) -> (TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(fixtures::plugin("misbehaving"), folder.path().join("misbehaving.so")).unwrap();
    let policy = |component: &&str| {
        let file = folder.path().join(format!("{component}.kdl"));
        let tree = format!("{component} {{ eager {{ each \"worker\" {{ worker }} }} }}");
        fs::write(&file, format!("policy \"{component}\" {{ {tree} }}\n")).unwrap();
        path(&file).to_owned()
    };
    let policies = components.iter().map(policy).collect();
    (folder, policies)
}

fn sched(folder: &TempDir, words: &[&str]) -> Ran {
    let ran = program::sched(&[words, &["--plugin-dir", path(folder.path())]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// The lines on the standard error about what is logged, and how often lines about this node are among them.
fn lines(ran: &Ran) -> Vec<&str> {
    ran.err
        .lines()
        .filter(|line| line.contains("it is late") || line.contains("every day") || line.contains("here is"))
        .collect()
}

const WHO: &str = "node `talkative` (talkative of misbehaving)";

#[test]
fn a_warning_is_shown_once_with_policy_and_node_and_counted() {
    let (folder, policies) = policies(&["talkative"]);
    let commands = [
        (vec!["run", "cholesky", "--workers", "2", "--repeat", "3"], &SMALL[..], 3 * 20),
        (vec!["simulate", "cholesky"], &["--tiles", "4"], 20),
        (vec!["compare", "cholesky"], &["--tiles", "4"], 20),
    ];
    for (words, size, pushes) in commands {
        let ran = sched(&folder, &[&words, size, &["--policy", &policies[0]]].concat());
        let first = format!("warn: {}: {WHO}: it is late [2J", policies[0]);
        let last = format!("{first} ({} times more)", pushes - 1);
        assert_eq!(lines(&ran), [first, last], "{words:?}: {}", ran.err);
    }
}

#[test]
fn any_level_is_shown_that_is_asked_for() {
    let (folder, policies) = policies(&["talkative"]);
    let at = |level: &str| {
        let words = ["simulate", "cholesky", "--tiles", "4", "--policy", &policies[0], "--log", level];
        let ran = sched(&folder, &words);
        let count = |what: &str| lines(&ran).iter().filter(|line| line.starts_with(what)).count();
        ["error: ", "warn: ", "info: ", "debug: "].map(count)
    };
    assert_eq!(at("error"), [0, 0, 0, 0]);
    assert_eq!(at("warn"), [0, 2, 0, 0]);
    assert_eq!(at("info"), [0, 2, 2, 0]);
    assert_eq!(at("debug"), [0, 2, 2, 20], "each task once");
    assert_eq!(at("off"), [0, 0, 0, 0]);
    let mut command = program::command(&["simulate", "cholesky", "--tiles", "4", "--policy", &policies[0]]);
    let ran = Ran::of(command.args(["--plugin-dir", path(folder.path())]).env("SCHED_LOG", "info"));
    assert_eq!((ran.code, lines(&ran).len()), (0, 4), "{ran:?}");
}

#[test]
fn reports_for_programs_have_the_log_of_each_run() {
    let (folder, policies) = policies(&["talkative", "verbose"]);
    let said = |count: u64| {
        json!([{
            "level": "warn", "node": "talkative", "component": "talkative", "plugin": "misbehaving", "line": "it is late [2J",
            "count": count,
        }])
    };
    let both = policies.join(",");
    for words in [vec!["run", "cholesky", "--workers", "2"], vec!["simulate", "cholesky", "--seed", "42"]] {
        let size: &[&str] = if words[0] == "run" { &SMALL } else { &["--tiles", "4"] };
        let ran = sched(&folder, &[&words, size, &["--policy", &both, "--json"]].concat());
        let seen = ran.json();
        let runs = seen["runs"].as_array().unwrap();
        let of = |policy: &str| -> Vec<&Value> {
            runs.iter().filter(|run| run["policy"].as_str().unwrap().contains(policy)).map(|run| &run["log"]).collect()
        };
        assert!(!of("talkative").is_empty() && of("talkative").iter().all(|log| **log == said(20)), "{seen}");
        assert!(of("verbose")[0].as_array().unwrap().iter().all(|line| line["node"] == "verbose"), "{seen}");
        // The lines are on the standard error, too, in case there is no report.
        let logged: Vec<Value> = ran.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let first = logged.iter().find(|line| line["log"]["node"] == "talkative").unwrap();
        assert_eq!((&first["log"]["line"], &first["log"]["level"]), (&json!("it is late [2J"), &json!("warn")));
        assert_eq!(first["log"]["policy"], policies[0].as_str());
    }
}

#[test]
fn a_run_on_ranks_is_in_the_list_of_runs_with_what_all_ranks_logged() {
    let (folder, policies) = policies(&["talkative"]);
    let of = |more: &[&str]| {
        let words = ["run", "cholesky", "--workers", "1", "--policy", &policies[0], "--json"];
        sched(&folder, &[&words, &SMALL[..], more].concat()).json()
    };
    for ranks in ["1", "2"] {
        let seen = of(&["--ranks", ranks]);
        let [run] = &seen["runs"].as_array().unwrap()[..] else { panic!("it is one run: {seen}") };
        assert_eq!((run["log"][0]["count"].as_u64(), run["log"].as_array().unwrap().len()), (Some(20), 1), "{run}");
        for key in ["policy", "tasks", "makespan_s", "gflops", "residual", "contexts", "per_rank"] {
            assert!(run[key] == seen[key] && !run[key].is_null(), "{key}: {seen}");
        }
        let alone = of(&[]);
        for key in ["given", "place", "round", "faults"] {
            assert_eq!(run[key], alone["runs"][0][key], "{key}");
        }
        assert!(run["busy_share"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{run}");
    }
}

#[test]
fn a_node_that_says_too_much_is_cut_off_unless_all_is_asked_for() {
    let (folder, policies) = policies(&["verbose"]);
    let words = ["simulate", "cholesky", "--tiles", "6", "--policy", &policies[0]];
    let ran = sched(&folder, &words);
    assert_eq!(lines(&ran).len(), 20, "{}", ran.err);
    assert!(ran.says("node `verbose` wrote 36 more lines to the log; --log LEVEL shows all"), "{}", ran.err);
    let ran = sched(&folder, &[&words[..], &["--log", "warn"]].concat());
    assert!(lines(&ran).len() == 56 && !ran.says("more lines"), "{}", ran.err);
}
