//! Makespans of our simulation beside those of StarPU's, for policies that mean the same, on the same machine, graph
//! and models. Most of the reference data is not part of the repository: where it is absent, the tests that need it are
//! reported as skipped. A description of one machine, and a few of StarPU's makespans on it, are in
//! `tests/fixtures/starpu`.

#![expect(clippy::print_stdout, reason = "the table is what the test is read for")]

use sched_core::MemoryNode;
use sched_host::graph::{self, AccessMode, DataId, Datum, Task, TaskGraph, WontUse};
use sched_host::sim::platform::{Costs, TransferCost};
use sched_host::sim::{Platform, Simulation};
use sched_test_support::{reference_data, reference_folder};
use sched_tests::stock;
use std::fmt::Write;
use std::path::Path;

/// The machines that StarPU's models and bus files describe.
const HOSTS: [&str; 3] = ["mirage", "attila", "idgraf"];

/// In tiles; a debug build would take too long for the largest.
const SIZES: &[usize] = if cfg!(debug_assertions) { &[4, 8, 12, 16] } else { &[4, 8, 12, 16, 20] };

/// One of our policies, and the one of StarPU with the same meaning.
struct Pair {
    ours: &'static str,
    starpu: &'static str,
    /// In StarPU's runs tasks have no priorities.
    flat: bool,
    /// Per cent that the median and the worst distance may be; nothing where ours take at most 0.75 of the time.
    limits: Option<(f64, f64)>,
}

const fn pair(ours: &'static str, starpu: &'static str, flat: bool, limits: Option<(f64, f64)>) -> Pair {
    Pair { ours, starpu, flat, limits }
}

/// Criteria.
const ASKED: Option<(f64, f64)> = Some((5.0, 12.0));

/// The cases that are more than 12 % apart, with the reasons.
const FAR: [(&str, &[&str], &str); 3] = [
    (
        "mirage    8 nooverhead",
        &["tree-heteroprio"],
        "chance: StarPU takes 6 % longer than with overheads, ours as long",
    ),
    ("idgraf    4 default", &["tree-eager", "tree-prio"], "chance: which of 20 tasks meet a core decides"),
    ("idgraf   20 default", &["tree-dmdas"], "copies between the two trees, in another order"),
];

/// Per cent of the compared cases that may be in [`FAR`], and distance of the median.
const ALL: (f64, f64) = (2.0, 2.5);

/// Better by far: `eager` fills the queues of the fastest workers first. In StarPU every worker that asks gets a task,
/// so that cores hold tasks that a device would have completed several times over, and the critical path waits for
/// them.
const BETTER: Option<(f64, f64)> = None;

const PAIRS: [Pair; 13] = [
    pair("tree-eager", "modular-eager", true, ASKED),
    pair("tree-prio", "modular-prio", false, ASKED),
    pair("tree-eager-prefetching", "modular-eager-prefetching", true, BETTER),
    pair("tree-prio-prefetching", "modular-prio-prefetching", false, BETTER),
    // Ours has equal workers take turns.
    pair("tree-eager-prio+eager-prio.in-turn=#false", "modular-eager-prio", false, ASKED),
    pair("tree-dmda", "modular-dmda", true, ASKED),
    pair("tree-dmdap", "modular-dmdap", false, ASKED),
    pair("tree-dmdar", "modular-dmdar", true, ASKED),
    pair("tree-dmdas", "modular-dmdas", false, ASKED),
    pair("tree-heft-prio", "modular-heft-prio", false, ASKED),
    pair("tree-heft", "modular-heft", false, ASKED),
    pair("tree-heft2", "modular-heft2", false, ASKED),
    pair("tree-heteroprio", "modular-heteroprio", false, ASKED),
];

struct Row {
    case: String,
    ours: &'static str,
    ratio: f64,
    line: String,
}

impl Row {
    /// Whether it is more than 12 % from StarPU's.
    fn is_far(&self) -> bool {
        (self.ratio - 1.0).abs() > 0.12
    }
}

