//! Shapes of the generated graphs.

use super::*;
use crate::TaskId;
use crate::factorisation::{Tiling, cholesky_steps, flops};
use crate::priorities::bottom_levels;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Number of tasks on the longest chain.
fn depth(graph: &TaskGraph) -> f64 {
    bottom_levels(&graph.dependencies(), |_| 1.0).into_iter().fold(0.0, f64::max)
}

#[test]
fn cholesky_is_the_factorisation_that_sched_run_does() {
    let graph = cholesky(6, 32);
    let tiling = Tiling::new(6 * 32, 32);
    assert_eq!(graph.data.len(), 21);
    assert_eq!(graph.flops(), flops::cholesky(6 * 32));
    for (task, step) in graph.tasks.iter().zip(cholesky_steps(6)) {
        assert_eq!(graph.kind_of(task).name, step.kernel());
        assert_eq!((task.priority as usize, task.flops), (step.priority(6), step.flops(tiling)));
    }
    assert_eq!(depth(&graph), 3.0 * 5.0 + 1.0);
}

#[test]
fn lu_has_the_operations_of_the_whole_matrix_and_the_known_depth() {
    let graph = lu(5, 20);
    let n: f64 = 100.0;
    let whole = n * (n - 1.0) * (4.0 * n + 1.0) / 6.0;
    assert!((graph.flops() - whole).abs() < 1e-6 * whole);
    assert_eq!(depth(&graph), 3.0 * 4.0 + 1.0);
    for (task, level) in graph.tasks.iter().zip(bottom_levels(&graph.dependencies(), |_| 1.0)) {
        assert_eq!(f64::from(task.priority), level, "{:?}", task.name);
    }
}

#[test]
fn qr_has_the_leading_operations_and_each_column_is_a_chain() {
    let graph = qr(6, 10);
    // A tile is eliminated after the one above it, and its row updated after that: the known depth of the flat tree.
    assert_eq!(depth(&graph), 3.0 * 5.0 + 1.0);
    let leading = 4.0 / 3.0 * 60f64.powi(3);
    assert!((graph.flops() / leading - 1.0).abs() < 0.01, "{}", graph.flops() / leading);
    let dependencies = graph.dependencies();
    let named =
        |name: &str| TaskId(graph.tasks.iter().position(|task| task.name.as_deref() == Some(name)).unwrap() as u32);
    for (task, level) in graph.tasks.iter().zip(bottom_levels(&dependencies, |_| 1.0)) {
        assert_eq!(f64::from(task.priority), level, "{:?}", task.name);
    }
    assert_eq!(dependencies.predecessors(named("tsqrt(2,0)")), [named("tsqrt(1,0)")]);
    assert_eq!(dependencies.predecessors(named("tsmqr(1,1,0)")), [named("unmqr(0,1)"), named("tsqrt(1,0)")]);
}

#[test]
fn a_stencil_waits_for_its_neighbours() {
    let graph = stencil(4, 3, MS, 100);
    let dependencies = graph.dependencies();
    assert_eq!(dependencies.predecessors(TaskId(4)), [0, 1].map(TaskId));
    assert_eq!(dependencies.predecessors(TaskId(5)), [0, 1, 2].map(TaskId));
    // The third step writes over what the second one read.
    assert_eq!(dependencies.predecessors(TaskId(8)), [4, 5].map(TaskId));
    assert_eq!(depth(&graph), 3.0);
}

#[test]
fn phases_of_a_fork_join_come_one_after_the_other() {
    let graph = fork_join(3, 2, MS, 8);
    assert_eq!((graph.tasks.len(), depth(&graph)), (10, 6.0));
    let dependencies = graph.dependencies();
    assert_eq!(dependencies.entries().collect::<Vec<_>>(), [TaskId(0)]);
    assert_eq!(dependencies.predecessors(TaskId(4)), [1, 2, 3].map(TaskId));
}

#[test]
fn independent_tasks_wait_for_nothing() {
    let graph = independent(7, MS);
    assert_eq!((graph.tasks.len(), graph.dependencies().n_edges()), (7, 0));
}

#[test]
fn random_layers_are_the_same_for_the_same_seed_and_as_deep_as_asked() {
    let from = Layered { layers: 9, width: 5, density: 0.3, length: MS, bytes: 8, seed: 3 };
    let graph = layered(from);
    assert_eq!(graph, layered(from));
    assert_ne!(graph, layered(Layered { seed: 4, ..from }));
    assert_eq!((graph.tasks.len(), depth(&graph)), (45, 9.0));
    let dependencies = graph.dependencies();
    assert_eq!(dependencies.entries().count(), 5);
}

#[test]
fn graphs_may_have_nothing_in_them() {
    for graph in [
        cholesky(0, 8),
        lu(0, 8),
        qr(0, 8),
        stencil(0, 3, MS, 8),
        stencil(3, 0, MS, 8),
        fork_join(0, 0, MS, 8),
        independent(0, MS),
    ] {
        assert_eq!(graph.dependencies().n_tasks(), 0, "{}", graph.name);
    }
    assert_eq!(fork_join(0, 1, MS, 8).dependencies().n_edges(), 1);
}
