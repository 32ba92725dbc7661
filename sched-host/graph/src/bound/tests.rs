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
    let found = chain_with_transfers(&graph, &graph.dependencies(), 2, seconds, travel);
    // To the device, two tasks there, back, a task on a core, and to the device again.
    assert!(close(found, 1.0 + 2.0 + 2.0 + 1.0 + 3.0 + 1.0 + 2.0), "{found}");
    let free = chain_with_transfers(&graph, &graph.dependencies(), 2, seconds, |_, _, _| 0.0);
    assert!(close(free, 9.0), "{free}");
}
