//! `sched bench`, which measures what runs cost.

use sched_tests::program::sched;
use serde_json::Value;

#[test]
fn the_bench_compares_with_the_bare_kernels() {
    let seen = sched(&["bench", "cholesky", "-n", "3", "-b", "16", "--workers", "2", "--repeat", "2", "--json"]).json();
    let seen = &seen["results"][0];
    assert_eq!((&seen["tasks"], &seen["workers"]), (&10.into(), &2.into()));
    assert_eq!(seen["rounds"].as_array().unwrap().len(), 2);
    assert!(seen["ratio"].as_f64().unwrap() > 0.0 && seen["median"]["floor_gflops"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_overhead_of_every_shipped_policy_is_measured() {
    let shipped = sched(&["policies", "--json"]).json();
    let names = |rows: &Value| -> Vec<String> {
        let name = |row: &Value| row.get("policy").or(row.get("name")).unwrap().as_str().unwrap().to_owned();
        rows.as_array().unwrap().iter().map(name).collect()
    };
    let few = ["--shape", "chain", "--workers", "2", "--tasks", "20", "--rounds", "1"];
    let seen = sched(&[&["bench", "overhead", "--policy", "all", "--json"], &few[..]].concat()).json();
    for rows in ["results", "push_pull"] {
        assert_eq!(names(&seen[rows]), names(&shipped["policies"]));
    }
    assert!(seen["results"].as_array().unwrap().iter().all(|row| row["ns_per_task"].as_f64().unwrap() > 0.0));
    let ran = sched(&[&["bench", "overhead", "--policy", "tree-eagr", "--policy", "tree-wss"], &few[..]].concat());
    assert!(ran.code == 1 && ran.says("`tree-eagr`") && ran.says("`tree-wss`"), "{ran:?}");
}

#[test]
fn the_granularity_of_tasks_is_measured_beside_a_floor() {
    let few = ["--pattern", "stencil,fft", "--workers", "2", "--steps", "4", "--rounds", "1"];
    let seen = sched(&[&["bench", "granularity", "--json"], &few[..]].concat()).json();
    let rows = seen["results"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| &row["pattern"]).collect::<Vec<_>>(), ["stencil", "fft"]);
    for row in rows {
        assert_eq!((&row["workers"], &row["policy"]), (&2.into(), &"tree-ws".into()));
        // So few steps may be too short for any efficiency.
        for figure in [&row["data_ns"], &row["explicit_ns"], &row["replayed_ns"], &row["peer_ns"]["floor"]] {
            assert!(figure.is_null() || figure.as_f64().unwrap() > 0.0, "{row}");
        }
    }
    let ran = sched(&["bench", "granularity", "--pattern", "stencill"]);
    assert!(ran.code == 2 && ran.says("stencil"), "{ran:?}");
}

#[test]
fn decisions_are_measured_by_the_number_of_children() {
    let seen =
        sched(&["bench", "decision", "--component", "mct,eager", "--children", "2,70", "--rounds", "1", "--json"])
            .json();
    let rows: Vec<_> =
        seen["results"].as_array().unwrap().iter().map(|row| (&row["component"], &row["children"])).collect();
    let row = |component: &'static str, children: i32| (Value::from(component), Value::from(children));
    let wanted = [row("mct", 2), row("mct", 70), row("eager", 2), row("eager", 70)];
    assert_eq!(rows, wanted.iter().map(|(component, children)| (component, children)).collect::<Vec<_>>());
    for row in seen["results"].as_array().unwrap() {
        let (all, each) = (row["ns_per_decision"].as_f64().unwrap(), row["ns_per_child"].as_f64().unwrap());
        assert!(each > 0.0 && (all / row["children"].as_f64().unwrap() - each).abs() < 1e-9, "{row}");
    }
    let ran = sched(&["bench", "decision", "--component", "mtc", "--rounds", "1"]);
    assert!(ran.code == 1 && ran.says("did you mean `mct`?"), "{ran:?}");
}

#[test]
fn simulated_tasks_are_measured_by_the_number_of_workers() {
    let few = ["independent", "--tasks", "300", "--workers", "70,2", "--rounds", "1"];
    let seen =
        sched(&[&["bench", "simulation", "--policies", "tree-ws,tree-heft", "--json"], &few[..]].concat()).json();
    let rows: Vec<_> =
        seen["results"].as_array().unwrap().iter().map(|row| (&row["policy"], &row["more_workers"])).collect();
    let row = |policy: &'static str, more: f64| (Value::from(policy), Value::from(more));
    let wanted = [row("tree-ws", 35.0), row("tree-ws", 1.0), row("tree-heft", 35.0), row("tree-heft", 1.0)];
    assert_eq!(rows, wanted.iter().map(|(policy, more)| (policy, more)).collect::<Vec<_>>());
    for rows in seen["results"].as_array().unwrap().chunks(2) {
        let of = |row: usize, name: &str| rows[row][name].as_f64().unwrap();
        assert!((of(0, "ns_per_task") / of(1, "ns_per_task") - of(0, "growth")).abs() < 1e-9, "{rows:?}");
        assert!((of(0, "tasks_per_second") * of(0, "ns_per_task") - 1e9).abs() < 1.0, "{rows:?}");
        assert_eq!((of(0, "tasks"), of(1, "growth")), (300.0, 1.0));
    }
    let ran = sched(&[&["bench", "simulation", "--policies", "tree-wss"], &few[..]].concat());
    assert!(ran.code == 1 && ran.says("did you mean"), "{ran:?}");
    let ran = sched(&["bench", "simulation", "independant"]);
    assert!(ran.code == 1 && ran.says("did you mean `independent`?"), "{ran:?}");
}
