//! `sched run --record`: the graph of a run, for simulations.

use super::{SMALL, json_of};
use sched_tests::program::sched;

#[test]
fn the_graph_of_a_run_is_simulated_compared_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    for (workload, tasks) in [("cholesky", 20), ("lu", 30), ("qr", 30)] {
        let path = folder.path().join(format!("{workload}.json"));
        let file = path.to_str().unwrap();
        json_of(workload, &[&SMALL[..], &["--workers", "2", "--record", file]].concat());
        let seen = sched(&["graph", file, "--json"]).json();
        let recorded = seen["tasks"].as_array().unwrap();
        assert_eq!(recorded.len(), tasks);
        for task in recorded {
            assert!(task["seconds"]["cpu"].as_f64() > Some(0.0) && task["flops"].as_f64() > Some(0.0), "{task}");
        }
        // The order of the generated graph, which is that of the submissions.
        let generated = sched(&["graph", workload, "--tiles", "4", "--tile-size", "24", "--json"]).json();
        for (recorded, generated) in recorded.iter().zip(generated["tasks"].as_array().unwrap()) {
            for member in ["kind", "name", "priority", "waits_for", "flops"] {
                assert_eq!(recorded[member], generated[member], "{member} of {recorded}");
            }
        }
        // Nothing takes less time than its tasks on all cores.
        let simulated = sched(&["simulate", file, "--synthetic", "core:2 pu:1", "--json"]).json();
        let total: f64 = recorded.iter().filter_map(|task| task["seconds"]["cpu"].as_f64()).sum();
        assert!(simulated["runs"][0]["makespan_s"].as_f64() >= Some(total / 2.0), "{simulated}");
        let compared =
            sched(&["compare", file, "--platform", "cpu9-gpu3", "--policy", "tree-eager,tree-heft", "--json"]);
        assert!(compared.json()["runs"].as_array().unwrap().len() >= 2);
        assert!(!compared.says("stay idle"), "the GPUs have times for these kernels: {}", compared.err);
    }
}

#[test]
fn one_run_is_recorded() {
    let ran = sched(&["run", "qr", "--tiles", "2", "--tile-size", "8", "--repeat", "2", "--record", "never.json"]);
    assert!(ran.code == 1 && ran.says("--record writes the graph of one run, and there would be 2"), "{ran:?}");
    let ran = sched(&["run", "qr", "--tiles", "2", "--tile-size", "8", "--record", "-"]);
    assert!(ran.out.starts_with('{') && ran.out.contains("sched-task-graph") && ran.says("residual"), "{ran:?}");
}

#[test]
fn this_machine_becomes_a_platform_that_simulations_read() {
    let folder = tempfile::tempdir().unwrap();
    let (here, graph) = (folder.path().join("here.kdl"), folder.path().join("g.json"));
    let (here, graph) = (here.to_str().unwrap(), graph.to_str().unwrap());
    let ran = sched(&["platform", "this", "--workers", "2", "--tile-sizes", "8,16"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    std::fs::write(here, &ran.out).unwrap();
    for kernel in ["potrf", "gemm", "getrf", "geqrt", "tsmqr", "*"] {
        assert!(ran.out.contains(&format!("kernel \"{kernel}\"")), "{kernel}: {}", ran.out);
    }
    let seen = sched(&["topology", "--platform", here, "--json"]).json();
    assert_eq!(seen["workers"].as_array().map(Vec::len), Some(2));
    let generated = ["simulate", "qr", "--tiles", "4", "--tile-size", "16", "--platform", here, "--json"];
    assert!(sched(&generated).json()["runs"][0]["makespan_s"].as_f64() > Some(0.0));
    // Recorded graphs are no longer than their tasks one after the other, and the costs of scheduling.
    json_of("qr", &[&SMALL[..], &["--workers", "2", "--record", graph]].concat());
    let seen = sched(&["simulate", graph, "--platform", here, "--json"]).json();
    assert!(seen["runs"][0]["makespan_s"].as_f64() > Some(0.0), "{seen}");
}
