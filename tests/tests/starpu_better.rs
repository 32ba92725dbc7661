//! The best of our policies beside the best of all of StarPU's, on the same machine, graph and models. The reference
//! data is not part of the repository; where it is absent, the tests are reported as skipped.
#![expect(clippy::print_stdout, reason = "the table is what the test is read for")]

use sched_host::graph::{self, TaskGraph};
use sched_host::sim::platform::Costs;
use sched_host::sim::{Platform, Simulation};
use sched_test_support::reference_folder;
use sched_tests::starpu::{best, cholesky};
use sched_tests::stock;
use std::fmt::Write;
use std::path::Path;

/// The policies that decide by models.
const OURS: [&str; 11] = [
    "tree-plan",
    "tree-replan",
    "tree-replan-spare",
    "tree-dmda",
    "tree-dmdap",
    "tree-dmdar",
    "tree-dmdas",
    "tree-heft",
    "tree-heft2",
    "tree-heft-prio",
    "tree-heteroprio",
];

/// Percentage of the gap between StarPU's best and the bound that we close on average, where the gap is at least 5 % of
/// the bound.
const CLOSED: f64 = 40.0;

struct Case {
    name: String,
    graph: TaskGraph,
    platform: Platform,
    starpu: (f64, String),
    bound: f64,
}

fn cases(data: &Path) -> Vec<Case> {
    let read = |name: &str| {
        std::fs::read_to_string(data.join("starpu-makespans").join(name)).expect("the reference data is complete")
    };
    let (bounds, replays) = (read("cholesky-bounds.csv"), read("replay.csv"));
    let mut cases = Vec::new();
    for host in ["mirage", "attila"] {
        let machine = Platform::from_starpu(&data.join("starpu-sampling"), host).expect("the directory is sound");
        for (costs, paid) in
            [("default", Costs::Default), ("nooverhead", Costs::NoOverhead), ("notransfer", Costs::NoTransfer)]
        {
            let platform = machine.clone().with_costs(paid);
            let table = read(&format!("cholesky-{costs}.csv"));
            for tiles in [4, 8, 12, 16, 20] {
                let Some(starpu) = best(&table, &format!("{host},{tiles},960,"), 1.0) else { continue };
                let bound = bounds.lines().find_map(|line| {
                    line.strip_prefix(&format!("{host},{tiles},"))?.split(',').nth(4)?.parse::<f64>().ok()
                });
                let bound = bound.expect("the reference data is complete");
                cases.push(Case {
                    name: format!("cholesky {host:7}{tiles:3} {costs:10}"),
                    graph: cholesky(tiles),
                    platform: platform.clone(),
                    starpu,
                    bound,
                });
            }
            let lu = format!("lunopiv-{host}-n8.tasks.rec");
            let graph = graph::read(&data.join("starpu-rec").join(&lu)).expect("the trace is sound");
            if let Some(starpu) = best(&replays, &format!("{lu},{costs},{host},"), 1e-3) {
                cases.push(Case {
                    name: format!("lu       {host:7}  8 {costs:10}"),
                    bound: bound_of(&graph, &platform),
                    graph,
                    platform,
                    starpu,
                });
            }
        }
    }
    cases
}

fn bound_of(graph: &TaskGraph, platform: &Platform) -> f64 {
    platform.bounds(graph, &graph.dependencies()).expect("the platform can run it").best()
}

#[test]
fn our_best_policy_is_nowhere_behind_the_best_of_starpu_and_far_ahead_on_average() {
    let Some(data) = reference_folder() else { return };
    let registry = stock::registry(Vec::new());
    let mut table = String::from("graph    machine  n costs          bound   StarPU     ours closed\n");
    let (mut wrong, mut gaps) = (Vec::new(), Vec::new());
    for Case { name, graph, platform, starpu: (theirs, whose), bound } in cases(&data) {
        let makespan = |policy: &&'static str| {
            let simulation = Simulation::new(graph.clone(), platform.clone()).policy(policy).registry(registry.clone());
            (simulation.run().expect("it runs to the end").makespan.as_secs_f64(), *policy)
        };
        let (ours, policy) =
            OURS.iter().map(makespan).min_by(|one, other| one.0.total_cmp(&other.0)).expect("there are policies");
        let closed = 100.0 * (theirs - ours) / (theirs - bound);
        let line = format!("{name} {bound:8.5} {theirs:8.5} {ours:8.5} {closed:+5.0} % {policy}, {whose}");
        if ours > theirs {
            wrong.push(line.clone());
        }
        if theirs > 1.05 * bound {
            gaps.push(closed);
        }
        let _ = writeln!(table, "{line}");
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    println!("{table}closed on average: {mean:.1} %");
    assert!(wrong.is_empty(), "longer than StarPU's:\n{}", wrong.join("\n"));
    assert!(mean >= CLOSED, "{mean:.1} % of the gap are closed, not {CLOSED}");
}

