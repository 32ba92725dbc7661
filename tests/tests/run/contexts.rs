//! Contexts beside each other, and policies that are swapped.

use super::{SMALL, cholesky, json, json_of};
use serde_json::Value;

#[test]
fn contexts_run_the_workload_beside_each_other() {
    let contexts =
        ["--context", "a:policy=tree-prio,workers=0", "--context", "b:policy=tree-ws,workers=1,priorities=0..99"];
    for workload in ["cholesky", "lu"] {
        let seen = json_of(workload, &[&SMALL[..], &["--workers", "2"], &contexts].concat());
        let tasks = if workload == "cholesky" { 20 } else { 30 };
        let shown = |of: &str| {
            seen["runs"][0]["contexts"].as_array().unwrap().iter().map(|ran| ran[of].clone()).collect::<Vec<_>>()
        };
        assert_eq!(shown("context"), ["a", "b"]);
        assert_eq!(shown("policy"), ["tree-prio", "tree-ws"]);
        assert_eq!(shown("workers"), [Value::from(vec![0]), Value::from(vec![1])]);
        assert_eq!(shown("tasks"), [tasks, tasks]);
        assert_eq!(shown("swap"), [Value::Null, Value::Null]);
        for residual in shown("residual") {
            assert!(residual.as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
        }
        assert_eq!(seen["runs"][0]["faults"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_context_without_a_worker_for_a_kind_of_tasks_is_found_before_the_start() {
    let ran = cholesky(&[&SMALL[..], &["--workers", "2", "--context", "a:workers=0", "--where", "potrf=1"]].concat());
    let said = "no worker of context `a` may execute tasks of kind `potrf` (restricted to 1)";
    assert!(ran.code == 1 && ran.says(said), "{ran:?}");
}

#[test]
fn policies_are_swapped_while_the_workload_runs() {
    let large = ["--tiles", "12", "--tile-size", "48", "--workers", "2", "--swap-to", "tree-prio"];
    let contexts = ["--context", "a:policy=tree-eager", "--context", "b:policy=tree-ws,workers=1"];
    let both = json(&[&large[..], &contexts].concat());
    for (seen, policies) in [(both, &["tree-eager", "tree-ws"][..]), (json(&large), &["tree-ws"])] {
        let ran = seen["runs"][0]["contexts"].as_array().unwrap();
        assert_eq!(ran.iter().map(|ran| &ran["policy"]).collect::<Vec<_>>(), policies);
        for ran in ran {
            assert_eq!((&ran["tasks"], &ran["swap"]["policy"]), (&364.into(), &"tree-prio".into()), "{seen}");
            assert!((182..=364).contains(&ran["swap"]["after_tasks"].as_u64().unwrap()), "{seen}");
            assert!(ran["residual"].as_f64() < seen["residual_tolerance"].as_f64(), "{seen}");
        }
        assert_eq!(seen["runs"][0]["faults"], Value::Array(Vec::new()));
    }
}

#[test]
fn goals_of_contexts_are_reported() {
    let goals = ["--workers", "2", "--context", "a:share=0.5", "--context", "b:min=1,max=2"];
    let seen = json(&[&SMALL[..], &goals].concat());
    let hypervisor = &seen["runs"][0]["hypervisor"];
    let contexts = hypervisor["goals"].as_array().expect("there are goals");
    let of = |key: &str| contexts.iter().map(|goal| goal[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("context"), ["a", "b"]);
    assert_eq!(of("goal"), [Value::from("share 0.5"), Value::Null], "{hypervisor}");
    assert!(of("end_s").iter().all(|end| end.as_f64() > Some(0.0)), "{hypervisor}");
    let ran = cholesky(&[&SMALL[..], &goals].concat());
    assert!(ran.out.contains("what is left") && ran.out.contains("workers were moved "), "{ran:?}");
    let none = json(&[&SMALL[..], &["--workers", "2", "--context", "a"]].concat());
    assert_eq!(none["runs"][0]["hypervisor"], Value::Null);
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
        (&["a", "tree-prio", "0", "1", "20"][..], &["b", "tree-ws", "1", "20"][..])
    );
}

#[test]
fn wrong_contexts_are_reported() {
    let error = |code: i32, options: &[&str], shown: &[&str]| {
        let ran = cholesky(&[&SMALL[..], &["--workers", "2"], options].concat());
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{ran:?}");
        for shown in shown {
            assert!(ran.says(shown), "`{shown}` is not in {}", ran.err);
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
    error(2, &["--context", "a:workers=x"], &["`x` is not a list of workers"]);
    error(2, &["--context", ":workers=0"], &["a context has a name"]);
    error(2, &["--context", "a", "--repeat", "3"], &["--repeat", "cannot be used with"]);
}

#[test]
fn each_rank_swaps_its_policy() {
    let seen = json(&[&SMALL[..], &["--ranks", "2", "--swap-to", "tree-prio"]].concat());
    for rank in seen["per_rank"].as_array().unwrap() {
        assert_eq!(rank["swap"]["policy"], "tree-prio", "{rank}");
        assert!(rank["swap"]["after_tasks"].as_u64().unwrap() >= 5, "{rank}");
    }
    let ran = cholesky(&[&SMALL[..], &["--ranks", "2", "--swap-to", "tree-prio"]].concat());
    assert!(ran.code == 0 && ran.out.contains("tree-ws → tree-prio after "), "{ran:?}");
    let ran = cholesky(&[&SMALL[..], &["--ranks", "2", "--swap-to", "no-such"]].concat());
    assert!(ran.code == 1 && ran.says("there is no policy `no-such`"), "{ran:?}");
}

#[test]
fn each_rank_has_contexts_of_its_own() {
    let contexts = ["--context", "a:policy=tree-ws,workers=0", "--context", "b:policy=tree-prio,workers=1"];
    let on_ranks = |more: &[&'static str]| [&SMALL[..], &["--ranks", "2", "--workers", "2"], &contexts, more].concat();
    let seen = json(&on_ranks(&[]));
    let tasks = |of: &Value| of["tasks"].as_u64().unwrap();
    let contexts = seen["contexts"].as_array().unwrap();
    assert_eq!(contexts.iter().map(|of| of["context"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    for (place, context) in contexts.iter().enumerate() {
        assert!(context["residual"].as_f64().unwrap() <= seen["residual_tolerance"].as_f64().unwrap(), "{context}");
        let shares = seen["per_rank"].as_array().unwrap().iter().map(|rank| &rank["contexts"][place]);
        assert!(shares.clone().all(|share| share["workers"] == Value::from(vec![place])), "{seen}");
        assert_eq!(shares.map(tasks).sum::<u64>(), tasks(context));
        assert_eq!(2 * tasks(context), tasks(&seen), "each has all of its tasks");
    }
    // Each context swaps on each rank.
    let swapped = json(&on_ranks(&["--swap-to", "tree-eager"]));
    for share in swapped["per_rank"].as_array().unwrap().iter().flat_map(|rank| rank["contexts"].as_array().unwrap()) {
        assert_eq!(share["swap"]["policy"], "tree-eager", "{share}");
    }
    let ran = cholesky(&on_ranks(&[]));
    assert!(ran.code == 0 && ran.out.contains("CONTEXT") && ran.out.contains("tree-prio"), "{ran:?}");
    let goals = ["--ranks", "2", "--workers", "2", "--context", "a:share=0.5", "--context", "b"];
    let ran = cholesky(&[&SMALL[..], &goals].concat());
    assert!(ran.code == 0 && ran.out.contains("\nrank 0\n") && ran.out.contains("\nrank 1\n"), "{ran:?}");
    // What one rank cannot make, none has.
    let ran = cholesky(&[&SMALL[..], &["--ranks", "2", "--context", "a:workers=0-9"]].concat());
    assert!(ran.code == 1 && ran.says("context `a` cannot be made"), "{ran:?}");
}

#[test]
fn ranks_compute_in_single_precision() {
    for workload in ["cholesky", "lu", "qr"] {
        let seen = json_of(workload, &[&SMALL[..], &["--ranks", "3", "--precision", "single"]].concat());
        assert_eq!(seen["precision"], "single");
        let (residual, most) = (seen["residual"].as_f64().unwrap(), seen["residual_tolerance"].as_f64().unwrap());
        assert!(residual <= most && residual > 1e-9, "{workload}: {residual}, at most {most}");
    }
}
