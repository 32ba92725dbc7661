//! Bounds of small graphs, and known ones of Cholesky factorisations.

use super::*;
use crate::reference::{Links, Problem, Processor, heft};
use crate::{AccessMode, Datum, generate};
use proptest::prelude::*;
use sched_core::Arch;
use sched_test_support::reference_data;
use std::time::Duration;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * b.abs().max(1e-12)
}

#[test]
fn independent_tasks_fill_all_workers() {
    let graph = generate::independent(30, Duration::from_secs(1));
    let pools = [Pool { workers: 4 }, Pool { workers: 1 }];
    let found = bounds(&graph, &graph.dependencies(), &pools, |_, pool| Some([1.0, 0.5][pool])).expect("all can run");
    // Four tasks a second on the four, and two on the other.
    assert!(close(found.area, 5.0) && close(found.mixed, 5.0), "{found:?}");
    assert_eq!(found.critical_path, 0.5);
}

#[test]
fn a_chain_takes_as_long_as_its_tasks() {
    let mut graph = TaskGraph::new("chain");
    let kind = graph.add_kind("k");
    let data = graph.add_data(Datum::new(1));
    for _ in 0..10 {
        graph.add_task(Task::new(kind).access(data, AccessMode::ReadWrite));
    }
    let pools = [Pool { workers: 3 }, Pool { workers: 1 }];
    let found = bounds(&graph, &graph.dependencies(), &pools, |_, pool| Some([2.0, 1.0][pool])).expect("all can run");
    assert!(close(found.critical_path, 10.0) && close(found.mixed, 10.0), "{found:?}");
    // Of 2.5 tasks a second three halves are on the three.
    assert!(close(found.area, 4.0), "{found:?}");
}

#[test]
fn one_pool_needs_no_program() {
    let graph = generate::fork_join(8, 3, Duration::from_secs(1), 8);
    let found = bounds(&graph, &graph.dependencies(), &[Pool { workers: 4 }], |_, _| Some(1.0)).expect("all can run");
    assert!(close(found.area, 30.0 / 4.0) && close(found.critical_path, 9.0) && close(found.best(), 9.0), "{found:?}");
    assert!(close(found.ratio(18.0), 2.0));
}

#[test]
fn nothing_takes_no_time() {
    let graph = TaskGraph::new("empty");
    let found = bounds(&graph, &graph.dependencies(), &[Pool { workers: 4 }], |_, _| None).expect("there is nothing");
    assert_eq!((found.best(), found.ratio(0.0)), (0.0, 1.0));
}

#[test]
fn a_task_that_can_run_nowhere_is_named() {
    let graph = generate::cholesky(2, 8);
    let pools = [Pool { workers: 1 }, Pool { workers: 0 }];
    let seconds = |task: &Task, pool| (pool == 1 || task.kind.0 != 2).then_some(1.0);
    let error = bounds(&graph, &graph.dependencies(), &pools, seconds).expect_err("the second pool is empty");
    insta::assert_snapshot!(error, @"task 2 (syrk(1,0)) can run on none of the workers, so that no time is long enough");
}

#[test]
fn very_many_lengths_are_taken_for_a_little_shorter() {
    let mut graph = generate::independent(3000, Duration::from_secs(1));
    for (number, task) in graph.tasks.iter_mut().enumerate() {
        task.flops = 1.0 + number as f64 / 3000.0;
    }
    let pools = [Pool { workers: 2 }, Pool { workers: 3 }];
    let found = bounds(&graph, &graph.dependencies(), &pools, |task, _| Some(task.flops)).expect("all can run");
    let exact = graph.flops() / 5.0;
    assert!(found.area <= exact * (1.0 + 1e-9) && found.area > 0.99 * exact, "{} of {exact}", found.area);
}

