//! Policies on the Standard Task Graphs, whose shortest makespans are known. The graphs are not part of the repository;
//! where they are absent, the test is reported as skipped.

#![expect(clippy::print_stdout, reason = "the table is what the test is read for")]

use sched_host::graph::priorities::Priorities;
use sched_host::graph::{self, TaskGraph};
use sched_host::sim::{Platform, Simulation, prioritise};
use sched_test_support::reference_folder;
use sched_tests::stock;
use std::collections::BTreeMap;
use std::time::Duration;

/// A policy, where its tasks' priorities come from, and how far from the optimum it may be on average. Only policies
/// that decide late follow priorities strictly: what `tree-heft` has queued for a worker stays there.
const ASKED: [(&str, Priorities, f64); 6] = [
    ("tree-prio", Priorities::UpwardRank, 1.02),
    ("tree-heft-prio", Priorities::UpwardRank, 1.05),
    ("tree-heft", Priorities::UpwardRank, 1.06),
    ("tree-prio", Priorities::CriticalPath, 1.02),
    ("tree-prio", Priorities::AsGiven, f64::INFINITY),
    ("tree-ws", Priorities::AsGiven, f64::INFINITY),
];

#[test]
fn a_policy_by_upward_rank_is_within_two_percent_of_the_optimum_on_average() {
    let Some(data) = reference_folder() else { return };
    let folder = data.join("graphs/stg");
    let known = std::fs::read_to_string(folder.join("optimal.csv")).expect("the reference data is complete");
    let registry = stock::registry(Vec::new());
    let mut graphs: BTreeMap<&str, TaskGraph> = BTreeMap::new();
    // For each number of processors, and for each of those above, the makespans in optima.
    let mut ratios: BTreeMap<usize, [Vec<f64>; ASKED.len()]> = BTreeMap::new();
    for line in known.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [file, processors, optimum] = fields[..] else { panic!("a row is file, processors, optimum: {line}") };
        let (processors, optimum): (usize, f64) =
            (processors.parse().expect("a number"), optimum.parse().expect("a number"));
        let read = || graph::read(&folder.join(file)).expect("it is of the Standard Task Graph Set");
        let graph = graphs.entry(file).or_insert_with(read);
        let machine = Platform::flat(processors, Duration::from_millis(1));
        let ratios = ratios.entry(processors).or_default();
        for ((policy, by, _), ratios) in ASKED.iter().zip(ratios) {
            let mut graph = graph.clone();
            prioritise(&mut graph, &machine, *by).expect("everything runs there");
            let simulation = Simulation::new(graph, machine.clone()).policy(policy).registry(registry.clone());
            let makespan = simulation.run().expect("it runs to the end").makespan.as_secs_f64() * 1e3;
            assert!(makespan > optimum - 1e-6, "{file} on {processors}, {policy}: {makespan} is less than {optimum}");
            ratios.push(makespan / optimum);
        }
    }
    println!(
        "{:10} {:14} {:14} {:>9} {:>8} {:>8} {:>8}",
        "processors", "policy", "priorities", "instances", "optimal", "mean", "worst"
    );
    for (processors, ratios) in &ratios {
        for ((policy, by, limit), ratios) in ASKED.iter().zip(ratios) {
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            let worst = ratios.iter().copied().fold(1.0, f64::max);
            let optimal = ratios.iter().filter(|ratio| **ratio < 1.0 + 1e-9).count();
            println!(
                "{processors:10} {policy:14} {:14} {:9} {optimal:8} {mean:8.4} {worst:8.4}",
                format!("{by:?}"),
                ratios.len()
            );
            assert!(mean <= *limit, "{policy} on {processors} processors: {mean}");
        }
    }
    assert_eq!(ratios.keys().copied().collect::<Vec<_>>(), [2, 4, 8, 16]);
}
