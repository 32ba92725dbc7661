//! Several simulations at once.

use sched_tests::fixtures;
use sched_tests::program::sched;
use serde_json::Value;

/// What the command prints with each number of jobs, and by itself.
fn with_jobs(words: &[&str]) -> [String; 4] {
    [&["--jobs", "1"][..], &["--jobs", "2"], &["-j", "64"], &[]].map(|jobs| {
        let ran = sched(&[words, jobs].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{words:?} {jobs:?}");
        ran.out
    })
}

#[test]
fn the_number_of_jobs_changes_no_result() {
    for words in [
        &["compare", "lu", "--tiles", "5", "--policy", "tree-ws,tree-eager,tree-heft,tree-plan", "--replay"][..],
        &["compare", "cholesky", "--tiles", "4", "--seeds", "3", "--noise", "spread=0.2"],
        &["compare", "qr", "--tiles", "4", "--platform", "numa-2x12", "--context", "a:share=0.5", "--context", "b:"],
    ] {
        let [one, others @ ..] = with_jobs(words);
        assert!(one.lines().count() > 5 && others.iter().all(|other| *other == one), "{words:?}: {one} {others:?}");
    }
}

#[test]
fn each_run_keeps_its_place_its_figures_and_its_files() {
    let policies = ["tree-ws", "tree-heft", "tree-eager", "tree-random"];
    let folder = tempfile::tempdir().unwrap();
    let mut seen: Option<Vec<(Value, String)>> = None;
    for jobs in ["1", "3"] {
        let events = folder.path().join(format!("{jobs}.txt"));
        let mut words = vec!["simulate", "cholesky", "--tiles", "6", "--json", "--jobs", jobs, "--policy"];
        let (all, events) = (policies.join(","), events.to_str().unwrap());
        words.extend([&*all, "--events", events]);
        let ran = sched(&words);
        let report = ran.json();
        let mut runs = report["runs"].as_array().unwrap().clone();
        assert_eq!(runs.iter().map(|run| run["policy"].as_str().unwrap()).collect::<Vec<_>>(), policies);
        let file = |policy: &str| events.replace(".txt", &format!("-{policy}.txt"));
        let written = policies.map(|policy| std::fs::read_to_string(file(policy)));
        for run in &mut runs {
            // What it took on this machine is another each time.
            let took = ["wall_s", "simulated_tasks_per_s"].map(|key| run.as_object_mut().unwrap().remove(key));
            assert!(took.iter().all(|value| value.as_ref().and_then(Value::as_f64).unwrap() > 0.0));
        }
        let found: Vec<(Value, String)> = runs.into_iter().zip(written.map(Result::unwrap)).collect();
        assert!(found.iter().all(|(_, events)| events.lines().count() > 56));
        let before = seen.get_or_insert_with(|| found.clone());
        assert_eq!(*before, found, "{jobs} jobs");
    }
}

#[test]
fn one_that_fails_does_not_keep_the_others_from_their_ends() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(fixtures::plugin("misbehaving"), folder.path().join("misbehaving.so")).unwrap();
    let (file, plugins) = (folder.path().join("keeps.kdl"), folder.path().to_str().unwrap());
    std::fs::write(&file, "policy \"keeps\" { hoarder { eager { each \"worker\" { worker } } } }\n").unwrap();
    let policies = format!("tree-ws,{},tree-heft", file.to_str().unwrap());
    let ran = ["1", "3"].map(|jobs| {
        let words = ["compare", "cholesky", "--tiles", "4", "--policy", &policies, "--jobs", jobs];
        sched(&[&words[..], &["--plugin-dir", plugins]].concat())
    });
    let [one, three] = &ran;
    assert_eq!((one.code, &one.out, &one.err), (1, &three.out, &three.err), "{one:?} {three:?}");
    assert!(one.out.contains("tree-ws ") && one.out.contains("tree-heft "), "{one:?}");
    assert!(one.out.contains("keeps.kdl did not complete: "), "{one:?}");
}

#[test]
fn a_number_of_jobs_is_at_least_one() {
    let ran = sched(&["compare", "cholesky", "--jobs", "0"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("invalid value '0' for '--jobs <N>': must be at least 1"), "{}", ran.err);
}