/// Microseconds of potrf, trsm, syrk and gemm of tiles of 960 single-precision numbers, on a core and on each of three
/// devices: means that StarPU measured on two machines (`starpu-sampling` of the reference data).
const MIRAGE: [[f64; 4]; 4] = [
    [18849.69, 5366.740, 5557.011, 5500.099],
    [45646.76, 6393.638, 6416.842, 6409.443],
    [43890.10, 1402.745, 1414.295, 1414.104],
    [87780.20, 2805.491, 2828.590, 2828.209],
];
const ATTILA: [[f64; 4]; 4] = [
    [75933.70, 44253.57, 45557.77, 48283.33],
    [43615.94, 6302.421, 6325.409, 6297.128],
    [42037.79, 1397.835, 1407.935, 1405.104],
    [84075.59, 2795.670, 2815.870, 2810.209],
];

/// The bounds that others computed for the same factorisations, with the same model.
#[test]
fn bounds_of_cholesky_are_the_known_ones() {
    let Some(file) = reference_data("starpu-makespans/cholesky-bounds.csv") else { return };
    let known = std::fs::read_to_string(file).expect("it can be read");
    for line in known.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<f64>().expect("it is a number");
        let times = match fields[0] {
            "mirage" => MIRAGE,
            "attila" => ATTILA,
            _ => continue,
        };
        let graph = generate::cholesky(number(1) as usize, 960);
        let pools = [9, 1, 1, 1].map(|workers| Pool { workers });
        let seconds = |task: &Task, pool: usize| Some(times[task.kind.index()][pool] * 1e-6);
        let found = bounds(&graph, &graph.dependencies(), &pools, seconds).expect("all can run");
        let near = |a: f64, b: f64| (a - b).abs() <= 2e-6 + 1e-5 * b;
        assert!(near(found.critical_path, number(5)), "{line}: {found:?}");
        assert!(near(found.area, number(4)), "{line}: {found:?}");
        // Theirs lets the rest of the chain run where it is fastest; ours finds room for it among all other tasks.
        let ratio = found.mixed / number(6);
        assert!((1.0 - 1e-4..1.02).contains(&ratio), "{line}: {found:?}");
    }
}

proptest! {
    #[test]
    fn no_schedule_is_shorter(
        layers in 1usize..5, width in 1usize..5, seed in any::<u64>(),
        speeds in prop::collection::vec(1u32..20, 2), workers in prop::collection::vec(1u32..4, 2),
    ) {
        let from = generate::Layered { layers, width, density: 0.4, length: Duration::from_secs(1), bytes: 1, seed };
        let mut graph = generate::layered(from);
        for (number, task) in graph.tasks.iter_mut().enumerate() {
            task.flops = (number % 3) as f64 + 0.5;
        }
        let pools = [0, 1].map(|pool| Pool { workers: workers[pool] });
        // The second pool is faster for some tasks than for others.
        let seconds = |task: &Task, pool: usize| task.flops.powi(pool as i32 + 1) / f64::from(speeds[pool]);
        let found = bounds(&graph, &graph.dependencies(), &pools, |task, pool| Some(seconds(task, pool))).unwrap();
        prop_assert!(found.mixed >= found.area && found.mixed >= found.critical_path);
        let processors: Vec<Processor> = [Arch::CPU, Arch::CUDA].into_iter().zip(&workers)
            .flat_map(|(arch, count)| (0..*count).map(move |_| Processor { arch, place: 0 })).collect();
        let problem = Problem::of(&graph, &processors, Links::FREE, |task, arch| Some(seconds(task, usize::from(arch != Arch::CPU)))).unwrap();
        prop_assert!(heft(&problem).makespan() >= found.best() * (1.0 - 1e-6));
    }
}

