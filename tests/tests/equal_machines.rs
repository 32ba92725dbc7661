//! Equal workers: every policy that uses models keeps all of them busy with equal tasks, and plans are no worse than what
//! priorities do.

use proptest::prelude::*;
use sched_core::Arch;
use sched_host::graph::generate::{cholesky, lu, qr};
use sched_host::graph::{Lengths, Task, TaskGraph};
use sched_host::policy::library;
use sched_host::sim::{Platform, Simulation};
use sched_tests::stock;
use std::time::Duration;

/// Length of each task.
const LENGTH: Duration = Duration::from_millis(1);

/// Shipped policies that decide by expected lengths.
fn policies_with_models() -> Vec<&'static str> {
    let uses_models = |text: &str| text.lines().any(|line| line.trim_start().starts_with("perfmodel-select"));
    let found: Vec<&str> =
        library().iter().filter(|shipped| uses_models(shipped.text)).map(|shipped| shipped.name).collect();
    assert!(found.len() >= 10, "{found:?}");
    found
}

/// `nodes` NUMA nodes with `cores` equal cores each.
fn machine(nodes: usize, cores: usize) -> Platform {
    let mut text = String::from("platform \"equal\" {\n");
    for node in 0..nodes {
        text += &format!("memory \"m{node}\"\nworkers \"c{node}\" arch=\"cpu\" count={cores} memory=\"m{node}\"\n");
        if node > 0 {
            text += &format!("link \"m0\" \"m{node}\" bandwidth=\"10 GB/s\" latency=\"1 us\"\n");
        }
    }
    Platform::parse("equal.kdl", &(text + "}\n")).expect("the text is sound")
}

/// Independent tasks of [`LENGTH`].
fn independent(tasks: usize) -> TaskGraph {
    let mut graph = TaskGraph::new("independent");
    let kind = graph.add_kind("k");
    for _ in 0..tasks {
        graph.add_task(Task { lengths: Lengths::default().with(Arch::CPU, LENGTH), ..Task::new(kind) });
    }
    graph
}

/// Makespan of `tasks` independent tasks.
fn makespan(platform: &Platform, tasks: usize, policy: &str) -> Duration {
    let simulation = Simulation::new(independent(tasks), platform.clone()).policy(policy);
    simulation.registry(stock::registry(Vec::new())).run().expect("it runs to the end").makespan
}

#[test]
fn as_many_tasks_as_workers_take_the_time_of_one() {
    for policy in policies_with_models() {
        assert_eq!(makespan(&machine(2, 12), 24, policy), LENGTH, "{policy}");
    }
}

/// On factorisations so small that each task counts.
#[test]
fn a_plan_for_equal_cores_is_no_longer_than_the_order_of_priorities() {
    let speeds = [("*", 10), ("trsm", 14), ("syrk", 14), ("gemm", 15), ("tsqrt", 12), ("unmqr", 13), ("tsmqr", 14)];
    let speeds: String =
        speeds.map(|(kind, speed)| format!("kernel \"{kind}\" {{ on \"c0\" gflops={speed}.0; }}\n")).concat();
    for cores in 2..=4 {
        let memory = "memory \"m0\"\n";
        let text = format!(
            "platform \"cores\" {{\n{memory}workers \"c0\" arch=\"cpu\" count={cores} memory=\"m0\"\n{speeds}}}"
        );
        let platform = Platform::parse("cores.kdl", &text).expect("the text is sound");
        for graph in [cholesky(4, 960), cholesky(5, 960), lu(4, 960), qr(4, 960), qr(5, 960)] {
            let makespan = |policy| {
                let simulation = Simulation::new(graph.clone(), platform.clone()).policy(policy);
                simulation.registry(stock::registry(Vec::new())).run().expect("it runs to the end").makespan
            };
            let (plan, by_priority) = (makespan("tree-plan"), makespan("tree-prio"));
            assert!(plan <= by_priority, "{} on {cores} cores: {plan:?}, {by_priority:?}", graph.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Nobody is idle while tasks wait: there are no overheads, and no data.
    #[test]
    fn equal_tasks_take_no_more_rounds_than_they_must(nodes in 1usize..4, cores in 1usize..24, tasks in 0usize..200) {
        let platform = machine(nodes, cores);
        let rounds = tasks.div_ceil(nodes * cores) as u32;
        for policy in policies_with_models() {
            prop_assert_eq!(makespan(&platform, tasks, policy), LENGTH * rounds, "{}", policy);
        }
    }
}
