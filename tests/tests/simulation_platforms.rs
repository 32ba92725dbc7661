//! Machines of any shape: no schedule is shorter than the bounds, the same seed gives the same events, and numbers
//! beyond all measure are refused rather than counted wrong.

use proptest::prelude::*;
use sched_core::MemoryNode;
use sched_host::graph::generate::{Layered, cholesky, layered};
use sched_host::graph::{AccessMode, Datum, Task, TaskGraph};
use sched_host::policy::library;
use sched_host::sim::{Noise, Platform, SimError, SimOutcome, Simulation};
use sched_host::trace::Digest;
use sched_tests::stock;
use std::fmt::Write as _;
use std::time::Duration;

/// A class of workers: how many, whether they are devices, tasks in flight, and how its kernels take time.
type Class = (usize, bool, usize, &'static str);

fn class() -> impl Strategy<Value = Class> {
    let kernel = ["time=\"1 ms\"", "time=\"3 us\" parallel=0.9", "a=0.01 b=0.9", "gflops=20.0 overhead=\"5 us\""];
    (1usize..5, any::<bool>(), 1usize..4, prop::sample::select(kernel.to_vec()))
}

/// A machine of these classes, each with a memory of its own; the first are cores, which run all kernels.
fn machine(classes: &[Class], bandwidth: &str, overheads: &str) -> Platform {
    let mut text = format!("platform \"random\" {{\n memory \"m0\"\n overheads {overheads}\n");
    for (number, (count, device, pipeline, kernel)) in classes.iter().enumerate() {
        let device = *device && number > 0;
        if number > 0 {
            let link = format!("link \"m0\" \"m{number}\" bandwidth=\"{bandwidth}\" latency=\"1 us\"");
            let _ = writeln!(text, " memory \"m{number}\" size=\"80 MB\" device=#{device}; {link}");
        }
        let arch = if device { "cuda" } else { "cpu" };
        // Cores execute tasks together, and run those of generated layers, which say nothing of operations.
        let unlike = if device { (" parallel=0.9", "") } else { ("gflops=20.0 overhead", "time") };
        let kernel = kernel.replace(unlike.0, unlike.1);
        let _ = writeln!(
            text,
            " workers \"c{number}\" count={count} arch=\"{arch}\" memory=\"m{number}\" pipeline={pipeline}"
        );
        let _ = writeln!(text, " kernel \"*\" {{ on \"c{number}\" {kernel}; }}");
    }
    Platform::parse("random.kdl", &(text + "}")).unwrap_or_else(|errors| panic!("{errors}: {:?}", errors.findings()))
}

fn graph(seed: u64, size: usize) -> TaskGraph {
    let (length, bytes) = (Duration::from_micros(50 + seed % 1000), 1 << (seed % 23));
    match seed % 3 {
        0 => cholesky(size, 960),
        _ => layered(Layered { layers: size, width: size + 1, density: 0.4, length, bytes, seed }),
    }
}

fn simulated(graph: &TaskGraph, platform: &Platform, policy: &str, seed: u64) -> Result<(SimOutcome, u64), SimError> {
    let mut digest = Digest::default();
    let simulation = Simulation::new(graph.clone(), platform.clone()).policy(policy).seed(seed);
    let outcome = simulation.registry(stock::registry(Vec::new())).observe(&mut digest)?;
    Ok((outcome, digest.value()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_schedule_is_shorter_than_the_bounds_and_each_can_be_had_again(
        classes in prop::collection::vec(class(), 1..4),
        costly in any::<bool>(),
        policy in prop::sample::select(library().to_vec()),
        (seed, size) in (0u64..1000, 1usize..6),
    ) {
        let overheads = if costly { "submission=\"2 us\" push=\"1 us\" fetch=\"3 us\" allocation=\"90 us\"" } else { "" };
        let (platform, graph) = (machine(&classes, "2 GB/s", overheads), graph(seed, size));
        let first = simulated(&graph, &platform, policy.name, seed);
        let second = simulated(&graph, &platform, policy.name, seed);
        let ((outcome, digest), (_, again)) = match (first, second) {
            (Ok(first), Ok(second)) => (first, second),
            // A memory may be too small.
            (Err(first), Err(second)) if first.to_string() == second.to_string() => return Ok(()),
            (first, second) => return Err(TestCaseError::fail(format!("{first:?}, and then {second:?}"))),
        };
        prop_assert_eq!(digest, again);
        let bounds = platform.bounds(&graph, &graph.dependencies()).expect("it was simulated");
        let makespan = outcome.makespan.as_secs_f64();
        prop_assert!(makespan >= bounds.best() * (1.0 - 1e-9), "{makespan} s, and {bounds}");
        for worker in &outcome.workers {
            prop_assert!(worker.busy <= outcome.makespan, "{worker:?}");
        }
    }

    #[test]
    fn numbers_beyond_all_measure_are_refused_or_counted(
        (time, unit) in (prop::sample::select(vec!["1", "1e9", "31557600", "999999999", "0.001"]), prop::sample::select(vec!["ns", "s"])),
        bandwidth in prop::sample::select(vec!["0.000000001 B/s", "1 B/s", "99999999999999999999 TB/s"]),
        (a, b) in (prop::sample::select(vec!["1e-300", "1.0", "1e300"]), prop::sample::select(vec!["-300.0", "0.0", "7.5", "300.0"])),
        policy in prop::sample::select(library().to_vec()),
    ) {
        let text = format!(
            "platform \"far\" {{ memory \"a\"; memory \"b\"; link \"a\" \"b\" bandwidth=\"{bandwidth}\"
                workers \"cpu\" count=2 memory=\"a\"; workers \"gpu\" arch=\"cuda\" memory=\"b\" pipeline=2
                expected-transfers contention=1e300
                overheads push=\"{time} {unit}\" wake-up=\"{time} {unit}\"
                kernel \"*\" {{ on \"cpu\" time=\"{time} {unit}\"; on \"gpu\" a={a} b={b}; }} }}"
        );
        // Values that are no numbers are reported by the reader.
        if let Ok(platform) = Platform::parse("far.kdl", &text) {
            match simulated(&cholesky(3, 960), &platform, policy.name, 1) {
                Ok((outcome, _)) => prop_assert!(outcome.makespan < Duration::from_secs(1 << 32)),
                Err(error) => prop_assert!(matches!(error, SimError::TooLong { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn noise_that_takes_the_clock_beyond_its_range_is_refused() {
    let (year, mut graph) = (Duration::from_secs(31_557_600), TaskGraph::new("chain"));
    let kind = graph.add_kind("k");
    let first = graph.add_task(Task::new(kind));
    graph.add_task(Task::new(kind).after(first));
    let run = |factor: f64| {
        let noise = Noise { bias: vec![("cpu".to_owned(), factor)], ..Noise::default() };
        let simulation = Simulation::new(graph.clone(), Platform::flat(2, year)).noise(noise).policy("tree-eager");
        simulation.registry(stock::registry(Vec::new())).run().map(|outcome| outcome.makespan)
    };
    assert_eq!(run(30.0).expect("60 years can be counted"), year * 60);
    let error = run(400.0).expect_err("800 years cannot").to_string();
    assert!(error.contains("more than 73 years") && error.ends_with("may take 1.262e10 s"), "{error}");
}

/// What no task accesses is never moved, so its size is not limited.
#[test]
fn data_that_no_task_accesses_may_be_of_any_size() {
    let two = Platform::parse(
        "two.kdl",
        r#"platform "two" {
            memory "ram"
            memory "gpu"
            link "ram" "gpu" bandwidth="1 GB/s"
            workers "gpu" arch="cuda" memory="gpu"
            kernel "k" { on "gpu" time="1 ms"; }
        }"#,
    );
    let mut graph = TaskGraph::new("huge");
    let kind = graph.add_kind("k");
    graph.add_data(Datum { home: MemoryNode(1), ..Datum::new(u64::MAX) });
    let room = graph.add_data(Datum::new(10));
    graph.add_task(Task::new(kind).access(room, AccessMode::Scratch));
    let (outcome, _) = simulated(&graph, &two.expect("it is sound"), "tree-eager", 1).expect("it runs");
    assert_eq!((outcome.makespan, outcome.memories[1].peak), (Duration::from_millis(1), u64::MAX));
}