/// Makespan of our policy beside that of StarPU's, for a graph on a machine.
fn row(case: &str, graph: TaskGraph, machine: &Platform, costs: Costs, pair: &Pair, theirs: f64) -> Row {
    let simulation = Simulation::new(graph, machine.clone().with_costs(costs)).policy(pair.ours);
    let outcome = simulation.registry(stock::registry(Vec::new())).run().expect("it runs to the end");
    let ours = outcome.makespan.as_secs_f64();
    let ratio = ours / theirs;
    let line = format!("{case} {:24} {ours:9.5} {theirs:9.5} {:+7.1} %", pair.ours, 100.0 * (ratio - 1.0));
    Row { case: case.trim_end().to_owned(), ours: pair.ours, ratio, line }
}

const COSTS: [(&str, Costs); 3] =
    [("default", Costs::Default), ("nooverhead", Costs::NoOverhead), ("notransfer", Costs::NoTransfer)];

/// The makespan in the line of a table that begins so.
fn makespan(table: &str, key: &str) -> Option<f64> {
    table.lines().find_map(|line| line.strip_prefix(key))?.parse().ok()
}

/// Beside the program itself in StarPU's simulator.
fn runs(data: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    for host in HOSTS {
        let machine = Platform::from_starpu(&data.join("starpu-sampling"), host).expect("the directory is sound");
        for tiles in SIZES.iter().copied() {
            let recorded = |tiles: usize| {
                let path = data.join(format!("starpu-rec/cholesky-{host}-n{tiles}.tasks.rec"));
                path.exists().then(|| graph::read(&path).expect("the trace is sound"))
            };
            // Not every size was recorded.
            let graph = recorded(tiles).or_else(|| Some(cholesky(tiles, &recorded(8)?))).expect("8 tiles are recorded");
            let mut flat: TaskGraph = graph.clone();
            flat.tasks.iter_mut().for_each(|task| task.priority = 0);
            for (costs, paid) in COSTS {
                let table = std::fs::read_to_string(data.join(format!("starpu-makespans/cholesky-{costs}.csv")))
                    .expect("the table is there");
                for pair in &PAIRS {
                    let key = format!("{host},{tiles},960,{},", pair.starpu);
                    let Some(theirs) = makespan(&table, &key) else { continue };
                    let graph = if pair.flat { flat.clone() } else { graph.clone() };
                    let case = format!("{host:7} {tiles:3} {costs:10}");
                    rows.push(row(&case, graph, &machine, paid, pair, theirs));
                }
            }
        }
    }
    rows
}

/// The tasks of StarPU's Cholesky factorisation of `tiles` tiles, with the models and sizes of the smaller graph
/// `recorded`.
fn cholesky(tiles: usize, recorded: &TaskGraph) -> TaskGraph {
    let mut graph = TaskGraph { kinds: recorded.kinds.clone(), ..TaskGraph::new(format!("cholesky of {tiles}")) };
    let bytes = recorded.data.iter().map(|datum| datum.bytes).max().expect("it has tiles");
    let data: Vec<DataId> = (0..tiles * tiles).map(|_| graph.add_data(Datum::new(bytes))).collect();
    let at = |i: usize, j: usize| data[i * tiles + j];
    let model = |kernel: &str| {
        let mut tasks = recorded.tasks.iter();
        let task = tasks.find(|task| recorded.kind_of(task).name.ends_with(kernel)).expect("it has each kernel");
        Task { footprint: task.footprint, flops: task.flops, ..Task::new(task.kind) }
    };
    let [potrf, trsm, syrk, gemm] = ["potrf", "trsm", "syrk", "gemm"].map(model);
    let submit = |graph: &mut TaskGraph, model: &Task, later: usize, reads: &[DataId], changes: DataId| {
        let task = reads.iter().fold(model.clone(), |task, data| task.access(*data, AccessMode::Read));
        graph.add_task(Task {
            priority: 2 * tiles as i32 - later as i32,
            ..task.access(changes, AccessMode::ReadWrite)
        });
    };
    let wont_use = |graph: &mut TaskGraph, data| {
        graph.wont_use.push(WontUse { submitted: graph.tasks.len() as u32, data });
    };
    for k in 0..tiles {
        submit(&mut graph, &potrf, 2 * k, &[], at(k, k));
        for i in k + 1..tiles {
            submit(&mut graph, &trsm, 2 * k + i, &[at(k, k)], at(i, k));
        }
        wont_use(&mut graph, at(k, k));
        for j in k + 1..tiles {
            submit(&mut graph, &syrk, 2 * k + j, &[at(j, k)], at(j, j));
            for i in j + 1..tiles {
                submit(&mut graph, &gemm, 2 * k + i + j, &[at(i, k), at(j, k)], at(i, j));
            }
            wont_use(&mut graph, at(j, k));
        }
    }
    graph
}

