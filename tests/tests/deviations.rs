//! Kernels that take other times than schedulers expect: `tree-plan` learns it, and plans the rest again.
#![expect(clippy::print_stdout, reason = "the table is what the test is read for")]

use sched_host::graph::generate::{cholesky, lu, qr};
use sched_host::graph::{Task, TaskGraph};
use sched_host::sim::platform::find;
use sched_host::sim::{Known, Noise, Platform};
use sched_tests::loss::{Loss, SPREAD, makespan};
use sched_tests::stock;
use std::sync::Arc;

/// Number of seeds, whose median counts. Unoptimised, plans take so long that there are fewer.
const SEEDS: u64 = if cfg!(debug_assertions) { 9 } else { 25 };

/// Size of a tile.
const TILE: usize = 960;

/// A shipped machine whose devices are a class each. All have one architecture, and schedulers expect the same of all.
fn devices_apart() -> Platform {
    let text =
        include_str!("../../sched-host/sim/platforms/cpu9-gpu3.kdl").replace("workers \"gpu\"", "workers \"gpu{}\"");
    let kernels = text.lines().map(|line| match line.split_once("on \"gpu\"") {
        Some((before, speed)) => {
            let speed = speed.trim_end_matches(" }");
            format!("{before}on \"gpu0\"{speed} on \"gpu1\"{speed} on \"gpu2\"{speed} }}\n")
        }
        None => format!("{line}\n"),
    });
    Platform::parse("devices-apart", &kernels.collect::<String>()).unwrap_or_else(|findings| panic!("{findings:?}"))
}

#[test]
fn a_plan_moves_work_away_from_a_device_that_is_slower_than_its_models_say() {
    let platform = Arc::new(devices_apart());
    let graph = Arc::new(cholesky(14, TILE));
    let slower = Noise { bias: vec![("gpu1".to_owned(), 2.0)], ..Noise::default() };
    assert!(slower.unknown(&graph, &platform).is_empty());
    let makespan = |noise| makespan(&graph, &platform, "tree-plan", &stock::registry(Vec::new()), noise);
    let (undisturbed, learnt) = (makespan(Noise::default()), makespan(slower));
    // One of three devices at half its speed leaves five sixths of what they do; who does not notice takes twice as
    // long.
    assert!((1.1..1.35).contains(&(learnt / undisturbed)), "{undisturbed} s, then {learnt} s");
}

/// A graph of which two tasks come to each worker.
fn few_tasks() -> Arc<TaskGraph> {
    let mut graph = TaskGraph::new("equal tasks");
    let gemm = graph.add_kind("gemm");
    (0..24).for_each(|_| _ = graph.add_task(Task { flops: 2.0 * (TILE as f64).powi(3), ..Task::new(gemm) }));
    Arc::new(graph)
}

#[test]
fn a_plan_of_few_tasks_moves_them_away_too() {
    let platform = Arc::new(devices_apart());
    let (graph, registry) = (few_tasks(), stock::registry(Vec::new()));
    let slower = Noise { bias: vec![("gpu1".to_owned(), 2.0)], ..Noise::default() };
    let makespan = |noise| makespan(&graph, &platform, "tree-plan", &registry, noise);
    let (undisturbed, learnt) = (makespan(Noise::default()), makespan(slower));
    // What is best is 1.25, and 1.5 with a task more there than that. Who does not notice takes twice as long.
    assert!((1.1..1.6).contains(&(learnt / undisturbed)), "{undisturbed} s, then {learnt} s");
}

#[test]
fn who_goes_by_models_gains_by_knowing_what_kernels_take() {
    let platform = Arc::new(devices_apart());
    let (graph, registry) = (few_tasks(), stock::registry(Vec::new()));
    let of = |policy: &str| {
        Known::ALL.map(|known| {
            let slower = Noise { bias: vec![("gpu1".to_owned(), 2.0)], spread: SPREAD, known, ..Noise::default() };
            makespan(&graph, &platform, policy, &registry, slower)
        })
    };
    let [nothing, models, executions] = of("tree-heft");
    assert!(models < 0.9 * nothing && executions < 0.9 * nothing, "{nothing} s, {models} s, {executions} s");
    // Without models, everybody meets the same kernels, whatever could be known.
    let [nothing, models, executions] = of("tree-eager");
    assert!([models, executions].iter().all(|known| (known / nothing - 1.0).abs() < 1e-4), "{nothing} s, {models} s");
}

#[test]
fn a_plan_loses_little_where_kernels_deviate() {
    let cases = [
        ("cpu9-gpu3", "cholesky, 10 tiles", cholesky(10, TILE)),
        ("cpu9-gpu3", "lu, 8 tiles", lu(8, TILE)),
        ("cpu9-gpu3", "qr, 7 tiles", qr(7, TILE)),
        ("numa-2x12", "cholesky, 10 tiles", cholesky(10, TILE)),
    ];
    let (mut losses, registry) = ([0.0; 2], stock::registry(Vec::new()));
    let count = cases.len() as f64;
    println!(
        "loss of the median of {SEEDS} seeds at a spread of {SPREAD}, against no deviation (makespans without and with it \
         in seconds)"
    );
    println!("{:10}  {:18}  tree-plan  tree-dmda", "machine", "workload");
    for (machine, workload, graph) in cases {
        let (graph, platform) = (Arc::new(graph), Arc::new(find(machine).expect("it is shipped")));
        let mut row = format!("{machine:10}  {workload:18}");
        for (policy, total) in ["tree-plan", "tree-dmda"].into_iter().zip(&mut losses) {
            let loss = Loss::of(&graph, &platform, policy, &registry, Known::Nothing, SEEDS);
            row += &format!("  {:8.1}% ({:.4} {:.4})", 100.0 * loss.share(), loss.undisturbed, loss.median);
            *total += loss.share() / count;
        }
        println!("{row}");
    }
    let [plan, dmda] = losses;
    assert!(plan < dmda.max(0.0) + 0.05, "mean losses: tree-plan {plan:.3}, tree-dmda {dmda:.3}");
}