#[test]
fn a_chain_moves_its_data_where_no_pool_can_execute_all_of_it() {
    let mut graph = TaskGraph::new("chain");
    let kinds = [graph.add_kind("on cores"), graph.add_kind("on the device"), graph.add_kind("anywhere")];
    let data = graph.add_data(Datum::new(1000));
    for kind in [kinds[1], kinds[2], kinds[0], kinds[1]] {
        graph.add_task(Task::new(kind).access(data, AccessMode::ReadWrite));
    }
    let seconds = |task: &Task, pool: usize| match (task.kind == kinds[0], task.kind == kinds[1], pool) {
        (true, _, 1) | (_, true, 0) => None,
        (_, _, 0) => Some(3.0),
        _ => Some(2.0),
    };
    // One second for a thousand bytes from one memory to the other; data is at home on the cores.
    let travel = |from, to: usize, bytes: u64| match (from, to) {
        (Origin::Home(_), 0) => 0.0,
        (Origin::Pool(from), to) if from == to => 0.0,
        _ => bytes as f64 / 1000.0,
    };
    let pools = [Pool { workers: 1 }; 2];
    let of = |travels: bool| {
        let costs =
            Costs { seconds: &seconds, travel: &|from, to, bytes| if travels { travel(from, to, bytes) } else { 0.0 } };
        bound_with_transfers(&graph, &graph.dependencies(), &pools, &costs, 0.0).expect("all can run")
    };
    // To the device, two tasks there, back, a task on a core, and to the device again.
    let found = of(true);
    assert!(close(found, 1.0 + 2.0 + 2.0 + 1.0 + 3.0 + 1.0 + 2.0), "{found}");
    assert!(close(of(false), 9.0), "{}", of(false));
}

/// Costs by closures.
struct Costs<'a> {
    seconds: &'a dyn Fn(&Task, usize) -> Option<f64>,
    travel: &'a dyn Fn(Origin, usize, u64) -> f64,
}

impl LeastCosts for Costs<'_> {
    fn seconds(&self, task: &Task, pool: usize) -> Option<f64> {
        (self.seconds)(task, pool)
    }

    fn travel(&self, from: Origin, pool: usize, bytes: u64) -> f64 {
        (self.travel)(from, pool, bytes)
    }
}

#[test]
fn work_between_chains_counts_with_them() {
    // A fork and a join of a second each around eight tasks of a second, on four workers.
    let graph = generate::fork_join(8, 1, Duration::from_secs(1), 8);
    let costs = Costs { seconds: &|_, _| Some(1.0), travel: &|_, _, _| 0.0 };
    let found = bound_with_transfers(&graph, &graph.dependencies(), &[Pool { workers: 4 }], &costs, 0.0);
    let found = found.expect("all can run");
    assert!((3.99..=4.0).contains(&found), "{found}");
}

#[test]
fn tasks_are_not_divided() {
    let costs = Costs { seconds: &|_, pool| Some([2.0, 1.0][pool]), travel: &|_, _, _| 0.0 };
    for (workers, tasks, least) in [([2, 0], 5, 6.0), ([2, 1], 5, 3.0), ([1, 2], 6, 3.0)] {
        let graph = generate::independent(tasks, Duration::from_secs(1));
        let pools = workers.map(|workers| Pool { workers });
        let found = bound_with_transfers(&graph, &graph.dependencies(), &pools, &costs, 0.0).expect("all can run");
        assert!(close(found, least), "{tasks} tasks on {workers:?}: {found}");
    }
}

#[test]
fn a_task_is_not_where_it_would_end_too_late() {
    // In parts, the long task would be shared: 4 s. Whole, it takes the core 6 s, so it is on the device.
    let mut graph = generate::independent(4, Duration::from_secs(1));
    graph.tasks[0].flops = 3.0;
    let seconds = |task: &Task, pool: usize| {
        let is_long = task.flops == 3.0;
        Some(if is_long { [6.0, 3.0] } else { [3.2, 1.0] }[pool])
    };
    let costs = Costs { seconds: &seconds, travel: &|_, _, _| 0.0 };
    let pools = [Pool { workers: 1 }, Pool { workers: 1 }];
    let found = bound_with_transfers(&graph, &graph.dependencies(), &pools, &costs, 0.0).expect("all can run");
    assert!((4.3..=5.0).contains(&found), "{found}");
}