/// Beside StarPU's replay of the recorded tasks, of Cholesky and LU.
fn replays(data: &Path) -> Vec<Row> {
    let table = std::fs::read_to_string(data.join("starpu-makespans/replay.csv")).expect("the table is there");
    let mut rows = Vec::new();
    for host in HOSTS {
        let machine = Platform::from_starpu(&data.join("starpu-sampling"), host).expect("the directory is sound");
        for name in ["cholesky-HOST-n4", "cholesky-HOST-n8", "cholesky-HOST-n16", "lunopiv-HOST-n8"] {
            let name = name.replace("HOST", host);
            let path = data.join(format!("starpu-rec/{name}.tasks.rec"));
            if !path.exists() {
                continue;
            }
            let graph = graph::read(&path).expect("the trace is sound");
            let mut flat: TaskGraph = graph.clone();
            flat.tasks.iter_mut().for_each(|task| task.priority = 0);
            for (costs, paid) in COSTS {
                for pair in &PAIRS {
                    let key = format!("{name}.tasks.rec,{costs},{host},{},", pair.starpu);
                    let Some(theirs) = makespan(&table, &key) else { continue };
                    let graph = if pair.flat { flat.clone() } else { graph.clone() };
                    rows.push(row(&format!("{name:19} {costs:10}"), graph, &machine, paid, pair, theirs / 1e3));
                }
            }
        }
    }
    rows
}

/// The median and the largest of the distances from 1, in per cent.
fn distances(rows: &[&Row]) -> (f64, f64) {
    let mut found: Vec<f64> = rows.iter().map(|row| 100.0 * (row.ratio - 1.0).abs()).collect();
    found.sort_by(f64::total_cmp);
    ((found[(found.len() - 1) / 2] + found[found.len() / 2]) / 2.0, found[found.len() - 1])
}

/// How far a policy may be from StarPU's replay. For the same policy, graph and machine, the replay itself is up to 16
/// % from the program that was recorded: hence 18 % at worst.
fn replay_limits(pair: &Pair) -> Option<(f64, f64)> {
    match pair.ours {
        // Whether one of the last long kernels of LU meets an idle core is chance: without transfers StarPU's replay of
        // `modular-eager` takes 21 % longer on one machine, and 11 % less on the other. All Cholesky runs are within 7
        // %.
        "tree-eager" | "tree-prio" => Some((5.0, 28.0)),
        ours if ours.starts_with("tree-eager-prio") => Some((6.0, 20.0)),
        _ => pair.limits.map(|(median, _)| (median, 18.0)),
    }
}

/// Prints the rows with medians and worst distances, and fails where a policy is further from StarPU than `limits` of
/// its pair allow. Returns the rows of pairs with limits.
fn check(rows: &[Row], limits: impl Fn(&Pair) -> Option<(f64, f64)>) -> Vec<&Row> {
    let mut table = String::from("case, policy, ours, StarPU, distance\n");
    for row in rows {
        let _ = writeln!(table, "{}", row.line);
    }
    let mut wrong = Vec::new();
    for pair in &PAIRS {
        let of: Vec<&Row> = rows.iter().filter(|row| row.ours == pair.ours).collect();
        if of.is_empty() {
            continue;
        }
        let (median, worst) = distances(&of);
        let line = format!("{:24} {:2} runs: median {median:5.1} %, worst {worst:5.1} %", pair.ours, of.len());
        let _ = writeln!(table, "{line}");
        let too_far = match limits(pair) {
            Some((of_median, of_worst)) => median > of_median || worst > of_worst,
            None => of.iter().any(|row| row.ratio > 0.75),
        };
        if too_far {
            wrong.push(line);
        }
    }
    let has_limits = |row: &&Row| PAIRS.iter().any(|pair| pair.ours == row.ours && pair.limits.is_some());
    let compared: Vec<&Row> = rows.iter().filter(has_limits).collect();
    let far = compared.iter().filter(|row| row.is_far()).count();
    println!("{table}all of them: median {:.2} %, {far} of {} over 12 %", distances(&compared).0, compared.len());
    assert!(wrong.is_empty(), "further from StarPU than they may be:\n{}", wrong.join("\n"));
    compared
}

