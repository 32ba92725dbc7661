//! Several policies, run in turn.

use super::{SMALL, cholesky, file, json, keys, masked, path};
use sched_tests::program::sched;
use serde_json::Value;

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
    let one = with(&[]);
    for [many, one] in [[&seen, &one], [&seen["runs"][0], &one["runs"][0]], [&seen["policies"][0], &one["policies"][0]]]
    {
        assert_eq!(keys(many), keys(one), "one run has the keys of many");
    }
    let policies = seen["policies"].as_array().unwrap();
    let names: Vec<&str> = policies.iter().map(|policy| policy["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["tree-eager", "tree-ws", "tree-eager"]);
    assert_eq!((&seen["tasks"], &seen["repeat"]), (&20.into(), &5.into()));
    for (place, policy) in policies.iter().enumerate() {
        let runs: Vec<&Value> = seen["runs"].as_array().unwrap().iter().filter(|run| run["place"] == place).collect();
        assert_eq!(runs.iter().map(|run| run["round"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
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
    assert_eq!(seen["runs"].as_array().unwrap().len(), 3);
}

#[test]
fn all_policies_that_do_not_start_are_reported_before_anything_runs() {
    let (_folder, mine) = file("mine.kdl", "policy \"mine\" { fifi { eager { each \"worker\" { worker } } } }\n");
    let policies = ["tree-eager", "tree-prioo", path(&mine)].map(|policy| ["--policy", policy]).concat();
    let ran = cholesky(&[&SMALL[..], &policies].concat());
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    for shown in
        ["2 of 3 policies cannot be used; nothing was run", "`tree-prioo`", "`tree-prio`?", "`fifi`", "`fifo`?"]
    {
        assert!(ran.says(shown), "`{shown}` is not in {}", ran.err);
    }
}

/// Each of its kernels has at least twelve tasks, and ten measurements tell their length.
#[test]
fn runs_after_the_first_know_how_long_tasks_take() {
    let words = ["-n", "12", "-b", "8", "--workers", "2", "--policy", "tree-dmdas", "--trace", "-"];
    let measures = |more: &[&str]| {
        let ran = cholesky(&[&words[..], more].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out.contains("calibrator/prio")
    };
    assert!(measures(&[]) && !measures(&["--warm-up", "1"]));
}