/// Of as many tiles there are no makespans of StarPU's to compare with.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn looking_ahead_is_best_where_there_is_much_to_come() {
    let Some(data) = reference_folder() else { return };
    let registry = stock::registry(Vec::new());
    println!("graph    machine  n    bound   others     plan, times the bound");
    for host in ["mirage", "attila"] {
        let platform = Platform::from_starpu(&data.join("starpu-sampling"), host).expect("the directory is sound");
        for tiles in [24, 32] {
            let graph = cholesky(tiles);
            let bound = bound_of(&graph, &platform);
            let makespan = |policy: &str| {
                let simulation =
                    Simulation::new(graph.clone(), platform.clone()).policy(policy).registry(registry.clone());
                simulation.run().expect("it runs to the end").makespan.as_secs_f64()
            };
            let others = OURS[1..].iter().map(|policy| makespan(policy)).fold(f64::INFINITY, f64::min);
            let plan = makespan("tree-plan");
            println!("cholesky {host:7}{tiles:3} {bound:8.5} {others:8.5} {plan:8.5}, {:.2}", plan / bound);
            assert!(plan < others, "{host}, {tiles} tiles");
        }
    }
}

/// A machine of StarPU's with only `devices` of its devices.
fn machine(data: &Path, host: &str, devices: usize) -> Platform {
    let mut machine = Platform::from_starpu(&data.join("starpu-sampling"), host).expect("the directory is sound");
    let mut left = devices;
    machine.workers.retain(|worker| {
        let is_device = worker.memory.0 != 0;
        let stays = !is_device || left > 0;
        left -= usize::from(is_device && stays);
        stays
    });
    machine
}

/// Policies by machine, and what is left of the means when each machine is left out: what one machine chose is judged
/// on the others.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn no_machine_decides_how_good_the_policies_are() {
    const POLICIES: [&str; 4] = ["tree-plan", "tree-block-cyclic", "tree-heft", "tree-dmdas"];
    let Some(data) = reference_folder() else { return };
    let registry = stock::registry(Vec::new());
    println!("{:12}{:>3} {:>8}  {}", "machine", "n", "bound", POLICIES.map(|policy| format!("{policy:>24}")).concat());
    let mut by_machine: Vec<(String, [f64; POLICIES.len()])> = Vec::new();
    for (host, devices) in [("mirage", 3), ("attila", 3), ("idgraf", 8), ("idgraf", 4), ("mirage", 1), ("attila", 2)] {
        let platform = machine(&data, host, devices);
        let (sizes, mut sums) = ([8, 12, 16, 20], [0.0; POLICIES.len()]);
        for tiles in sizes {
            let graph = cholesky(tiles);
            let bound = bound_of(&graph, &platform);
            print!("{:12}{tiles:3} {bound:8.4}  ", format!("{host} {devices}"));
            for (policy, sum) in POLICIES.iter().zip(&mut sums) {
                let simulation = Simulation::new(graph.clone(), platform.clone()).policy(policy);
                let outcome = simulation.registry(registry.clone()).run().expect("it runs to the end");
                let seconds = outcome.makespan.as_secs_f64();
                print!("{seconds:14.4} s × {:6.3} ", seconds / bound);
                *sum += seconds / bound / sizes.len() as f64;
                let limit =
                    if (host, devices, *policy) == ("idgraf", 8, "tree-plan") && tiles == 16 { 0.57 } else { 99.0 };
                assert!(seconds <= limit, "{policy} takes {seconds} s");
            }
            println!();
        }
        by_machine.push((format!("{host} {devices}"), sums));
    }
    println!("mean over the bound, of each machine and of all others");
    let count = by_machine.len() as f64;
    for (name, means) in &by_machine {
        let others = |policy: usize| {
            let all: f64 = by_machine.iter().map(|(_, means)| means[policy]).sum();
            (all - means[policy]) / (count - 1.0)
        };
        let cells: Vec<String> = (0..POLICIES.len())
            .map(|policy| format!("{:14.3}, others {:5.3}", means[policy], others(policy)))
            .collect();
        println!("{name:12} {}", cells.join(" "));
        assert!(others(0) < 1.26, "tree-plan without {name}: {}", others(0));
    }
}
