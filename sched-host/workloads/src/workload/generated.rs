//! The graphs that are simulated are those of the workloads: the same tasks, with the same accesses to data of the same
//! sizes.

use super::testing::builder;
use super::{Cholesky, Lu, Qr, Workload};
use sched_graph::generate::{cholesky, lu, qr};
use sched_graph::{AccessMode, TaskGraph};

/// Kind, priority, and mode and size of each access.
type TaskShape = (String, i32, Vec<(AccessMode, u64)>);

/// What can be compared of a graph: its tasks, and what they wait for.
#[derive(PartialEq, Debug)]
struct Shape {
    tasks: Vec<TaskShape>,
    edges: Vec<Vec<u32>>,
}

fn shape(graph: &TaskGraph) -> Shape {
    let tasks = graph.tasks.iter().map(|task| {
        let sizes = task.accesses.iter().map(|access| (access.mode, graph.data[access.data.index()].bytes));
        let mut sizes: Vec<(AccessMode, u64)> = sizes.collect();
        sizes.sort_by_key(|(mode, bytes)| (*mode as u8, *bytes));
        (graph.kind_of(task).name.clone(), task.priority, sizes)
    });
    let dependencies = graph.dependencies();
    let waits = |task: usize| {
        let mut before: Vec<u32> =
            dependencies.predecessors(sched_graph::TaskId(task as u32)).iter().map(|task| task.0).collect();
        before.sort_unstable();
        before
    };
    Shape { tasks: tasks.collect(), edges: (0..graph.tasks.len()).map(waits).collect() }
}

fn check<W: Workload>(generated: fn(usize, usize) -> TaskGraph) {
    // Tiles that are smaller than a block of reflectors, and larger.
    for (tiles, tile_size) in [(4, 8), (3, 40)] {
        let runtime = builder("tree-eager", 1).capture_graph().build().expect("it starts");
        let matrix = W::random(tiles * tile_size, 1);
        W::run(&runtime, W::cut(&*matrix, tile_size)).expect("it has factors");
        let captured = runtime.take_graph().expect("it was captured");
        assert_eq!(shape(&generated(tiles, tile_size)), shape(&captured), "{} of {tiles} × {tile_size}", W::NAME);
    }
}

#[test]
fn generated_graphs_are_those_of_the_workloads() {
    check::<Cholesky>(cholesky);
    check::<Lu>(lu);
    check::<Qr>(qr);
}