#[test]
fn sizes_that_were_not_recorded_are_like_those_that_were() {
    let Some(data) = reference_folder() else { return };
    let recorded = |tiles: usize| {
        graph::read(&data.join(format!("starpu-rec/cholesky-mirage-n{tiles}.tasks.rec"))).expect("the trace is sound")
    };
    let tasks = |graph: &TaskGraph| -> Vec<(String, i32, Option<u32>, usize)> {
        let run = graph.tasks.iter().filter(|task| graph.kind_of(task).runs);
        let seen = |task: &Task| (graph.kind_of(task).name.clone(), task.priority, task.footprint, task.accesses.len());
        run.map(seen).collect()
    };
    let (built, real) = (cholesky(16, &recorded(8)), recorded(16));
    assert_eq!((tasks(&built), built.wont_use.len()), (tasks(&real), real.wont_use.len()));
}

/// Makespans of the fixture: one machine, two sizes, all overheads.
fn runs_of_the_fixture() -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/starpu");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the fixture is complete");
    let mut machine = Platform::parse("mirage.kdl", &text("mirage.kdl")).expect("the platform is sound");
    expect_transfers_through_main_memory(&mut machine);
    let trace = reference_data("starpu-rec/cholesky-mirage-n4.tasks.rec").expect("the repository has a copy");
    let recorded = graph::read(&trace).expect("the trace is sound");
    let table = text("makespans.csv");
    let mut rows = Vec::new();
    for tiles in [4, 8] {
        let graph = cholesky(tiles, &recorded);
        let mut flat = graph.clone();
        flat.tasks.iter_mut().for_each(|task| task.priority = 0);
        for pair in &PAIRS {
            let key = format!("mirage,{tiles},960,{},", pair.starpu);
            let Some(theirs) = makespan(&table, &key) else { continue };
            let graph = if pair.flat { flat.clone() } else { graph.clone() };
            rows.push(row(&format!("fixture {tiles:3}"), graph, &machine, Costs::Default, pair, theirs));
        }
    }
    rows
}

/// Lets schedulers expect transfers between devices to go through main memory, as those of StarPU do.
fn expect_transfers_through_main_memory(machine: &mut Platform) {
    let main = MemoryNode(0);
    let devices = || machine.memory_nodes().skip(1);
    for (from, to) in devices().flat_map(|from| devices().map(move |to| (from, to))).collect::<Vec<_>>() {
        if from != to {
            let [first, second] = [(from, main), (main, to)].map(|(from, to)| machine.route(from, to).expected);
            let both =
                TransferCost { latency: first.latency + second.latency, per_byte: first.per_byte + second.per_byte };
            machine.routes[from.index() * machine.memories.len() + to.index()].expected = both;
        }
    }
}

#[test]
fn makespans_of_a_described_machine_agree_with_those_of_starpu() {
    let rows = runs_of_the_fixture();
    assert_eq!(rows.len(), 22, "each makespan of the fixture has been compared");
    check(&rows, |pair| pair.limits);
}

#[test]
fn makespans_agree_with_those_of_starpu() {
    let Some(data) = reference_folder() else { return };
    let rows = runs(&data);
    // Cases far apart are listed below; the median is asked of each policy.
    let compared = check(&rows, |pair| pair.limits.map(|(median, _)| (median, f64::INFINITY)));
    let is_explained =
        |row: &Row| FAR.iter().any(|(case, policies, _)| *case == row.case && policies.contains(&row.ours));
    let far: Vec<&Row> = compared.iter().copied().filter(|row| row.is_far()).collect();
    let unexplained: Vec<&str> = far.iter().filter(|row| !is_explained(row)).map(|row| row.line.as_str()).collect();
    assert!(unexplained.is_empty(), "further from StarPU than 12 %:\n{}", unexplained.join("\n"));
    let (share, median) = ALL;
    assert!(distances(&compared).0 <= median, "the median of all cases");
    assert!(
        far.len() as f64 <= share / 100.0 * compared.len() as f64 || cfg!(debug_assertions),
        "{} are far",
        far.len()
    );
}

#[test]
fn makespans_agree_with_those_of_starpus_replay() {
    let Some(data) = reference_folder() else { return };
    check(&replays(&data), replay_limits);
}