/// The shortest schedule of all placements and orders, with transfers that do not wait for each other.
struct Exhaustive<'a> {
    graph: &'a TaskGraph,
    predecessors: Vec<Vec<TaskId>>,
    pools: &'a [Pool],
    costs: &'a Costs<'a>,
    best: f64,
}

/// A schedule of some of the tasks.
#[derive(Clone)]
struct Partial {
    ends: Vec<Option<f64>>,
    /// By pool and worker.
    free: Vec<Vec<f64>>,
    pool_of: Vec<usize>,
}

impl Exhaustive<'_> {
    fn shortest(graph: &TaskGraph, pools: &[Pool], costs: &Costs<'_>) -> f64 {
        let dependencies = graph.dependencies();
        let predecessors = graph.ids().map(|task| dependencies.predecessors(task).to_vec()).collect();
        let mut search = Exhaustive { graph, predecessors, pools, costs, best: f64::INFINITY };
        let tasks = graph.tasks.len();
        search.extend(&Partial {
            ends: vec![None; tasks],
            free: pools.iter().map(|pool| vec![0.0; pool.workers as usize]).collect(),
            pool_of: vec![0; tasks],
        });
        search.best
    }

    /// When the data of a task is in a pool. Data that was written comes from its last writer.
    fn arrival(&self, partial: &Partial, task: TaskId, pool: usize) -> f64 {
        let mut arrival = 0.0_f64;
        for access in self.graph.task(task).accesses.iter().filter(|access| access.mode.reads()) {
            let datum = &self.graph.data[access.data.index()];
            let writes = |other: &TaskId| {
                self.graph.task(*other).accesses.iter().any(|by| by.data == access.data && by.mode.writes())
            };
            let writer = (0..task.0).rev().map(TaskId).find(writes);
            arrival = arrival.max(match writer {
                None => (self.costs.travel)(Origin::Home(datum.home), pool, datum.bytes),
                Some(writer) => {
                    let end = partial.ends[writer.index()].expect("it comes first");
                    end + (self.costs.travel)(Origin::Pool(partial.pool_of[writer.index()]), pool, datum.bytes)
                }
            });
        }
        arrival
    }

    fn extend(&mut self, partial: &Partial) {
        let so_far = partial.ends.iter().flatten().copied().fold(0.0, f64::max);
        if so_far >= self.best {
            return;
        }
        if partial.ends.iter().all(Option::is_some) {
            self.best = so_far;
            return;
        }
        for task in self.graph.ids().filter(|task| partial.ends[task.index()].is_none()) {
            let before: Option<Vec<f64>> =
                self.predecessors[task.index()].iter().map(|before| partial.ends[before.index()]).collect();
            let Some(before) = before else { continue };
            for pool in 0..self.pools.len() {
                let Some(length) = (self.costs.seconds)(self.graph.task(task), pool) else { continue };
                let ready = before.iter().copied().fold(self.arrival(partial, task, pool), f64::max);
                for worker in 0..partial.free[pool].len() {
                    let mut next = partial.clone();
                    let end = ready.max(partial.free[pool][worker]) + length;
                    (next.free[pool][worker], next.ends[task.index()]) = (end, Some(end));
                    next.pool_of[task.index()] = pool;
                    self.extend(&next);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn no_placement_and_order_is_shorter_than_the_bound_with_transfers(
        tasks in prop::collection::vec((0usize..3, 0usize..3, 0usize..2, prop::array::uniform2(0u32..8)), 1..6),
        workers in prop::array::uniform2(1u32..3),
        travels in prop::array::uniform3(0u32..5),
    ) {
        let mut graph = TaskGraph::new("random accesses");
        let kind = graph.add_kind("k");
        let data = [1, 2, 3].map(|bytes| graph.add_data(Datum::new(bytes)));
        for (one, other, mode, lengths) in &tasks {
            let mut task = Task::new(kind).access(data[*one], [AccessMode::ReadWrite, AccessMode::Write][*mode]);
            if other != one {
                task = task.access(data[*other], AccessMode::Read);
            }
            task.flops = f64::from(lengths[0] * 16 + lengths[1]);
            graph.add_task(task);
        }
        let pools = workers.map(|workers| Pool { workers });
        // A length of 0 stands for a pool where the task cannot run; somewhere it can.
        let seconds = |task: &Task, pool: usize| {
            let length = if pool == 0 { (task.flops / 16.0).floor() } else { task.flops % 16.0 };
            (length > 0.0 || task.flops == 0.0).then_some(length)
        };
        let travel = |from, to: usize, bytes: u64| match (from, to) {
            (Origin::Home(_), 0) => 0.0,
            (Origin::Home(_), _) => f64::from(travels[0]) * bytes as f64,
            (Origin::Pool(from), to) if from == to => 0.0,
            (Origin::Pool(_), to) => f64::from(travels[1 + to]) * bytes as f64,
        };
        let costs = Costs { seconds: &seconds, travel: &travel };
        let bound = bound_with_transfers(&graph, &graph.dependencies(), &pools, &costs, 0.0).expect("all can run");
        let shortest = Exhaustive::shortest(&graph, &pools, &costs);
        prop_assert!(bound <= shortest * (1.0 + 1e-9) + 1e-9, "{bound} is above {shortest}");
        let without = bounds(&graph, &graph.dependencies(), &pools, seconds).expect("all can run");
        prop_assert!(without.best() <= shortest * (1.0 + 1e-9) + 1e-9);
    }
}

/// The shortest of all divisions of these tasks, with lengths in both pools, among two pools' workers; those of the
/// second begin after `load`.
fn shortest_division(tasks: &[[u32; 2]], workers: [u32; 2], load: u32) -> u32 {
    let all = workers[0] + workers[1];
    let until = |division: u32| {
        let mut ends: Vec<u32> = (0..all).map(|_| 0).collect();
        for (number, lengths) in tasks.iter().enumerate() {
            let worker = division / all.pow(number as u32) % all;
            let pool = usize::from(worker >= workers[0]);
            let end = &mut ends[worker as usize];
            *end = if pool == 1 { (*end).max(load) } else { *end } + lengths[pool];
        }
        ends.into_iter().max().unwrap_or(0)
    };
    (0..all.pow(tasks.len() as u32)).map(until).min().unwrap_or(0)
}

proptest! {
    #[test]
    fn no_division_of_independent_tasks_is_shorter_than_the_bound_with_transfers(
        tasks in prop::collection::vec(prop::array::uniform2(1u32..12), 1..7),
        workers in prop::array::uniform2(1u32..3),
        load in 0u32..6,
    ) {
        let mut graph = TaskGraph::new("independent");
        let kind = graph.add_kind("k");
        for [one, other] in &tasks {
            let data = graph.add_data(Datum::new(1));
            let mut task = Task::new(kind).access(data, AccessMode::Read);
            task.flops = f64::from(one * 16 + other);
            graph.add_task(task);
        }
        let seconds = |task: &Task, pool: usize| Some([(task.flops / 16.0).floor(), task.flops % 16.0][pool]);
        let travel = |_, to: usize, _| if to == 1 { f64::from(load) } else { 0.0 };
        let costs = Costs { seconds: &seconds, travel: &travel };
        let pools = workers.map(|workers| Pool { workers });
        let bound = bound_with_transfers(&graph, &graph.dependencies(), &pools, &costs, 0.0).expect("all can run");
        let shortest = f64::from(shortest_division(&tasks, workers, load));
        prop_assert!(bound <= shortest * (1.0 + 1e-9), "{bound} is above {shortest}");
    }
}
